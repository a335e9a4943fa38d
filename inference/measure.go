package inference

import (
	"context"
	"fmt"
	"time"

	"pond/inference/qwen36"
	"pond/inference/sample"
)

// Measurement is one timed prompt and the greedy tokens after it.
type Measurement struct {
	Prefill   time.Duration   // from the start to the first token's choice
	Intervals []time.Duration // from each token's choice to the next one's
	Tokens    []int32         // [1 + intervals]
}

// Measure times a prompt and intervals greedy tokens after the first, in a sequence of its own, on the worker. The same work is done once
// before without a clock, the prompt and two tokens, so that every pass is compiled and every page touched. Tokens that end an answer do not end this.
// Prefill is in the engine's chunks and the choice is the sampler's, as in an answer; there is no text, no parser and no snapshot.
func (e *Engine) Measure(ctx context.Context, prompt []int32, intervals int) (m Measurement, err error) {
	if intervals < 1 || len(prompt)+intervals > e.info.ContextTokens {
		return m, fmt.Errorf("measure: got %d tokens and %d intervals, want at least 1 of each and %d together at most", len(prompt), intervals, e.info.ContextTokens)
	}
	err = e.study(ctx, prompt, func(l *live) error {
		if err := l.over(len(prompt) + intervals); err != nil {
			return err
		}
		if _, err := e.timed(l, prompt, min(2, intervals)); err != nil {
			return err
		}
		if err := l.over(len(prompt) + intervals); err != nil {
			return err
		}
		m, err = e.timed(l, prompt, intervals)
		return err
	})
	return m, err
}

func (e *Engine) timed(l *live, prompt []int32, intervals int) (m Measurement, err error) {
	sampler, err := sample.New(sample.Params{}, e.info.VocabSize, prompt)
	if err != nil {
		return m, err
	}
	m.Intervals, m.Tokens = make([]time.Duration, 0, intervals), make([]int32, 0, intervals+1)
	var logits []float32
	last := time.Now()
	for pos := 0; pos < len(prompt); pos += e.chunk {
		if err := e.cancelled(l.job); err != nil {
			return m, err
		}
		part := prompt[pos:min(pos+e.chunk, len(prompt))]
		if logits, err = l.chunk(part, qwen36.LastLogits, false); err != nil {
			return m, err
		}
		e.queue.count(len(part))
	}
	c := e.newChooser(l, sampler, nil, -1)
	c.after(logits)
	for {
		choice, err := c.next()
		if err != nil {
			return m, err
		}
		sampler.Accept(choice.ID)
		now := time.Now()
		if len(m.Tokens) == 0 {
			m.Prefill = now.Sub(last)
		} else {
			m.Intervals = append(m.Intervals, now.Sub(last))
		}
		last = now
		m.Tokens = append(m.Tokens, choice.ID)
		if len(m.Intervals) == intervals {
			return m, nil
		}
		if err := e.cancelled(l.job); err != nil {
			return m, err
		}
		if err := c.take(choice.ID, len(m.Intervals)+1 < intervals); err != nil {
			return m, err
		}
		e.queue.decoded(1)
	}
}
