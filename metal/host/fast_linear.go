package host

import "pond/metal/kernels"

// prepare quantises M rows, once a dispatch: row(m) fills dst with the m-th.
func (f fast) prepare(s *scratch, rows, width int, row func(dst []float32, m int)) {
	if !s.fresh() {
		return
	}
	h := size(&s.h, width)
	vecs := s.vectors(rows)
	for m := range vecs {
		row(h, m)
		f.Quantise(&vecs[m], h)
	}
}

func (f fast) gemvNorm(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	f.normRows(params.(kernels.LinearParams), a[0].F32, a[1].Raw, a[2].F32, a[3:], lo, hi, s)
}

// normRows is columns [lo, hi) of y = W (x̂ ⊙ norm).
func (f fast) normRows(p kernels.LinearParams, x []float32, norm []byte, y []float32, w []kernels.Arg, lo, hi int, s *scratch) {
	f.prepare(s, p.M, p.K, func(dst []float32, m int) { f.normInto(dst, x[m*p.K:(m+1)*p.K], norm, p.Eps) })
	n := p.N()
	p.EachSegment(lo, hi, func(segment, r0, r1, col int) {
		for m := range p.M {
			s.few.vs[m], s.few.y[m] = &s.vecs[m], y[m*n+col:][:r1-r0]
		}
		f.MulVectors(s.few.y[:p.M], matrix(w, segment, p.K, p.Bits), r0, r1-r0, s.few.vs[:p.M])
	})
}

func (f fast) gemvNormBests(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.HeadParams)
	first, end := p.Rows(lo, hi)
	f.normRows(p.Product, a[0].F32, a[1].Raw, a[2].F32, a[len(a)-kernels.SegmentArgs:], first, end, s)
	p.FindBests(a, lo, hi)
}

func (f fast) gemvAdd(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.LinearParams)
	f.prepare(s, p.M, p.K, func(dst []float32, m int) { copy(dst, a[0].F32[m*p.K:]) })
	f.addRows(a[1].F32, p.N(), a[2:], p.M, p.K, lo, hi, s)
}

// addRows is x[m] += columns [lo, hi) of the product with the prepared vectors.
func (f fast) addRows(x []float32, n int, w []kernels.Arg, rows, k, lo, hi int, s *scratch) {
	y := s.F32(rows * (hi - lo))
	for m := range rows {
		s.few.vs[m], s.few.y[m] = &s.vecs[m], y[m*(hi-lo):(m+1)*(hi-lo)]
	}
	f.MulVectors(s.few.y[:rows], matrix(w, 0, k, 4), lo, hi-lo, s.few.vs[:rows])
	for m := range rows {
		f.AddScaled(x[m*n+lo:m*n+hi], s.few.y[m], 1)
	}
}

func (f fast) gemvGDNOut(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.GDNOutParams)
	width := p.GDN.ValueWidth()
	f.prepare(s, p.GDN.M, width, func(dst []float32, m int) {
		for h := range p.GDN.HV {
			at := m*width + h*p.GDN.DV
			f.Scale(dst[h*p.GDN.DV:(h+1)*p.GDN.DV], a[0].F32[at:at+p.GDN.DV], p.GDN.GatedRMS(a[1].F32[at/kernels.SquareRows:]))
		}
	})
	f.addRows(a[2].F32, p.N, a[3:], p.GDN.M, width, lo, hi, s)
}

// mulRows hands results [lo, hi) of every token to emit: token, first result, results.
func (f fast) mulRows(p kernels.LinearParams, w []kernels.Arg, lo, hi int, s *scratch, emit func(t, at int, y []float32)) {
	p.EachSegment(lo, hi, func(segment, r0, r1, col int) {
		f.MulRows(&s.rows, matrix(w, segment, p.K, p.Bits), r0, r1-r0, &s.work, func(t, i int, y []float32) { emit(t, col+i, y) })
	})
}

// packTokens prepares M rows of x. 8-bit weights meet them one by one: the router is half a megabyte, which stays in a core's second cache.
func (f fast) packTokens(p kernels.LinearParams, x []float32, s *scratch) {
	if s.fresh() {
		row := func(t int) []float32 { return x[t*p.K : (t+1)*p.K] }
		if p.Bits == 4 {
			f.Pack(&s.rows, p.M, p.K, row)
		} else {
			f.PackOneByOne(&s.rows, p.M, p.K, row)
		}
	}
}

func (f fast) gemm(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.LinearParams)
	f.packTokens(p, a[0].F32, s)
	n, y := p.N(), a[1].F32
	f.mulRows(p, a[2:], lo, hi, s, func(t, at int, part []float32) { copy(y[t*n+at:], part) })
}

func (f fast) gemmAdd(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.LinearParams)
	f.packTokens(p, a[0].F32, s)
	n, x := p.N(), a[1].F32
	f.mulRows(p, a[2:], lo, hi, s, func(t, at int, part []float32) { f.AddScaled(x[t*n+at:][:len(part)], part, 1) })
}

func (f fast) rmsNorm(a []kernels.Arg, params any, lo, hi int, _ *scratch) {
	p := params.(kernels.NormParams)
	for m := lo; m < hi; m++ {
		f.normInto(a[2].F32[m*p.D:(m+1)*p.D], a[0].F32[m*p.D:(m+1)*p.D], a[1].Raw, p.Eps)
	}
}

func (f fast) siluMul(a []kernels.Arg, params any, lo, hi int, _ *scratch) {
	p := params.(kernels.SiluMulParams)
	for m := lo; m < hi; m++ {
		gu := a[0].F32[m*2*p.I : (m+1)*2*p.I]
		f.SiluMul(a[1].F32[m*p.I:(m+1)*p.I], gu[:p.I], gu[p.I:])
	}
}
