package main

import (
	"strings"

	"github.com/spf13/cobra"

	"pond/inference"
	"pond/inference/plan"
	"pond/inference/qwen36"
)

func newInspectPlan(s streams) *cobra.Command {
	var step, shape, executor, off string
	var chunk, context, keys int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "List the dispatches of a forward pass, with their levels and bytes",
		Long: `Prints the plan that every executor runs: one line a dispatch, grouped into levels. A device waits between levels and nowhere else. It needs no
weights. Executors with a GPU keep keys and values in half the bytes, so their plan differs from the host's; --ablate shows a plan without an optimisation.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			model, err := qwen36.Named(shape)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if context < 1 || context > model.MaxContext {
				return usageError("--context: got %d tokens, want 1 to %d", context, model.MaxContext)
			}
			x, err := inference.ParseExecutor(executor)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			set, err := switches(off)
			if err != nil {
				return err
			}
			options := inference.PlanOptions(x, set)
			var p *plan.Plan
			switch step {
			case "decode":
				if keys == 0 {
					keys = context
				}
				p, err = options.Decode(model, context, keys)
			case "prefill":
				p, err = options.Prefill(model, context, chunk, qwen36.LastLogits)
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
	flags.StringVar(&executor, "executor", string(inference.Auto), "whose plan: auto, host, host-exact, host-int8, metal, standin")
	ablateFlag(cmd, &off)
	flags.StringVar(&shape, "shape", "real", "dimensions of the model: "+strings.Join(qwen36.ShapeNames(), ", "))
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
