package main

import (
	"fmt"
	"time"

	"pond/inference/qwen36"
)

// togetherKeys are the keys of each sequence of the table of several.
const togetherKeys = 256

// batches are how many sequences a step of that table takes: one first, to compare with.
func (o options) batches() []int {
	if len(o.together) == 0 {
		return nil
	}
	return append([]int{1}, o.together...)
}

// decodeTogether prints tokens a second of several sequences in one pass, each with its own keys and tokens, beside one sequence in the same form: the
// host names the tokens, and nothing of a step is begun before the one before it has ended. Tokens are drawn at random, so the sequences choose
// experts as strangers do.
func (b *bench) decodeTogether() error {
	if len(b.batches()) == 0 {
		return nil
	}
	fmt.Fprintf(b.out, "| together, at %d keys each | tok/s | of one | ms a step, median | 10th and 90th of 100 | ms on the GPU | tok/s on the GPU, of one |\n|---|---:|---:|---:|---|---:|---:|\n", togetherKeys)
	var alone, aloneBusy float64
	for _, n := range b.batches() {
		took, busy, err := b.stepsOf(n)
		if err != nil {
			return fmt.Errorf("%d together: %w", n, err)
		}
		ms := median(took)
		if n == 1 {
			alone, aloneBusy = ms, busy
		}
		low, high := quantiles(took)
		fmt.Fprintf(b.out, "| %d | %.1f | %.2f | %.3f | %.3f, %.3f | %.3f | %.2f |\n", n, float64(n)*1e3/ms, float64(n)*alone/ms, ms, low, high, busy, float64(n)*aloneBusy/busy)
	}
	fmt.Fprintln(b.out)
	return nil
}

// sequences are n with as many keys.
func (b *bench) sequences(n int) (qs []*qwen36.Sequence, err error) {
	for range n {
		q, err := b.sequence(togetherKeys + b.tokens + 2*b.warm)
		if err != nil {
			return nil, err
		}
		at(q, togetherKeys)
		qs = append(qs, q)
	}
	return qs, nil
}

// stepsOf decodes n sequences together: milliseconds of each step, and of a step on the GPU.
func (b *bench) stepsOf(n int) (took []float64, busy float64, err error) {
	qs, err := b.sequences(n)
	if err != nil {
		return nil, 0, err
	}
	var logits [][]float32
	for i := range b.warm + b.tokens {
		if i == b.warm {
			b.lib.ResetCounters()
		}
		ids := b.ids(n)
		begun := time.Now()
		if logits, err = b.model.Step(qs, ids); err != nil {
			return nil, 0, err
		}
		if i >= b.warm {
			took = append(took, time.Since(begun).Seconds()*1e3)
		}
	}
	c, err := b.lib.Report()
	if err != nil {
		return nil, 0, err
	}
	for _, l := range logits {
		if err := b.finite(l); err != nil {
			return nil, 0, err
		}
	}
	return took, c.GPUSeconds / float64(b.tokens) * 1e3, nil
}
