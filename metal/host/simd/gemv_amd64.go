package simd

//go:noescape
func gemv16AVX512(y *float32, codes, scales, biases *byte, x *int16, steps, sums *float32, rows, pairs int)

//go:noescape
func gemv8AVX512(y *float32, codes, scales, biases *byte, x *int8, steps, sums *float32, rows, pairs int)

//go:noescape
func gemvCodes8AVX512(y *float32, codes, scales, biases *byte, x *int16, steps, sums *float32, rows, pairs int)
