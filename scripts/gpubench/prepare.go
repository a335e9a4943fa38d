package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"pond/inference/plan"
	"pond/inference/qwen36"
	"pond/metal/kernels"
	"pond/metal/standin"
)

// prepare compiles what the plans at the contexts and prompts need.
func prepare(o options, out io.Writer) error {
	t, err := standin.NewToolchain("", "")
	if err != nil {
		return err
	}
	if _, err := t.CUDARuntime(); err != nil {
		return err
	}
	c, err := standin.NewCUDA(t, "")
	if err != nil {
		return err
	}
	text, err := o.text()
	if err != nil {
		return err
	}
	lib, err := c.Build(text, standin.CompileOptions{Language: 310, Macros: map[string]string{}}) // as package gpu asks for it
	if err != nil {
		return err
	}
	tensors := lib
	if o.tensors {
		if tensors, err = c.Build(kernels.TensorSource(), standin.CompileOptions{Language: 400, Macros: map[string]string{}}); err != nil {
			return err
		}
	}
	needed, err := pipelines(o)
	if err != nil {
		return err
	}
	var mu sync.Mutex // protects wrong
	var wrong []error
	var wait sync.WaitGroup
	next := make(chan string)
	for range runtime.NumCPU() {
		wait.Go(func() {
			for key := range next {
				p := needed[key]
				from := lib
				if o.byTensors(p.kernel) {
					from = tensors
				}
				if _, err := c.Kernel(from, p.kernel, p.constants, false); err != nil {
					mu.Lock()
					wrong = append(wrong, fmt.Errorf("%s: %w", key, err))
					mu.Unlock()
				}
			}
		})
	}
	for key := range needed {
		next <- key
	}
	close(next)
	wait.Wait()
	fmt.Fprintf(out, "%d pipelines compiled by %s\n", len(needed)-len(wrong), c)
	return errors.Join(wrong...)
}

// byTensors says that a kernel runs by tensor operations.
func (o options) byTensors(kernel string) bool {
	return o.tensors && slices.Contains(kernels.TensorKernels(), kernel)
}

type pipeline struct {
	kernel    string
	constants []standin.KernelConstant
}

// pipelines are those of the plans, each once.
func pipelines(o options) (map[string]pipeline, error) {
	s, err := qwen36.Named("real")
	if err != nil {
		return nil, err
	}
	most := o.rows()
	var plans []*plan.Plan
	for _, keys := range o.contexts {
		for _, n := range []int{keys, min(most, 2*keys)} { // the answer passes into the next number of blocks
			p, err := o.plans.Decode(s, most, n)
			if err != nil {
				return nil, err
			}
			plans = append(plans, p)
		}
	}
	for _, rows := range o.batches() {
		for _, keys := range []int{togetherKeys, min(most, 2*togetherKeys)} {
			p, err := o.plans.DecodeBatch(s, most, keys, rows)
			if err != nil {
				return nil, err
			}
			plans = append(plans, p)
		}
	}
	for _, n := range o.prefills {
		p, err := o.plans.Prefill(s, most, min(n, o.chunk), qwen36.LastLogits)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	byName, tuning := map[string]kernels.Kernel{}, o.plans.Tuning()
	for _, k := range kernels.All() {
		tuning.TensorOps = o.byTensors(k.Name)
		byName[k.Name] = kernels.Tuned(k, tuning)
	}
	out := map[string]pipeline{}
	for _, p := range plans {
		for _, d := range p.Dispatches {
			one := pipeline{kernel: d.Kernel}
			if constants := byName[d.Kernel].Constants; constants != nil {
				for _, c := range constants(d.Params) {
					v, ok := c.Value.(int32)
					if !ok {
						return nil, fmt.Errorf("%s: constant %d: got %T, want an int32", d.Kernel, c.Index, c.Value)
					}
					one.constants = append(one.constants, standin.KernelConstant{Index: c.Index, Value: binary.LittleEndian.AppendUint32(nil, uint32(v))})
				}
			}
			out[fmt.Sprint(one.kernel, one.constants)] = one
		}
	}
	return out, nil
}
