package inference

import (
	"context"
	"fmt"

	"pond/inference/checkpoint"
	"pond/inference/qwen36"
	"pond/inference/tinymodel"
	"pond/metal"
	"pond/metal/crosscheck"
	"pond/metal/host"
	"pond/metal/kernels"
)

// KernelResult is what a self-test found out about one kernel.
type KernelResult struct {
	Kernel     string
	Dispatches int    // that were compared; zero: the model has no use for the kernel
	Failure    string // how it differs from its reference; empty when it matches
}

// SelfTestReport is the outcome of a self-test.
type SelfTestReport struct {
	Device  string
	From    string         // what the kernels were loaded from; empty where nothing is loaded
	Kernels []KernelResult // by name
}

// Differing lists the kernels that do not match.
func (r SelfTestReport) Differing() []KernelResult {
	var out []KernelResult
	for _, k := range r.Kernels {
		if k.Failure != "" {
			out = append(out, k)
		}
	}
	return out
}

// selfTestPrompts are the lengths of the chunks taken in: a tile and a rest, and less than a tile that continues. selfTestTokens follow.
var selfTestPrompts = [...]int{37, 5}

// selfTestParts are the lengths of the chunks whose keys are then taken in parts: by matrices and by vectors.
var selfTestParts = [...]int{9, 3}

const selfTestTokens = 2

// SelfTest runs the kernels of prefill and decode on this machine's device, each from the same inputs as its plain Go reference, over a small
// made-up model with the head sizes of the full one. An error says that the device could not be tried at all.
func SelfTest(ctx context.Context, x Executor) (SelfTestReport, error) {
	device, err := openDevice(x, 0, PlanOptions(x, nil))
	if err != nil {
		return SelfTestReport{}, err
	}
	return selfTest(ctx, x, device)
}

// selfTest is SelfTest of an executor's device, which it closes.
func selfTest(ctx context.Context, x Executor, device metal.Device) (report SelfTestReport, err error) {
	tolerance := crosscheck.Tolerance
	switch mode, _ := chosen(x).hostMode(); mode {
	case host.Int16:
		tolerance = crosscheck.ToleranceInt16
	case host.Int8:
		tolerance = crosscheck.ToleranceInt8
	}
	dev := crosscheck.New(host.Open(host.Exact, 0), device, tolerance)
	defer dev.Close()
	if g, ok := device.(interface{ TensorKernels() []string }); ok {
		dev.Loosen(g.TensorKernels())
	}
	report.Device, report.From = device.Name(), kernelsOf(device)
	err = runSelfTest(ctx, dev, PlanOptions(x, nil))
	for _, r := range dev.Results() {
		report.Kernels = append(report.Kernels, KernelResult{Kernel: r.Kernel, Dispatches: r.Dispatches, Failure: r.Failure})
	}
	if len(report.Differing()) > 0 {
		return report, nil // the report says more than the error
	}
	return report, err
}

func runSelfTest(ctx context.Context, dev *crosscheck.Device, plans qwen36.Options) error {
	m, err := tinymodel.Generate(tinymodel.KernelTrue)
	if err != nil {
		return err
	}
	files, err := m.FS()
	if err != nil {
		return err
	}
	ckpt, err := checkpoint.OpenFS(files)
	if err != nil {
		return err
	}
	defer ckpt.Close()
	shape, quant, err := readShape(ckpt.File)
	if err != nil {
		return err
	}
	if _, err := qwen36.LoadWeights(ckpt, shape, quant); err != nil {
		return err
	}
	model, err := plans.NewModel(dev, ckpt, shape, 512)
	if err != nil {
		return err
	}
	seq, err := model.NewSequence()
	if err != nil {
		return err
	}
	id := int32(7)
	next := func() int32 {
		id = (id*31 + 11) % int32(shape.Vocab)
		return id
	}
	for _, n := range selfTestPrompts {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = next()
		}
		if _, err := seq.Chunk(ids, qwen36.LastLogits); err != nil {
			return fmt.Errorf("%d tokens at once: %w", n, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for _, n := range selfTestParts { // what only a long context would ask for
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = next()
		}
		if _, err := seq.ChunkInParts(ids, qwen36.LastLogits, 2); err != nil {
			return fmt.Errorf("%d tokens at once, keys in parts: %w", n, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	marks := map[int32]uint32{}
	for range 40 {
		marks[next()%int32(shape.UsableIDs())] = kernels.Mark(2, true, 0)
	}
	draw := func(position int) kernels.Draw {
		return kernels.Draw{Keep: 1 + position%kernels.MaxKept, Uniform: uint32(position*77_773) % (1 << 24), Scale: 1, TopP: 1<<32 - 1<<28, Presence: 1 << 15, Frequency: 1 << 14, Lower: 0.9, Raise: 1.1}
	}
	drawing, err := model.NewDrawing(marks, []float32{1.5}, draw)
	if err != nil {
		return err
	}
	for range selfTestTokens {
		if _, err := seq.Draw(drawing, next()%int32(shape.UsableIDs()), false); err != nil {
			return fmt.Errorf("one token: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
