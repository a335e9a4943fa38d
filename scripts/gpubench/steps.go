package main

import (
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"pond/inference/qwen36"
	"pond/metal/kernels"
)

// copyRate measures what the card moves at best in a plain copy, bytes read and written.
func (b *bench) copyRate() error {
	const n = 4 << 30
	if b.copied = b.gpu.CopyRate(n, 10); b.copied == 0 {
		return fmt.Errorf("copies of %d bytes failed", n)
	}
	fmt.Fprintf(b.out, "copy on the card: %.0f GB/s, read and written\n\n", b.copied/1e9)
	return nil
}

// decode prints tokens a second at each context.
func (b *bench) decode() error {
	if len(b.contexts) == 0 {
		return nil
	}
	fmt.Fprintf(b.out, "| decode at | tok/s | ms a token, median | 10th and 90th of 100 | ms on the GPU | GB a token | GB/s | of the copy |\n|---|---:|---:|---|---:|---:|---:|---:|\n")
	q, err := b.sequence(b.model.Context)
	if err != nil {
		return err
	}
	drawing, err := b.drawing()
	if err != nil {
		return err
	}
	if b.profile != "" {
		f, err := os.Create(b.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for _, keys := range b.contexts {
		at(q, keys)
		took, busy, err := b.decodeAt(q, drawing)
		if err != nil {
			return fmt.Errorf("decode at %d: %w", keys, err)
		}
		bytes, err := b.tokenBytes(keys)
		if err != nil {
			return err
		}
		ms := median(took)
		rate := float64(bytes) / ms * 1e3
		low, high := quantiles(took)
		fmt.Fprintf(b.out, "| %d | %.1f | %.3f | %.3f, %.3f | %.3f | %.4f | %.0f | %.1f %% |\n", keys, 1e3/ms, ms, low, high, busy, float64(bytes)/1e9, rate/1e9, 100*rate/b.copied)
	}
	fmt.Fprintln(b.out)
	return nil
}

// drawing is how an answer is decoded: the GPU draws the token, and begins the next step with it where two are in flight.
func (b *bench) drawing() (*qwen36.Drawing, error) {
	return b.model.NewDrawing(nil, nil, func(position int) kernels.Draw {
		return kernels.Draw{Keep: 40, Uniform: uint32(position*77_773) % (1 << 24), Scale: 1, TopP: 1<<32 - 1}
	})
}

// decodeAt decodes from where q stands: milliseconds of each token, and of a token on the GPU.
func (b *bench) decodeAt(q *qwen36.Sequence, d *qwen36.Drawing) (took []float64, busy float64, err error) {
	id := b.ids(1)[0]
	begun := time.Now()
	for i := range b.warm + b.tokens {
		if i == b.warm {
			b.lib.ResetCounters()
		}
		c, err := q.Draw(d, id, true)
		if err != nil {
			return nil, 0, err
		}
		if c.Status != kernels.Chosen && !b.unchecked {
			return nil, 0, fmt.Errorf("token %d: got status %d of the choice, want %d", i, c.Status, kernels.Chosen)
		}
		id = c.ID
		now := time.Now()
		if i >= b.warm {
			took = append(took, now.Sub(begun).Seconds()*1e3)
		}
		begun = now
	}
	c, err := b.lib.Report()
	if err != nil {
		return nil, 0, err
	}
	busy = c.GPUSeconds / float64(b.tokens) * 1e3
	if err := q.Drop(); err != nil {
		return nil, 0, err
	}
	logits, err := q.Token(id)
	if err != nil {
		return nil, 0, err
	}
	return took, busy, b.finite(logits)
}

// tokenBytes is what a token cannot do without: the weights it uses, the states both ways, and the keys and values of the context.
func (b *bench) tokenBytes(keys int) (int64, error) {
	s := b.model.Shape
	p, err := b.plans.Decode(s, b.model.Context, min(keys, b.model.Context))
	if err != nil {
		return 0, err
	}
	sum := p.Summary()
	return sum.WeightBytes + sum.StateBytes, nil
}

// prefill prints tokens a second of prompts.
func (b *bench) prefill() error {
	if len(b.prefills) == 0 {
		return nil
	}
	fmt.Fprintf(b.out, "| prefill of | tok/s | ms | TFLOP | TFLOP/s |\n|---|---:|---:|---:|---:|\n")
	q, err := b.model.NewSequence()
	if err != nil {
		return err
	}
	if err := q.Grow(b.model.Context); err != nil {
		return err
	}
	for _, n := range b.prefills {
		var took []float64
		rounds := b.rounds
		if n > 8192 {
			rounds = 2
		}
		for range rounds {
			q.Reset()
			begun := time.Now()
			ids := b.ids(n)
			for len(ids) > 0 {
				c := min(b.chunk, len(ids))
				logits, err := q.Chunk(ids[:c], qwen36.LastLogits)
				if err != nil {
					return err
				}
				if len(ids) == c {
					if err := b.finite(logits); err != nil {
						return fmt.Errorf("prefill of %d: %w", n, err)
					}
				}
				ids = ids[c:]
			}
			took = append(took, time.Since(begun).Seconds())
		}
		s := median(took[1:]) // the first makes passes and graphs
		work, err := b.prefillWork(n)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.out, "| %d | %.0f | %.1f | %.2f | %.1f |\n", n, float64(n)/s, s*1e3, work/1e12, work/s/1e12)
	}
	fmt.Fprintln(b.out)
	return nil
}

// prefillWork is how many operations a prompt takes, a product and a sum each one.
func (b *bench) prefillWork(n int) (work float64, err error) {
	for pos := 0; pos < n; pos += b.chunk {
		p, err := b.plans.Prefill(b.model.Shape, b.model.Context, min(b.chunk, n-pos), qwen36.LastLogits)
		if err != nil {
			return 0, err
		}
		for _, d := range p.Dispatches {
			work += operations(d.Kernel, d.Params, pos)
		}
	}
	return work, nil
}

// operations of one dispatch of a chunk behind pos tokens; small kernels count as none.
func operations(kernel string, params any, pos int) float64 {
	switch p := params.(type) {
	case kernels.LinearParams:
		return 2 * float64(p.M) * float64(p.K) * float64(p.N())
	case kernels.MoEParams:
		each := 2 * float64(p.M) * float64(p.T) * float64(p.I) * float64(p.D)
		switch kernel {
		case "moe_gate_up_grouped":
			return 2 * each
		case "moe_down_grouped", "moe_down_grouped_bf16":
			return each
		}
	case kernels.AttentionParams:
		if kernel == "attn_prefill" || kernel == "attn_prefill_bf16" {
			m := float64(p.M)
			return 4 * float64(p.H) * float64(p.HD) * (m*float64(pos) + m*(m+1)/2)
		}
	case kernels.GDNParams:
		if kernel == "gdn_scan" {
			return 8 * float64(p.M) * float64(p.HV) * float64(p.DV) * float64(p.DK)
		}
	}
	return 0
}

func quantiles(v []float64) (low, high float64) {
	s := sorted(v)
	return s[len(s)/10], s[len(s)*9/10]
}
