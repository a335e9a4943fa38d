package inference

import (
	"context"
	"fmt"

	"pond/inference/qwen36"
)

// Logits runs the model over tokens, from an empty state, and calls each with the logits after every one of them, [Vocab] f32, valid
// during the call. For perplexity and inspection; it waits its turn like a request.
func (e *Engine) Logits(ctx context.Context, ids []int32, each func(pos int, logits []float32) error) error {
	return e.study(ctx, ids, func(l *live) error {
		for pos := 0; pos < len(ids); pos += logitsChunk {
			if err := e.cancelled(l.job); err != nil {
				return err
			}
			part := ids[pos:min(pos+logitsChunk, len(ids))]
			all, err := l.chunk(part, qwen36.AllLogits, false)
			if err != nil {
				return err
			}
			e.queue.count(len(part))
			n := len(all) / len(part)
			for i := range part {
				if err := each(pos+i, all[i*n:(i+1)*n]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// LogitsByToken is Logits by the plan that answers are made with, one token a run, where Logits takes them in by the chunk.
func (e *Engine) LogitsByToken(ctx context.Context, ids []int32, each func(pos int, logits []float32) error) error {
	return e.study(ctx, ids, func(l *live) error {
		for pos, id := range ids {
			if err := e.cancelled(l.job); err != nil {
				return err
			}
			logits, err := l.token(id)
			if err != nil {
				return err
			}
			e.queue.count(1)
			if err := each(pos, logits); err != nil {
				return err
			}
		}
		return nil
	})
}

// study runs work over a sequence of its own, in turn with the requests, and keeps nothing of it.
func (e *Engine) study(ctx context.Context, ids []int32, work func(*live) error) error {
	if len(ids) == 0 || len(ids) > e.info.ContextTokens {
		return fmt.Errorf("got %d tokens, want 1 to %d", len(ids), e.info.ContextTokens)
	}
	j := &job{ctx: ctx, answer: newAnswer(ctx)}
	j.task = func(l *live) error {
		if err := l.do(begin, 0, func() error { return e.place(l, nil, len(ids)) }); err != nil {
			return err
		}
		return work(l)
	}
	if err := e.queue.add(j); err != nil {
		return err
	}
	_, err := j.answer.Wait()
	return err
}

// logitsChunk is how many positions' logits are held at once: 64 rows of 248,320 f32 are 64 MB.
const logitsChunk = 64
