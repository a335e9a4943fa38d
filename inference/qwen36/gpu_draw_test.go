package qwen36

import (
	"testing"

	"pond/inference/tinymodel"
	"pond/metal/gputest"
	"pond/metal/kernels"
)

// TestGPUDrawsTheSpec: the answer that the GPU chooses, a step ahead of the host, is the golden one: greedily, and as the only one of its kept tokens
// where penalties apply to none.
func TestGPUDrawsTheSpec(t *testing.T) {
	for _, c := range []struct {
		kind tinymodel.Kind
		want []int32
	}{{tinymodel.Tiny, goldenTiny()}, {tinymodel.KernelTrue, goldenKernelTrue()}} {
		t.Run(c.kind.String(), func(t *testing.T) {
			if c.kind == tinymodel.KernelTrue {
				needMetalCheck(t)
			}
			ckpt, _, s := goldenModel(t, c.kind)
			m := gpuModel(t, ckpt, s, 64, gputest.Options{})
			for name, x := range map[string]struct {
				draw  kernels.Draw
				marks map[int32]uint32
			}{
				"greedy": {kernels.Draw{Keep: 1, Lower: 1, Raise: 1}, nil},
				"drawn":  {kernels.Draw{Keep: 20, Scale: 1e9, Uniform: 1 << 23, TopP: 1, Lower: 1, Raise: 1, Marked: true}, map[int32]uint32{}},
			} {
				d, err := m.NewDrawing(x.marks, nil, func(int) kernels.Draw { return x.draw })
				if err != nil {
					t.Fatal(err)
				}
				q, prompt := newSequence(t, m), goldenPrompt()
				feed(t, q, prompt[:len(prompt)-1], 5)
				id := prompt[len(prompt)-1]
				for i, want := range c.want {
					got, err := q.Draw(d, id, true)
					if err != nil {
						t.Fatal(err)
					}
					if id = got.ID; got.Status != kernels.Chosen || id != want {
						t.Fatalf("%s: token %d: got %d with status %d, want %d", name, i, id, got.Status, want)
					}
				}
				if err := q.Drop(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
