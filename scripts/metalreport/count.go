package main

import (
	"encoding/binary"
	"fmt"

	"pond/inference/plan"
	"pond/inference/qwen36"
	"pond/metal/kernels"
	"pond/metal/standin"
)

func source() string { return kernels.Source() }

// options are those of the plans that a GPU runs.
func options() qwen36.Options { return qwen36.Options{GPU: true} }

// headPart is the part of the vocabulary whose head is counted: a row costs what every row does, and all of them would take a minute. So many are still
// launched in sets of as many rows as all of them are.
const headPart = 8

// decodeBytes counts a token and prints it; print says whether also dispatch by dispatch.
func (r *report) decodeBytes(lib *standin.Kernels, s qwen36.Shape, p *plan.Plan, keys int, print bool) (int64, error) {
	if print {
		r.line("decode at %d keys\ta token\tMB, lines touched\tloads asked for\tthreadgroup barriers, simdgroup operations a thread", keys)
	}
	total, err := r.lines(lib, s, p, keys, print)
	if err != nil {
		return 0, err
	}
	ratio := float64(total) / float64(floor(keys))
	r.line("decode at %d keys\t%.4f GB a token\tfloor %.4f\tratio %.4f\t%s", keys, float64(total)/1e9, float64(floor(keys))/1e9, ratio, r.limit(fmt.Sprintf("bytes at %d keys over the floor", keys), ratio, mostOverFloor))
	return total, r.w.Flush()
}

// lines is the bytes of the lines that the dispatches of a plan touch, one after the other.
func (r *report) lines(lib *standin.Kernels, s qwen36.Shape, p *plan.Plan, keys int, print bool) (total int64, err error) {
	for _, d := range p.Dispatches {
		times := layerOf(s, d)
		if times == 0 {
			continue
		}
		if d.Name == "lm_head" {
			times *= headPart
			d = partOfHead(d)
		}
		n, err := count(lib, p, d, keys)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", d.Name, err)
		}
		total += n.lines * int64(times)
		if print {
			r.line("%s\t%d\t%.3f\t%.2f\t%.1f, %.1f", d.Kernel, times, float64(n.lines)/1e6, float64(n.loads)/float64(n.lines), float64(n.counts.ThreadgroupBarriers)/float64(n.counts.Threadgroups),
				float64(n.counts.SimdOps)*32/float64(n.counts.Threads))
		}
	}
	return total, nil
}

// kernelsTogether is how many sequences a step takes at most.
const kernelsTogether = kernels.MaxBatch

// batchBytes counts a step of several sequences, each with experts of its own: what they have in common beyond that is less still.
func (r *report) batchBytes(lib *standin.Kernels, s qwen36.Shape, p *plan.Plan, rows int, alone int64) error {
	total, err := r.lines(lib, s, p, contexts[0], false)
	if err != nil {
		return err
	}
	each := float64(total) / float64(rows)
	r.line("decode of %d at %d keys\t%.4f GB a token\t%.3f of one alone", rows, contexts[0], each/1e9, each/float64(alone))
	return r.w.Flush()
}

// partOfHead is a dispatch of the head, with or without the choice, with one part of its rows.
func partOfHead(d plan.Dispatch) plan.Dispatch {
	switch p := d.Params.(type) {
	case kernels.HeadParams:
		p.Product.Rows[0] /= headPart
		p.Choice.N /= headPart
		d.Params, d.Items = p, p.Blocks()
	case kernels.LinearParams:
		p.Rows[0] /= headPart
		d.Params, d.Items = p, p.N()
	}
	args := append([]plan.Arg(nil), d.Args...)
	args[2].Range.Len /= headPart // logits
	for i := len(args) - kernels.SegmentArgs; i < len(args); i++ {
		args[i].Range.Len /= headPart
	}
	d.Args = args
	return d
}

// counted is what one dispatch moved.
type counted struct {
	lines, loads int64 // bytes of distinct lines, read and written; bytes that threads asked for
	counts       standin.KernelCounts
}

// kernel finds a kernel by name.
func kernel(name string) (kernels.Kernel, error) {
	for _, k := range kernels.All() {
		if k.Name == name {
			return k, nil
		}
	}
	return kernels.Kernel{}, fmt.Errorf("no kernel %s", name)
}

// count runs a dispatch on the stand-in over zeroes, at the last of keys positions, each token with experts of its own.
func count(lib *standin.Kernels, p *plan.Plan, d plan.Dispatch, keys int) (out counted, err error) {
	k, err := kernel(d.Kernel)
	if err != nil {
		return out, err
	}
	if k.Check != nil {
		if err := k.Check(d.Params); err != nil {
			return out, err
		}
	}
	var memory []*standin.Memory
	var bound []standin.KernelArg
	defer func() {
		for _, m := range memory {
			m.Free()
		}
	}()
	for _, a := range d.Args {
		m := lib.NewMemory(a.Param, int(a.Range.Len))
		memory = append(memory, m)
		bound = append(bound, standin.KernelArg{Memory: m})
		switch p.Buffers[a.Range.Buffer].Name {
		case qwen36.BufStep:
			m.U32()[0] = uint32(keys - 1)
		case "moe.ids":
			for i := range m.U32() {
				m.U32()[i] = uint32(i)
			}
		case "moe.logits": // token after token chooses the next experts
			if p, ok := d.Params.(kernels.MoEParams); ok {
				for i := range p.M * p.T {
					m.F32()[i/p.T*(p.E+1)+i] = 1
				}
			}
		}
	}
	for k.Segments > 0 && len(bound) < len(k.Buffers)+kernels.SegmentArgs*k.Segments {
		bound = append(bound, bound[len(k.Buffers)+(len(bound)-len(k.Buffers))%kernels.SegmentArgs])
	}
	params, err := kernels.EncodeParams(d.Params)
	if err != nil {
		return out, err
	}
	bound = append(bound, standin.KernelArg{Bytes: params})
	o := standin.KernelOptions{Count: true}
	if k.Constants != nil {
		for _, c := range k.Constants(d.Params) {
			o.Constants = append(o.Constants, standin.KernelConstant{Index: c.Index, Value: binary.LittleEndian.AppendUint32(nil, uint32(c.Value.(int32)))})
		}
	}
	g := k.Grid(d.Params, d.Items)
	if out.counts, err = lib.Run(k.Name, bound, standin.KernelGrid{Groups: g.Groups, Threads: g.Threads, ThreadgroupBytes: g.ThreadgroupBytes}, o); err != nil {
		return out, err
	}
	for _, m := range memory {
		t := m.Traffic()
		out.lines += int64(t.LoadLines+t.StoreLines) * 64
		out.loads += int64(t.LoadBytes)
	}
	return out, nil
}
