package inference

import (
	"context"
	"fmt"

	"pond/inference/qwen36"
)

// Logits runs the model over tokens, from an empty state, and calls each with the logits after every one of them, [Vocab] f32, valid
// during the call. For perplexity and inspection; it waits its turn like a request.
func (e *Engine) Logits(ctx context.Context, ids []int32, each func(pos int, logits []float32) error) error {
	if len(ids) == 0 || len(ids) > e.info.ContextTokens {
		return fmt.Errorf("logits: got %d tokens, want 1 to %d", len(ids), e.info.ContextTokens)
	}
	j := &job{ctx: ctx, answer: newAnswer(ctx)}
	j.task = func() error {
		seq, err := e.model.NewSequence()
		if err != nil {
			return err
		}
		for pos := 0; pos < len(ids); pos += logitsChunk {
			if err := e.cancelled(j); err != nil {
				return err
			}
			part := ids[pos:min(pos+logitsChunk, len(ids))]
			all, err := seq.Chunk(part, qwen36.AllLogits)
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
	}
	if err := e.queue.add(j); err != nil {
		return err
	}
	_, err := j.answer.Wait()
	return err
}

// logitsChunk is how many positions' logits are held at once: 64 rows of 248,320 f32 are 64 MB.
const logitsChunk = 64
