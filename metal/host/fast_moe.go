package host

import (
	"pond/metal/host/simd"
	"pond/metal/kernels"
)

func (f fast) moeGateUp(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.MoEParams)
	if s.fresh() {
		h := size(&s.h, p.D)
		f.normInto(h, a[0].F32[:p.D], a[1].Raw, p.Eps)
		f.Quantise(&s.vec, h)
		p.Route(a[2].F32, s.ids[:p.T], s.weights[:p.T+1])
	}
	if lo == 0 {
		copy(a[3].U32, s.ids[:p.T])
		copy(a[4].F32, s.weights[:p.T+1])
	}
	w, act := a[6:], a[5].F32
	for i := lo; i < hi; {
		end, row := hi, i-p.T*p.I
		gate, up := matrix(w, kernels.SegSharedGate, p.D, 4), matrix(w, kernels.SegSharedUp, p.D, 4)
		if k := i / p.I; k < p.T {
			end, row = min(hi, (k+1)*p.I), i-k*p.I
			e := int(s.ids[k])
			gate, up = expert(matrix(w, kernels.SegGate, p.D, 4), e, p.I), expert(matrix(w, kernels.SegUp, p.D, 4), e, p.I)
		}
		y, u := act[i:end], size(&s.up, end-i)
		f.MulVector(y, gate, row, &s.vec)
		f.MulVector(u, up, row, &s.vec)
		f.SiluMul(y, y, u)
		i = end
	}
}

func (f fast) moeDownAdd(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.MoEParams)
	act, w := a[0].F32, a[4:]
	if s.fresh() {
		for len(s.vecs) <= p.T {
			s.vecs = append(s.vecs, simd.Vector{})
		}
		for k := range p.T {
			f.Quantise(&s.vecs[k], act[k*p.I:(k+1)*p.I])
		}
		f.Quantise(&s.vecs[p.T], act[p.T*p.I:][:p.SI])
	}
	sum, y := s.F32(hi-lo), s.F32(hi-lo)
	clear(sum)
	for k := range p.T {
		f.MulVector(y, expert(matrix(w, kernels.SegDown, p.I, 4), int(a[1].U32[k]), p.D), lo, &s.vecs[k])
		f.AddScaled(sum, y, a[2].F32[k])
	}
	f.MulVector(y, matrix(w, kernels.SegSharedDown, p.SI, 4), lo, &s.vecs[p.T])
	f.AddScaled(sum, y, a[2].F32[p.T])
	f.AddScaled(a[3].F32[lo:hi], sum, 1)
}

func (f fast) moeGateUpGrouped(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.MoEParams)
	x, order, act := a[0].F32, a[1].U32, a[3].F32
	p.EachExpert(a[2].U32, p.I, lo, hi, func(e, r0, r1 int, first, last uint32) {
		n, tokens := r1-r0, int(last-first)
		f.Pack(&s.rows, tokens, p.D, func(t int) []float32 {
			m := int(order[int(first)+t]) / p.T
			return x[m*p.D : (m+1)*p.D]
		})
		gate, up := size(&s.gate, tokens*n), size(&s.up, tokens*n)
		f.MulRows(&s.rows, expert(matrix(a[4:], kernels.SegGate, p.D, 4), e, p.I), r0, n, &s.work, func(t, i int, y []float32) { copy(gate[t*n+i:], y) })
		f.MulRows(&s.rows, expert(matrix(a[4:], kernels.SegUp, p.D, 4), e, p.I), r0, n, &s.work, func(t, i int, y []float32) { copy(up[t*n+i:], y) })
		for t := range tokens {
			f.SiluMul(act[(int(first)+t)*p.I+r0:][:n], gate[t*n:(t+1)*n], up[t*n:(t+1)*n])
		}
	})
}

func (f fast) moeDownGrouped(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.MoEParams)
	act, order, out := a[0].F32, a[1].U32, a[3].F32
	p.EachExpert(a[2].U32, p.D, lo, hi, func(e, r0, r1 int, first, last uint32) {
		f.Pack(&s.rows, int(last-first), p.I, func(t int) []float32 { return act[(int(first)+t)*p.I:][:p.I] })
		f.MulRows(&s.rows, expert(matrix(a[4:], kernels.SegDown, p.I, 4), e, p.D), r0, r1-r0, &s.work, func(t, i int, y []float32) {
			copy(out[int(order[int(first)+t])*p.D+r0+i:], y)
		})
	})
}

func (f fast) moeCombine(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.MoEParams)
	sum := s.F32(p.D)
	for m := lo; m < hi; m++ {
		w := a[2].F32[m*(p.T+1) : (m+1)*(p.T+1)]
		f.Scale(sum, a[1].F32[m*p.D:][:p.D], w[p.T])
		f.AddRows(sum, w[:p.T], a[0].F32[m*p.T*p.D:(m+1)*p.T*p.D], p.D)
		f.AddScaled(a[3].F32[m*p.D:(m+1)*p.D], sum, 1)
	}
}
