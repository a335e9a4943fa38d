package simd

//go:noescape
func gemv16x1AVX512(few *few, codes, scales, biases *byte, rows, pairs int)

//go:noescape
func gemv16x2AVX512(few *few, codes, scales, biases *byte, rows, pairs int)

//go:noescape
func gemv16x3AVX512(few *few, codes, scales, biases *byte, rows, pairs int)

//go:noescape
func gemv16x4AVX512(few *few, codes, scales, biases *byte, rows, pairs int)

//go:noescape
func gemv8x1AVX512(few *few, codes, scales, biases *byte, rows, pairs int)

//go:noescape
func gemv8x2AVX512(few *few, codes, scales, biases *byte, rows, pairs int)

//go:noescape
func gemv8x3AVX512(few *few, codes, scales, biases *byte, rows, pairs int)

//go:noescape
func gemv8x4AVX512(few *few, codes, scales, biases *byte, rows, pairs int)

//go:noescape
func gemvCodes8AVX512(y *float32, codes, scales, biases *byte, x *int16, steps, sums *float32, rows, pairs int)
