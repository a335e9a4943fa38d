package host

import (
	"pond/metal/host/simd"
	"pond/metal/kernels"
)

func (f fast) moeGateUp(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.MoEParams)
	ids, weights := s.ids[:p.M*p.T], s.weights[:p.M*(p.T+1)]
	f.prepare(s, p.M, p.D, func(dst []float32, m int) {
		f.normInto(dst, a[0].F32[m*p.D:(m+1)*p.D], a[1].Raw, p.Eps)
		p.Route(a[2].F32[m*(p.E+1):], ids[m*p.T:(m+1)*p.T], weights[m*(p.T+1):(m+1)*(p.T+1)])
	})
	if lo == 0 {
		copy(a[3].U32, ids)
		copy(a[4].F32, weights)
	}
	w, act := a[6:], a[5].F32
	var pairs [kernels.MaxBatch]int
	for i := lo; i < hi; {
		pair := i / p.I
		if pair >= p.M*p.T { // the shared expert, of all tokens
			row := i - p.M*p.T*p.I
			for m := range p.M {
				s.few.vs[m], s.act[m] = &s.vecs[m], act[m*p.ActWidth()+p.T*p.I+row:][:hi-i]
			}
			f.gateUp(matrix(w, kernels.SegSharedGate, p.D, 4), matrix(w, kernels.SegSharedUp, p.D, 4), row, hi-i, p.M, s)
			return
		}
		row, end := i-pair*p.I, min(hi, (pair+1)*p.I)
		users := p.Users(pairs[:0], ids, pair)
		for j, u := range users {
			s.few.vs[j], s.act[j] = &s.vecs[u/p.T], act[u/p.T*p.ActWidth()+u%p.T*p.I+row:][:end-i]
		}
		if len(users) > 0 {
			e := int(ids[pair])
			f.gateUp(expert(matrix(w, kernels.SegGate, p.D, 4), e, p.I), expert(matrix(w, kernels.SegUp, p.D, 4), e, p.I), row, end-i, len(users), s)
		}
		i = end
	}
}

// gateUp puts silu(gate)·up, for n rows from row on, to s.act of the first tokens of s.few.
func (f fast) gateUp(gate, up simd.Matrix, row, n, tokens int, s *scratch) {
	w := padded(n)
	g, u := size(&s.gate, tokens*w), size(&s.up, tokens*w)
	for i := range tokens {
		s.few.y[i], s.few.up[i] = g[i*w:(i+1)*w], u[i*w:(i+1)*w]
	}
	f.MulVectors(s.few.y[:tokens], gate, row, n, s.few.vs[:tokens])
	f.MulVectors(s.few.up[:tokens], up, row, n, s.few.vs[:tokens])
	for i, y := range s.few.y[:tokens] {
		f.SiluMul(y, y, s.few.up[i])
		copy(s.act[i], y)
	}
}

func (f fast) moeDownAdd(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.MoEParams)
	act, ids, weights, w := a[0].F32, a[1].U32, a[2].F32, a[4:]
	all := p.M * (p.T + 1) // vectors, and products: token by token its experts in rank order, then the shared one
	vecs := s.vectors(all)
	if s.fresh() {
		for i := range vecs {
			from, n := act[i/(p.T+1)*p.ActWidth()+i%(p.T+1)*p.I:], p.I
			if i%(p.T+1) == p.T {
				n = p.SI
			}
			f.Quantise(&vecs[i], from[:n])
		}
	}
	n := hi - lo
	wide := padded(n)
	y, sum := s.F32(all*wide), s.F32(wide)
	var pairs [kernels.MaxBatch]int
	for pair := range p.M * p.T {
		users := p.Users(pairs[:0], ids, pair)
		if len(users) == 0 {
			continue
		}
		for j, u := range users {
			at := u/p.T*(p.T+1) + u%p.T
			s.few.vs[j], s.few.y[j] = &vecs[at], y[at*wide:(at+1)*wide]
		}
		f.MulVectors(s.few.y[:len(users)], expert(matrix(w, kernels.SegDown, p.I, 4), int(ids[pair]), p.D), lo, n, s.few.vs[:len(users)])
	}
	for m := range p.M {
		at := m*(p.T+1) + p.T
		s.few.vs[m], s.few.y[m] = &vecs[at], y[at*wide:(at+1)*wide]
	}
	f.MulVectors(s.few.y[:p.M], matrix(w, kernels.SegSharedDown, p.SI, 4), lo, n, s.few.vs[:p.M])
	for m := range p.M {
		clear(sum)
		for k := range p.T + 1 {
			at := m*(p.T+1) + k
			f.AddScaled(sum, y[at*wide:(at+1)*wide], weights[at])
		}
		f.AddScaled(a[3].F32[m*p.D+lo:m*p.D+hi], sum[:n], 1)
	}
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
