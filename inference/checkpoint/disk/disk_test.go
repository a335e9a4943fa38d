package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestFreeAndFull(t *testing.T) {
	free, err := Free(t.TempDir())
	if err != nil || free <= 0 {
		t.Errorf("got %d, %v", free, err)
	}
	if _, err := Free(filepath.Join(t.TempDir(), "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the folder does not exist", err)
	}
	if !Full(fmt.Errorf("write: %w", unix.ENOSPC)) || Full(os.ErrNotExist) || Full(nil) {
		t.Error("Full does not tell ENOSPC from other errors")
	}
}

func TestPreallocateTakesTheRoom(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("kept"); err != nil {
		t.Fatal(err)
	}
	const n = 1<<20 + 1
	for range 2 { // a second time, as a resumed download does
		if err := Preallocate(f, n); err != nil {
			t.Fatal(err)
		}
	}
	info, err := f.Stat()
	if err != nil || info.Size() != n || Allocated(info) < n {
		t.Errorf("got %d bytes, %d on the disk, %v; want %d", info.Size(), Allocated(info), err, n)
	}
	head := make([]byte, 4)
	if _, err := f.ReadAt(head, 0); err != nil || string(head) != "kept" {
		t.Errorf("got %q, %v", head, err)
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	release, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	var locked *LockedError
	if _, err := Lock(dir); !errors.As(err, &locked) || locked.Dir != dir {
		t.Errorf("second: got %v, want a LockedError", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	release, err = Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(filepath.Join(dir, "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the folder does not exist", err)
	}
}

func TestReplaceAndIdentity(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := Replace(file, []byte("one")); err != nil {
		t.Fatal(err)
	}
	first, err := IdentityOf(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := Replace(file, []byte("two")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, time.Time{}, time.Unix(0, first.MTime+1)); err != nil {
		t.Fatal(err)
	}
	if second, err := IdentityOf(file); err != nil || second == first {
		t.Errorf("got %+v twice, %v", second, err)
	}
	if _, err := IdentityOf(filepath.Dir(file)); err == nil {
		t.Error("a folder: got no error")
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("got %v, %v; want one file", left, err)
	}
}

func TestRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record.json")
	type record struct{ N int }
	r := record{N: 7}
	if err := ReadRecord(file, &r); err != nil || r.N != 7 {
		t.Errorf("no file: got %v, %v, want it untouched", r, err)
	}
	if err := WriteRecord(file, record{N: 8}); err != nil {
		t.Fatal(err)
	}
	if err := ReadRecord(file, &r); err != nil || r.N != 8 {
		t.Errorf("got %v, %v, want 8", r, err)
	}
	for name, text := range map[string]string{"not JSON": "{", "too large": strings.Repeat(" ", maxRecordBytes+1)} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := ReadRecord(file, &r); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v, want an error that names the file", name, err)
		}
	}
	// A pipe in a record's place once made every command wait for ever.
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no pipe can be made here: ", err)
	}
	if err := ReadRecord(pipe, &r); err == nil {
		t.Error("a pipe: got no error")
	}
}
