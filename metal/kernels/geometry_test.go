package kernels

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestEncodeParams(t *testing.T) {
	p := GDNOutParams{GDN: GDNParams{M: 1, HK: 2, HV: 3, DK: 4, DV: 5, Stride: -6, Eps: 1}, N: 7}
	got, err := EncodeParams(p)
	if err != nil {
		t.Fatal(err)
	}
	want := []byte{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 0xfa, 0xff, 0xff, 0xff, 0, 0, 0x80, 0x3f, 7, 0, 0, 0}
	if !bytes.Equal(got, want) {
		t.Errorf("got % x, want % x", got, want)
	}
	if got, err = EncodeParams(LinearParams{Rows: [MaxSegments]int{1, 2, 3, 4}}); err != nil || len(got) != 36 || got[12] != 1 || got[24] != 4 {
		t.Errorf("arrays: got % x, %v, want nine words with the rows from the fourth on", got, err)
	}
	if got, err = EncodeParams(struct{ A, B bool }{true, false}); err != nil || !bytes.Equal(got, []byte{1, 0, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("bools: got % x, %v", got, err)
	}
	if _, err = EncodeParams(LinearParams{Rows: [MaxSegments]int{0, 0, math.MaxInt32 + 1}}); err == nil || !strings.Contains(err.Error(), "LinearParams.Rows[2]") {
		t.Errorf("overflow: got %v, want an error that names LinearParams.Rows[2]", err)
	}
	for _, bad := range []any{3, struct{ S string }{}, struct{ F float64 }{}} {
		if _, err := EncodeParams(bad); err == nil {
			t.Errorf("%T: got no error", bad)
		}
	}
}

// realParams are the parameters of each kernel at the real shape.
func realParams(m int) map[string]any {
	gdn := GDNParams{M: m, HK: 16, HV: 32, DK: 128, DV: 128, Stride: 8192 + 4096 + 64, Eps: 1e-6}
	attn := AttentionParams{M: m, H: 16, KV: 2, HD: 256, R: 64, Blocks: 128, Context: 32768, Eps: 1e-6}
	moe := MoEParams{M: m, D: 2048, E: 256, T: 8, I: 512, SI: 512, Eps: 1e-6}
	lin := LinearParams{M: m, K: 2048, Bits: 4, Rows: [MaxSegments]int{8192, 4096, 32, 32}}
	dense := LinearParams{M: m, K: 2048, Bits: 32, Rows: [MaxSegments]int{12352}}
	router := LinearParams{M: m, K: 2048, Bits: 8, Rows: [MaxSegments]int{256, 1}}
	head := LinearParams{M: 1, K: 2048, Bits: 4, Rows: [MaxSegments]int{248320}}
	choice := SampleParams{248077, Tuning{}.HeadBlock(head)}
	out := map[string]any{"count_token": choice, "draw_token": choice, "logit_bests": choice, "q4_gemv_norm_bests": HeadParams{head, choice}, "embed_q4": EmbedParams{m, 2048, 248320}, "rmsnorm": NormParams{M: m, D: 2048, Eps: 1e-6}, "rmsnorm_add": NormParams{M: m, D: 2048, Eps: 1e-6, Parts: 4}, "q4_gemm_split": LinearParams{M: m, K: 4096, Bits: 4, Rows: [MaxSegments]int{2048}, Parts: 4}, "residual_add": ResidualParams{m, 2048}, "silu_mul": SiluMulParams{m, 512},
		"f32_gemm": dense, "f32_gemm_add": dense, "q4_unpack": lin, "q8_unpack": router, "q4_gemm": lin, "q4_gemm_add": lin, "q4_gemv_add": lin, "q4_gemv_norm": lin, "q8_gemm": router, "q8_gemv_norm": router,
		"q4_gemv_gdn_out": GDNOutParams{gdn, 2048}}
	for _, k := range All() {
		switch {
		case strings.HasPrefix(k.Name, "attn_"):
			out[k.Name] = attn
		case strings.HasPrefix(k.Name, "gdn_"):
			out[k.Name] = gdn
		case strings.HasPrefix(k.Name, "moe_"):
			out[k.Name] = moe
		}
	}
	if m > MaxBatch { // the products of decode take no more
		few := realParams(MaxBatch)
		for _, name := range []string{"q4_gemv_add", "q4_gemv_norm", "q8_gemv_norm", "q4_gemv_gdn_out", "moe_gate_up", "moe_down_add"} {
			out[name] = few[name]
		}
	}
	return out
}

// TestGridsFitTheHardware: every launch stays within what every Apple GPU takes, and its parameters encode.
func TestGridsFitTheHardware(t *testing.T) {
	for _, m := range []int{1, 7, 8, 33, 2048} {
		all := realParams(m)
		for _, k := range All() {
			p := all[k.Name]
			if k.Check != nil {
				if err := k.Check(p); err != nil {
					t.Errorf("%s: %v", k.Name, err)
				}
			}
			g := k.Grid(p, 1)
			threads := g.Threads[0] * g.Threads[1] * g.Threads[2]
			if threads < 1 || threads > maxThreads || threads%simd != 0 {
				t.Errorf("%s M %d: got %d threads, want a multiple of %d up to %d", k.Name, m, threads, simd, maxThreads)
			}
			if n := g.Groups[0] * g.Groups[1] * g.Groups[2]; n < 1 || n > math.MaxInt32 {
				t.Errorf("%s M %d: got %d threadgroups", k.Name, m, n)
			}
			if g.ThreadgroupBytes < 0 || g.ThreadgroupBytes > 32<<10 || g.ThreadgroupBytes%16 != 0 {
				t.Errorf("%s M %d: got %d bytes of threadgroup memory, want a multiple of 16 up to 32 KiB", k.Name, m, g.ThreadgroupBytes)
			}
			if _, err := EncodeParams(p); err != nil {
				t.Errorf("%s: %v", k.Name, err)
			}
		}
	}
}

// TestChecksRefuse: sizes that a Metal function cannot take are errors, not wrong results.
func TestChecksRefuse(t *testing.T) {
	for _, c := range []struct {
		kernel Kernel
		params any
	}{
		{Q4GemvNorm(), LinearParams{M: 1, K: 1 << 16, Bits: 4}},
		{AttnDecode(F32), AttentionParams{M: 1, H: 4, KV: 2, HD: 48, R: 8}},
		{AttnDecode(F32), AttentionParams{M: 1, H: 4, KV: 2, HD: 512, R: 8}},
		{AttnPrep(F32), AttentionParams{M: 1, H: 4, KV: 2, HD: 64, R: 128}},
		{GDNStep(), GDNParams{M: 1, HK: 1, HV: 1, DK: 40, DV: 32}},
		{GDNScan(), GDNParams{M: 1, HK: 1, HV: 1, DK: 32, DV: 48}},
		{MoEGateUp(), MoEParams{M: 1, D: 64, E: 2048, T: 8, I: 64, SI: 64}},
		{DrawToken(), SampleParams{maxChoice + 1, BestBlock}},
		{DrawToken(), SampleParams{100, 48}},
		{LogitBests(), SampleParams{0, BestBlock}},
		{LogitBests(), SampleParams{100, 0}},
		{Q4GemvNormBests(), HeadParams{LinearParams{M: 1, K: 64, Bits: 4, Rows: [MaxSegments]int{100}}, SampleParams{100, 64}}},
		{Q4GemvNormBests(), HeadParams{LinearParams{M: 1, K: 64, Bits: 4, Rows: [MaxSegments]int{100}}, SampleParams{101, 32}}},
		{Q4GemvNormBests(), HeadParams{LinearParams{M: 1, K: 64, Bits: 4, Rows: [MaxSegments]int{50, 50}}, SampleParams{100, 32}}},
		{Q4GemvNormBests(), HeadParams{LinearParams{M: 2, K: 64, Bits: 4, Rows: [MaxSegments]int{100}}, SampleParams{100, 32}}},
		{Q4GemvNormBests(), HeadParams{LinearParams{M: 1, K: 1 << 16, Bits: 4, Rows: [MaxSegments]int{100}}, SampleParams{100, 32}}},
		{MoERoute(), MoEParams{M: 1, D: 64, E: 64, T: 33, I: 64, SI: 64}},
	} {
		if err := c.kernel.Check(c.params); err == nil {
			t.Errorf("%s: %+v: got no error", c.kernel.Name, c.params)
		}
	}
}

// TestCasesTakeEveryVariant: the short cases run each kernel with every value of its function constants that any model's shape can give.
func TestCasesTakeEveryVariant(t *testing.T) {
	type variant struct {
		kernel string
		index  int
	}
	seen := map[variant]map[any]bool{}
	for _, c := range shortCases() {
		if c.kernel.Constants == nil {
			continue
		}
		for _, k := range c.kernel.Constants(c.params) {
			v := variant{c.kernel.Name, k.Index}
			if seen[v] == nil {
				seen[v] = map[any]bool{}
			}
			seen[v][k.Value] = true
		}
	}
	for _, w := range []struct {
		variant
		values []int32
	}{
		{variant{"q4_gemv_norm", constRowGroups}, []int32{1, 2, 4}}, {variant{"q4_gemv_norm_bests", constRowGroups}, []int32{1, 2, 4}}, {variant{"q4_gemv_add", constRowGroups}, []int32{1, 4}}, {variant{"q8_gemv_norm", constRowGroups}, []int32{1, 4}},
		{variant{"q4_gemv_gdn_out", constRowGroups}, []int32{1, 2}}, {variant{"moe_gate_up", constRowGroups}, []int32{1, 2}}, {variant{"moe_down_add", constRowGroups}, []int32{1, 2}},
		{variant{"q4_gemm", constTileRows}, []int32{8, 16, 32, 64}}, {variant{"q8_gemm", constTileRows}, []int32{8, 16, 32, 64}}, {variant{"q4_gemm_add", constTileRows}, []int32{8, 16, 32, 64}},
		{variant{"attn_decode", constHeadsGroup}, []int32{1, 2, 4, 8}}, {variant{"attn_decode", constHeadLanes}, []int32{1, 2, 4, 8}},
		{variant{"attn_prefill", constMatrix}, []int32{0, 1}}, {variant{"attn_prefill", constHeadsGroup}, []int32{2, 3, 4, 8}}, {variant{"attn_prefill", constHeadLanes}, []int32{1, 2, 4, 8}},
		{variant{"attn_decode_bf16", constHeadsGroup}, []int32{1, 2, 4, 8}}, {variant{"attn_decode_bf16", constHeadLanes}, []int32{1, 2, 4, 8}}, {variant{"attn_decode_bf16", constMatrix}, []int32{0, 1}},
		{variant{"attn_prefill_bf16", constMatrix}, []int32{0, 1}}, {variant{"attn_prefill_bf16", constHeadsGroup}, []int32{2, 3, 4, 8}}, {variant{"attn_prefill_bf16", constHeadLanes}, []int32{1, 2, 4, 8}},
		{variant{"moe_gate_up_grouped", constLeastRows}, []int32{8}}, {variant{"moe_down_grouped", constLeastRows}, []int32{8}},
		{variant{"gdn_step", constKeyLanes}, []int32{1, 2, 4, 5}}, {variant{"gdn_scan", constKeyLanes}, []int32{1, 2, 4, 5}}, {variant{"moe_route", constExpertLanes}, []int32{1, 3}},
	} {
		for _, v := range w.values {
			if !seen[w.variant][v] {
				t.Errorf("%s: constant %d: no case with %d, only %v", w.kernel, w.index, v, seen[w.variant])
			}
		}
	}
}
