package qwen36

import (
	"pond/inference/ablate"
	"pond/inference/checkpoint"
	"pond/inference/plan"
	"pond/metal"
	"pond/metal/kernels"
)

// Options choose between plans of the same model. The zero value is the plan as shipped.
type Options struct {
	Ablate *ablate.Set // optimisations that are off; nil: none
}

// Decode is the plan of one token, see Options.Decode.
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

// Tuning is how a GPU is to launch the kernels.
func (o Options) Tuning() kernels.Tuning {
	return kernels.Tuning{
		NarrowSets: o.Ablate.Off(ablate.WideSets),
		TallTiles:  o.Ablate.Off(ablate.TileHeight),
		LoneHeads:  o.Ablate.Off(ablate.GQAPacking),
	}
}
