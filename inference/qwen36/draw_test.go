package qwen36

import (
	"slices"
	"testing"

	"pond/inference/tinymodel"
	"pond/metal/host"
	"pond/metal/kernels"
)

// TestAStepAheadIsTakenBack: whatever is done with a sequence while a step is ahead of its time, bits of state and logits are those of a sequence
// that never was ahead. On the host with a GPU's plan, where a step that began has run by then or not at all.
func TestAStepAheadIsTakenBack(t *testing.T) {
	c, _, s := goldenModel(t, tinymodel.Tiny)
	dev := host.Open(host.Exact, 1)
	t.Cleanup(func() { dev.Close() })
	m, err := Options{GPU: true}.NewModel(dev, c, s, 512)
	if err != nil {
		t.Fatal(err)
	}
	at := func(position int) kernels.Draw {
		return kernels.Draw{Keep: 20, Scale: 1, Uniform: uint32(position*7_654_321) % (1 << 24), Presence: 1 << 16, Frequency: 1 << 15, Lower: 1, Raise: 1}
	}
	drawing := func() *Drawing {
		d, err := m.NewDrawing(map[int32]uint32{}, nil, at)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	play := func(q *Sequence, d *Drawing, n int, ahead bool) (out []int32) {
		id := int32(5)
		for range n {
			got, err := q.Draw(d, id, ahead)
			if err != nil || got.Status != kernels.Chosen {
				t.Fatalf("got %+v, %v", got, err)
			}
			id = got.ID
			out = append(out, id)
		}
		return out
	}
	for name, then := range map[string]func(t *testing.T, q *Sequence){
		"another token": func(t *testing.T, q *Sequence) { token(t, q, 9) },
		"a chunk": func(t *testing.T, q *Sequence) {
			if _, err := q.Chunk([]int32{3, 4, 5}, LastLogits); err != nil {
				t.Fatal(err)
			}
		},
		"a snapshot": func(t *testing.T, q *Sequence) {
			if err := q.Restore(q.Snapshot()); err != nil {
				t.Fatal(err)
			}
		},
		"another's run": func(t *testing.T, q *Sequence) { token(t, newSequence(t, m), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			plain, ahead := newSequence(t, m), newSequence(t, m)
			feed(t, plain, goldenPrompt(), 100)
			feed(t, ahead, goldenPrompt(), 100)
			d := drawing()
			want := play(plain, drawing(), 12, false)
			if got := play(ahead, d, 12, true); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
			if ahead.ahead == nil {
				t.Fatal("no step is ahead")
			}
			then(t, plain)
			then(t, ahead)
			if err := ahead.Drop(); err != nil {
				t.Fatal(err)
			}
			if a, b := ahead.Pos(), plain.Pos(); a != b {
				t.Errorf("got position %d, want %d", a, b)
			}
			if d := differ(token(t, ahead, 2), token(t, plain, 2)); d != "" {
				t.Errorf("the next logits: %s", d)
			}
			for range 4 { // the convolution's ring
				if d := differ(token(t, ahead, 7), token(t, plain, 7)); d != "" {
					t.Errorf("logits behind them: %s", d)
				}
			}
			if d := stateBits(ahead, plain); d != "" {
				t.Errorf("the states: %s", d)
			}
			counted := d.marks.U32()
			for i, id := range append([]int32{5}, want[:11]...) {
				if counted[id]>>10 == 0 {
					t.Errorf("token %d of the answer is not counted", i)
				}
			}
			var all uint32
			for _, m := range counted {
				all += m >> 10
			}
			if all != 12 {
				t.Errorf("got %d tokens counted, want the 12 that were taken in", all)
			}
		})
	}
}
