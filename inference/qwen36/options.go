package qwen36

import (
	"pond/inference/ablate"
	"pond/inference/cache"
	"pond/inference/checkpoint"
	"pond/inference/plan"
	"pond/metal"
	"pond/metal/kernels"
)

// Options choose between plans of the same model. The zero value is the plan as shipped.
type Options struct {
	Ablate *ablate.Set // optimisations that are off; nil: none
	// GPU is for an executor that runs the Metal kernels: keys and values are bf16, which is half the bytes of a context at the rounding of those
	// numbers, where the host computes in float32; and the switches that only a GPU has act.
	GPU bool
}

// Decode is the plan of one token of one sequence, see Options.Decode.
func Decode(s Shape, context, keys int) (*plan.Plan, error) {
	return Options{}.Decode(s, context, keys)
}

// Prefill is the plan of a chunk of tokens, see Options.Prefill.
func Prefill(s Shape, context, tokens int, l Logits) (*plan.Plan, error) {
	return Options{}.Prefill(s, context, tokens, l)
}

// NewModel places the weights, see Options.NewModel.
func NewModel(dev metal.Device, c *checkpoint.Checkpoint, s Shape, context int) (*Model, error) {
	return Options{}.NewModel(dev, c, s, context)
}

// StateBuffers lists what one sequence carries, see Options.StateBuffers.
func (s Shape) StateBuffers(context int) []cache.Spec {
	return Options{}.StateBuffers(s, context)
}

// off reports whether an optimisation that only a GPU has is switched off.
func (o Options) off(w ablate.Switch) bool { return o.GPU && o.Ablate.Off(w) }

func (o Options) halfKV() bool { return o.GPU && !o.off(ablate.HalfKV) }

// cacheType is the type of keys and values, cacheBytes the size of one number.
func (o Options) cacheType() kernels.DType {
	if o.halfKV() {
		return kernels.BF16
	}
	return kernels.F32
}

func (o Options) cacheBytes() int64 {
	if o.halfKV() {
		return plan.BF16.Bytes()
	}
	return plan.F32.Bytes()
}

// OnHost are the kernels that a GPU leaves to the host, between two passes: see package detour.
func (o Options) OnHost() []string {
	if o.off(ablate.ResidentRouting) {
		return []string{kernels.MoEGroup().Name}
	}
	return nil
}

// headBlock is how many logits a threadgroup of the head computes. The host takes as many at a time.
func (o Options) headBlock(p kernels.LinearParams) int {
	return kernels.Tuning{NarrowSets: o.off(ablate.WideSets)}.HeadBlock(p)
}

// Tuning is how a GPU is to launch the kernels.
func (o Options) Tuning() kernels.Tuning {
	return kernels.Tuning{
		NarrowSets:  o.Ablate.Off(ablate.WideSets),
		TallTiles:   o.Ablate.Off(ablate.TileHeight),
		LoneHeads:   o.Ablate.Off(ablate.GQAPacking),
		LoneKeys:    o.Ablate.Off(ablate.CoalescedKV),
		EvenBlocks:  o.Ablate.Off(ablate.FixedBlockAttention),
		StoredState: o.Ablate.Off(ablate.RegisterGDNScan),
	}
}
