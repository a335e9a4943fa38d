package simd

//go:noescape
func readAVX2(p *byte, n int) uint64

// Read reads p once, as fast as this package knows how to: what measured rates are compared with. The sum depends on what was read.
func Read(p []byte) uint64 {
	n := len(p) &^ 255
	if Best() < AVX2 || n == 0 {
		return readWords(p)
	}
	return readAVX2(&p[0], n) + readWords(p[n:])
}
