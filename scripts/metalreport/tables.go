package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"pond/inference/plan"
	"pond/inference/qwen36"
	"pond/inference/sample"
	"pond/metal"
	"pond/metal/gpu"
	"pond/metal/mtl"
	"pond/metal/standin"
)

// levelTime is what a level costs beside its bytes, as another engine's published rates imply.
const levelTime = 3.3e-6 // seconds

// chip is a row of the table of estimates. Rates are of the largest GPU of the name.
type chip struct {
	name               string
	bandwidth, reached float64 // GB/s: as sold, and as llama.cpp reaches with 4-bit weights of 7B
	published          string  // what others report for this model, tokens a second
}

func chips() []chip {
	return []chip{
		{"M1 Pro 16-core", 200, 139, ""},
		{"M2 Max 38-core", 400, 252, "84.2 Rapid-MLX, 512 of prompt"},
		{"M3 Max 40-core", 400, 254, "106 mlx_lm, mxfp4"},
		{"M4 Max 40-core", 546, 318, "130.7 oMLX"},
		{"M5 Max 40-core", 614, 459, "194.7 and 151.1 Lily; 148.5 and 118.2 MLX"},
	}
}

// chips prints the estimate of a token.
func (r *report) chips(bytes [len(contexts)]int64, levels int) {
	r.line("")
	r.line("estimate, no measurement\tbytes only, ms at %d and %d keys\twith %d levels of %.1f us, ms\ttokens a second\tpublished, tokens a second", contexts[0], contexts[1], levels, levelTime*1e6)
	for _, c := range chips() {
		var plain, whole, rate [len(contexts)]string
		for i, n := range bytes {
			t := float64(n) / (c.reached * 1e9)
			all := t + float64(levels)*levelTime
			plain[i], whole[i], rate[i] = fmt.Sprintf("%.2f", t*1e3), fmt.Sprintf("%.2f", all*1e3), fmt.Sprintf("%.0f", 1/all)
		}
		r.line("%s\t%s\t%s\t%s\t%s", c.name, strings.Join(plain[:], ", "), strings.Join(whole[:], ", "), strings.Join(rate[:], ", "), c.published)
	}
	r.line("")
}

// encoding measures what a token costs in Go: a decode plan with the real number of layers and arguments, and widths that fit anywhere, is sent
// to an encoder that does nothing.
func (r *report) encoding(stepBytes int64) error {
	lib, err := standin.Open(standin.Options{})
	if err != nil {
		return err
	}
	rt, err := mtl.Load(lib.Path())
	if err != nil {
		return err
	}
	d, err := gpu.Open(rt, gpu.Options{})
	if err != nil {
		return err
	}
	pass, n, err := smallPass(d)
	if err != nil {
		return err
	}
	var times []time.Duration
	for range 200 {
		start := time.Now()
		if err := d.EncodeNothing(pass); err != nil {
			return err
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	ms := float64(times[len(times)/2].Microseconds()) / 1e3
	allocations, err := allocationsOf(func() error { return d.EncodeNothing(pass) })
	if err != nil {
		return err
	}
	r.line("encoding a token in Go, %d dispatches\t%.3f ms, the median of %d\t%s", n, ms, len(times), r.limit("encoding in ms", ms, mostEncodeMS))
	r.line("\t%.2f allocations\t%s", allocations, r.limit("allocations of encoding", allocations, mostAllocated))
	if err := r.exposed(ms, n, stepBytes); err != nil {
		return err
	}
	r.line("")
	if err := d.Close(); err != nil {
		return err
	}
	if err := lib.Close(); err != nil {
		return err
	}
	return r.w.Flush()
}

// exposed prints how long a GPU stands still between two tokens while the host works, here: with one step at a time and with two in flight.
func (r *report) exposed(encodeMS float64, dispatches int, stepBytes int64) error {
	const ids = 248_077
	s, err := sample.New(sample.Params{Temperature: 0.6, TopK: 20, TopP: 0.95, Seed: 1}, ids, nil)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	logits, own := make([]float32, ids), make([]float32, ids)
	for i := range logits {
		logits[i] = 3 * float32(random.NormFloat64())
	}
	var times []time.Duration
	for position := range 50 {
		start := time.Now()
		copy(own, logits)
		if _, err := s.Next(own, position, -1); err != nil {
			return err
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	choose := float64(times[len(times)/2].Microseconds()) / 1e3
	head := encodeMS * min(1, gpu.HeadDispatches/float64(dispatches))
	step := math.Inf(1)
	for _, c := range chips() {
		step = min(step, float64(stepBytes)/(c.reached*1e6))
	}
	r.line("GPU without work between two tokens, a step at a time\t%.3f ms: the choice from all logits %.3f, the first %d dispatches %.3f\t", choose+head, choose, gpu.HeadDispatches, head)
	r.line("\ttwo in flight, the token on the device\t%.3f ms: the host has the %.2f that the fastest chip's step takes at least", max(0, encodeMS-step), step)
	return nil
}

// smallPass compiles a decode plan of all layers and small widths.
func smallPass(d *gpu.Device) (metal.Pass, int, error) {
	s, err := qwen36.Named("tiny")
	if err != nil {
		return nil, 0, err
	}
	real, err := qwen36.Named("real")
	if err != nil {
		return nil, 0, err
	}
	s.Layers = real.Layers
	p, err := options().Decode(s, 512, 512)
	if err != nil {
		return nil, 0, err
	}
	bufs := make([]metal.Buffer, len(p.Buffers))
	for i, b := range p.Buffers {
		if b.Class == plan.Weight {
			bufs[i], err = d.PlaceWeights(b.Name, make([]byte, b.LenBytes))
		} else {
			bufs[i], err = d.NewBuffer(b.Name, (b.LenBytes+3)/4*4)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	prog := metal.Program{Label: p.Name, Levels: make([][]metal.Dispatch, p.Levels)}
	for i, x := range p.Dispatches {
		md := metal.Dispatch{Label: x.Name, Kernel: x.Kernel, Params: x.Params, Items: x.Items}
		for _, a := range x.Args {
			md.Args = append(md.Args, metal.Slice{Buffer: bufs[a.Range.Buffer], Off: a.Range.Off, Len: a.Range.Len})
		}
		prog.Levels[p.Level[i]] = append(prog.Levels[p.Level[i]], md)
	}
	pass, err := d.Compile(prog)
	return pass, len(p.Dispatches), err
}

// launches prints how each kernel of decode, and of a chunk of 2,048, is launched at the real shape.
func (r *report) launches(lib *standin.Kernels, s qwen36.Shape) error {
	decode, err := options().Decode(s, s.MaxContext, contexts[1])
	if err != nil {
		return err
	}
	prefill, err := options().Prefill(s, s.MaxContext, 2048, qwen36.LastLogits)
	if err != nil {
		return err
	}
	r.line("kernel\tthreadgroups\tthreads of one\tthreadgroup memory, bytes\tof it dynamic")
	seen := map[string]bool{}
	for _, d := range append(slices.Clone(decode.Dispatches), prefill.Dispatches...) {
		k, err := kernel(d.Kernel)
		if err != nil {
			return err
		}
		g := k.Grid(d.Params, d.Items)
		row := fmt.Sprintf("%s\t%d x %d x %d\t%d", k.Name, g.Groups[0], g.Groups[1], g.Groups[2], g.Threads[0]*g.Threads[1]*g.Threads[2])
		if seen[row] {
			continue
		}
		seen[row] = true
		info, _, err := lib.Describe(k.Name)
		if err != nil {
			return err
		}
		r.line("%s\t%d\t%d", row, int(info.ThreadgroupBytes)+g.ThreadgroupBytes, g.ThreadgroupBytes)
	}
	return nil
}

// allocationsOf counts the allocations of one call, as an average.
func allocationsOf(f func() error) (float64, error) {
	const calls = 50
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		if err := f(); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / calls, nil
}
