package main

import (
	"io/fs"

	"github.com/spf13/cobra"

	"pond/assets"
	"pond/inference/plan"
	"pond/inference/qwen36"
)

func newInspectPlan(s streams) *cobra.Command {
	var step, shape string
	var chunk, context, keys int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "List the dispatches of a forward pass, with their levels and bytes",
		Long: `Prints the plan that every executor runs: one line a dispatch, grouped into levels. A device waits between levels and nowhere else. It needs no
weights.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			model, err := namedShape(shape)
			if err != nil {
				return err
			}
			if context < 1 || context > model.MaxContext {
				return usageError("--context: got %d tokens, want 1 to %d", context, model.MaxContext)
			}
			var p *plan.Plan
			switch step {
			case "decode":
				if keys == 0 {
					keys = context
				}
				p, err = qwen36.Decode(model, context, keys)
			case "prefill":
				p, err = qwen36.Prefill(model, context, chunk, qwen36.LastLogits)
			default:
				return usageError("--step: got %q, want decode or prefill", step)
			}
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if asJSON {
				return writeJSON(s.out, planReport{shape, step, context, p.Summary(), p.Rows()})
			}
			return p.Dump(s.out)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&step, "step", "decode", "decode (one token) or prefill (a chunk of the prompt)")
	flags.StringVar(&shape, "shape", "real", "dimensions of the model: real, demo or tiny")
	flags.IntVar(&context, "context", 4096, "rows of the KV cache")
	flags.IntVar(&keys, "keys", 0, "decode: keys in use (default: the whole cache)")
	flags.IntVar(&chunk, "chunk", 512, "prefill: tokens of the chunk")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// planReport is what `pond inspect plan --json` prints.
type planReport struct {
	Shape      string       `json:"shape"`
	Step       string       `json:"step"`
	Context    int          `json:"context"`
	Summary    plan.Summary `json:"summary"`
	Dispatches []plan.Row   `json:"dispatches"`
}

// namedShape is the dimensions of a model by the name that --shape takes. The demo model's are read from its configuration; the
// others need no files.
func namedShape(name string) (qwen36.Shape, error) {
	switch name {
	case "real":
		return realShape(), nil
	case "demo":
		config, err := fs.ReadFile(assets.Demo(), "config.json")
		if err != nil {
			return qwen36.Shape{}, &exitError{exitNoModel, err}
		}
		s, _, err := qwen36.ParseConfig(config, nil)
		return s, err
	case "tiny":
		s := realShape()
		s.Hidden, s.Layers, s.Vocab = 128, 4, 320
		s.Heads, s.HeadDim, s.RotaryDim = 8, 32, 8
		s.KeyHeads, s.ValueHeads, s.KeyDim, s.ValueDim = 2, 4, 32, 32
		s.Experts, s.TopK, s.Inter, s.SharedInter = 16, 4, 64, 64
		s.EOS = nil // ids of its own tokenizer; no plan depends on them
		return s, nil
	}
	return qwen36.Shape{}, usageError("--shape: got %q, want real, demo or tiny", name)
}

// realShape is qwen3.6-35b-a3b as its config.json has it.
func realShape() qwen36.Shape {
	return qwen36.Shape{
		Hidden: 2048, Layers: 40, Interval: 4, Vocab: 248320,
		Heads: 16, KVHeads: 2, HeadDim: 256, RotaryDim: 64, RopeTheta: 1e7,
		KeyHeads: 16, ValueHeads: 32, KeyDim: 128, ValueDim: 128, ConvTaps: 4,
		Experts: 256, TopK: 8, Inter: 512, SharedInter: 512,
		RMSEps: 1e-6, MaxContext: 262144, EOS: []int32{248046, 248044}, GroupSize: 64,
	}
}
