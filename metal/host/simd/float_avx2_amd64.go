package simd

//go:noescape
func sumSquaresAVX2(x *float32, n int) float32

//go:noescape
func normAVX2(dst, x *float32, w *byte, scale float32, n int)

//go:noescape
func mixAVX2(dst, x *float32, keep, scale float32, n int)

//go:noescape
func siluMulAVX2(dst, gate, up *float32, n int)

//go:noescape
func mulSigmoidAVX2(dst, x, gate *float32, scale float32, n int)

//go:noescape
func expSumAVX2(x *float32, top float32, n int) float32

//go:noescape
func maxAVX2(x *float32, n int) float32

//go:noescape
func dotRowsAVX2(dst, x, rows *float32, stride, n, count int)

//go:noescape
func addRowsAVX2(dst, weights, rows *float32, stride, n, count int)

//go:noescape
func convSiluAVX2(dst *float32, taps *byte, u0, u1, u2, u3 *float32, n int)
