package qwen36

import (
	"testing"

	"pond/inference/plan"
	"pond/inference/tinymodel"
	"pond/metal"
)

// live says of each byte of a plan's scratch whether it is still to be read once the given level is done, found from what dispatches read
// and not from how places were chosen.
func live(p *plan.Plan, level int) []bool {
	out := make([]bool, p.ScratchBytes)
	writtenAt := make([]int, p.ScratchBytes) // last level that wrote the byte
	for l := range p.Levels {
		lo, hi := p.At(l)
		each := func(access plan.Access, f func(at int64)) {
			for _, d := range p.Dispatches[lo:hi] {
				for _, a := range d.Args {
					if p.Buffers[a.Range.Buffer].Class == plan.Scratch && a.Access&access != 0 {
						for at := a.At; at < a.At+a.Range.Len; at++ {
							f(at)
						}
					}
				}
			}
		}
		if l > level {
			each(plan.Read, func(at int64) { out[at] = out[at] || writtenAt[at] <= level })
		}
		each(plan.Write, func(at int64) { writtenAt[at] = l })
	}
	return out
}

// TestDeadScratchIsNeverRead: after every level, in any order, all scratch that nobody is to read is overwritten with what is no number; not a bit
// of the results changes. So no buffer's place is given away while it is needed, and no kernel reads what it was not given.
func TestDeadScratchIsNeverRead(t *testing.T) {
	m := openModel(t, tinymodel.Tiny, 64)
	ids := sampleIDs(320, 40)
	want := newSequence(t, m)
	logits := append(feed(t, want, ids[:33], 33), token(t, want, 7)...)

	q := newSequence(t, m)
	q.Shuffle(3)
	var p *plan.Plan
	q.Options.Tap = func(level int, _ []metal.Dispatch) {
		scratch := m.scratch.Bytes()[:p.ScratchBytes]
		for at, needed := range live(p, level) {
			if !needed {
				scratch[at] = 0xff
			}
		}
	}
	plans := func(q *plan.Plan, err error) {
		if p = q; err != nil {
			t.Fatal(err)
		}
	}
	plans(Prefill(m.Shape, m.Context, 33, LastLogits))
	got := feed(t, q, ids[:33], 33)
	plans(Decode(m.Shape, m.Context, min(m.Context, 256)))
	got = append(got, token(t, q, 7)...)
	if d := differ(got, logits); d != "" {
		t.Errorf("logits: %s", d)
	}
	if d := stateBits(q, want); d != "" {
		t.Error(d)
	}
}

// TestScratchOfAChunk: what a chunk holds beside its inputs is a fraction of what its buffers add up to.
func TestScratchOfAChunk(t *testing.T) {
	for _, tokens := range []int{17, 512, 2048} {
		p, err := Options{GPU: true}.Prefill(realShape(), 262_144, tokens, LastLogits)
		if err != nil {
			t.Fatal(err)
		}
		var apart int64
		for _, b := range p.Buffers {
			if b.Class == plan.Scratch {
				apart += b.LenBytes
			}
		}
		t.Logf("%d tokens: %.1f MB of scratch, of buffers that add up to %.1f MB", tokens, float64(p.ScratchBytes)/1e6, float64(apart)/1e6)
		if 2*p.ScratchBytes > apart {
			t.Errorf("%d tokens: got %d bytes of scratch, want at most half of the %d that its buffers have together", tokens, p.ScratchBytes, apart)
		}
	}
}
