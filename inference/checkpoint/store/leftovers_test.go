package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"pond/inference/checkpoint/badhub"
	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/fetch"
)

// TestNothingCameLeavesNothing: a pull from a hub that answers 404 to everything left a folder with gigabytes in it.
func TestNothingCameLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.hub.Put("big.bin", badhub.Random(1, 3<<20))
	w.model = w.hub.Manifest("tiny", []string{"big.bin", "config.json"}, "owner/tiny")
	w.hub.Misbehave(func(badhub.Ask) badhub.Act { return badhub.Act{Kind: badhub.Status, Status: 404} })
	var gone *fetch.SourceError
	if err := w.pull(t); !errors.As(err, &gone) {
		t.Fatalf("got %v, want a SourceError", err)
	}
	w.wants(t, Absent)
	if left, err := os.ReadDir(w.store.Root); err != nil || len(left) != 0 {
		t.Errorf("got %v, %v; want an empty folder of models", left, err)
	}
}

// TestLeftoversAreSeenAndRemoved: a part without anything known of it, such as a crash leaves, was "not installed" to list, and rm left it.
func TestLeftoversAreSeenAndRemoved(t *testing.T) {
	w := newWorld(t)
	dir := w.store.Dir("tiny")
	must(t, os.MkdirAll(dir, 0o755))
	part, err := os.Create(filepath.Join(dir, weights+fetch.PartSuffix))
	must(t, err)
	must(t, disk.Preallocate(part, w.size(weights)))
	must(t, part.Close())
	must(t, os.WriteFile(filepath.Join(dir, weights+fetch.StateSuffix+disk.TempSuffix), nil, 0o644))
	must(t, os.WriteFile(filepath.Join(dir, weights+adoptingSuffix), nil, 0o644))
	w.wants(t, Partial)
	if st := w.state(t); st.DoneBytes != 0 || st.DiskBytes < w.size(weights) {
		t.Errorf("got %d bytes done, %d on the disk; want 0 and at least %d", st.DoneBytes, st.DiskBytes, w.size(weights))
	}
	left, err := w.store.Remove(w.model)
	if err != nil || len(left) != 0 {
		t.Errorf("got %v, %v", left, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want the folder gone", err)
	}
}
