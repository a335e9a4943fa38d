package qwen36

// Several sequences in one pass: each gets the bits that it gets alone, whoever is beside it and in whatever order.

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pond/inference/tinymodel"
	"pond/metal/gputest"
	"pond/metal/host"
	"pond/metal/kernels"
)

// checkTogether plays steps of one to four of four sequences, whose prompts have the given lengths, and compares logits and states with the same
// sequences alone.
func checkTogether(t *testing.T, m *Model, prompts [4]int, steps int, shuffle bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(4, uint64(steps)))
	var together, alone []*Sequence
	for i, n := range prompts {
		ids := sampleIDs(m.Shape.Vocab, n+i)[i:]
		for range 2 {
			q := newSequence(t, m)
			feed(t, q, ids, 100)
			together = append(together, q)
		}
	}
	for i := 0; i < len(together); i++ {
		alone = append(alone, together[i+1])
		together = slices.Delete(together, i+1, i+2)
	}
	met := map[int]int{}
	for step := range steps {
		some := r.Perm(len(together))[:1+r.IntN(len(together))]
		if step == 0 {
			some = []int{0, 1, 2, 3}
		}
		met[len(some)]++
		var qs []*Sequence
		var ids []int32
		for _, i := range some {
			qs, ids = append(qs, together[i]), append(ids, r.Int32N(int32(m.Shape.UsableIDs())))
		}
		if step%3 == 1 {
			ids[len(ids)-1] = ids[0] // the same token: the same experts, at first
		}
		if shuffle {
			qs[0].Shuffle(uint64(step))
		}
		logits, err := m.Step(qs, ids)
		if err != nil {
			t.Fatal(err)
		}
		for k := range logits {
			logits[k] = slices.Clone(logits[k])
		}
		for k, i := range some {
			want := token(t, alone[i], ids[k])
			if gputest.OnCUDA() { // other pipelines, so products and sums fused in other places
				if d := apart(logits[k], want); d > tapTolerance {
					t.Fatalf("step %d: sequence %d, row %d of %d: got a difference of %.2g of the root mean square, want at most %g", step, i, k, len(some), d, tapTolerance)
				}
			} else if d := differ(logits[k], want); d != "" {
				t.Fatalf("step %d: sequence %d, row %d of %d: %s", step, i, k, len(some), d)
			}
		}
	}
	for i := range together {
		if d := stateBits(together[i], alone[i]); d != "" && !gputest.OnCUDA() {
			t.Errorf("sequence %d after %v steps by rows: %s", i, met, d)
		}
	}
}

func TestTogetherIsAsAlone(t *testing.T) {
	for _, kind := range []tinymodel.Kind{tinymodel.Tiny, tinymodel.KernelTrue} {
		for _, mode := range []host.Mode{host.Exact, host.Int16, host.Int8} {
			t.Run(kind.String()+" "+string(mode), func(t *testing.T) {
				c, _, s := goldenModel(t, kind)
				dev := host.Open(mode, 2)
				t.Cleanup(func() { dev.Close() })
				m, err := NewModel(dev, c, s, 512)
				if err != nil {
					t.Fatal(err)
				}
				prompts, steps := [4]int{kernels.AttnBlock - 2, 1, 17, 60}, 24 // the first crosses the border of an attention block
				if kind == tinymodel.KernelTrue {
					prompts, steps = [4]int{9, 1, 4, 30}, 5
				}
				checkTogether(t, m, prompts, steps, false)
				checkTogether(t, m, prompts, 3, true)
			})
		}
	}
}

// On a GPU each row of a product is computed by threadgroups of its own, which do what they would do for it alone.
func TestGPUTogetherIsAsAlone(t *testing.T) {
	for _, kind := range []tinymodel.Kind{tinymodel.Tiny, tinymodel.KernelTrue} {
		t.Run(kind.String(), func(t *testing.T) {
			prompts, steps := [4]int{5, 1, 4, 9}, 5
			if kind == tinymodel.KernelTrue {
				needMetalCheck(t)
				prompts[0] = kernels.AttnBlock - 2
			}
			c, _, s := goldenModel(t, kind)
			m, err := Options{GPU: true}.NewModel(gputest.Open(t, gputest.Options{}), c, s, 512)
			if err != nil {
				t.Fatal(err)
			}
			checkTogether(t, m, prompts, steps, false)
		})
	}
}
