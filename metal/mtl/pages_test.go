package mtl_test

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"

	"pond/metal/mtl"
)

// pages is n bytes of whole pages that are not Go's.
func pages(t *testing.T, n int) (memory []byte, free func()) {
	t.Helper()
	// Apple's pages are 16 KiB: take enough to find an aligned place in
	m, err := unix.Mmap(-1, 0, 2*n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	off := mtl.Alignment(m, n)
	return m[off : off+n], func() { unix.Munmap(m) }
}

func bits(f float32) uint32 { return math.Float32bits(f) }
