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

func residualGrid(params any, _ int) Grid {
	p := params.(ResidualParams)
	return grid2(ceil(p.D, 4*4*simd), p.M, 4*simd)
}
