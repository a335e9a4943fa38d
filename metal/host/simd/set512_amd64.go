package simd

// The kernels below work on whole vectors of 16 floats; what is left over goes the portable way.
const lanes512 = 16

func floats512() floats {
	return floats{
		SumSquares: func(x []float32) float32 {
			n := len(x) &^ (lanes512 - 1)
			if n == 0 {
				return sumSquares(x)
			}
			return sumSquaresAVX512(&x[0], n) + sumSquares(x[n:])
		},
		Norm: func(dst, x []float32, w []byte, by float32) {
			n := len(x) &^ (lanes512 - 1)
			if n > 0 {
				_, _ = dst[n-1], w[2*n-1]
				normAVX512(&dst[0], &x[0], &w[0], by, n)
			}
			norm(dst[n:], x[n:], w[2*n:], by)
		},
		Scale: func(dst, x []float32, by float32) {
			n := len(x) &^ (lanes512 - 1)
			if n > 0 {
				_ = dst[n-1]
				scaleAVX512(&dst[0], &x[0], by, n)
			}
			scale(dst[n:], x[n:], by)
		},
		AddScaled: func(dst, x []float32, by float32) {
			n := len(x) &^ (lanes512 - 1)
			if n > 0 {
				_ = dst[n-1]
				addScaledAVX512(&dst[0], &x[0], by, n)
			}
			addScaled(dst[n:], x[n:], by)
		},
		SiluMul: func(dst, gate, up []float32) {
			n := len(dst) &^ (lanes512 - 1)
			if n > 0 {
				_, _ = gate[n-1], up[n-1]
				siluMulAVX512(&dst[0], &gate[0], &up[0], n)
			}
			siluMul(dst[n:], gate[n:], up[n:])
		},
		MulSigmoid: func(dst, x, gate []float32, by float32) {
			n := len(dst) &^ (lanes512 - 1)
			if n > 0 {
				_, _ = x[n-1], gate[n-1]
				mulSigmoidAVX512(&dst[0], &x[0], &gate[0], by, n)
			}
			mulSigmoid(dst[n:], x[n:], gate[n:], by)
		},
		ExpSum: func(x []float32, top float32) float32 {
			n := len(x) &^ (lanes512 - 1)
			sum := expSum(x[n:], top)
			if n > 0 {
				sum += expSumAVX512(&x[0], top, n)
			}
			return sum
		},
		Max: func(x []float32) float32 {
			n := len(x) &^ (lanes512 - 1)
			switch n {
			case 0:
				return largest(x)
			case len(x):
				return maxAVX512(&x[0], n)
			}
			return max(maxAVX512(&x[0], n), largest(x[n:]))
		},
		DotRows: func(dst, x, rows []float32, stride int) {
			if len(dst) == 0 {
				return
			}
			if len(x)%lanes512 != 0 {
				dotRows(dst, x, rows, stride)
				return
			}
			_ = rows[(len(dst)-1)*stride+len(x)-1]
			dotRowsAVX512(&dst[0], &x[0], &rows[0], 4*stride, len(x), len(dst))
		},
		AddRows: func(dst, weights, rows []float32, stride int) {
			if len(weights) == 0 {
				return
			}
			if len(dst)%lanes512 != 0 {
				addRows(dst, weights, rows, stride)
				return
			}
			_ = rows[(len(weights)-1)*stride+len(dst)-1]
			addRowsAVX512(&dst[0], &weights[0], &rows[0], 4*stride, len(dst), len(weights))
		},
		ConvSilu: func(dst []float32, taps []byte, u [4][]float32) {
			n := len(dst) &^ (lanes512 - 1)
			if n > 0 {
				_ = taps[8*n-1]
				for j := range u {
					_ = u[j][n-1]
				}
				convSiluAVX512(&dst[0], &taps[0], &u[0][0], &u[1][0], &u[2][0], &u[3][0], n)
			}
			if n < len(dst) {
				for j := range u {
					u[j] = u[j][n:]
				}
				convSilu(dst[n:], taps[8*n:], u)
			}
		},
		Delta: func(d DeltaRows) {
			if d.Width != 128 || d.Rows%2 != 0 || d.Rows == 0 || d.Tokens == 0 {
				delta(d)
				return
			}
			last := d.Tokens - 1
			_, _, _ = d.State[d.Rows*d.Width-1], d.Q[d.Tokens*d.Width-1], d.K[d.Tokens*d.Width-1]
			_, _, _ = d.V[last*d.VStride+d.Rows-1], d.Y[last*d.YStride+d.Rows-1], d.Gates[3*d.Tokens-1]
			gdnAVX512(&d.State[0], &d.Q[0], &d.K[0], &d.V[0], &d.Y[0], &d.Gates[0], d.Rows, d.Tokens, 4*d.VStride, 4*d.YStride)
		},
	}
}

func products512() products {
	return products{
		quantise: func(q []int16, steps, sums, x []float32, limit float32) {
			_, _ = x[len(steps)*Group-1], q[len(steps)*Group-1]
			quantise16AVX512(&q[0], &steps[0], &sums[0], &x[0], len(steps), limit)
		},
		order: func(v *Vector, p Precision) {
			if p == Int8 {
				v.ordered8 = grow(v.ordered8, v.k)
				order8AVX512(&v.ordered8[0], &v.q[0], v.k/pairSize)
				return
			}
			v.ordered = grow(v.ordered, v.k)
			order16AVX512(&v.ordered[0], &v.q[0], v.k/pairSize)
		},
		mulVector: func(y []float32, m Matrix, row int, v *Vector, p Precision) {
			codes, scales, biases := m.at(row)
			if p == Int8 {
				gemv8AVX512(&y[0], codes, scales, biases, &v.ordered8[0], &v.steps[0], &v.sums[0], len(y), m.K/pairSize)
				return
			}
			gemv16AVX512(&y[0], codes, scales, biases, &v.ordered[0], &v.steps[0], &v.sums[0], len(y), m.K/pairSize)
		},
		mulCodes8: func(y []float32, m Matrix, row int, v *Vector) {
			codes, scales, biases := m.at(row)
			gemvCodes8AVX512(&y[0], codes, scales, biases, &v.q[0], &v.steps[0], &v.sums[0], len(y), m.K/pairSize)
		},
		tile: 32, padTokens: 8,
		pack: func(b *block, q []int16, t int, p Precision) {
			groups := len(q) / Group
			if p == Int8 {
				pack8AVX512(&b.q8[t*Group], &q[0], groups, b.padded*Group)
				return
			}
			pack16AVX512(&b.q16[t*Group], &q[0], groups, 2*b.padded*Group)
		},
		mulTile: mulTile512,
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
