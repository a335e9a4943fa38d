package store

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"pond/inference/checkpoint/badhub"
	"pond/inference/checkpoint/fetch"
)

// TestFullDisk fills a small disk from elsewhere in the middle of a pull: the pull pauses with the numbers and keeps what it has; when
// there is room again it goes on.
func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	w.hub.Put("big.bin", badhub.Random(1, 6<<20))
	w.hub.Put("bigger.bin", badhub.Random(2, 6<<20))
	w.model = w.hub.Manifest("tiny", []string{"config.json", "big.bin", "bigger.bin"}, "owner/tiny")
	root := t.TempDir()
	if err := unix.Mount("pond", root, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("a small disk needs the right to mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(root, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w.store = Store{Root: root}
	w.options.FilesAtOnce, w.options.Connections = 1, 1
	filler := filepath.Join(root, "filler")
	var once sync.Once
	w.hub.Misbehave(func(a badhub.Ask) badhub.Act {
		if a.File == "big.bin" && a.From > 3<<20 {
			once.Do(func() {
				if err := os.WriteFile(filler, make([]byte, 8<<20), 0o644); err != nil {
					t.Error(err)
				}
			})
		}
		return badhub.Act{}
	})
	err := w.pull(t)
	var full *fetch.SpaceError
	if !errors.As(err, &full) || full.FreeBytes >= full.NeedBytes || !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("got %v, want a SpaceError with numbers", err)
	}
	w.wants(t, Partial)
	if _, err := os.Stat(filepath.Join(root, "tiny", "big.bin")); err != nil {
		t.Errorf("the file that was whole: %v", err)
	}
	// Still full: the numbers are told before anything is asked for.
	before := w.hub.Requests()
	if err := w.pull(t); !errors.As(err, &full) || w.hub.Requests() != before {
		t.Errorf("second: got %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := w.pull(t); err != nil {
		t.Fatal(err)
	}
	w.wants(t, Ready)
	if sent := w.hub.Sent("big.bin"); sent != 6<<20 {
		t.Errorf("big.bin: got %d bytes sent, want each once", sent)
	}
}
