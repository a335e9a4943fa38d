package checkpoint

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReadGaps takes a file out of the page cache, but for some pages in the middle, and reads the rest.
func TestReadGaps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	want := make([]byte, 9<<20+123)
	for i := range want {
		want[i] = byte(i * 31 >> 5)
	}
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	drop := func() {
		t.Helper()
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			t.Fatal(err)
		}
	}
	drop()
	m, err := mapFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.release()
	if supported, err := populateRead(m.data[4<<20 : 5<<20]); !supported || err != nil {
		t.Skipf("MADV_POPULATE_READ: got %v, %v; this kernel does not have it", supported, err)
	}
	for _, from := range []int64{0, 3 << 20} {
		if err := readGaps(f, m.data[from:], from); err != nil {
			t.Fatal(err)
		}
	}
	if string(m.data) != string(want) {
		t.Error("got other bytes than were written")
	}
	drop()
	if err := os.Truncate(path, 2<<20); err != nil {
		t.Fatal(err)
	}
	if err := readGaps(f, m.data, 0); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a file that was cut off: got %v, want an error that says so", err)
	}
}
