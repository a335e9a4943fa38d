package simd

import "encoding/binary"

// readWords sums the whole words of p.
func readWords(p []byte) (sum uint64) {
	for ; len(p) >= 32; p = p[32:] {
		sum += binary.LittleEndian.Uint64(p) ^ binary.LittleEndian.Uint64(p[8:]) ^ binary.LittleEndian.Uint64(p[16:]) ^ binary.LittleEndian.Uint64(p[24:])
	}
	for ; len(p) >= 8; p = p[8:] {
		sum += binary.LittleEndian.Uint64(p)
	}
	return sum
}
