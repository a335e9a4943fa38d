package kernels

import (
	"fmt"
	"slices"
	"strings"
)

// The shapes of the cases: at and around every edge of a tile, with tails that no tile likes.

func (m maker) linear(k Kernel, mRows, width, bits int, rows ...int) metalCase {
	p := LinearParams{M: mRows, K: width, Bits: bits, Eps: 1e-6}
	copy(p.Rows[:], rows)
	c := metalCase{kernel: k, params: p, items: p.N(), tolerance: 1e-5, name: fmt.Sprintf("M%d_K%d_N%v", mRows, width, rows)}
	switch k.Name {
	case "q4_gemv_norm", "q8_gemv_norm":
		c.args = []Arg{m.f32(mRows * width), m.bf16(width, 1, 0.2), m.out(mRows * p.N())}
	case "q4_gemv_add":
		c.args = []Arg{m.f32(mRows * width), m.f32(mRows * p.N())}
	case "q4_gemm", "q8_gemm":
		c.args = []Arg{m.f32(mRows * width), m.out(mRows * p.N())}
	case "q4_gemm_add":
		c.args = []Arg{m.f32(mRows * width), m.f32(mRows * p.N())}
	}
	for _, n := range rows {
		c.args = append(c.args, m.matrix(n, width, bits)...)
	}
	return c
}

func linearCases(m maker) []metalCase {
	var out []metalCase
	for _, k := range []int{64, 128, 192, 256, 512, 1024, 1088, 2048} {
		out = append(out, m.linear(Q4GemvNorm(), 1, k, 4, 17, 4, 1, 8), m.linear(Q8GemvNorm(), 1, k, 8, 16, 1), m.linear(Q4GemvAdd(), 1, k, 4, 15))
	}
	out = append(out, m.linear(Q4GemvNorm(), 1, 4096, 4, 9), m.linear(Q4GemvAdd(), 1, 4096, 4, 8), m.linear(Q4GemvNorm(), 1, 128, 4, 4099))
	// rows of several sequences, in part of a simdgroup, in one and in two
	for _, rows := range []int{2, 3, 4} {
		out = append(out, m.linear(Q4GemvNorm(), rows, 128, 4, 17, 4, 1, 8), m.linear(Q4GemvNorm(), rows, 1088, 4, 33, 9), m.linear(Q8GemvNorm(), rows, 1024, 8, 16, 1), m.linear(Q4GemvAdd(), rows, 2048, 4, 15))
	}
	out = append(out, m.linear(Q4GemvNorm(), 3, 64, 4, 68000, 4, 3))
	// sets of two and of four groups of rows, in part of a simdgroup and in two simdgroups
	out = append(out, m.linear(Q4GemvNorm(), 1, 64, 4, 68000, 4, 3), m.linear(Q4GemvNorm(), 1, 64, 4, 131100), m.linear(Q8GemvNorm(), 1, 64, 8, 131100, 1), m.linear(Q4GemvNorm(), 1, 1088, 4, 8193, 9),
		m.linear(Q4GemvAdd(), 1, 1088, 4, 16411))
	for _, rows := range []int{1, 7, 8, 9, 16, 17, 32, 33, 63, 65} {
		out = append(out, m.linear(Q4Gemm(), rows, 128, 4, 70, 4), m.linear(Q8Gemm(), rows, 192, 8, 16, 1), m.linear(Q4GemmAdd(), rows, 64, 4, 65))
	}
	for i, rows := range []int{1, 8, 17, 33, 65} {
		c := m.linear(Q4Gemm(), rows, 64*(i+1)*2, 4, 63+i)
		p := c.params.(LinearParams)
		p.Parts = []int{1, 2, 3, 8, 5}[i]
		p.Parts = min(p.Parts, p.K/Group)
		for p.K/Group%p.Parts != 0 {
			p.Parts--
		}
		c.kernel, c.params, c.name = Q4GemmSplit(), p, fmt.Sprintf("%s_parts%d", c.name, p.Parts)
		c.args[1] = m.out(p.Parts * rows * p.N())
		out = append(out, c)
	}
	out = append(out, m.linear(Q4Gemm(), 130, 64, 4, 63, 64, 4, 1), m.linear(Q4GemmAdd(), 5, 2048, 4, 64), m.linear(Q8Gemm(), 5, 2048, 8, 64, 1))
	return out
}

func elementwiseCases(m maker) []metalCase {
	var out []metalCase
	for _, d := range []int{64, 128, 1024, 1088} {
		const vocab = 37
		tokens := m.ids(5)
		for i := range tokens.U32 {
			tokens.U32[i] = []uint32{0, 36, 5, 36, 17}[i]
		}
		out = append(out, metalCase{kernel: EmbedQ4(), name: fmt.Sprintf("D%d", d), params: EmbedParams{5, d, vocab}, items: 5, tolerance: 1e-6,
			args: append([]Arg{tokens, m.out(5 * d)}, m.matrix(vocab, d, 4)...)})
	}
	for _, d := range []int{64, 128, 512, 2048, 2112} {
		out = append(out, metalCase{kernel: RMSNorm(), name: fmt.Sprintf("D%d", d), params: NormParams{M: 3, D: d, Eps: 1e-6}, items: 3, tolerance: 2e-6,
			args: []Arg{m.f32(3 * d), m.bf16(d, 1, 0.2), m.out(3 * d)}})
		parts := 1 + d/64%4
		out = append(out, metalCase{kernel: RMSNormAdd(), name: fmt.Sprintf("D%d_parts%d", d, parts), params: NormParams{M: 3, D: d, Eps: 1e-6, Parts: parts}, items: 3, tolerance: 2e-6,
			args: []Arg{m.f32(parts * 3 * d), m.bf16(d, 1, 0.2), m.f32(3 * d), m.out(3 * d)}})
	}
	for _, i := range []int{64, 512, 576} {
		out = append(out, metalCase{kernel: SiluMul(), name: fmt.Sprintf("I%d", i), params: SiluMulParams{3, i}, items: 3, tolerance: 2e-6,
			args: []Arg{m.f32(3 * 2 * i), m.out(3 * i)}})
	}
	return out
}

// gdnShapes: the small model's, the real heads, a value head of several blocks, one value head a key head.
var gdnShapes = []GDNParams{
	{HK: 2, HV: 4, DK: 32, DV: 32}, {HK: 2, HV: 4, DK: 128, DV: 128}, {HK: 1, HV: 2, DK: 64, DV: 96}, {HK: 2, HV: 2, DK: 160, DV: 32},
}

func (m maker) gdn(p GDNParams, tokens int) GDNParams {
	p.M, p.Eps = tokens, 1e-6
	p.Stride = p.C() + p.ValueWidth() + 2*p.HV
	return p
}

// squares are sums of squares as gdn_step leaves them.
func (m maker) squares(p GDNParams) Arg {
	a := m.f32(p.M * p.ValueWidth() / SquareRows)
	for i, v := range a.F32 {
		a.F32[i] = SquareRows * v * v
	}
	return a
}

func gdnCases(m maker) []metalCase {
	var out []metalCase
	for _, shape := range gdnShapes {
		for _, pos := range []int{0, 1, 2, 3, 7} {
			p := m.gdn(shape, 1)
			name := fmt.Sprintf("HK%d_HV%d_DK%d_DV%d_pos%d", p.HK, p.HV, p.DK, p.DV, pos)
			out = append(out, metalCase{kernel: GDNStep(), name: name, params: p, items: p.StateItems(), tolerance: 1e-5,
				args: []Arg{m.f32(p.Stride), m.bf16(p.C()*ConvTaps, 0, 0.5), m.bf16(p.HV, 0.5, 1), m.bf16(p.HV, 0, 1), word(pos), m.f32(ConvTaps * p.C()),
					m.f32(p.ValueWidth() * p.DK), m.out(p.ValueWidth() * p.DK), m.bf16(p.DV, 1, 0.2), m.out(p.ValueWidth()), m.out(p.ValueWidth() / SquareRows)}})
		}
		p := m.gdn(shape, 1)
		out = append(out, metalCase{kernel: Q4GemvGDNOut(), name: fmt.Sprintf("HV%d_DV%d", p.HV, p.DV), params: GDNOutParams{p, 13}, items: 13, tolerance: 1e-5,
			args: append([]Arg{m.f32(p.ValueWidth()), m.squares(p), m.f32(13)}, m.matrix(13, p.ValueWidth(), 4)...)})
		three := m.gdn(shape, 3)
		out = append(out, metalCase{kernel: Q4GemvGDNOut(), name: fmt.Sprintf("HV%d_DV%d_M3", p.HV, p.DV), params: GDNOutParams{three, 13}, items: 13, tolerance: 1e-5,
			args: append([]Arg{m.f32(3 * p.ValueWidth()), m.squares(three), m.f32(3 * 13)}, m.matrix(13, p.ValueWidth(), 4)...)})
		for _, c := range []struct{ tokens, pos int }{{1, 0}, {3, 2}, {5, 9}, {16, 1}, {17, 32768}, {33, 5}, {66, 0}} {
			p := m.gdn(shape, c.tokens)
			name := fmt.Sprintf("HK%d_HV%d_DK%d_DV%d_M%d_pos%d", p.HK, p.HV, p.DK, p.DV, c.tokens, c.pos)
			in, conv, window := m.f32(p.M*p.Stride), m.bf16(p.C()*ConvTaps, 0, 0.5), m.f32(ConvTaps*p.C())
			out = append(out,
				metalCase{kernel: GDNConv(), name: name, params: p, items: p.M, tolerance: 2e-6, args: []Arg{in, conv, word(c.pos), window, m.out(p.M * p.C())}},
				metalCase{kernel: GDNWindowStore(), name: name, params: p, items: p.WindowItems(), args: []Arg{in, word(c.pos), window}},
				metalCase{kernel: GDNGateNorm(), name: name, params: p, items: p.M, tolerance: 2e-6,
					args: []Arg{m.f32(p.M * p.ValueWidth()), in, m.bf16(p.DV, 1, 0.2), m.out(p.M * p.ValueWidth())}},
				metalCase{kernel: GDNScan(), name: name, params: p, items: p.StateItems(), tolerance: 3e-5,
					args: []Arg{m.f32(p.M * p.C()), in, m.bf16(p.HV, 0.5, 1), m.bf16(p.HV, 0, 1), word(c.pos), m.f32(p.ValueWidth() * p.DK), m.out(p.M * p.ValueWidth())}})
		}
	}
	p := m.gdn(GDNParams{HK: 16, HV: 32, DK: 128, DV: 128}, 1)
	return append(out, metalCase{kernel: Q4GemvGDNOut(), name: "real", params: GDNOutParams{p, 4099}, items: 4099, tolerance: 1e-5,
		args: append([]Arg{m.f32(p.ValueWidth()), m.squares(p), m.f32(4099)}, m.matrix(4099, p.ValueWidth(), 4)...)})
}

// attnShapes: the small model's, the demo model's, the real heads, a group that is no power of two, heads of half the width, more heads than a threadgroup takes.
var attnShapes = []AttentionParams{
	{H: 8, KV: 2, HD: 32, R: 8}, {H: 4, KV: 2, HD: 256, R: 64}, {H: 16, KV: 2, HD: 256, R: 64}, {H: 3, KV: 1, HD: 64, R: 16}, {H: 4, KV: 2, HD: 128, R: 32}, {H: 20, KV: 2, HD: 32, R: 32},
}

func (m maker) decode(shape AttentionParams, pos, blocks int) []metalCase {
	p := shape
	p.M, p.Blocks, p.Context, p.Eps = 1, blocks, pos+3, 1e-6
	name := fmt.Sprintf("H%d_KV%d_HD%d_pos%d_NB%d", p.H, p.KV, p.HD, pos, blocks)
	qkv, cache := m.f32(p.Stride()), p.Context*p.KVWidth()
	acc, stats := m.f32(p.H*blocks*p.HD), m.f32(2*p.H*blocks)
	for i := range stats.F32 { // sums are positive
		stats.F32[i] = max(stats.F32[i], -stats.F32[i])
	}
	args := []Arg{qkv, m.bf16(p.HD, 1, 0.2), m.bf16(p.HD, 1, 0.2), m.f32(p.R), word(pos), m.f32(cache), m.f32(cache), m.out(p.H * blocks * p.HD), m.out(2 * p.H * blocks)}
	half := slices.Clone(args)
	half[5], half[6] = m.bf16(cache, 0, 1), m.bf16(cache, 0, 1)
	for i := pos * p.KVWidth(); i < cache; i++ { // what lies behind the context was never written
		args[5].F32[i], args[6].F32[i] = poison, poison
		putBF16(half[5].Raw, i, poison)
		putBF16(half[6].Raw, i, poison)
	}
	return []metalCase{
		{kernel: AttnDecode(F32), name: name, params: p, items: p.DecodeItems(), tolerance: 2e-5, args: args},
		{kernel: AttnDecode(BF16), name: name, params: p, items: p.DecodeItems(), tolerance: roundingTolerance, args: half},
		{kernel: AttnCombine(), name: name, params: p, items: p.H, tolerance: 1e-5, args: []Arg{acc, stats, qkv, word(pos), m.out(p.H * p.HD)}},
	}
}

func (m maker) prefill(shape AttentionParams, pos, tokens int) []metalCase {
	p := shape
	p.M, p.Context, p.Eps = tokens, pos+tokens+1, 1e-6
	name := fmt.Sprintf("H%d_KV%d_HD%d_pos%d_M%d", p.H, p.KV, p.HD, pos, tokens)
	qkv, cache := m.f32(p.M*p.Stride()), p.Context*p.KVWidth()
	keys, values := m.f32(cache), m.f32(cache)
	// what lies behind the chunk was never written
	halfKeys, halfValues := m.bf16(cache, 0, 1), m.bf16(cache, 0, 1)
	for i := (pos + tokens) * p.KVWidth(); i < cache; i++ {
		keys.F32[i], values.F32[i] = poison, poison
		putBF16(halfKeys.Raw, i, poison)
		putBF16(halfValues.Raw, i, poison)
	}
	prep := []Arg{qkv, m.bf16(p.HD, 1, 0.2), m.bf16(p.HD, 1, 0.2), m.f32(p.M * p.R), word(pos), m.out(p.M * p.H * p.HD), m.f32(cache), m.f32(cache)}
	halfPrep := slices.Clone(prep)
	halfPrep[5], halfPrep[6], halfPrep[7] = m.bf16(p.M*p.H*p.HD, 0, 1), m.bf16(cache, 0, 1), m.bf16(cache, 0, 1)
	q, halfQ, o := m.f32(p.M*p.H*p.HD), m.bf16(p.M*p.H*p.HD, 0, 1), m.out(p.M*p.H*p.HD)
	return []metalCase{
		{kernel: AttnPrep(F32), name: name, params: p, items: p.M, tolerance: 3e-6, args: prep},
		{kernel: AttnPrefill(F32), name: name, params: p, items: p.PrefillItems(), tolerance: 2e-5, args: []Arg{q, keys, values, qkv, word(pos), o}},
		{kernel: AttnPrep(BF16), name: name, params: p, items: p.M, tolerance: 3e-6, args: halfPrep},
		{kernel: AttnPrefill(BF16), name: name, params: p, items: p.PrefillItems(), tolerance: 2e-5, args: []Arg{halfQ, halfKeys, halfValues, qkv, word(pos), o}},
	}
}

// split are the cases of the same in parts of the keys: the parts, and their merging from made-up parts of which some are empty.
func (m maker) split(shape AttentionParams, pos, tokens, parts int) []metalCase {
	var out []metalCase
	for _, c := range m.prefill(shape, pos, tokens) {
		if p := c.params.(AttentionParams); strings.HasPrefix(c.kernel.Name, "attn_prefill") {
			cache := F32
			if c.args[1].Raw != nil {
				cache = BF16
			}
			p.Blocks = parts
			rows := p.M * p.H * parts
			out = append(out, metalCase{kernel: AttnPrefillSplit(cache), name: fmt.Sprintf("%s_NB%d", c.name, parts), params: p, items: p.SplitItems(), tolerance: 2e-5,
				args: []Arg{c.args[0], c.args[1], c.args[2], c.args[4], m.out(rows * p.HD), m.out(2 * rows)}})
			if cache == F32 {
				stats := m.f32(2 * rows)
				for i := 1; i < len(stats.F32); i += 2 {
					stats.F32[i] = max(0, stats.F32[i]+0.5)
					if i/2%parts == parts-1 {
						stats.F32[i] = 1 // one part of each row has keys
					}
				}
				out = append(out, metalCase{kernel: AttnPrefillMerge(), name: fmt.Sprintf("%s_NB%d", c.name, parts), params: p, items: p.PrefillItems(), tolerance: 1e-5,
					args: []Arg{m.f32(rows * p.HD), stats, c.args[3], m.out(p.M * p.H * p.HD)}})
			}
		}
	}
	return out
}

// roundingTolerance is for what is computed from a key that was rounded to bf16: a sum in another order may round one of its numbers to the
// neighbour, a part in 256 away, and the score moves by as much of one product.
const roundingTolerance = 1e-3

func attentionCases(m maker) []metalCase {
	var out []metalCase
	for i, shape := range attnShapes {
		for _, pos := range []int{0, 1, 7, 254, 255, 256, 600} {
			if i < 2 || pos == 0 || pos == 256 {
				out = append(out, m.decode(shape, pos, pos/AttnBlock+1)...)
			}
		}
		for _, c := range []struct{ pos, tokens int }{{0, 1}, {3, 2}, {300, 7}, {0, 8}, {5, 9}, {60, 15}, {0, 16}, {63, 17}, {40, 22}, {250, 33}} {
			if i < 2 || c.tokens == 7 || c.tokens == 9 {
				out = append(out, m.prefill(shape, c.pos, c.tokens)...)
			}
		}
	}
	// keys in parts: some of them empty, one key in the last, a part that ends in the chunk
	for i, c := range []struct{ pos, tokens, parts int }{{300, 7, 2}, {505, 8, 2}, {248, 9, 2}, {40, 17, 4}, {600, 22, 3}, {0, 1, 2}, {1030, 33, 4}} {
		out = append(out, m.split(attnShapes[i%len(attnShapes)], c.pos, c.tokens, c.parts)...)
	}
	// heads shared by the whole group: as many blocks as fill a GPU; of which few are in use
	for _, blocks := range []int{16, 32, 64} {
		out = append(out, m.decode(attnShapes[2], 300, blocks)...)
	}
	out = append(out, m.decode(attnShapes[len(attnShapes)-1], 270, 64)...)
	out = append(out, m.decode(attnShapes[0], 300, 64)[1]) // four
	// by matrices: the first keys, groups of eight that are whole and not, what is staged at once, borders of blocks
	for _, pos := range []int{0, 1, 6, 7, 8, 31, 32, 63, 64, 65, 127, 200, 247, 254, 255, 256, 257, 519, 1023} {
		out = append(out, m.decode(attnShapes[2], pos, 32)[1])
	}
	// more blocks than lanes by simdgroups
	many := AttentionParams{M: 1, H: 1, KV: 1, HD: 32, R: 8, Blocks: 1040, Context: 1, Eps: 1e-6}
	stats := m.f32(2 * many.Blocks)
	for i := range stats.F32 {
		stats.F32[i] = max(stats.F32[i], -stats.F32[i])
	}
	return append(out, metalCase{kernel: AttnCombine(), name: "1035 of 1040 blocks", params: many, items: 1, tolerance: 1e-5,
		args: []Arg{m.f32(many.Blocks * many.HD), stats, m.f32(many.Stride()), word(1035*AttnBlock - 3), m.out(many.HD)}})
}

func (m maker) moe(p MoEParams, tokens int) MoEParams {
	p.M, p.Eps = tokens, 1e-6
	return p
}

// routes of M tokens as moe_route would make them.
func (m maker) routes(p MoEParams) Arg {
	ids := m.ids(p.M * p.T)
	for t := range p.M {
		for i, e := range m.Perm(p.E)[:p.T] {
			ids.U32[t*p.T+i] = uint32(e)
		}
	}
	return ids
}

// moeShapes: the small model's, the demo model's, every expert chosen, more experts than lanes.
var moeShapes = []MoEParams{
	{D: 128, E: 16, T: 4, I: 64, SI: 64}, {D: 512, E: 12, T: 4, I: 256, SI: 256}, {D: 64, E: 3, T: 3, I: 128, SI: 64}, {D: 64, E: 70, T: 8, I: 64, SI: 128}, realMoE,
}

// realMoE is the real shape but for the experts that a token does not choose.
var realMoE = MoEParams{D: 2048, E: 9, T: 8, I: 512, SI: 512}

func moeCases(m maker) []metalCase {
	var out []metalCase
	for _, shape := range moeShapes {
		p := m.moe(shape, 1)
		name := fmt.Sprintf("D%d_E%d_T%d_I%d_SI%d", p.D, p.E, p.T, p.I, p.SI)
		logits := m.f32(p.E + 1)
		logits.F32[1], logits.F32[2] = 9, 9 // a tie: the lower index first
		w := append(m.matrix(p.E*p.I, p.D, 4), m.matrix(p.E*p.I, p.D, 4)...)
		w = append(append(w, m.matrix(p.SI, p.D, 4)...), m.matrix(p.SI, p.D, 4)...)
		out = append(out, metalCase{kernel: MoEGateUp(), name: name, params: p, items: p.ActWidth(), tolerance: 2e-5,
			args: append([]Arg{m.f32(p.D), m.bf16(p.D, 1, 0.2), logits, m.ids(p.T), m.out(p.T + 1), m.out(p.ActWidth())}, w...)})
		down := append(m.matrix(p.E*p.D, p.I, 4), m.matrix(p.D, p.SI, 4)...)
		out = append(out, metalCase{kernel: MoEDownAdd(), name: name, params: p, items: p.D, tolerance: 1e-5,
			args: append([]Arg{m.f32(p.ActWidth()), m.routes(p), m.f32(p.T + 1), m.f32(p.D)}, down...)})
		for _, tokens := range []int{2, 4} {
			p := m.moe(shape, tokens)
			name := fmt.Sprintf("%s_M%d", name, tokens)
			logits := m.f32(p.M * (p.E + 1))
			copy(logits.F32[p.E+1:], logits.F32[:p.T]) // of one expert for both
			out = append(out, metalCase{kernel: MoEGateUp(), name: name, params: p, items: p.GateUpItems(), tolerance: 2e-5,
				args: append([]Arg{m.f32(p.M * p.D), m.bf16(p.D, 1, 0.2), logits, m.ids(p.M * p.T), m.out(p.M * (p.T + 1)), m.out(p.M * p.ActWidth())}, w...)},
				metalCase{kernel: MoEDownAdd(), name: name, params: p, items: p.D, tolerance: 1e-5,
					args: append([]Arg{m.f32(p.M * p.ActWidth()), m.routes(p), m.f32(p.M * (p.T + 1)), m.f32(p.M * p.D)}, down...)})
		}
		for _, tokens := range []int{1, 7, 9, 40} {
			if shape == realMoE {
				break // too much for many tokens
			}
			p := m.moe(shape, tokens)
			name := fmt.Sprintf("%s_M%d", name, tokens)
			logits := m.f32(p.M * (p.E + 1))
			for i := range logits.F32 {
				logits.F32[i] = float32(int(2 * logits.F32[i])) // many ties
			}
			routes := m.routes(p)
			out = append(out,
				metalCase{kernel: MoERoute(), name: name, params: p, items: p.M, tolerance: 2e-6, args: []Arg{logits, m.ids(p.M * p.T), m.out(p.M * (p.T + 1))}},
				metalCase{kernel: MoEGroup(), name: name, params: p, items: 1, args: []Arg{routes, m.ids(p.M * p.T), m.ids(p.E + 1)}},
				metalCase{kernel: MoECombine(BF16), name: name, params: p, items: p.M, tolerance: 2e-6,
					args: []Arg{m.bf16(p.M*p.T*p.D, 0, 1), m.f32(p.M * p.D), m.f32(p.M * (p.T + 1)), m.f32(p.M * p.D)}},
				metalCase{kernel: MoECombine(F32), name: name, params: p, items: p.M, tolerance: 2e-6,
					args: []Arg{m.f32(p.M * p.T * p.D), m.f32(p.M * p.D), m.f32(p.M * (p.T + 1)), m.f32(p.M * p.D)}})
			order, offsets := m.ids(p.M*p.T), m.ids(p.E+1)
			MoEGroup().Run([]Arg{routes, order, offsets}, p, 0, 1, nil)
			out = append(out,
				metalCase{kernel: MoEGateUpGrouped(), name: name, params: p, items: p.E * p.I, tolerance: 2e-5,
					args: append([]Arg{m.f32(p.M * p.D), order, offsets, m.out(p.M * p.T * p.I)}, w[:2*SegmentArgs]...)},
				metalCase{kernel: MoEDownGrouped(BF16), name: name, params: p, items: p.E * p.D, tolerance: 1e-5,
					args: append([]Arg{m.f32(p.M * p.T * p.I), order, offsets, m.bf16(p.M*p.T*p.D, 0, 1)}, down[:SegmentArgs]...)},
				metalCase{kernel: MoEDownGrouped(F32), name: name, params: p, items: p.E * p.D, tolerance: 1e-5,
					args: append([]Arg{m.f32(p.M * p.T * p.I), order, offsets, m.out(p.M * p.T * p.D)}, down[:SegmentArgs]...)})
		}
	}
	return out
}

// unfusedCases are of the kernels that only plans without an optimisation have.
func unfusedCases(m maker) []metalCase {
	var out []metalCase
	for _, p := range []ResidualParams{{1, 64}, {3, 512}, {2, 576}, {7, 2048}} {
		out = append(out, metalCase{kernel: ResidualAdd(), name: fmt.Sprintf("M%d_D%d", p.M, p.D), params: p, items: p.M, args: []Arg{m.f32(p.M * p.D), m.f32(p.M * p.D)}})
	}
	for _, rows := range []int{1, 8, 9, 17, 33, 65} {
		out = append(out, m.dense(F32Gemm(), rows, 192, 70), m.dense(F32GemmAdd(), rows, 64, 65))
	}
	for _, k := range []int{64, 512, 1088} {
		out = append(out, m.unpack(Q4Unpack(), k, 4, 17, 4, 1, 8), m.unpack(Q8Unpack(), k, 8, 16, 1))
	}
	return append(out, m.unpack(Q4Unpack(), 4096, 4, 3))
}

func (m maker) dense(k Kernel, rows, width, n int) metalCase {
	p := LinearParams{M: rows, K: width, Bits: 32, Rows: [MaxSegments]int{n}}
	return metalCase{kernel: k, params: p, items: n, tolerance: 1e-5, name: fmt.Sprintf("M%d_K%d_N%d", rows, width, n), args: []Arg{m.f32(rows * width), m.f32(n * width), m.f32(rows * n)}}
}

func (m maker) unpack(k Kernel, width, bits int, rows ...int) metalCase {
	p := LinearParams{K: width, Bits: bits}
	copy(p.Rows[:], rows)
	c := metalCase{kernel: k, params: p, items: p.N(), tolerance: 1e-7, name: fmt.Sprintf("K%d_N%v", width, rows), args: []Arg{m.out(p.N() * width)}} // a product that is added unrounded
	for _, n := range rows {
		c.args = append(c.args, m.matrix(n, width, bits)...)
	}
	return c
}

func shortCases() []metalCase {
	m := newMaker(5)
	out := linearCases(m)
	out = append(out, unfusedCases(newMaker(16))...)
	out = append(out, elementwiseCases(m)...)
	out = append(out, sampleCases(m)...)
	out = append(out, headCases(newMaker(20))...)
	out = append(out, gdnCases(m)...)
	out = append(out, attentionCases(m)...)
	return append(out, moeCases(m)...)
}

// Rows, keys and tokens at the edges of 15 and 16 bits: an index that is too narrow would wrap, and a row that a launch forgets would
// stay poisoned.
var wideCounts = []int{32767, 32768, 32769, 66048}

// wideKeys are the cases that stay quick: one token or a few against many keys.
func wideKeys(m maker) []metalCase {
	var out []metalCase
	for _, keys := range wideCounts {
		out = append(out, m.decode(wideKeysShape, keys-1, blocksOf(keys))...)
	}
	out = append(out, m.prefill(wideKeysShape, 32761, 8)...)
	return append(out, m.prefill(wideKeysShape, 66040, 8)...)
}

var wideKeysShape = AttentionParams{H: 2, KV: 1, HD: 32, R: 8}

// wideKeysOf is one count of them.
func (m maker) wideKeysOf(keys int) []metalCase {
	return append(m.decode(wideKeysShape, keys-1, blocksOf(keys)), m.prefill(wideKeysShape, keys-8, 8)...)
}

// wideRows are chunks of that many rows, which no plan has today. Two counts for what takes long.
func wideRows(m maker) []metalCase {
	var out []metalCase
	for _, n := range wideCounts {
		out = append(out, m.wideLinear(n)...)
	}
	for _, n := range []int{32769, 66048} {
		out = append(out, m.wideMixers(n)...)
	}
	return out
}

func (m maker) wideLinear(n int) []metalCase {
	tokens := m.ids(n)
	for i := range tokens.U32 {
		tokens.U32[i] = m.Uint32N(70000)
	}
	name := fmt.Sprint("M", n)
	p := m.moe(MoEParams{D: 64, E: 3, T: 2, I: 64, SI: 64}, n)
	return []metalCase{
		m.linear(Q4Gemm(), n, 64, 4, 5), m.linear(Q8Gemm(), n, 64, 8, 1), m.linear(Q4GemmAdd(), n, 64, 4, 3),
		m.linear(Q4GemvNorm(), 1, 64, 4, n), m.linear(Q8GemvNorm(), 1, 64, 8, n), m.linear(Q4GemvAdd(), 1, 64, 4, n),
		{kernel: EmbedQ4(), name: name, params: EmbedParams{n, 64, 70000}, items: n, tolerance: 1e-6, args: append([]Arg{tokens, m.out(n * 64)}, m.matrix(70000, 64, 4)...)},
		{kernel: RMSNorm(), name: name, params: NormParams{M: n, D: 64, Eps: 1e-6}, items: n, tolerance: 2e-6, args: []Arg{m.f32(n * 64), m.bf16(64, 1, 0.2), m.out(n * 64)}},
		m.dense(F32Gemm(), n, 64, 5), m.dense(F32GemmAdd(), n, 64, 3), m.unpack(Q4Unpack(), 64, 4, n), m.unpack(Q8Unpack(), 64, 8, n),
		{kernel: ResidualAdd(), name: name, params: ResidualParams{n, 64}, items: n, args: []Arg{m.f32(n * 64), m.f32(n * 64)}},
		{kernel: SiluMul(), name: name, params: SiluMulParams{n, 64}, items: n, tolerance: 2e-6, args: []Arg{m.f32(n * 128), m.out(n * 64)}},
		{kernel: MoERoute(), name: name, params: p, items: n, tolerance: 2e-6, args: []Arg{m.f32(n * (p.E + 1)), m.ids(n * p.T), m.out(n * (p.T + 1))}},
		{kernel: MoEGroup(), name: name, params: p, items: 1, args: []Arg{m.routes(p), m.ids(n * p.T), m.ids(p.E + 1)}},
		{kernel: MoECombine(F32), name: name, params: p, items: n, tolerance: 2e-6, args: []Arg{m.f32(n * p.T * p.D), m.f32(n * p.D), m.f32(n * (p.T + 1)), m.f32(n * p.D)}},
	}
}

func (m maker) wideMixers(n int) []metalCase {
	name := fmt.Sprint("M", n)
	g := m.gdn(GDNParams{HK: 1, HV: 1, DK: 32, DV: 32}, n)
	in, conv, window := m.f32(n*g.Stride), m.bf16(g.C()*ConvTaps, 0, 0.5), m.f32(ConvTaps*g.C())
	a := AttentionParams{M: n, H: 1, KV: 1, HD: 32, R: 8, Context: n + 2, Eps: 1e-6}
	cache := a.Context * a.KVWidth()
	p := m.moe(MoEParams{D: 64, E: 3, T: 2, I: 64, SI: 64}, n)
	routes, order, offsets := m.routes(p), m.ids(n*p.T), m.ids(p.E+1)
	MoEGroup().Run([]Arg{routes, order, offsets}, p, 0, 1, nil)
	return []metalCase{
		{kernel: GDNConv(), name: name, params: g, items: n, tolerance: 2e-6, args: []Arg{in, conv, word(1), window, m.out(n * g.C())}},
		{kernel: GDNWindowStore(), name: name, params: g, items: g.WindowItems(), args: []Arg{in, word(1), window}},
		{kernel: GDNGateNorm(), name: name, params: g, items: n, tolerance: 2e-6, args: []Arg{m.f32(n * g.ValueWidth()), in, m.bf16(g.DV, 1, 0.2), m.out(n * g.ValueWidth())}},
		{kernel: GDNScan(), name: name, params: g, items: g.StateItems(), tolerance: 3e-5,
			args: []Arg{m.f32(n * g.C()), in, m.bf16(1, 0.5, 1), m.bf16(1, 0, 1), word(1), m.f32(g.ValueWidth() * g.DK), m.out(n * g.ValueWidth())}},
		{kernel: AttnPrep(F32), name: name, params: a, items: n, tolerance: 3e-6,
			args: []Arg{m.f32(n * a.Stride()), m.bf16(a.HD, 1, 0.2), m.bf16(a.HD, 1, 0.2), m.f32(n * a.R), word(1), m.out(n * a.H * a.HD), m.f32(cache), m.f32(cache)}},
		{kernel: MoEGateUpGrouped(), name: name, params: p, items: p.E * p.I, tolerance: 2e-5,
			args: append(append([]Arg{m.f32(n * p.D), order, offsets, m.out(n * p.T * p.I)}, m.matrix(p.E*p.I, p.D, 4)...), m.matrix(p.E*p.I, p.D, 4)...)},
		{kernel: MoEDownGrouped(F32), name: name, params: p, items: p.E * p.D, tolerance: 1e-5,
			args: append([]Arg{m.f32(n * p.T * p.I), order, offsets, m.out(n * p.T * p.D)}, m.matrix(p.E*p.D, p.I, 4)...)},
	}
}
