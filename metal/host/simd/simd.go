// Package simd has the inner loops of the host executor: products of 4 and 8 bit weights with one row and with many, straight from the
// published bytes, and the float work between them, for AVX-512 (with VNNI), AVX2, and in plain Go for every other processor.
//
// Activations are quantised to integers group by group, so that a product of two groups of 64 is a sum of integers and is scaled once:
// 16 bits (relative error of a product 4e-5 for normal activations) or 8 bits (1e-2). Nothing is repacked but the activations.
// Start with Best; a Set is immutable and safe for concurrent use.
package simd

import "fmt"

// Group is how many weights share one scale and bias (MLX affine, spec 3.4).
const Group = 64

// pairSize is two groups: what the kernels work on at once.
const pairSize = 2 * Group

// Level is an instruction set.
type Level int

// The levels, slowest first.
const (
	Portable Level = iota
	AVX2           // with FMA
	AVX512         // F, BW, DQ, VL and VNNI
)

func (l Level) String() string {
	switch l {
	case Portable:
		return "plain Go"
	case AVX2:
		return "AVX2"
	case AVX512:
		return "AVX-512 VNNI"
	}
	return fmt.Sprintf("Level(%d)", int(l))
}

// Precision is how many bits an activation keeps in a product.
type Precision int

// The precisions.
const (
	Int16 Precision = 16
	Int8  Precision = 8
)

// limit is the largest magnitude of a quantised activation.
func (p Precision) limit() float32 {
	if p == Int8 {
		return 127
	}
	return 32767
}

// Set is the operations of one level and precision.
type Set struct {
	Level     Level
	Precision Precision
	floats
	products
}

// floats are operations on float32 vectors of any length.
type floats struct {
	// SumSquares is Σx².
	SumSquares func(x []float32) float32
	// Norm is dst = x·scale·w, w in bf16 bytes.
	Norm func(dst, x []float32, w []byte, scale float32)
	// Scale is dst = x·scale.
	Scale func(dst, x []float32, scale float32)
	// AddScaled is dst += x·scale.
	AddScaled func(dst, x []float32, scale float32)
	// SiluMul is dst = silu(gate)·up.
	SiluMul func(dst, gate, up []float32)
	// MulSigmoid is dst = x·scale·sigmoid(gate).
	MulSigmoid func(dst, x, gate []float32, scale float32)
	// ExpSum is x = e^(x−top), and returns the sum.
	ExpSum func(x []float32, top float32) float32
	// Max is the largest of x, which is not empty.
	Max func(x []float32) float32
	// DotRows is dst[i] = x · rows[i·stride:], n = len(x) long.
	DotRows func(dst, x, rows []float32, stride int)
	// AddRows is dst += Σ weights[i]·rows[i·stride:], n = len(dst) long.
	AddRows func(dst, weights, rows []float32, stride int)
	// ConvSilu is dst = silu(Σ taps[4·i+j]·u[j][i]), taps in bf16 bytes.
	ConvSilu func(dst []float32, taps []byte, u [4][]float32)
	// Delta runs the gated delta rule, see DeltaRows.
	Delta func(d DeltaRows)
}

// products are the parts of a product that differ by level. Widths are multiples of pairSize.
type products struct {
	// quantise writes, for each group of x: its step, step·Σq, and q = round(x/step) in its own order.
	quantise func(q []int16, steps, sums, x []float32, limit float32)
	// order puts q into the layout of mulVector.
	order func(v *Vector, p Precision)
	// mulVector is y[i] = row i · v for 4-bit rows.
	mulVector func(y []float32, m Matrix, row int, v *Vector, p Precision)
	// mulFew is y[i] = n rows from row on times vs[i] for 4-bit rows, each what mulVector gives; nil where there is no kernel for it.
	mulFew func(y [][]float32, m Matrix, row, n int, vs []*Vector, p Precision)
	// mulCodes8 is mulVector for 8-bit rows.
	mulCodes8 func(y []float32, m Matrix, row int, v *Vector)
	// tile is how many rows mulTile takes, 0 where there is none; widths are multiples of unit, tokens are padded to one of padTokens.
	tile, unit, padTokens int
	// pack puts token t, which r has just quantised, into the block.
	pack func(b *block, r *Rows, t int, p Precision)
	// mulTile adds rows from row on times the block's tokens to y [padded][tile].
	mulTile func(y []float32, m Matrix, row int, b *block, p Precision, w *Work)
}

// DeltaRows is the gated delta rule for some rows of the state of one value head over tokens, spec 2.4:
//
//	S ← decay·S;  d = beta·(v − S·k);  S ← S + d ⊗ k;  y = S·q
type DeltaRows struct {
	State   []float32 // [rows, width]
	Width   int       // of a key
	Q, K    []float32 // [tokens, width], normalised
	V, Y    []float32 // token t's rows begin at t·VStride, t·YStride
	VStride int
	YStride int
	Gates   []float32 // [tokens, 3]: decay, beta, k·q
	Rows    int
	Tokens  int
}

// Matrix is quantised weights as published: rows of K codes of Bits, bf16 scales and biases per group.
type Matrix struct {
	Codes, Scales, Biases []byte
	K, Bits               int
}

// rowBytes are the lengths of a row of codes, and of scales or biases.
func (m Matrix) rowBytes() (codes, scales int) { return m.K * m.Bits / 8, m.K / Group * 2 }

// at are row r's first bytes.
func (m Matrix) at(r int) (codes, scales, biases *byte) {
	c, s := m.rowBytes()
	return &m.Codes[r*c], &m.Scales[r*s], &m.Biases[r*s]
}

// check panics unless rows [row, row+n) lie inside the matrix: the kernels below do not look.
func (m Matrix) check(row, n int) {
	c, s := m.rowBytes()
	_, _, _ = m.Codes[(row+n)*c-1], m.Scales[(row+n)*s-1], m.Biases[(row+n)*s-1]
	_, _, _ = m.Codes[row*c], m.Scales[row*s], m.Biases[row*s]
}

// Fits says whether the kernels take rows of k weights: whole pairs of groups.
func Fits(k int) bool { return k > 0 && k%pairSize == 0 }

// Vector is one row of activations, quantised. Its memory is reused.
type Vector struct {
	k           int
	q           []int16   // in their own order
	ordered     []int16   // of the AVX2 kernels
	packed      []float32 // of the AVX-512 kernels: words of any kind
	words       []uint64  // of the portable kernels
	steps, sums []float32
}

// Quantise fills v from x, whose length Fits.
func (s *Set) Quantise(v *Vector, x []float32) {
	v.k = len(x)
	v.q = grow(v.q, len(x))
	v.steps, v.sums = grow(v.steps, len(x)/Group), grow(v.sums, len(x)/Group)
	s.quantise(v.q, v.steps, v.sums, x, s.Precision.limit())
	s.order(v, s.Precision)
}

// MulVector is y[i] = row+i of m times v.
func (s *Set) MulVector(y []float32, m Matrix, row int, v *Vector) {
	if len(y) == 0 {
		return
	}
	if m.K != v.k {
		panic(fmt.Sprintf("simd: got a vector of %d for rows of %d", v.k, m.K))
	}
	m.check(row, len(y))
	if m.Bits == 8 {
		s.mulCodes8(y, m, row, v)
	} else {
		s.mulVector(y, m, row, v, s.Precision)
	}
}

// fewRows is how many rows of weights all vectors of MulVectors meet before the next, where they have no kernel of their own: 9 KiB of 2,048
// wide rows, which stay in the first cache.
const fewRows = 8

// MulVectors is y[v][i] = row+i of m times vs[v], n rows: each what MulVector gives, and the weights come from memory once.
func (s *Set) MulVectors(y [][]float32, m Matrix, row, n int, vs []*Vector) {
	switch {
	case n == 0:
		return
	case len(vs) == 1:
		s.MulVector(y[0][:n], m, row, vs[0])
		return
	case m.Bits == 4 && s.mulFew != nil:
		m.check(row, n)
		for _, v := range vs {
			if m.K != v.k {
				panic(fmt.Sprintf("simd: got a vector of %d for rows of %d", v.k, m.K))
			}
		}
		s.mulFew(y, m, row, n, vs, s.Precision)
		return
	}
	for i := 0; i < n; i += fewRows {
		end := min(i+fewRows, n)
		for j, v := range vs {
			s.MulVector(y[j][i:end], m, row+i, v)
		}
	}
}

// grow returns a slice of n elements, contents undefined, in s's memory where that suffices.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
