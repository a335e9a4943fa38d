package host

import "pond/metal/kernels"

func (f fast) gemvNorm(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.LinearParams)
	if s.fresh() {
		h := size(&s.h, p.K)
		f.normInto(h, a[0].F32[:p.K], a[1].Raw, p.Eps)
		f.Quantise(&s.vec, h)
	}
	y := a[2].F32
	p.EachSegment(lo, hi, func(segment, r0, r1, col int) {
		f.MulVector(y[col:col+r1-r0], matrix(a[3:], segment, p.K, p.Bits), r0, &s.vec)
	})
}

func (f fast) gemvAdd(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.LinearParams)
	if s.fresh() {
		f.Quantise(&s.vec, a[0].F32[:p.K])
	}
	f.addRows(a[1].F32[lo:hi], a[2:], p.K, lo, s)
}

// addRows is x += rows from lo on times the prepared vector.
func (f fast) addRows(x []float32, w []kernels.Arg, k, lo int, s *scratch) {
	y := s.F32(len(x))
	f.MulVector(y, matrix(w, 0, k, 4), lo, &s.vec)
	f.AddScaled(x, y, 1)
}

func (f fast) gemvGDNOut(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.GDNOutParams)
	width := p.GDN.ValueWidth()
	if s.fresh() {
		o := size(&s.h, width)
		f.gateNorm(p.GDN, o, a[0].F32, a[1].F32[p.GDN.C():], a[2].Raw)
		f.Quantise(&s.vec, o)
	}
	f.addRows(a[3].F32[lo:hi], a[4:], width, lo, s)
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

// argmaxBlock is how many logits are looked at as a whole: only the block with the largest is looked at again.
const argmaxBlock = 4096

func (f fast) argmax(a []kernels.Arg, params any, _, _ int, _ *scratch) {
	p := params.(kernels.ArgmaxParams)
	logits, best := a[0].F32[:p.N], 0
	top := f.Max(logits[:min(argmaxBlock, p.N)])
	for at := argmaxBlock; at < p.N; at += argmaxBlock {
		if v := f.Max(logits[at:min(at+argmaxBlock, p.N)]); v > top {
			top, best = v, at
		}
	}
	for logits[best] != top && best < p.N-1 { // NaN equals nothing: the last id, as good as any
		best++
	}
	a[1].U32[0] = uint32(best)
}
