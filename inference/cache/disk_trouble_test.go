package cache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder whose name ends like that of a file being written kept all conversations off the disk, for ever.
func TestDiskOpensWhateverLiesInTheFolder(t *testing.T) {
	dev, dir := newDevice(t), t.TempDir()
	d := openDisk(t, dir, 1<<20)
	newFake(t, dev).talk(d, NewStore(1<<20), seq(0, 50), 40)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(d.dir, "x"+partSuffix)
	if err := os.MkdirAll(filepath.Join(foreign, "y"), 0o700); err != nil {
		t.Fatal(err)
	}
	d = openDisk(t, dir, 1<<20)
	if n := newFake(t, dev).resume(d, seq(0, 50)); n != 40 {
		t.Errorf("got %d tokens, want 40", n)
	}
	if _, err := os.Stat(foreign); !errors.Is(err, os.ErrNotExist) || d.Stats().Removed != 1 {
		t.Errorf("got %v and %d removed, want the foreign folder gone and counted", err, d.Stats().Removed)
	}
}

// A program that clears caches removed the folder while Pond ran: nothing was written from then on, and what had been there was still counted.
func TestDiskFolderThatWasRemoved(t *testing.T) {
	dev, dir := newDevice(t), t.TempDir()
	base := filepath.Join(dir, "conversations")
	d := openDisk(t, base, 1<<20)
	f, s := newFake(t, dev), NewStore(1<<20)
	f.talk(d, s, seq(0, 50), 40)
	if err := os.RemoveAll(base); err != nil {
		t.Fatal(err)
	}
	f.talk(d, s, seq(100, 150), 40)
	if n := newFake(t, dev).resume(d, seq(100, 150)); n != 40 {
		t.Errorf("written after that: got %d tokens, want 40", n)
	}
	if st := d.Stats(); st.Snapshots != 1 || st.LenBytes != st.WrittenBytes/2 {
		t.Errorf("got %+v, want what was removed no longer counted", st)
	}
	if _, err := OpenDisk(DiskOptions{Dir: base, BudgetBytes: 1, Key: KeyOf(nil, fakeSpecs()), Specs: fakeSpecs()}); !errors.As(err, new(*InUseError)) {
		t.Errorf("a second process: got %v, want that the folder is in use", err)
	}
	for _, v := range s.Savings(d) { // what is in memory still is written again
		if err := d.Write(context.Background(), v.Tokens, v.Snapshot); err != nil {
			t.Fatal(err)
		}
	}
	if n := newFake(t, dev).resume(d, seq(0, 50)); n != 40 {
		t.Errorf("written again: got %d tokens, want 40", n)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// Where there is no room the error has the numbers.
func TestDiskWithoutRoomSaysHowMuch(t *testing.T) {
	d := openDisk(t, t.TempDir(), 100)
	f, s := newFake(t, newDevice(t)), NewStore(1<<20)
	f.prompt(s, seq(0, 50), 40)
	c := s.Find(seq(0, 50), 49)
	err := d.Write(context.Background(), seq(0, 40), c)
	if !errors.Is(err, ErrRoom) || !strings.Contains(err.Error(), "at most") {
		t.Errorf("beyond the budget: got %v", err)
	}
	d.SetBudget(1 << 62)
	if err := d.free(1 << 61); !errors.Is(err, ErrRoom) || !strings.Contains(err.Error(), "MB free") {
		t.Errorf("beyond the disk: got %v", err)
	}
}
