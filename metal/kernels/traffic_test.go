package kernels

import (
	"os"
	"testing"

	"pond/metal/standin"
)

// traffic is a case at real widths and the bytes it cannot do without.
type traffic struct {
	metalCase
	floor int
}

// quantised is the size of n rows of k weights with their scales and biases.
func quantised(n, k, bits int) int { return n*k*bits/8 + n*k/Group*4 }

// decodeTraffic is one dispatch of each kind of a decode step at the real widths. Experts beyond those that are chosen are left out (16 of
// 256), the vocabulary is an eighth; neither changes what a dispatch does with a row.
func decodeTraffic(m maker) []traffic {
	const (
		D, keys = 2048, 4096
		f, h    = 4, 2 // bytes of a float, of a bf16
	)
	in := m.linear(Q4GemvNorm(), 1, D, 4, 8192, 4096, 32, 32)
	head := m.head(D, 248320/8, 248077/8, Draw{Keep: 20, Scale: 1, Lower: 1, Raise: 1})
	qkv := m.linear(Q4GemvNorm(), 1, D, 4, 8192, 512, 512)
	out := m.linear(Q4GemvAdd(), 1, 4096, 4, D)
	router := m.linear(Q8GemvNorm(), 1, D, 8, 256, 1)
	normed := func(c metalCase) int {
		p := c.params.(LinearParams)
		return quantised(p.N(), p.K, p.Bits) + p.K*(f+h) + p.N()*f
	}
	g := m.gdn(GDNParams{HK: 16, HV: 32, DK: 128, DV: 128}, 1)
	step := metalCase{kernel: GDNStep(), name: "real", params: g, items: g.StateItems(),
		args: []Arg{m.f32(g.Stride), m.bf16(g.C()*ConvTaps, 0, 0.5), m.bf16(g.HV, 0.5, 1), m.bf16(g.HV, 0, 1), word(9), m.f32(ConvTaps * g.C()),
			m.f32(g.ValueWidth() * g.DK), m.out(g.ValueWidth() * g.DK), m.bf16(g.DV, 1, 0.2), m.out(g.ValueWidth()), m.out(g.ValueWidth() / SquareRows)}}
	gdnOut := metalCase{kernel: Q4GemvGDNOut(), name: "real", params: GDNOutParams{g, D}, items: D,
		args: append([]Arg{m.f32(g.ValueWidth()), m.squares(g), m.f32(D)}, m.matrix(D, g.ValueWidth(), 4)...)}
	attn := m.decode(AttentionParams{H: 16, KV: 2, HD: 256, R: 64}, keys-1, keys/AttnBlock)
	a := attn[1].params.(AttentionParams)
	partials := a.H * a.Blocks * (a.HD + 2) * f
	p := m.moe(MoEParams{D: D, E: 16, T: 8, I: 512, SI: 512}, 1)
	w := append(m.matrix(p.E*p.I, D, 4), m.matrix(p.E*p.I, D, 4)...)
	w = append(append(w, m.matrix(p.SI, D, 4)...), m.matrix(p.SI, D, 4)...)
	gateUp := metalCase{kernel: MoEGateUp(), name: "real", params: p, items: p.ActWidth(),
		args: append([]Arg{m.f32(D), m.bf16(D, 1, 0.2), m.f32(p.E + 1), m.ids(p.T), m.out(p.T + 1), m.out(p.ActWidth())}, w...)}
	down := metalCase{kernel: MoEDownAdd(), name: "real", params: p, items: D,
		args: append([]Arg{m.f32(p.ActWidth()), m.routes(p), m.f32(p.T + 1), m.f32(D)}, append(m.matrix(p.E*D, p.I, 4), m.matrix(D, p.SI, 4)...)...)}
	return []traffic{
		{in, normed(in)}, {qkv, normed(qkv)}, {head, quantised(248320/8, D, 4) + D*(f+h) + 248320/8*f + 8*head.params.(HeadParams).Choice.Bests()}, {router, normed(router)},
		{out, quantised(D, 4096, 4) + 4096*f + 2*D*f},
		{step, 2*g.ValueWidth()*g.DK*f + (2*g.HV+g.C())*f + g.C()*ConvTaps*h + 2*g.HV*h + ConvTaps*g.C()*f + 2*g.ValueWidth()*f + g.DV*h + g.ValueWidth()/SquareRows*f},
		{gdnOut, quantised(D, g.ValueWidth(), 4) + g.ValueWidth()*f + g.ValueWidth()/SquareRows*f + 2*D*f},
		{attn[1], 2*keys*a.KVWidth()*h + (a.H*a.HD+2*a.KVWidth())*f + partials},
		{attn[2], partials + 2*a.H*a.HD*f},
		{gateUp, quantised(2*(p.T*p.I+p.SI), D, 4) + D*(f+h) + p.ActWidth()*f},
		{down, quantised(D, p.ActWidth(), 4) + p.ActWidth()*f + 2*D*f},
	}
}

// TestDecodeMovesNoMoreThanItMust: lines of 64 bytes that each kind of dispatch touches, over the bytes that it must move. Lines of partly
// used scales at the end of a matrix and of single words are what is left.
func TestDecodeMovesNoMoreThanItMust(t *testing.T) {
	if os.Getenv("POND_METAL_CHECK") == "" {
		t.Skip("counts real widths, a minute: POND_METAL_CHECK=1 runs it")
	}
	m := openMachine(t, true)
	for _, c := range decodeTraffic(newMaker(11)) {
		var loads, lines uint64
		m.observe(t, c.metalCase, standin.KernelOptions{Count: true}, func(counts standin.KernelCounts, memory []*standin.Memory) {
			for _, a := range memory {
				n := a.Traffic()
				loads += n.LoadBytes
				lines += n.LoadLines + n.StoreLines
			}
			ratio := float64(lines*64) / float64(c.floor)
			t.Logf("%-16s %-28s floor %10d, touched %.4f of it, loads asked for %.3f; threads %d, simdgroup operations %d, barriers %d", c.kernel.Name, c.name, c.floor,
				ratio, float64(loads)/float64(c.floor), counts.Threads, counts.SimdOps, counts.ThreadgroupBarriers)
			if ratio > 1.03 {
				t.Errorf("%v: touches %.4f of the bytes it must move, want at most 1.03", c, ratio)
			}
		})
	}
}
