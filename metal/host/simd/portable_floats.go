package simd

import "math"

func portableFloats() floats {
	return floats{SumSquares: sumSquares, Norm: norm, Scale: scale, AddScaled: addScaled, SiluMul: siluMul, MulSigmoid: mulSigmoid,
		ExpSum: expSum, Max: largest, DotRows: dotRows, AddRows: addRows, ConvSilu: convSilu, Delta: delta}
}

func sigmoid(x float32) float32 { return 1 / (1 + float32(math.Exp(float64(-x)))) }

func sumSquares(x []float32) float32 {
	var a, b float32
	for len(x) >= 2 {
		a += x[0] * x[0]
		b += x[1] * x[1]
		x = x[2:]
	}
	if len(x) == 1 {
		a += x[0] * x[0]
	}
	return a + b
}

func norm(dst, x []float32, w []byte, scale float32) {
	for i, v := range x {
		dst[i] = v * scale * bf16(w, i)
	}
}

func scale(dst, x []float32, by float32) {
	for i, v := range x {
		dst[i] = v * by
	}
}

func addScaled(dst, x []float32, by float32) {
	for i, v := range x {
		dst[i] += v * by
	}
}

func siluMul(dst, gate, up []float32) {
	for i := range dst {
		dst[i] = gate[i] * sigmoid(gate[i]) * up[i]
	}
}

func mulSigmoid(dst, x, gate []float32, by float32) {
	for i := range dst {
		dst[i] = x[i] * by * sigmoid(gate[i])
	}
}

func expSum(x []float32, top float32) (sum float32) {
	for i, v := range x {
		x[i] = float32(math.Exp(float64(v - top)))
		sum += x[i]
	}
	return sum
}

func largest(x []float32) float32 {
	top := x[0]
	for _, v := range x[1:] {
		top = max(top, v)
	}
	return top
}

func dotRows(dst, x, rows []float32, stride int) {
	for i := range dst {
		var a, b, c, d float32
		r := rows[i*stride:][:len(x)]
		j := 0
		for ; j+4 <= len(x); j += 4 {
			a += x[j] * r[j]
			b += x[j+1] * r[j+1]
			c += x[j+2] * r[j+2]
			d += x[j+3] * r[j+3]
		}
		for ; j < len(x); j++ {
			a += x[j] * r[j]
		}
		dst[i] = (a + b) + (c + d)
	}
}

func addRows(dst, weights, rows []float32, stride int) {
	for i, w := range weights {
		addScaled(dst, rows[i*stride:][:len(dst)], w)
	}
}

func convSilu(dst []float32, taps []byte, u [4][]float32) {
	for i := range dst {
		var c float32
		for j := range u {
			c += bf16(taps, 4*i+j) * u[j][i]
		}
		dst[i] = c * sigmoid(c)
	}
}

func delta(d DeltaRows) {
	for t := range d.Tokens {
		q, k := d.Q[t*d.Width:][:d.Width], d.K[t*d.Width:][:d.Width]
		decay, beta, kq := d.Gates[3*t], d.Gates[3*t+1], d.Gates[3*t+2]
		v, y := d.V[t*d.VStride:][:d.Rows], d.Y[t*d.YStride:][:d.Rows]
		for r := range v {
			s := d.State[r*d.Width:][:d.Width]
			var sk, sq float32
			for i, ki := range k {
				sk += s[i] * ki
				sq += s[i] * q[i]
			}
			by := beta * (v[r] - decay*sk)
			y[r] = decay*sq + by*kq
			for i, ki := range k {
				s[i] = decay*s[i] + by*ki
			}
		}
	}
}
