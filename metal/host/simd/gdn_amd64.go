package simd

//go:noescape
func gdnAVX512(state, q, k, v, y, gates *float32, rows, tokens, stride, out int)
