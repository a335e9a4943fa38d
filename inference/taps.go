package inference

import (
	"context"

	"pond/inference/qwen36"
	"pond/metal"
	"pond/metal/kernels"
)

// Tap is what one dispatch wrote, seen when its level was done.
type Tap struct {
	Dispatch string // "layers.3.moe.down"
	Kernel   string
	Param    string // the kernel's name for what it wrote
	Stream   bool   // it is the residual stream, [M, Hidden]: two of them a layer
	// Values are of float32 storage and valid during the call. State (KV rows, gdn states, conv windows) is not among them.
	Values []float32
}

// Taps runs the prefill of ids as one chunk from an empty state and calls each for what every dispatch writes, in plan order. A level's
// dispatches may all have run before the first of them is seen. For finding where two executors part.
func (e *Engine) Taps(ctx context.Context, ids []int32, each func(Tap)) error {
	signatures := map[string]kernels.Kernel{}
	for _, k := range kernels.All() {
		signatures[k.Name] = k
	}
	return e.study(ctx, ids, func(l *live) error {
		state := map[string]bool{}
		for _, b := range e.model.Shape.StateBuffers(1) {
			state[b.Name] = true
		}
		tap := func(_ int, ds []metal.Dispatch) {
			for _, d := range ds {
				for i, a := range d.Args {
					p, err := signatures[d.Kernel].Param(i, len(d.Args))
					if err != nil || p.Access&kernels.Write == 0 || p.DType != kernels.F32 || state[a.Label()] || a.Len == 0 {
						continue
					}
					each(Tap{Dispatch: d.Label, Kernel: d.Kernel, Param: p.Name, Stream: a.Label() == streamLabel, Values: a.Buffer.F32()[a.Off/4 : (a.Off+a.Len)/4]})
				}
			}
		}
		return l.do(chunk, len(ids), func() error {
			l.seq.Options.Tap = tap
			defer func() { l.seq.Options.Tap = nil }()
			_, err := l.seq.Chunk(ids, qwen36.LastLogits)
			return err
		})
	})
}

// streamLabel is the buffer of the residual stream in every plan.
const streamLabel = "x"
