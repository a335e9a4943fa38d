package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"pond/inference"
	"pond/inference/tokenizer"
)

func newInspectLogits(s streams) *cobra.Command {
	var engine engineFlags
	var top int
	var all, special bool
	cmd := &cobra.Command{
		Use:   "logits TEXT",
		Short: "Show what the model holds for the likeliest next tokens of a text",
		Long: `Runs the model over the text as it stands, without a template, and prints for the position after its last token, or with --all after every one,
the likeliest tokens: id, logit, probability, bytes. Computes in float32 (host-exact) unless --executor says otherwise.`,
		Args: oneArg("one text, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if top < 1 {
				return usageError("--top: got %d, want at least 1", top)
			}
			if !cmd.Flags().Changed("executor") { // figures to compare must not depend on the processor
				engine.executor = string(inference.HostExact)
			}
			e, _, err := engine.open(cmd.Context(), s)
			if err != nil {
				return err
			}
			defer e.Close()
			t := e.Tokenizer()
			ids := t.Encode(args[0])
			if special {
				ids = t.EncodeSpecial(args[0])
			}
			if len(ids) == 0 {
				return usageError("logits: got a text without tokens, want at least one")
			}
			return e.Logits(cmd.Context(), ids, func(pos int, logits []float32) error {
				if all || pos == len(ids)-1 {
					printLogits(s.out, t, pos, ids[pos], logits[:t.Vocab()], top)
				}
				return nil
			})
		},
	}
	engine.add(cmd)
	cmd.Flags().IntVar(&top, "top", 5, "how many tokens")
	cmd.Flags().BoolVar(&all, "all", false, "after every token, not only after the last")
	cmd.Flags().BoolVar(&special, "special", false, "recognise control tokens such as <|im_end|> in the text")
	return cmd
}

// printLogits prints one position; logits are those of the usable ids.
func printLogits(w io.Writer, t *tokenizer.Tokenizer, pos int, in int32, logits []float32, top int) {
	order := make([]int32, len(logits))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		switch {
		case logits[a] > logits[b]:
			return -1
		case logits[a] < logits[b]:
			return 1
		}
		return 0
	})
	highest, sum := float64(logits[order[0]]), 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l) - highest)
	}
	fmt.Fprintf(w, "after %d %q (position %d)\n", in, t.Bytes(in), pos)
	for _, id := range order[:min(top, len(order))] {
		p := math.Exp(float64(logits[id])-highest) / sum
		fmt.Fprintf(w, "%6d  %10.6f  %8.4f %%  %q\n", id, logits[id], 100*p, t.Bytes(id))
	}
}
