package simd

//go:noescape
func unpack16AVX512(dst *int16, codes *byte, stride int)

//go:noescape
func unpack8AVX512(dst *int8, codes *byte, stride int)

//go:noescape
func gemm16AVX512(y *float32, weights *int16, scales, biases *float32, x *int16, steps, sums *float32, tokens int)

//go:noescape
func gemm8AVX512(y *float32, weights *int8, scales, biases *float32, x *int8, steps, sums *float32, tokens int)

//go:noescape
func scales32AVX512(dst *float32, src *byte, stride, pairs int)
