package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"pond/inference"
	"pond/inference/eval"
	"pond/parity"
)

// evalFlags are those of `pond eval` beside the engine's.
type evalFlags struct {
	engine     engineFlags
	reference  string
	executors  []string
	positions  int
	byToken    bool
	against    string
	tokens     int
	limit      float64
	taps       bool
	perplexity float64
	top1       float64
	asJSON     bool
}

func newEval(s streams) *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Say how far the executors are from a recorded reference",
		Long: `Feeds a recorded text to the model and compares what it holds for each next token with what the reference held: perplexity, and how often the best
token is the same. A record is of particular weights and refuses others. The one inside the program is of the demo model, by Hugging Face transformers in
float32; parity/record_mlx.py makes one of the full model on a Mac.

With --against it runs the same text on another executor as well, and says after which dispatch the two part.

Exit codes: 1 the figures are beyond --max-perplexity or --min-top1, the executors part, or the record is of other weights; 2 a flag is wrong,
3 the model is not installed, 4 the model cannot be opened, 6 the executor does not run here, 7 there is not enough memory.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			if len(f.executors) == 0 {
				f.executors = []string{f.engine.executor}
			}
			if f.tokens < 1 || f.positions < 0 || !(f.limit > 0) {
				return usageError("got --tokens %d, --positions %d, --limit %g; want at least 1, at least 0, more than 0", f.tokens, f.positions, f.limit)
			}
			return f.run(ctx, s)
		},
	}
	f.engine.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.reference, "reference", "", "file with the recorded log-probabilities (default: the record of the demo model that is built in)")
	flags.StringSliceVar(&f.executors, "executors", nil, "several executors one after the other, such as host-exact,host,host-int8,standin")
	flags.IntVar(&f.positions, "positions", 0, "positions to compare (default: 192, or as many as the record has)")
	flags.BoolVar(&f.byToken, "by-token", false, "token by token, with the plan that answers are made with, instead of by the chunk")
	flags.Float64Var(&f.perplexity, "max-perplexity", 0, "fail when the perplexity differs by more than so many per cent (0: any will do)")
	flags.Float64Var(&f.top1, "min-top1", 0, "fail when fewer than so many per cent of the best tokens are the reference's")
	flags.StringVar(&f.against, "against", "", "another executor, to find the dispatch after which the two part")
	flags.IntVar(&f.tokens, "tokens", 64, "with --against: tokens of the record's text that both take in")
	flags.Float64Var(&f.limit, "limit", 0.01, "with --against: relative difference of the residual stream that counts as parting")
	flags.BoolVar(&f.taps, "taps", false, "with --against: print the difference after every dispatch that changes the stream")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

// evalOutput is what --json prints.
type evalOutput struct {
	Model     string          `json:"model"`
	Source    string          `json:"source"`
	Results   []eval.Result   `json:"results"`
	Distances []eval.Distance `json:"distances,omitempty"`
	Parts     string          `json:"parts,omitempty"` // the first dispatch that is beyond the limit
}

func (f *evalFlags) run(ctx context.Context, s streams) error {
	record, err := f.record()
	if err != nil {
		return err
	}
	out := evalOutput{Source: record.Source}
	w := s.out
	if f.asJSON {
		w = io.Discard
	}
	var beyond []string
	var ref eval.Reference
	for i, x := range f.executors {
		err := f.with(ctx, s, x, func(e *inference.Engine) error {
			if i == 0 {
				if out.Model, ref, err = find(record, e); err != nil {
					return err
				}
				fmt.Fprintf(w, "%s against %s\n\n", out.Model, record.Source)
				fmt.Fprintf(w, "%-40s %-8s %10s %10s %10s %8s %8s %10s\n", "executor", "step", "perplexity", "reference", "difference", "top-1", "top-5", "logprob")
			}
			r, err := eval.Measure(ctx, e, ref, eval.Options{Positions: f.positions, ByToken: f.byToken})
			if err != nil {
				return err
			}
			out.Results = append(out.Results, r)
			fmt.Fprintf(w, "%-40s %-8s %10.4f %10.4f %+9.4f%% %7.2f%% %7.2f%% %10.2g\n", r.Executor, r.Step, r.Perplexity, r.Reference, 100*r.PerplexityDifference(), 100*r.Top1Share(), 100*r.Top5Share(), r.Worst)
			beyond = append(beyond, f.judge(x, r)...)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if f.against != "" {
		if err := f.part(ctx, s, w, ref, &out); err != nil {
			return err
		}
		if out.Parts != "" {
			beyond = append(beyond, fmt.Sprintf("%s and %s part at %s", f.executors[0], f.against, out.Parts))
		}
	}
	if f.asJSON {
		if err := writeJSON(s.out, out); err != nil {
			return err
		}
	}
	if len(beyond) > 0 {
		return errors.New("eval: " + strings.Join(beyond, "; "))
	}
	return nil
}

func (f *evalFlags) record() (eval.Record, error) {
	if f.reference == "" {
		return eval.ReadRecord(parity.Transformers())
	}
	text, err := os.ReadFile(f.reference)
	if err != nil {
		return eval.Record{}, err
	}
	r, err := eval.ReadRecord(text)
	if err != nil {
		return r, fmt.Errorf("%s: %w", f.reference, err)
	}
	return r, nil
}

// find picks the reference of an engine's weights.
func find(r eval.Record, e *inference.Engine) (string, eval.Reference, error) {
	digest, err := e.WeightsSHA256()
	if err != nil {
		return "", eval.Reference{}, err
	}
	return r.For(digest)
}

// with opens the model on an executor for the time of do: one at a time, because two may not fit into memory.
func (f *evalFlags) with(ctx context.Context, s streams, executor string, do func(*inference.Engine) error) error {
	flags := f.engine
	flags.executor = executor
	e, _, err := flags.open(ctx, s)
	if err != nil {
		return err
	}
	return errors.Join(do(e), e.Close())
}

// judge says what of a result is beyond what was asked for.
func (f *evalFlags) judge(executor string, r eval.Result) (beyond []string) {
	if d := 100 * math.Abs(r.PerplexityDifference()); f.perplexity > 0 && !(d <= f.perplexity) {
		beyond = append(beyond, fmt.Sprintf("%s: got a perplexity that differs by %.4f %%, want at most %g %%", executor, d, f.perplexity))
	}
	if t := 100 * r.Top1Share(); t < f.top1 {
		beyond = append(beyond, fmt.Sprintf("%s: got %.2f %% of the best tokens, want at least %g %%", executor, t, f.top1))
	}
	return beyond
}

// part compares the first executor with another, tap by tap.
func (f *evalFlags) part(ctx context.Context, s streams, w io.Writer, ref eval.Reference, out *evalOutput) error {
	ids := ref.Positions.Tokens[:min(f.tokens, len(ref.Positions.Tokens))]
	compare := func(keep func() func(string) bool) (ds []eval.Distance, names [2]string, err error) {
		var traces [2]*eval.Trace
		for i, x := range []string{f.executors[0], f.against} {
			if err := f.with(ctx, s, x, func(e *inference.Engine) (err error) {
				traces[i], err = eval.TakeTrace(ctx, e, ids, keep())
				return err
			}); err != nil {
				return nil, names, err
			}
			names[i] = traces[i].Executor
		}
		ds, err = eval.Compare(traces[0], traces[1])
		return ds, names, err
	}
	ds, names, err := compare(func() func(string) bool { return nil })
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s against %s: %d tokens, %d places\n", names[1], names[0], len(ids), len(ds))
	if f.taps {
		printDistances(w, ds)
	}
	out.Distances = ds
	good, bad := eval.Parting(ds, f.limit)
	if bad < 0 {
		worst := 0.0
		for _, d := range ds {
			worst = max(worst, d.Relative)
		}
		fmt.Fprintf(w, "they stay together: the stream differs by %.2g at most\n", worst)
		return nil
	}
	from := ""
	if good >= 0 {
		from = ds[good].Dispatch
	}
	near, _, err := compare(func() func(string) bool { return eval.Between(from, ds[bad].Dispatch) })
	if err != nil {
		return err
	}
	_, bad = eval.Parting(near, f.limit)
	if bad < 0 { // a run that does not repeat itself
		return fmt.Errorf("eval: the executors parted at %s in one run and nowhere in the next", out.Parts)
	}
	out.Parts = near[bad].Dispatch
	fmt.Fprintf(w, "they part at %s (%s): relative difference %.3g\n", near[bad].Dispatch, near[bad].Param, near[bad].Relative)
	printDistances(w, near[max(0, bad-3):min(bad+2, len(near))])
	return nil
}

func printDistances(w io.Writer, ds []eval.Distance) {
	for _, d := range ds {
		fmt.Fprintf(w, "  %-32s %-10s %10.3g %10.3g\n", d.Dispatch, d.Param, d.Relative, d.Largest)
	}
}
