package inference

import (
	"slices"

	"pond/inference/ablate"
	"pond/inference/qwen36"
)

// Answers that are decoded at once: the worker picks when all jobs have asked, so whoever wants a token then gets it in the same pass, which
// reads the weights once for all. Nobody waits for others to become ready, and a token is the one that its answer would get alone.

// together takes in the tokens of l and of the answers that go with it, and returns all of them.
func (w *worker) together(l *live) ([]*live, error) {
	all := append([]*live{l}, w.companions(l)...)
	w.e.queue.stepped(len(all))
	if len(all) == 1 && l.asked.sampler != nil {
		l.last = w.turns
		return all, guard(l.draw)
	}
	var seqs []*qwen36.Sequence
	var ids []int32
	for _, o := range all {
		o.last = w.turns
		seqs, ids = append(seqs, o.seq), append(ids, o.asked.id)
	}
	return all, guard(func() error {
		logits, err := w.e.model.Step(seqs, ids)
		if err != nil {
			return err
		}
		for i, o := range all {
			o.took(logits[i], ids[i])
		}
		return nil
	})
}

// companions are the answers that can have a token with l's: the chat window's first, then those that have waited longest. Who has to grow or to
// find its place again takes a turn of its own.
func (w *worker) companions(l *live) []*live {
	var ready []*live
	for _, o := range w.live {
		if o != l && o.asked.kind == step && o.asked.run == nil && !o.parked && o.seq != nil && o.seq.Pos() == len(o.tokens) &&
			o.seq.Pos() < o.seq.Rows() && w.e.cancelled(o.job) == nil {
			ready = append(ready, o)
		}
	}
	most := w.e.model.MostTogether() - 1
	if len(ready) == 0 || most == 0 || w.e.ablate.Off(ablate.BatchedDecode) {
		return nil
	}
	slices.SortStableFunc(ready, func(a, b *live) int {
		if a.job.gen.Priority != b.job.gen.Priority {
			return int(b.job.gen.Priority) - int(a.job.gen.Priority)
		}
		return int(a.last - b.last)
	})
	return ready[:min(len(ready), most)]
}
