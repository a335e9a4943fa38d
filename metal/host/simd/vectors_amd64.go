package simd

// vectors are the float kernels of one instruction set, which work on whole vectors of so many floats.
type vectors struct {
	lanes      int
	sumSquares func(x *float32, n int) float32
	norm       func(dst, x *float32, w *byte, scale float32, n int)
	scale      func(dst, x *float32, scale float32, n int)
	addScaled  func(dst, x *float32, scale float32, n int)
	siluMul    func(dst, gate, up *float32, n int)
	mulSigmoid func(dst, x, gate *float32, scale float32, n int)
	expSum     func(x *float32, top float32, n int) float32
	max        func(x *float32, n int) float32
	dotRows    func(dst, x, rows *float32, stride, n, count int)
	addRows    func(dst, weights, rows *float32, stride, n, count int)
	convSilu   func(dst *float32, taps *byte, u0, u1, u2, u3 *float32, n int)
	delta      func(d DeltaRows) // after its ranges were checked, for an even number of rows of 128
}

func vectors512() vectors {
	return vectors{lanes: 16, sumSquares: sumSquaresAVX512, norm: normAVX512, scale: scaleAVX512, addScaled: addScaledAVX512, siluMul: siluMulAVX512,
		mulSigmoid: mulSigmoidAVX512, expSum: expSumAVX512, max: maxAVX512, dotRows: dotRowsAVX512, addRows: addRowsAVX512, convSilu: convSiluAVX512,
		delta: func(d DeltaRows) {
			gdnAVX512(&d.State[0], &d.Q[0], &d.K[0], &d.V[0], &d.Y[0], &d.Gates[0], d.Rows, d.Tokens, 4*d.VStride, 4*d.YStride)
		}}
}

func vectorsAVX2() vectors {
	return vectors{lanes: 8, sumSquares: sumSquaresAVX2, norm: normAVX2,
		scale:     func(dst, x *float32, by float32, n int) { mixAVX2(dst, x, 0, by, n) },
		addScaled: func(dst, x *float32, by float32, n int) { mixAVX2(dst, x, 1, by, n) },
		siluMul:   siluMulAVX2, mulSigmoid: mulSigmoidAVX2, expSum: expSumAVX2, max: maxAVX2, dotRows: dotRowsAVX2, addRows: addRowsAVX2, convSilu: convSiluAVX2,
		delta: deltaAVX2}
}

// deltaAVX2 goes over the state twice a token: sixteen registers do not hold a row and what it meets.
func deltaAVX2(d DeltaRows) {
	var dots [2]float32
	for t := range d.Tokens {
		q, k := &d.Q[t*d.Width], &d.K[t*d.Width]
		decay, beta, kq := d.Gates[3*t], d.Gates[3*t+1], d.Gates[3*t+2]
		for r := range d.Rows {
			s := &d.State[r*d.Width]
			dotRowsAVX2(&dots[0], s, k, 0, d.Width, 1)
			dotRowsAVX2(&dots[1], s, q, 0, d.Width, 1)
			by := beta * (d.V[t*d.VStride+r] - decay*dots[0])
			d.Y[t*d.YStride+r] = decay*dots[1] + by*kq
			if decay == 0 { // then the kernel does not read the state, and need not
				scale(d.State[r*d.Width:][:d.Width], d.K[t*d.Width:][:d.Width], by)
				continue
			}
			mixAVX2(s, k, decay, by, d.Width)
		}
	}
}

// floats are safe calls of the kernels: what is left over after whole vectors goes the portable way.
func (v vectors) floats() floats {
	return floats{
		SumSquares: func(x []float32) float32 {
			n := len(x) &^ (v.lanes - 1)
			if n == 0 {
				return sumSquares(x)
			}
			return v.sumSquares(&x[0], n) + sumSquares(x[n:])
		},
		Norm: func(dst, x []float32, w []byte, by float32) {
			n := len(x) &^ (v.lanes - 1)
			if n > 0 {
				_, _ = dst[n-1], w[2*n-1]
				v.norm(&dst[0], &x[0], &w[0], by, n)
			}
			norm(dst[n:], x[n:], w[2*n:], by)
		},
		Scale: func(dst, x []float32, by float32) {
			n := len(x) &^ (v.lanes - 1)
			if n > 0 {
				_ = dst[n-1]
				v.scale(&dst[0], &x[0], by, n)
			}
			scale(dst[n:], x[n:], by)
		},
		AddScaled: func(dst, x []float32, by float32) {
			n := len(x) &^ (v.lanes - 1)
			if n > 0 {
				_ = dst[n-1]
				v.addScaled(&dst[0], &x[0], by, n)
			}
			addScaled(dst[n:], x[n:], by)
		},
		SiluMul: func(dst, gate, up []float32) {
			n := len(dst) &^ (v.lanes - 1)
			if n > 0 {
				_, _ = gate[n-1], up[n-1]
				v.siluMul(&dst[0], &gate[0], &up[0], n)
			}
			siluMul(dst[n:], gate[n:], up[n:])
		},
		MulSigmoid: func(dst, x, gate []float32, by float32) {
			n := len(dst) &^ (v.lanes - 1)
			if n > 0 {
				_, _ = x[n-1], gate[n-1]
				v.mulSigmoid(&dst[0], &x[0], &gate[0], by, n)
			}
			mulSigmoid(dst[n:], x[n:], gate[n:], by)
		},
		ExpSum: func(x []float32, top float32) float32 {
			n := len(x) &^ (v.lanes - 1)
			sum := expSum(x[n:], top)
			if n > 0 {
				sum += v.expSum(&x[0], top, n)
			}
			return sum
		},
		Max: func(x []float32) float32 {
			n := len(x) &^ (v.lanes - 1)
			switch n {
			case 0:
				return largest(x)
			case len(x):
				return v.max(&x[0], n)
			}
			return max(v.max(&x[0], n), largest(x[n:]))
		},
		DotRows: func(dst, x, rows []float32, stride int) {
			if len(dst) == 0 {
				return
			}
			if len(x)%v.lanes != 0 {
				dotRows(dst, x, rows, stride)
				return
			}
			_ = rows[(len(dst)-1)*stride+len(x)-1]
			v.dotRows(&dst[0], &x[0], &rows[0], 4*stride, len(x), len(dst))
		},
		AddRows: func(dst, weights, rows []float32, stride int) {
			if len(weights) == 0 {
				return
			}
			if len(dst)%v.lanes != 0 {
				addRows(dst, weights, rows, stride)
				return
			}
			_ = rows[(len(weights)-1)*stride+len(dst)-1]
			v.addRows(&dst[0], &weights[0], &rows[0], 4*stride, len(dst), len(weights))
		},
		ConvSilu: func(dst []float32, taps []byte, u [4][]float32) {
			n := len(dst) &^ (v.lanes - 1)
			if n > 0 {
				_ = taps[8*n-1]
				for j := range u {
					_ = u[j][n-1]
				}
				v.convSilu(&dst[0], &taps[0], &u[0][0], &u[1][0], &u[2][0], &u[3][0], n)
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
			v.delta(d)
		},
	}
}
