package simd

import (
	"encoding/binary"
	"math"
)

// portable are the operations in plain Go: what every level is tested against, and what processors without one of their own use.
func portable(p Precision) *Set {
	return &Set{Level: Portable, Precision: p, floats: portableFloats(), products: portableProducts()}
}

func portableProducts() products {
	return products{quantise: quantise, order: orderWords, mulVector: mulVectorWords, mulCodes8: mulCodes8}
}

func quantise(q []int16, steps, sums, x []float32, limit float32) {
	for g := range steps {
		xg := x[g*Group : (g+1)*Group]
		var top float32
		for _, v := range xg {
			top = max(top, math.Float32frombits(math.Float32bits(v)&0x7fffffff))
		}
		step, inverse := top/limit, float32(0)
		if top > 0 {
			inverse = limit / top
		}
		var n int32
		for i, v := range xg {
			k := int32(math.RoundToEven(float64(v * inverse)))
			q[g*Group+i] = int16(k)
			n += k
		}
		steps[g], sums[g] = step, step*float32(n)
	}
}

// Words of the portable product. One 64-bit multiplication adds four products: with the fields of one factor in reverse order, the
// product's top 16 bits are Σ w·x. Activations are split into two digits of 8 bits, the upper one with 128 added so that no field is
// negative: q = 256·(high−128) + low. Four words of four fields hold sixteen values, 4·15·255 < 2^16 leaves no carry.
const (
	digitWords = Group / 4 // words of one digit of a group
	nibbles    = 0x000f000f000f000f
	ones       = 0x0001000100010001
)

func orderWords(v *Vector, p Precision) {
	groups := v.k / Group
	v.words = grow(v.words, groups*2*digitWords)
	for g := range groups {
		w := v.words[g*2*digitWords:][:2*digitWords]
		for i := range digitWords { // 16 values from 16·(i/4), column i%4
			var high, low uint64
			for f := range 4 {
				q := int32(v.q[g*Group+i/4*16+4*f+i%4])
				if p == Int8 {
					q <<= 8 // the upper digit alone
				}
				u := uint64(uint16(q + 1<<15))
				high |= u >> 8 << (16 * (3 - f))
				low |= u & 255 << (16 * (3 - f))
			}
			w[i], w[digitWords+i] = high, low
		}
	}
}

func mulVectorWords(y []float32, m Matrix, row int, v *Vector, p Precision) {
	codeBytes, scaleBytes := m.rowBytes()
	for i := range y {
		codes := m.Codes[(row+i)*codeBytes:][:codeBytes]
		scales, biases := m.Scales[(row+i)*scaleBytes:][:scaleBytes], m.Biases[(row+i)*scaleBytes:][:scaleBytes]
		var acc float32
		for g, step := range v.steps {
			c := (*[Group / 2]byte)(codes[g*Group/2:])
			high, sum := dotWords(c, (*[digitWords]uint64)(v.words[g*2*digitWords:]))
			dot := int64(high) - 128*int64(sum)
			if p == Int16 {
				low, _ := dotWords(c, (*[digitWords]uint64)(v.words[g*2*digitWords+digitWords:]))
				dot = dot<<8 + int64(low)
			}
			acc += bf16(scales, g)*step*float32(dot) + bf16(biases, g)*v.sums[g]
		}
		y[i] = acc
	}
}

// dotWords is the product of a group's codes with one digit, and the sum of the codes.
func dotWords(c *[Group / 2]byte, w *[digitWords]uint64) (dot, sum uint64) {
	for j := range Group / 16 {
		u := binary.LittleEndian.Uint64(c[8*j:])
		p, q, r, s := u&nibbles, u>>4&nibbles, u>>8&nibbles, u>>12&nibbles
		dot += (p*w[4*j] + q*w[4*j+1] + r*w[4*j+2] + s*w[4*j+3]) >> 48
		sum += p + q + r + s
	}
	return dot, sum * ones >> 48
}

func mulCodes8(y []float32, m Matrix, row int, v *Vector) {
	codeBytes, scaleBytes := m.rowBytes()
	for i := range y {
		codes := m.Codes[(row+i)*codeBytes:][:codeBytes]
		scales, biases := m.Scales[(row+i)*scaleBytes:][:scaleBytes], m.Biases[(row+i)*scaleBytes:][:scaleBytes]
		var acc float32
		for g, step := range v.steps {
			var dot int32
			q := v.q[g*Group : (g+1)*Group]
			for j, c := range codes[g*Group : (g+1)*Group] {
				dot += int32(c) * int32(q[j])
			}
			acc += bf16(scales, g)*step*float32(dot) + bf16(biases, g)*v.sums[g]
		}
		y[i] = acc
	}
}

func bf16(raw []byte, i int) float32 {
	return math.Float32frombits(uint32(raw[2*i])<<16 | uint32(raw[2*i+1])<<24)
}
