// Command metalreport says what the Metal kernels cost at the real model's shape, as far as that can be counted without a Mac:
//
//	go run ./scripts/metalreport
//
// Dispatches and levels come from the plans. Bytes of decode are counted on the stand-in: one layer of each kind, embedding, head and choice
// at their real widths, distinct lines of 64 bytes a dispatch, times the number of layers. Bytes of prefill are what its plan declares. Times
// a chip are bytes and levels over published and measured rates; nothing here was run on a Mac. It ends with status 1 when a limit is passed.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"

	"pond/inference/plan"
	"pond/inference/qwen36"
	"pond/metal/standin"
)

// Limits of the real shape.
const (
	mostDispatches = 330
	mostLevels     = 260
	mostOverFloor  = 1.03 // decode bytes over what any implementation must move
	mostEncodeMS   = 1.5
	mostAllocated  = 0.5 // allocations a token: none of our own, and the runtime's now and then
)

func main() {
	err := run(os.Stdout)
	if errors.Is(err, standin.ErrNoCompiler) || errors.Is(err, standin.ErrUnsupported) {
		fmt.Fprintln(os.Stderr, "metalreport: kernels cannot be compiled here:", err)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "metalreport:", err)
		os.Exit(1)
	}
}

// report is the text and the limits that were passed.
type report struct {
	w      *tabwriter.Writer
	passed []error
}

func (r *report) line(format string, a ...any) { fmt.Fprintf(r.w, format+"\n", a...) }

// limit notes a figure beyond its limit and says how it stands.
func (r *report) limit(what string, got, most float64) string {
	if got > most {
		r.passed = append(r.passed, fmt.Errorf("%s: got %.4g, want at most %.4g", what, got, most))
		return fmt.Sprintf("OVER the limit of %.4g", most)
	}
	return fmt.Sprintf("limit %.4g", most)
}

// contexts are the keys at which decode is counted.
var contexts = [...]int{256, 32_768}

func run(out io.Writer) error {
	r := &report{w: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	shape, err := qwen36.Named("real")
	if err != nil {
		return err
	}
	if err := r.plans(shape); err != nil {
		return err
	}
	kernels, err := standin.Compile(source(), standin.CompileOptions{Checked: true})
	if err != nil {
		return err
	}
	var totals [len(contexts)]int64
	levels := 0
	for i, keys := range contexts {
		p, err := options().Decode(shape, shape.MaxContext, keys)
		if err != nil {
			return err
		}
		levels = p.Levels
		if totals[i], err = r.decodeBytes(kernels, shape, p, keys, i == 0); err != nil {
			return err
		}
	}
	for rows := 2; rows <= kernelsTogether; rows *= 2 {
		p, err := options().DecodeBatch(shape, shape.MaxContext, contexts[0], rows)
		if err != nil {
			return err
		}
		if err := r.batchBytes(kernels, shape, p, rows, totals[0]); err != nil {
			return err
		}
	}
	r.chips(totals, levels)
	if err := r.prefillBytes(shape); err != nil {
		return err
	}
	if err := r.switches(shape); err != nil {
		return err
	}
	if err := r.encoding(totals[0]); err != nil {
		return err
	}
	if err := r.launches(kernels, shape); err != nil {
		return err
	}
	if err := r.w.Flush(); err != nil {
		return err
	}
	return errors.Join(r.passed...)
}

// plans prints dispatches and levels.
func (r *report) plans(s qwen36.Shape) error {
	decode, err := options().Decode(s, s.MaxContext, contexts[1])
	if err != nil {
		return err
	}
	prefill, err := options().Prefill(s, s.MaxContext, 2048, qwen36.LastLogits)
	if err != nil {
		return err
	}
	n := len(decode.Dispatches)
	r.line("decode, a token\t%d dispatches\t%s", n, r.limit("dispatches of decode", float64(n), mostDispatches))
	r.line("\t%d levels\t%s", decode.Levels, r.limit("levels of decode", float64(decode.Levels), mostLevels))
	r.line("prefill, a chunk of 2048\t%d dispatches\t", len(prefill.Dispatches))
	r.line("\t%d levels\t", prefill.Levels)
	r.line("")
	return r.w.Flush()
}

// prefillBytes prints the bytes of a chunk a token, over those of the weights alone.
func (r *report) prefillBytes(s qwen36.Shape) error {
	r.line("prefill, first chunk\tMB a token\tof it weights\tratio\tscratch, MB")
	var whole *plan.Plan
	for _, tokens := range []int{512, 2048} {
		var err error
		if whole, err = options().Prefill(s, s.MaxContext, tokens, qwen36.LastLogits); err != nil {
			return err
		}
		sum := whole.Summary()
		all := sum.WeightBytes + sum.StateBytes + sum.OtherBytes
		r.line("%d tokens\t%.2f\t%.2f\t%.3f\t%.0f", tokens, float64(all)/float64(tokens)/1e6, float64(sum.WeightBytes)/float64(tokens)/1e6, float64(all)/float64(sum.WeightBytes), float64(sum.ScratchBytes)/1e6)
	}
	r.line("")
	if err := r.w.Flush(); err != nil {
		return err
	}
	return r.byKernel(whole)
}

// byKernel prints what each kernel of a chunk declares to move, the largest first.
func (r *report) byKernel(p *plan.Plan) error {
	times, bytes := map[string]int{}, map[string]int64{}
	for _, d := range p.Dispatches {
		times[d.Kernel]++
		bytes[d.Kernel] += d.Bytes()
	}
	names := slices.SortedFunc(maps.Keys(bytes), func(a, b string) int {
		return cmp.Or(cmp.Compare(bytes[b], bytes[a]), cmp.Compare(a, b))
	})
	r.line("prefill of 2048, by kernel\ta chunk\tMB each\tGB a chunk")
	for _, name := range names {
		r.line("%s\t%d\t%.2f\t%.2f", name, times[name], float64(bytes[name])/float64(times[name])/1e6, float64(bytes[name])/1e9)
	}
	r.line("")
	return r.w.Flush()
}

// floor is what any implementation must move for a token: the weights that it uses, the recurrent state read and written, and the keys and
// values, two bytes a number. Counted from the published tensors.
func floor(keys int) int64 {
	const weights, state, keysAndValues = 1_669_561_728, 127_795_200, 20_480
	return weights + state + keysAndValues*int64(keys)
}

// layerOf says how often a dispatch of the plan is counted for: the dispatches of one layer of each kind stand for all of their kind.
func layerOf(s qwen36.Shape, d plan.Dispatch) (times int) {
	var layer int
	var rest string
	if n, _ := fmt.Sscanf(d.Name, "layers.%d.%s", &layer, &rest); n != 2 {
		return 1
	}
	switch {
	case len(rest) >= 4 && rest[:4] == "moe.":
		if layer == 0 {
			return s.Layers
		}
	case s.Attention(layer) && layer == s.Interval-1:
		return s.AttentionLayers()
	case !s.Attention(layer) && layer == 0:
		return s.GDNLayers()
	}
	return 0
}
