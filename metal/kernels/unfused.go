package kernels

// Kernels of plans without an optimisation; no plan as shipped has one of them.

// ResidualParams are the sizes of ResidualAdd.
type ResidualParams struct {
	M, D int
}

// ResidualAdd is x[m] += y[m], what an output product otherwise does itself; one item is one row.
func ResidualAdd() Kernel {
	return Kernel{Name: "residual_add", Grid: residualGrid,
		Buffers: []Buffer{{"y", F32, Read, "[M, D]"}, {"x", F32, ReadWrite, "[M, D]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(ResidualParams)
			for i := lo * p.D; i < hi*p.D; i++ {
				a[1].F32[i] += a[0].F32[i]
			}
		}}
}

// Q4Unpack writes up to four matrices out as floats, one below the other, with LinearParams; one item is one row.
func Q4Unpack() Kernel { return unpackKernel("q4_unpack") }

// Q8Unpack is Q4Unpack for 8-bit weights.
func Q8Unpack() Kernel { return unpackKernel("q8_unpack") }

func unpackKernel(name string) Kernel {
	return Kernel{Name: name, Segments: MaxSegments, Grid: unpackGrid,
		Buffers: []Buffer{{"dense", F32, Write, "[N, K]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(LinearParams)
			first := 0
			for s, rows := range p.Rows {
				for n := max(lo, first); n < min(hi, first+rows); n++ {
					matrixOf(a[1:], s, p.K, p.Bits).row(a[0].F32[n*p.K:(n+1)*p.K], n-first)
				}
				first += rows
			}
		}}
}

// row writes row r as floats.
func (m matrix) row(dst []float32, r int) {
	for g := range m.k / Group {
		part := (*[Group]float32)(dst[g*Group:])
		m.unpack(part, r, g)
		scale, bias := bf16(m.scales, r*(m.k/Group)+g), bf16(m.biases, r*(m.k/Group)+g)
		for i, q := range part {
			part[i] = float32(scale*q) + bias
		}
	}
}

func unpackGrid(params any, _ int) Grid {
	p := params.(LinearParams)
	return grid2(ceil(p.K, 16*4*simd), p.N(), 4*simd)
}

// F32Gemm is y = v Wᵀ for one matrix of floats, Rows[0] by K; one item is one row of W.
func F32Gemm() Kernel { return denseGemm("f32_gemm", Buffer{"y", F32, Write, "[M, N]"}) }

// F32GemmAdd is x += v Wᵀ.
func F32GemmAdd() Kernel { return denseGemm("f32_gemm_add", Buffer{"x", F32, ReadWrite, "[M, N]"}) }

func denseGemm(name string, out Buffer) Kernel {
	return Kernel{Name: name, Grid: Tuning{}.linearMatrixGrid, Constants: Tuning{}.linearMatrixConstants,
		Buffers: []Buffer{{"v", F32, Read, "[M, K]"}, {"dense", F32, Read, "[N, K]"}, out},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(LinearParams)
			for m := range p.M {
				x := a[0].F32[m*p.K : (m+1)*p.K]
				for n := lo; n < hi; n++ {
					var sum float32
					for i, w := range a[1].F32[n*p.K : (n+1)*p.K] {
						sum += float32(w * x[i])
					}
					if y := &a[2].F32[m*p.N()+n]; out.Access&Read != 0 {
						*y += sum
					} else {
						*y = sum
					}
				}
			}
		}}
}

func residualGrid(params any, _ int) Grid {
	p := params.(ResidualParams)
	return grid2(ceil(p.D, 4*4*simd), p.M, 4*simd)
}
