package kernels

import "math"

// GDNParams are the sizes of the gated delta net kernels.
type GDNParams struct {
	M              int // tokens of the chunk, 1 in decode
	HK, HV, DK, DV int
	Stride         int // width of a row of "in": qkv (C), z (HV*DV), b (HV), a (HV)
	Eps            float32
}

// C is the width of the convolution.
func (p GDNParams) C() int { return 2*p.HK*p.DK + p.HV*p.DV }

// ValueWidth is the width of all value heads.
func (p GDNParams) ValueWidth() int { return p.HV * p.DV }

// StateItems is how many work items cover the state: blocks of rows, head by head.
func (p GDNParams) StateItems() int { return p.HV * (p.DV / StateBlock) }

// StateItem is one block of rows of one value head.
type StateItem struct {
	HV, HK int // value head, and the key head it reads
	V0     int // first value dim of the block
}

// Item is the block of work item i.
func (p GDNParams) Item(i int) StateItem {
	blocks := p.DV / StateBlock
	hv := i / blocks
	return StateItem{HV: hv, HK: hv / (p.HV / p.HK), V0: i % blocks * StateBlock}
}

// Gates are beta = sigmoid(b) and decay = exp(-exp(A_log)·softplus(a + dt_bias)) of one value head.
func (p GDNParams) Gates(in []float32, aLog, dtBias []byte, hv int) (beta, decay float32) {
	b, a := in[p.C()+p.ValueWidth()+hv], in[p.C()+p.ValueWidth()+p.HV+hv]
	g := -float32(math.Exp(float64(bf16(aLog, hv)))) * softplus(a+bf16(dtBias, hv))
	return sigmoid(b), exp(g)
}

// step advances the block's rows of the state by one token and returns their outputs:
//
//	S ← decay·S;  d = beta·(v − S·k);  S ← S + d ⊗ k;  y = S·q
//
// Rows of S are independent, so a block needs no other block's results. state is [StateBlock, DK].
func (p GDNParams) step(state, q, k, v, y []float32, beta, decay float32) {
	for r := range v {
		s := state[r*p.DK : (r+1)*p.DK]
		var m float32
		for i, ki := range k {
			s[i] *= decay
			m += float32(s[i] * ki)
		}
		d := beta * (v[r] - m)
		var out float32
		for i, ki := range k {
			s[i] += float32(d * ki)
			out += float32(s[i] * q[i])
		}
		y[r] = out
	}
}

// Next is the block from value dim v0 on of the next state, with what state has there, or zeros at position 0.
func (p GDNParams) Next(state, next []float32, v0, pos int) []float32 {
	lo, hi := v0*p.DK, (v0+StateBlock)*p.DK
	switch {
	case pos == 0:
		clear(next[lo:hi])
	case &state[0] != &next[0]:
		copy(next[lo:hi], state[lo:hi])
	}
	return next[lo:hi]
}

// qk normalises the query and the key of a head: q ← l2(q)/√DK, k ← l2(k).
func (p GDNParams) qk(q, k, conv []float32, hk int) {
	l2Into(q, conv[hk*p.DK:(hk+1)*p.DK], float32(1/math.Sqrt(float64(p.DK))), p.Eps)
	l2Into(k, conv[(p.HK+hk)*p.DK:(p.HK+hk+1)*p.DK], 1, p.Eps)
}

// conv is silu of the causal depthwise convolution of channel ch: tap ConvTaps-1 multiplies the current token's input cur, the
// others what older(j) gives for tap j, in order of taps.
func conv(w []byte, ch int, older [ConvTaps - 1]float32, cur float32) float32 {
	var c float32
	for j, u := range older {
		c += float32(bf16(w, ch*ConvTaps+j) * u)
	}
	c += float32(bf16(w, ch*ConvTaps+ConvTaps-1) * cur)
	return silu(c)
}

// older gathers the inputs of channel ch at the three positions before token m of a chunk that starts at pos: from the chunk, else
// from the ring, else zero before the sequence began.
func (p GDNParams) older(in, window []float32, ch, m, pos int) (u [ConvTaps - 1]float32) {
	for j := range u {
		t := m - (ConvTaps - 1) + j // token index in the chunk
		switch {
		case t >= 0:
			u[j] = in[t*p.Stride+ch]
		case pos+t >= 0:
			u[j] = window[(pos+t)%ConvTaps*p.C()+ch]
		}
	}
	return u
}

// GDNStep is one decode step of all heads: convolution, gates and delta rule, fused; the state is read and written once, to next, which
// may be the same memory or another, so that the step can be undone. Its output is y ⊙ norm ⊙ silu(z), and the sums of SquareRows squares of y: what is left of
// the gated norm is a factor a head, which needs all blocks of it and is the prologue of the output projection. One item is StateBlock rows of one value head. At position 0 the state and window count as zero, whatever they hold.
func GDNStep() Kernel {
	return Kernel{Name: "gdn_step", Grid: gdnStateGrid, Constants: gdnConstants, Check: gdnCheck,
		Buffers: []Buffer{{"in", F32, Read, "[Stride]"}, {"conv", BF16, Read, "[C, 4]"}, {"a_log", BF16, Read, "[HV]"}, {"dt_bias", BF16, Read, "[HV]"},
			{"step", U32, Read, "[1] position"}, {"window", F32, ReadWrite, "[4, C] ring"}, {"state", F32, Read, "[HV, DV, DK]"}, {"next", F32, Write, "[HV, DV, DK]"},
			{"norm", BF16, Read, "[DV]"}, {"y", F32, Write, "[HV, DV]"}, {"squares", F32, Write, "[HV, DV/8]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(GDNParams)
			in, window, pos := a[0].F32, a[5].F32, int(a[4].U32[0])
			c := p.C()
			cv := ws.F32(c)
			q, k := ws.F32(p.DK), ws.F32(p.DK)
			fill := func(c0, n int, own bool) {
				for ch := c0; ch < c0+n; ch++ {
					cv[ch] = conv(a[1].Raw, ch, p.older(in, window, ch, 0, pos), in[ch])
					if own { // the ring row of this position is nobody's input in this step
						window[pos%ConvTaps*c+ch] = in[ch]
					}
				}
			}
			last := -1
			for i := lo; i < hi; i++ {
				it := p.Item(i)
				first := it.V0 == 0 && it.HV%(p.HV/p.HK) == 0 // the one item that stores this key head's channels
				if it.HK != last || first {
					fill(it.HK*p.DK, p.DK, first)
					fill((p.HK+it.HK)*p.DK, p.DK, first)
					p.qk(q, k, cv, it.HK)
					last = it.HK
				}
				v0 := it.HV*p.DV + it.V0
				fill(2*p.HK*p.DK+v0, StateBlock, true)
				state := p.Next(a[6].F32, a[7].F32, v0, pos)
				beta, decay := p.Gates(in, a[2].Raw, a[3].Raw, it.HV)
				p.step(state, q, k, cv[2*p.HK*p.DK+v0:][:StateBlock], a[9].F32[v0:v0+StateBlock], beta, decay)
				gate(a[9].F32[v0:v0+StateBlock], a[10].F32[v0/SquareRows:], in[c+v0:], a[8].Raw, it.V0)
			}
		}}
}

// GDNConv is the convolution of a chunk; one item is one token.
func GDNConv() Kernel {
	return Kernel{Name: "gdn_conv", Grid: gdnConvGrid,
		Buffers: []Buffer{{"in", F32, Read, "[M, Stride]"}, {"conv", BF16, Read, "[C, 4]"}, {"step", U32, Read, "[1] position"},
			{"window", F32, Read, "[4, C] ring"}, {"c", F32, Write, "[M, C]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(GDNParams)
			in, window, pos, c := a[0].F32, a[3].F32, int(a[2].U32[0]), p.C()
			for m := lo; m < hi; m++ {
				for ch := range c {
					a[4].F32[m*c+ch] = conv(a[1].Raw, ch, p.older(in, window, ch, m, pos), in[m*p.Stride+ch])
				}
			}
		}}
}

// WindowItems is how many rows GDNWindowStore writes: the last tokens of the chunk, at most the ring.
func (p GDNParams) WindowItems() int { return min(p.M, ConvTaps) }

// GDNWindowStore puts the last inputs of a chunk into the ring, after every reader of the old rows; one item is one row.
func GDNWindowStore() Kernel {
	return Kernel{Name: "gdn_window_store", Grid: gdnWindowGrid,
		Buffers: []Buffer{{"in", F32, Read, "[M, Stride]"}, {"step", U32, Read, "[1] position"}, {"window", F32, ReadWrite, "[4, C] ring"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(GDNParams)
			pos, c := int(a[1].U32[0]), p.C()
			for i := lo; i < hi; i++ {
				m := p.M - p.WindowItems() + i
				copy(a[2].F32[(pos+m)%ConvTaps*c:][:c], a[0].F32[m*p.Stride:])
			}
		}}
}

// GDNScan runs the delta rule over the tokens of a chunk, in order; items as in GDNStep. The state stays with its worker for the
// whole chunk.
func GDNScan() Kernel {
	return Kernel{Name: "gdn_scan", Grid: gdnStateGrid, Constants: Tuning{}.gdnScanConstants, Check: gdnCheck,
		Buffers: []Buffer{{"c", F32, Read, "[M, C]"}, {"in", F32, Read, "[M, Stride]"}, {"a_log", BF16, Read, "[HV]"}, {"dt_bias", BF16, Read, "[HV]"},
			{"step", U32, Read, "[1] position"}, {"state", F32, ReadWrite, "[HV, DV, DK]"}, {"y", F32, Write, "[M, HV, DV]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(GDNParams)
			pos, c := int(a[4].U32[0]), p.C()
			q, k := ws.F32(p.DK), ws.F32(p.DK)
			for i := lo; i < hi; i++ {
				it := p.Item(i)
				v0 := it.HV*p.DV + it.V0
				state := a[5].F32[v0*p.DK : (v0+StateBlock)*p.DK]
				if pos == 0 {
					clear(state)
				}
				for m := range p.M {
					cv := a[0].F32[m*c : (m+1)*c]
					p.qk(q, k, cv, it.HK)
					beta, decay := p.Gates(a[1].F32[m*p.Stride:], a[2].Raw, a[3].Raw, it.HV)
					p.step(state, q, k, cv[2*p.HK*p.DK+v0:][:StateBlock], a[6].F32[m*p.ValueWidth()+v0:][:StateBlock], beta, decay)
				}
			}
		}}
}

// SquareRows is how many rows' squares of a head are kept as one sum.
const SquareRows = 8

// gate makes y ⊙ norm ⊙ silu(z) of y, from dim d0 of a head on, and the sums of SquareRows squares that were there.
func gate(y, squares, z []float32, norm []byte, d0 int) {
	for i := range y {
		if i%SquareRows == 0 {
			var sum float64
			for _, v := range y[i : i+SquareRows] {
				sum += float64(v) * float64(v)
			}
			squares[i/SquareRows] = float32(sum)
		}
		y[i] *= float32(bf16(norm, d0+i) * silu(z[i]))
	}
}

// GatedRMS is what a head's gated outputs are multiplied by: 1/rms of what they were before, from sums of their squares.
func (p GDNParams) GatedRMS(squares []float32) float32 {
	var sum float64
	for _, v := range squares[:p.DV/SquareRows] {
		sum += float64(v)
	}
	return float32(1 / math.Sqrt(sum/float64(p.DV)+float64(p.Eps)))
}

// norm finishes the gated norm of y, head by head.
func (p GDNParams) norm(o, y, squares []float32) {
	for h := range p.HV {
		f := p.GatedRMS(squares[h*p.DV/SquareRows:])
		for i := h * p.DV; i < (h+1)*p.DV; i++ {
			o[i] = y[i] * f
		}
	}
}

// gateNorm is o = RMSNorm(y; norm) ⊙ silu(z), head by head: the norm comes before the gate, its factor last of all; squares is room for [HV, DV/8].
func (p GDNParams) gateNorm(o, y, z []float32, norm []byte, squares []float32) {
	copy(o, y[:p.ValueWidth()])
	for h := range p.HV {
		gate(o[h*p.DV:(h+1)*p.DV], squares[h*p.DV/SquareRows:], z[h*p.DV:], norm, 0)
	}
	p.norm(o, o, squares)
}

// GDNGateNorm applies the gated norm to a chunk; one item is one token.
func GDNGateNorm() Kernel {
	return Kernel{Name: "gdn_gate_norm", Grid: gdnGateGrid, Check: gdnCheck,
		Buffers: []Buffer{{"y", F32, Read, "[M, HV, DV]"}, {"in", F32, Read, "[M, Stride]"}, {"norm", BF16, Read, "[DV]"}, {"o", F32, Write, "[M, HV*DV]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(GDNParams)
			squares := ws.F32(p.ValueWidth() / SquareRows)
			for m := lo; m < hi; m++ {
				p.gateNorm(a[3].F32[m*p.ValueWidth():(m+1)*p.ValueWidth()], a[0].F32[m*p.ValueWidth():], a[1].F32[m*p.Stride+p.C():], a[2].Raw, squares)
			}
		}}
}

// GDNOutParams are the sizes of Q4GemvGDNOut.
type GDNOutParams struct {
	GDN GDNParams
	N   int // rows of the output projection
}

// Q4GemvGDNOut is x += W (y ⊙ 1/rms) for one token or a few, y and the squares as GDNStep leaves them: the rest of the gated norm in the prologue, the
// residual in the epilogue. One item is one row.
func Q4GemvGDNOut() Kernel {
	return Kernel{Name: "q4_gemv_gdn_out", Segments: 1, Grid: Tuning{}.gdnOutGrid, Constants: Tuning{}.gdnOutConstants, Check: gdnOutCheck,
		Buffers: []Buffer{{"y", F32, Read, "[M, HV, DV]"}, {"squares", F32, Read, "[M, HV, DV/8]"}, {"x", F32, ReadWrite, "[M, N]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(GDNOutParams)
			w, rows := p.GDN.ValueWidth(), p.GDN.M
			o := ws.F32(rows * w)
			for m := range rows {
				p.GDN.norm(o[m*w:(m+1)*w], a[0].F32[m*w:], a[1].F32[m*w/SquareRows:])
			}
			lp := LinearParams{M: rows, K: w, Bits: 4, Rows: [MaxSegments]int{p.N}}
			lp.batchRows(a[3:], o, lo, hi, ws, addTo(a[2].F32, p.N, lo))
		}}
}
