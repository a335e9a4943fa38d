package kernels

import (
	"os"
	"reflect"
	"testing"

	"pond/metal/standin"
)

// TestTuningChangesNoBit: each choice of launch switched off gives the same results to the last bit, in the first cases of each kernel whose launch
// it changes, and in all of them with POND_METAL_CHECK=1.
func TestTuningChangesNoBit(t *testing.T) {
	m := openMachine(t, false)
	cases := shortCases()
	for name, tuning := range map[string]Tuning{"narrow sets": {NarrowSets: true}, "tall tiles": {TallTiles: true}, "lone heads": {LoneHeads: true}} {
		t.Run(name, func(t *testing.T) {
			changed := map[string]int{}
			for _, c := range cases {
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
				if err := equalBits(m.run(t, c, standin.KernelOptions{Poison: true}), m.run(t, tuned, standin.KernelOptions{Poison: true})); err != nil {
					t.Errorf("%v: %v", c, err)
				}
			}
			want := map[string][]string{
				"narrow sets": {"q4_gemv_norm", "q8_gemv_norm", "q4_gemv_add", "q4_gemv_gdn_out", "moe_gate_up", "moe_down_add"},
				"tall tiles":  {"q4_gemm", "q8_gemm", "q4_gemm_add", "moe_gate_up_grouped", "moe_down_grouped"},
				"lone heads":  {"attn_decode", "attn_decode_bf16"},
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
