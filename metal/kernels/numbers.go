package kernels

import "math"

// bf16 reads element i of published bf16 bytes.
func bf16(raw []byte, i int) float32 {
	return math.Float32frombits(uint32(raw[2*i])<<16 | uint32(raw[2*i+1])<<24)
}

// putBF16 writes x, rounded to the nearest bf16, the even one of two, as element i.
func putBF16(raw []byte, i int, x float32) {
	bits := math.Float32bits(x)
	if x == x {
		bits += 0x7fff + bits>>16&1
	} else {
		bits |= 1 << 22 // stays no number
	}
	raw[2*i], raw[2*i+1] = byte(bits>>16), byte(bits>>24)
}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }

func sigmoid(x float32) float32 { return 1 / (1 + exp(-x)) }

func silu(x float32) float32 { return x * sigmoid(x) }

// softplus is max(x,0) + log1p(exp(-|x|)), stable at both ends.
func softplus(x float32) float32 {
	return max(x, 0) + float32(math.Log1p(math.Exp(-math.Abs(float64(x)))))
}

// rms is 1/sqrt(mean(x²) + eps). The sum is kept in float64: 2,048 squares in float32 would lose three of its 24 bits.
func rms(x []float32, eps float32) float32 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return float32(1 / math.Sqrt(sum/float64(len(x))+float64(eps)))
}

// normInto writes dst = x * rms(x) * w with w as published bf16.
func normInto(dst, x []float32, w []byte, eps float32) {
	inv := rms(x, eps)
	for i, v := range x {
		dst[i] = float32(v*inv) * bf16(w, i)
	}
}

// l2Into writes dst = x * scale / sqrt(sum(x²) + len(x)*eps): the norm that the reference builds from an unweighted RMSNorm
// (spec 2.4), so the epsilon grows with the width.
func l2Into(dst, x []float32, scale, eps float32) {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	f := float32(float64(scale) / math.Sqrt(sum+float64(len(x))*float64(eps)))
	for i, v := range x {
		dst[i] = v * f
	}
}

// groupSums writes the sum of each group of x: the part of a product that all rows share.
func groupSums(dst, x []float32) {
	for g := range dst {
		var s float32
		for _, v := range x[g*Group : (g+1)*Group] {
			s += v
		}
		dst[g] = s
	}
}
