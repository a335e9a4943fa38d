package sample

import "math/bits"

// Uniform returns the random number of a position of the text under a seed: a
// multiple of 2^-24 in [0, 1). It is a pure function, so a device draws the same
// number without a state to carry, and a text can be continued at any position.
//
// It is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3", 2011) with the seed as key and the position as counter, low words first;
// the number is the top 24 bits of the first output word. 24 bits are exact in
// float32 too, for devices without float64.
func Uniform(seed uint64, position int) float64 {
	return float64(uniform(seed, position)) / (1 << 24)
}

// uniform is Uniform in parts of 2^24.
func uniform(seed uint64, position int) uint32 {
	p := uint64(position)
	return philox([4]uint32{uint32(p), uint32(p >> 32)}, [2]uint32{uint32(seed), uint32(seed >> 32)})[0] >> 8
}

// philox is Philox4x32 with 10 rounds.
func philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	c := counter
	for range 10 {
		high0, low0 := bits.Mul32(0xd2511f53, c[0])
		high1, low1 := bits.Mul32(0xcd9e8d57, c[2])
		c = [4]uint32{high1 ^ c[1] ^ key[0], low1, high0 ^ c[3] ^ key[1], low0}
		key[0] += 0x9e3779b9
		key[1] += 0xbb67ae85
	}
	return c
}
