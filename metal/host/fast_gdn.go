package host

import (
	"math"

	"pond/metal/host/simd"
	"pond/metal/kernels"
)

// scanTokens is how many tokens the scan takes before it goes on to the next rows: their queries and keys are 32 KiB, which stay in
// the first cache.
const scanTokens = 32

// conv writes channels [c0, c0+n) of the convolution of token m of a chunk that starts at pos.
func (f fast) conv(p kernels.GDNParams, dst, in, window []float32, taps []byte, c0, n, m, pos int, s *scratch) {
	var u [kernels.ConvTaps][]float32
	for j := range u {
		switch t := m - (kernels.ConvTaps - 1) + j; {
		case t >= 0:
			u[j] = in[t*p.Stride+c0:][:n]
		case pos+t >= 0:
			u[j] = window[(pos+t)%kernels.ConvTaps*p.C()+c0:][:n]
		default: // before the sequence began
			u[j] = s.zeros(n)
		}
	}
	f.ConvSilu(dst[:n], taps[2*kernels.ConvTaps*c0:], u)
}

// zeros are n zeros that nobody writes to.
func (s *scratch) zeros(n int) []float32 {
	if len(s.zero) < n {
		s.zero = make([]float32, n)
	}
	return s.zero[:n]
}

// unit normalises a query or a key of a head: dst = x·scale/√(Σx² + len·eps), see kernels.
func (f fast) unit(dst, x []float32, scale, eps float32) {
	f.Scale(dst, x, float32(float64(scale)/math.Sqrt(float64(f.SumSquares(x))+float64(len(x))*float64(eps))))
}

func (f fast) qk(p kernels.GDNParams, q, k, conv []float32, hk int) {
	f.unit(q, conv[hk*p.DK:(hk+1)*p.DK], float32(1/math.Sqrt(float64(p.DK))), p.Eps)
	f.unit(k, conv[(p.HK+hk)*p.DK:(p.HK+hk+1)*p.DK], 1, p.Eps)
}

// gate writes decay, beta and k·q of one token and value head.
func (f fast) gate(p kernels.GDNParams, g, in []float32, a []kernels.Arg, hv int, q, k []float32) {
	g[1], g[0] = p.Gates(in, a[0].Raw, a[1].Raw, hv)
	f.DotRows(g[2:3], q, k, p.DK)
}

func (f fast) gdnStep(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.GDNParams)
	in, window, pos, c := a[0].F32, a[5].F32, int(a[4].U32[0]), p.C()
	if s.fresh() {
		size(&s.h, c)
	}
	cv, q, k, gates, normed := s.h, s.F32(p.DK), s.F32(p.DK), s.F32(3), s.F32(kernels.StateBlock)
	fill := func(c0, n int, own bool) {
		f.conv(p, cv[c0:], in, window, a[1].Raw, c0, n, 0, pos, s)
		if own { // the ring row of this position is nobody's input in this step
			copy(window[pos%kernels.ConvTaps*c+c0:][:n], in[c0:])
		}
	}
	last := -1
	for i := lo; i < hi; i++ {
		it := p.Item(i)
		first := it.V0 == 0 && it.HV%(p.HV/p.HK) == 0 // the one item that stores this key head's channels
		if it.HK != last || first {
			fill(it.HK*p.DK, p.DK, first)
			fill((p.HK+it.HK)*p.DK, p.DK, first)
			f.qk(p, q, k, cv, it.HK)
			last = it.HK
		}
		v0 := it.HV*p.DV + it.V0
		fill(2*p.HK*p.DK+v0, kernels.StateBlock, true)
		state := p.Next(a[6].F32, a[7].F32, v0, pos)
		f.gate(p, gates, in, a[2:4], it.HV, q, k)
		f.Delta(simd.DeltaRows{State: state, Width: p.DK, Q: q, K: k, V: cv[2*p.HK*p.DK+v0:], Y: a[9].F32[v0:], Gates: gates, Rows: kernels.StateBlock, Tokens: 1})
		f.gated(a[9].F32[v0:v0+kernels.StateBlock], a[10].F32[v0/kernels.SquareRows:], in[c+v0:], a[8].Raw[2*it.V0:], normed)
	}
}

func (f fast) gdnConv(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.GDNParams)
	c := p.C()
	for m := lo; m < hi; m++ {
		f.conv(p, a[4].F32[m*c:(m+1)*c], a[0].F32, a[3].F32, a[1].Raw, 0, c, m, int(a[2].U32[0]), s)
	}
}

func (f fast) gdnScan(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.GDNParams)
	pos, c, cv := int(a[4].U32[0]), p.C(), a[0].F32
	s.fresh()
	q, k, gates := size(&s.q, p.M*p.DK), size(&s.k, p.M*p.DK), size(&s.gates, 3*p.M)
	lastV := -1
	for i := lo; i < hi; i++ {
		it := p.Item(i)
		if it.HK != s.head {
			for m := range p.M {
				f.qk(p, q[m*p.DK:(m+1)*p.DK], k[m*p.DK:(m+1)*p.DK], cv[m*c:(m+1)*c], it.HK)
			}
			s.head = it.HK
		}
		if it.HV != lastV {
			for m := range p.M {
				f.gate(p, gates[3*m:3*m+3], a[1].F32[m*p.Stride:], a[2:4], it.HV, q[m*p.DK:(m+1)*p.DK], k[m*p.DK:(m+1)*p.DK])
			}
			lastV = it.HV
		}
		v0 := it.HV*p.DV + it.V0
		state := a[5].F32[v0*p.DK : (v0+kernels.StateBlock)*p.DK]
		if pos == 0 {
			clear(state)
		}
		for m := 0; m < p.M; m += scanTokens {
			f.Delta(simd.DeltaRows{State: state, Width: p.DK, Q: q[m*p.DK:], K: k[m*p.DK:], V: cv[m*c+2*p.HK*p.DK+v0:], VStride: c,
				Y: a[6].F32[m*p.ValueWidth()+v0:], YStride: p.ValueWidth(), Gates: gates[3*m:], Rows: kernels.StateBlock, Tokens: min(scanTokens, p.M-m)})
		}
	}
}

// gated makes y ⊙ norm ⊙ silu(z) of y, and the sums of squares that were there; normed is room for as many.
func (f fast) gated(y, squares, z []float32, norm []byte, normed []float32) {
	for i := 0; i < len(y); i += kernels.SquareRows {
		squares[i/kernels.SquareRows] = f.SumSquares(y[i : i+kernels.SquareRows])
	}
	f.Norm(normed, y, norm, 1)
	f.SiluMul(y, z[:len(y)], normed)
}

// gateNorm is o = RMSNorm(y; norm) ⊙ silu(z), head by head.
func (f fast) gateNorm(p kernels.GDNParams, o, y, z []float32, norm []byte, squares, normed []float32) {
	for h := range p.HV {
		part := o[h*p.DV : (h+1)*p.DV]
		copy(part, y[h*p.DV:])
		f.gated(part, squares, z[h*p.DV:], norm, normed)
		f.Scale(part, part, p.GatedRMS(squares))
	}
}

func (f fast) gdnGateNorm(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.GDNParams)
	w := p.ValueWidth()
	squares, normed := s.F32(p.DV/kernels.SquareRows), s.F32(p.DV)
	for m := lo; m < hi; m++ {
		f.gateNorm(p, a[3].F32[m*w:(m+1)*w], a[0].F32[m*w:], a[1].F32[m*p.Stride+p.C():], a[2].Raw, squares, normed)
	}
}
