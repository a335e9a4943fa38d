package simd

//go:noescape
func quantise16AVX512(q *int16, steps, sums, x *float32, groups int, limit float32)

//go:noescape
func order16AVX512(dst *float32, q *int16, pairs int)

//go:noescape
func pack16AVX512(dst, q *int16, groups, stride int)

//go:noescape
func order8AVX512(dst *float32, q *int16, pairs int)

//go:noescape
func pack8AVX512(dst *int8, q *int16, groups, stride int)
