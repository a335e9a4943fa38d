package simd

//go:noescape
func sumSquaresAVX512(x *float32, n int) float32

//go:noescape
func normAVX512(dst, x *float32, w *byte, scale float32, n int)

//go:noescape
func scaleAVX512(dst, x *float32, scale float32, n int)

//go:noescape
func addScaledAVX512(dst, x *float32, scale float32, n int)

//go:noescape
func siluMulAVX512(dst, gate, up *float32, n int)

//go:noescape
func mulSigmoidAVX512(dst, x, gate *float32, scale float32, n int)

//go:noescape
func expSumAVX512(x *float32, top float32, n int) float32

//go:noescape
func maxAVX512(x *float32, n int) float32

//go:noescape
func dotRowsAVX512(dst, x, rows *float32, stride, n, count int)

//go:noescape
func addRowsAVX512(dst, weights, rows *float32, stride, n, count int)

//go:noescape
func convSiluAVX512(dst *float32, taps *byte, u0, u1, u2, u3 *float32, n int)
