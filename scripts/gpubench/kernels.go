package main

import (
	"fmt"
	"slices"
	"strings"

	"pond/inference/qwen36"
	"pond/metal"
	"pond/metal/kernels"
)

func sorted(v []float64) []float64 { return slices.Sorted(slices.Values(v)) }

// role is what a dispatch is for, whatever its layer and its row: "gdn.in", "lm_head". Rows that a step of several has side by side are measured one behind the other.
func role(label string) string {
	label, _, _ = strings.Cut(label, "@")
	if rest, ok := strings.CutPrefix(label, "layers."); ok {
		_, name, _ := strings.Cut(rest, ".")
		return name
	}
	return label
}

// collect runs a pass level by level and returns its dispatches with their memory.
func collect(q *qwen36.Sequence, f func() error) (out []metal.Dispatch, err error) {
	q.Options.Tap = func(_ int, ds []metal.Dispatch) { out = append(out, ds...) }
	defer func() { q.Options.Tap = nil }()
	return out, f()
}

// kernelTables measures the kernels of decode at the contexts, of the most sequences together, and of a chunk of prefill.
func (b *bench) kernelTables() error {
	q, err := b.sequence(b.model.Context)
	if err != nil {
		return err
	}
	drawing, err := b.drawing()
	if err != nil {
		return err
	}
	for _, keys := range b.contexts {
		at(q, keys)
		ds, err := collect(q, func() error {
			_, err := q.Draw(drawing, 1, false)
			return err
		})
		if err != nil {
			return err
		}
		if err := b.kernelTable(fmt.Sprintf("decode at %d", keys), asRead(ds, keys), 0); err != nil {
			return err
		}
	}
	if len(b.together) > 0 {
		n := slices.Max(b.together)
		qs, err := b.sequences(n)
		if err != nil {
			return err
		}
		ds, err := collect(qs[0], func() error {
			_, err := b.model.Step(qs, b.ids(n))
			return err
		})
		if err != nil {
			return err
		}
		if err := b.kernelTable(fmt.Sprintf("decode of %d together at %d", n, togetherKeys), asRead(ds, togetherKeys), 0); err != nil {
			return err
		}
	}
	for _, n := range b.prefills {
		if n > b.chunk {
			break
		}
		q.Reset()
		ids := b.ids(n)
		ds, err := collect(q, func() error {
			_, err := q.Chunk(ids, qwen36.LastLogits)
			return err
		})
		if err != nil {
			return err
		}
		if err := b.kernelTable(fmt.Sprintf("prefill of %d", n), ds, n); err != nil {
			return err
		}
	}
	return nil
}

// asRead are dispatches of a token behind that many keys with the bytes that they read and write.
func asRead(ds []metal.Dispatch, keys int) []metal.Dispatch {
	for i := range ds {
		ds[i].Work -= unread(ds[i], keys)
	}
	return ds
}

// unread is how many bytes a dispatch of a token behind that many keys leaves alone of those that its plan counts, which is made for a power of two of blocks.
func unread(d metal.Dispatch, keys int) int64 {
	p, ok := d.Params.(kernels.AttentionParams)
	if !ok || !strings.HasPrefix(d.Kernel, "attn_decode") && d.Kernel != "attn_combine" {
		return 0
	}
	partials := int64(p.Blocks-qwen36.Blocks(keys+1)) * int64(p.H*(p.HD+2)*4)
	if d.Kernel == "attn_combine" {
		return partials
	}
	number := int64(4)
	if d.Kernel == "attn_decode_bf16" {
		number = 2
	}
	return partials + 2*number*int64((min(p.Blocks*kernels.AttnBlock, p.Context)-keys)*p.KVWidth())
}

// kernelTable measures each role: all its dispatches in levels of their own, so that each waits for the one before as it does in a token, over as many
// different weights.
func (b *bench) kernelTable(what string, ds []metal.Dispatch, tokens int) error {
	var roles []string
	byRole := map[string][]metal.Dispatch{}
	for _, d := range ds {
		r := role(d.Label)
		if len(b.roles) > 0 && !slices.Contains(b.roles, r) {
			continue
		}
		if byRole[r] == nil {
			roles = append(roles, r)
		}
		byRole[r] = append(byRole[r], d)
	}
	unit := "GB/s | of the copy"
	if tokens > 0 {
		unit = "GB/s | TFLOP/s"
	}
	fmt.Fprintf(b.out, "| %s | kernel | times | us each | us a pass | MB each | %s |\n|---|---|---:|---:|---:|---:|---:|---:|\n", what, unit)
	var sum float64
	for _, r := range roles {
		us, err := b.chain(byRole[r], tokens)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", what, r, err)
		}
		d, n := byRole[r][0], float64(len(byRole[r]))
		sum += us * n
		rate := float64(d.Work) / us * 1e6
		last := fmt.Sprintf("%.1f %%", 100*rate/b.copied)
		if tokens > 0 {
			last = fmt.Sprintf("%.1f", operations(d.Kernel, d.Params, 0)/us/1e6)
		}
		fmt.Fprintf(b.out, "| %s | %s | %.0f | %.2f | %.1f | %.3f | %.0f | %s |\n", r, d.Kernel, n, us, us*n, float64(d.Work)/1e6, rate/1e9, last)
	}
	fmt.Fprintf(b.out, "| all | | %d | | %.1f | | | |\n\n", len(ds), sum)
	return nil
}

// chain is microseconds of one dispatch of a list, behind another of it.
func (b *bench) chain(ds []metal.Dispatch, tokens int) (float64, error) {
	least, rounds := 96, 4
	if tokens > 0 {
		least, rounds = 4, 2
	}
	var p metal.Program
	p.Label = ds[0].Label
	for len(p.Levels) < least {
		for _, d := range ds {
			p.Levels = append(p.Levels, []metal.Dispatch{d})
			if tokens > 0 && len(p.Levels) >= 2*least {
				break
			}
		}
	}
	pass, err := b.device.Compile(p)
	if err != nil {
		return 0, err
	}
	var best float64
	for i := range rounds {
		b.lib.ResetCounters()
		if err := b.device.Run(pass, metal.RunOptions{}); err != nil {
			return 0, err
		}
		c, err := b.lib.Report()
		if err != nil {
			return 0, err
		}
		us := c.GPUSeconds * 1e6 / float64(len(p.Levels))
		if i > 0 && (best == 0 || us < best) {
			best = us
		}
	}
	return best, nil
}

// listOnce runs a token's dispatches one by one, in the order of the list that it prints: what a profiler sees is in that order too.
func (b *bench) listOnce() error {
	q, err := b.sequence(b.model.Context)
	if err != nil {
		return err
	}
	drawing, err := b.drawing()
	if err != nil {
		return err
	}
	at(q, b.contexts[0])
	ds, err := collect(q, func() error {
		_, err := q.Draw(drawing, 1, false)
		return err
	})
	if err != nil {
		return err
	}
	for i, d := range ds {
		fmt.Fprintf(b.out, "once\t%d\t%s\t%s\t%d\n", i, role(d.Label), d.Kernel, weightsOf(d))
	}
	return nil
}

// weightsOf is how many weights a product reads.
func weightsOf(d metal.Dispatch) int {
	switch p := d.Params.(type) {
	case kernels.LinearParams:
		return p.K * p.N()
	case kernels.HeadParams:
		return p.Product.K * p.Product.N()
	case kernels.GDNOutParams:
		return p.GDN.ValueWidth() * p.N
	case kernels.MoEParams:
		switch d.Kernel {
		case "moe_gate_up":
			return 2 * p.D * (p.T*p.I + p.SI)
		case "moe_down_add":
			return p.D * (p.T*p.I + p.SI)
		}
	}
	return 0
}
