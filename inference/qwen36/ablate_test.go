package qwen36

import (
	"slices"
	"testing"

	"pond/inference/ablate"
	"pond/inference/checkpoint"
	"pond/inference/tinymodel"
	"pond/metal"
	"pond/metal/detour"
	"pond/metal/gpu"
	"pond/metal/gputest"
	"pond/metal/host"
	"pond/metal/standin"
)

// ablated opens a model with one optimisation off.
func ablated(t *testing.T, dev metal.Device, c *checkpoint.Checkpoint, s Shape, off ablate.Switch) (*Model, *ablate.Set) {
	t.Helper()
	set, err := ablate.Parse(string(off))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Options{Ablate: set}.NewModel(dev, c, s, 300)
	if err != nil {
		t.Fatal(err)
	}
	return m, set
}

// planSwitches are those that change the plan.
func planSwitches() []ablate.Switch {
	return []ablate.Switch{ablate.FusedAttention, ablate.FusedExperts, ablate.FusedGDN, ablate.FusedNorm, ablate.FusedResidual}
}

// TestSwitchesChangeNoBitOfTheHost: on the host executor in exact mode, decode with a fused kernel and without agree to the last bit, in logits
// and in all state.
func TestSwitchesChangeNoBitOfTheHost(t *testing.T) {
	c, _, s := goldenModel(t, tinymodel.Tiny)
	ids := sampleIDs(320, 270) // beyond a block of keys
	run := func(m *Model) ([]float32, *Sequence) {
		q := newSequence(t, m)
		out := feed(t, q, ids[:255], 255)
		for _, id := range ids[255:] {
			out = append(out, token(t, q, id)...)
		}
		return out, q
	}
	want, wantState := run(newModel(t, c, s, 300, 2))
	for _, w := range planSwitches() {
		t.Run(string(w), func(t *testing.T) {
			dev := host.Open(host.Exact, 2)
			t.Cleanup(func() { dev.Close() })
			m, set := ablated(t, dev, c, s, w)
			got, state := run(m)
			if d := differ(got, want); d != "" {
				t.Errorf("logits: %s", d)
			}
			if d := stateBits(state, wantState); d != "" {
				t.Error(d)
			}
			if acted := set.Acted(); !slices.Equal(acted, []ablate.Switch{w}) {
				t.Errorf("got %v that acted, want %s", acted, w)
			}
		})
	}
}

// TestGPUSwitchesAgree: on the GPU too, within the rounding of another order of sums, or to the last bit where the table says so.
func TestGPUSwitchesAgree(t *testing.T) {
	// How far logits may be from those as shipped, in parts of their root mean square. A product in another order of sums, in front of a key
	// that is rounded to bf16, may round it the other way.
	tolerances := map[ablate.Switch]float64{ablate.CoalescedKV: 1e-3, ablate.FixedBlockAttention: 1e-3, ablate.FusedAttention: 2e-2, ablate.FusedDequantisation: 1e-3, ablate.FusedExperts: 1e-3, ablate.FusedGDN: 1e-3, ablate.FusedNorm: 1e-3, ablate.FusedResidual: 1e-3, ablate.GQAPacking: 1e-3, ablate.HalfKV: 2e-2, ablate.HalfExperts: 5e-2, ablate.SplitProducts: 1e-3, ablate.TensorOps: 0.5}
	c, _, s := goldenModel(t, tinymodel.Tiny)
	ids := sampleIDs(320, 43)
	run := func(m *Model) (out []float32) {
		q := newSequence(t, m)
		out = feed(t, q, ids[:37], 37)
		for _, id := range ids[37:] {
			out = append(out, token(t, q, id)...)
		}
		return out
	}
	var plain, tensors []float32
	m5 := standin.Options{MacOS: 26, Family: 10} // a GPU with tensor units
	t.Run("as shipped", func(t *testing.T) {
		m, err := Options{GPU: true}.NewModel(gputest.Open(t, gputest.Options{}), c, s, 300)
		if err != nil {
			t.Fatal(err)
		}
		plain = run(m)
	})
	t.Run("as shipped with tensor units", func(t *testing.T) {
		m, err := Options{GPU: true}.NewModel(gputest.Open(t, gputest.Options{Standin: m5}), c, s, 300)
		if err != nil {
			t.Fatal(err)
		}
		if tensors = run(m); differ(tensors, plain) == "" {
			t.Error("the same bits as without: tensor operations had no part in it")
		}
	})
	for _, e := range ablate.Table() {
		switch e.Switch {
		case ablate.SplitPrefillKeys: // acts behind a long context: TestGPUKeysInParts
			continue
		case ablate.DeviceToken: // acts in answers: package inference, TestTheDevicesChoiceSwitchedOff
			continue
		case ablate.BatchedDecode: // acts among several answers: package inference, TestBatchedDecodeSwitchedOff
			continue
		}
		t.Run(string(e.Switch), func(t *testing.T) {
			set, err := ablate.Parse(string(e.Switch))
			if err != nil {
				t.Fatal(err)
			}
			o, played, want := Options{Ablate: set, GPU: true}, standin.Options{}, plain
			if e.Switch == ablate.TensorOps {
				played, want = m5, tensors
			}
			var dev metal.Device = gputest.Open(t, gputest.Options{Standin: played, GPU: gpu.Options{Serial: set.Off(ablate.ConcurrentEncoding), Tuning: o.Tuning(),
				TensorOpsOff: func() bool { return set.Off(ablate.TensorOps) }}})
			if names := o.OnHost(); len(names) > 0 {
				if dev, err = detour.New(dev, names...); err != nil {
					t.Fatal(err)
				}
			}
			m, err := o.NewModel(dev, c, s, 300)
			if err != nil {
				t.Fatal(err)
			}
			got := run(m)
			if e.SameBits && gputest.OnCUDA() { // but for what the compiler fuses in other pipelines
				if d := apart(got, want); d > tapTolerance {
					t.Errorf("got a difference of %.2g of the root mean square, want at most %g", d, tapTolerance)
				}
			} else if e.SameBits {
				if d := differ(got, want); d != "" {
					t.Error(d)
				}
			} else if d, most := apart(got, want), tolerances[e.Switch]; d > most {
				t.Errorf("got a difference of %.2g of the root mean square, want at most %g", d, most)
			}
			if acted := set.Acted(); !slices.Equal(acted, []ablate.Switch{e.Switch}) {
				t.Errorf("got %v that acted, want %s", acted, e.Switch)
			}
		})
	}
}
