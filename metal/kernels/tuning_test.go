package kernels

import (
	"os"
	"reflect"
	"testing"

	"pond/metal/standin"
)

// TestTuningChangesNoBit: each choice of launch switched off gives the same results to the last bit (what goes by simdgroup matrices when heads share their
// rows, and by vectors when they do not: but for the order of sums), in the first cases of each kernel whose launch
// it changes, and in all of them with POND_METAL_CHECK=1.
func TestTuningChangesNoBit(t *testing.T) {
	m := openMachine(t, false)
	cases := shortCases()
	for name, tuning := range map[string]Tuning{"narrow sets": {NarrowSets: true}, "tall tiles": {TallTiles: true}, "lone heads": {LoneHeads: true}, "stored state": {StoredState: true}} {
		t.Run(name, func(t *testing.T) {
			changed := map[string]int{}
			for _, c := range cases {
				if c.kernel.Name == "q4_gemv_norm_bests" { // its blocks are another's: TestHeadFindsWhatLogitBestsFinds
					continue
				}
				tuned := c
				tuned.kernel = Tuned(c.kernel, tuning)
				launch := func(k Kernel) (Grid, []Constant) {
					var cs []Constant
					if k.Constants != nil {
						cs = k.Constants(c.params)
					}
					return k.Grid(c.params, c.items), cs
				}
				g0, c0 := launch(c.kernel)
				if g1, c1 := launch(tuned.kernel); g0 == g1 && reflect.DeepEqual(c0, c1) {
					continue
				}
				if changed[c.kernel.Name]++; changed[c.kernel.Name] > 4 && os.Getenv("POND_METAL_CHECK") == "" {
					continue
				}
				shipped, other := m.run(t, c, standin.KernelOptions{Poison: true}), m.run(t, tuned, standin.KernelOptions{Poison: true})
				if c.byMatrices() {
					tuned.compare(t, "by vectors", other, shipped)
				} else {
					c.sameResults(t, name, other, shipped)
				}
			}
			want := map[string][]string{
				"narrow sets":  {"q4_gemv_norm", "q8_gemv_norm", "q4_gemv_add", "q4_gemv_gdn_out", "moe_gate_up", "moe_down_add"},
				"tall tiles":   {"q4_gemm", "q8_gemm", "q4_gemm_add", "q4_gemm_split", "f32_gemm", "f32_gemm_add", "moe_gate_up_grouped", "moe_down_grouped", "moe_down_grouped_bf16"},
				"lone heads":   {"attn_decode", "attn_decode_bf16"},
				"stored state": {"gdn_scan"},
			}[name]
			for _, k := range want {
				if changed[k] == 0 {
					t.Errorf("%s: no case whose launch changes", k)
				}
			}
			if len(changed) != len(want) {
				t.Errorf("got %v changed, want %v", changed, want)
			}
		})
	}
}

// byMatrices reports whether a case of attn_decode goes by simdgroup matrices, whose sums are in another order than those of vectors.
func (c metalCase) byMatrices() bool {
	return c.kernel.Name == "attn_decode_bf16" && Tuning{}.matrixDecode(BF16, c.params.(AttentionParams))
}

// TestLoneKeysAgree: a thread a key gives the reference's sums, in the order of one thread, and nothing is read while another writes it.
func TestLoneKeysAgree(t *testing.T) {
	m, checked := openMachine(t, false), machine{}
	if !onCUDA() {
		checked = openMachine(t, true)
	}
	n := 0
	for _, c := range attentionCases(newMaker(14)) {
		if c.kernel.Name != "attn_decode" && c.kernel.Name != "attn_decode_bf16" {
			continue
		}
		tuned := c
		tuned.kernel = Tuned(c.kernel, Tuning{LoneKeys: true})
		tuned.compare(t, "lone keys", m.run(t, tuned, standin.KernelOptions{Poison: true}), c.reference(t))
		if n++; n < 8 && !onCUDA() {
			checked.run(t, tuned, standin.KernelOptions{Check: true})
		}
	}
	if n == 0 {
		t.Error("no case of attn_decode")
	}
}

// TestEvenBlocksAgree: however the keys are split, the merged result is the same but for the order of its sums. No block may be larger than
// what a threadgroup holds, and those beyond the last key are left alone.
func TestEvenBlocksAgree(t *testing.T) {
	m := openMachine(t, false)
	mk := newMaker(15)
	for _, shape := range attnShapes[:3] {
		for _, at := range []struct{ pos, blocks int }{{0, 1}, {0, 8}, {3, 8}, {254, 1}, {255, 1}, {256, 2}, {300, 2}, {300, 4}, {511, 2}, {600, 64}} {
			for _, kernel := range []int{0, 1} { // float32 and bf16
				cases := mk.decode(shape, at.pos, at.blocks)
				whole := func(tuning Tuning) Arg {
					attend, combine := cases[kernel], cases[2]
					attend.kernel, combine.kernel = Tuned(attend.kernel, tuning), Tuned(combine.kernel, tuning)
					parts := m.run(t, attend, standin.KernelOptions{Poison: true})
					combine.args = []Arg{parts[7], parts[8], attend.args[0], attend.args[4], combine.args[4]}
					return m.run(t, combine, standin.KernelOptions{Poison: true})[4]
				}
				c := cases[2]
				c.tolerance = 1e-5
				c.compareFloats(t, "even blocks", whole(Tuning{EvenBlocks: true}).F32, whole(Tuning{}).F32)
			}
		}
	}
}
