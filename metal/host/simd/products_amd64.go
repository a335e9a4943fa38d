package simd

func products512() products {
	return products{
		quantise: func(q []int16, steps, sums, x []float32, limit float32) {
			_, _ = x[len(steps)*Group-1], q[len(steps)*Group-1]
			quantise16AVX512(&q[0], &steps[0], &sums[0], &x[0], len(steps), limit)
		},
		order: order512,
		mulVector: func(y []float32, m Matrix, row int, v *Vector, p Precision) {
			f := few{y: [4]*float32{&y[0]}, x: [4]*float32{&v.packed[0]}}
			f.mul(1, m, row, len(y), p)
		},
		mulFew: mulFew512,
		mulCodes8: func(y []float32, m Matrix, row int, v *Vector) {
			codes, scales, biases := m.at(row)
			gemvCodes8AVX512(&y[0], codes, scales, biases, &v.q[0], &v.steps[0], &v.sums[0], len(y), m.K/pairSize)
		},
		tile: 32, unit: pairSize, padTokens: 8,
		pack: func(b *block, r *Rows, t int, p Precision) {
			groups := len(r.q) / Group
			for g := range groups {
				b.steps[g*b.padded+t], b.sums[g*b.padded+t] = r.steps[g], r.sums[g]
			}
			if p == Int8 {
				pack8AVX512(&b.q8[t*Group], &r.q[0], groups, b.padded*Group)
				return
			}
			pack16AVX512(&b.q16[t*Group], &r.q[0], groups, 2*b.padded*Group)
		},
		mulTile: mulTile512,
	}
}

// Blocks of a vector's packed words: up to blockPairs pairs of groups, behind their steps and sums, 16 of each.
const (
	blockPairs = 8
	blockHead  = 2 * 2 * blockPairs
)

// order512 lays q out beside its steps and sums, so that a kernel walks with one pointer a vector.
func order512(v *Vector, p Precision) {
	words, order := pairSize/2, order16AVX512
	if p == Int8 {
		words, order = pairSize/4, order8AVX512
	}
	pairs := v.k / pairSize
	v.packed = grow(v.packed, (pairs+blockPairs-1)/blockPairs*blockHead+pairs*words)
	at := 0
	for first := 0; first < pairs; first += blockPairs {
		n := min(blockPairs, pairs-first)
		copy(v.packed[at:], v.steps[2*first:2*(first+n)])
		copy(v.packed[at+blockHead/2:], v.sums[2*first:2*(first+n)])
		order(&v.packed[at+blockHead], &v.q[first*pairSize], n)
		at += blockHead + n*words
	}
}

// few is what the kernels of one to four vectors read: where results go, and packed vectors.
type few struct{ y, x [4]*float32 }

func mulFew512(y [][]float32, m Matrix, row, n int, vs []*Vector, p Precision) {
	for len(vs) > 0 {
		var f few
		some := min(len(vs), len(f.x))
		for i, v := range vs[:some] {
			_ = y[i][n-1]
			f.y[i], f.x[i] = &y[i][0], &v.packed[0]
		}
		f.mul(some, m, row, n, p)
		y, vs = y[some:], vs[some:]
	}
}

// mul calls the kernel of so many vectors; by name, because through a variable f would be allocated.
func (f *few) mul(vectors int, m Matrix, row, n int, p Precision) {
	codes, scales, biases := m.at(row)
	pairs := m.K / pairSize
	if p == Int8 {
		vectors += 4
	}
	switch vectors {
	case 1:
		gemv16x1AVX512(f, codes, scales, biases, n, pairs)
	case 2:
		gemv16x2AVX512(f, codes, scales, biases, n, pairs)
	case 3:
		gemv16x3AVX512(f, codes, scales, biases, n, pairs)
	case 4:
		gemv16x4AVX512(f, codes, scales, biases, n, pairs)
	case 5:
		gemv8x1AVX512(f, codes, scales, biases, n, pairs)
	case 6:
		gemv8x2AVX512(f, codes, scales, biases, n, pairs)
	case 7:
		gemv8x3AVX512(f, codes, scales, biases, n, pairs)
	case 8:
		gemv8x4AVX512(f, codes, scales, biases, n, pairs)
	}
}

// mulTile512 adds 32 rows from row on times the block's tokens to y [padded][32].
func mulTile512(y []float32, m Matrix, row int, b *block, p Precision, w *Work) {
	groups := m.K / Group
	codeBytes, scaleBytes := m.rowBytes()
	_, scales, biases := m.at(row)
	w.scales, w.biases = grow(w.scales, groups*32), grow(w.biases, groups*32)
	scales32AVX512(&w.scales[0], scales, scaleBytes, groups/2)
	scales32AVX512(&w.biases[0], biases, scaleBytes, groups/2)
	_ = m.Codes[(row+32)*codeBytes-1]
	if p == Int8 {
		w.weights8 = grow(w.weights8, tileWeights)
	} else {
		w.weights = grow(w.weights, tileWeights)
	}
	at := row * codeBytes
	for g := range groups {
		t := g * b.padded
		if p == Int8 {
			unpack8AVX512(&w.weights8[0], &m.Codes[at+g*Group/2], codeBytes)
			gemm8AVX512(&y[0], &w.weights8[0], &w.scales[g*32], &w.biases[g*32], &b.q8[t*Group], &b.steps[t], &b.sums[t], b.padded)
		} else {
			unpack16AVX512(&w.weights[0], &m.Codes[at+g*Group/2], codeBytes)
			gemm16AVX512(&y[0], &w.weights[0], &w.scales[g*32], &w.biases[g*32], &b.q16[t*Group], &b.steps[t], &b.sums[t], b.padded)
		}
	}
}

// unitAVX2 is how many values the AVX2 products take at once; other widths go the portable way.
const unitAVX2 = 4 * Group

func productsAVX2() products {
	return products{
		quantise: func(q []int16, steps, sums, x []float32, limit float32) {
			_, _ = x[len(steps)*Group-1], q[len(steps)*Group-1]
			quantise16AVX2(&q[0], &steps[0], &sums[0], &x[0], len(steps), limit)
		},
		order: func(v *Vector, p Precision) {
			if v.k%unitAVX2 != 0 {
				orderWords(v, p)
				return
			}
			v.ordered = grow(v.ordered, v.k)
			orderByFour(v.ordered, v.q)
		},
		mulVector: func(y []float32, m Matrix, row int, v *Vector, p Precision) {
			if m.K%unitAVX2 != 0 {
				mulVectorWords(y, m, row, v, p)
				return
			}
			codes, scales, biases := m.at(row)
			gemv16AVX2(&y[0], codes, scales, biases, &v.ordered[0], &v.steps[0], &v.sums[0], len(y), m.K/unitAVX2)
		},
		mulCodes8: func(y []float32, m Matrix, row int, v *Vector) {
			if m.K%unitAVX2 != 0 {
				mulCodes8(y, m, row, v)
				return
			}
			codes, scales, biases := m.at(row)
			gemvCodes8AVX2(&y[0], codes, scales, biases, &v.q[0], &v.steps[0], &v.sums[0], len(y), m.K/unitAVX2)
		},
		tile: 32, unit: unitAVX2, padTokens: 4,
		pack: func(b *block, r *Rows, t int, _ Precision) {
			k, groups := len(r.q), len(r.steps)
			orderByFour(b.q16[t*k:(t+1)*k], r.q)
			copy(b.steps[t*groups:], r.steps)
			copy(b.sums[t*groups:], r.sums)
		},
		mulTile: mulTileAVX2,
	}
}

// orderByFour puts each pair of groups into the order [4][32], entry [c][i] = 4i+c.
func orderByFour(dst, q []int16) {
	for p := 0; p < len(q); p += pairSize {
		from, to := (*[pairSize]int16)(q[p:]), (*[pairSize]int16)(dst[p:])
		for i := range pairSize / 4 {
			to[i], to[32+i], to[64+i], to[96+i] = from[4*i], from[4*i+1], from[4*i+2], from[4*i+3]
		}
	}
}

// mulTileAVX2 adds 32 rows from row on times the block's tokens, four at a time, to y [padded][32]. The rows' codes, 32 KiB where K is
// 2,048, stay in the caches meanwhile.
func mulTileAVX2(y []float32, m Matrix, row int, b *block, _ Precision, w *Work) {
	groups := m.K / Group
	codes, scales, biases := m.at(row)
	w.scales = grow(w.scales, 32*4)
	for t := 0; t < b.padded; t += 4 {
		gemm16AVX2(&w.scales[0], codes, scales, biases, &b.q16[t*m.K], &b.steps[t*groups], &b.sums[t*groups], 32, m.K/unitAVX2)
		for i := range 32 {
			for j := range 4 {
				y[(t+j)*32+i] += w.scales[4*i+j]
			}
		}
	}
}
