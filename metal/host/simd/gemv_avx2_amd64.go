package simd

//go:noescape
func gemv16AVX2(y *float32, codes, scales, biases *byte, x *int16, steps, sums *float32, rows, units int)

//go:noescape
func gemm16AVX2(y *float32, codes, scales, biases *byte, x *int16, steps, sums *float32, rows, units int)

//go:noescape
func gemvCodes8AVX2(y *float32, codes, scales, biases *byte, x *int16, steps, sums *float32, rows, units int)

//go:noescape
func quantise16AVX2(q *int16, steps, sums, x *float32, groups int, limit float32)
