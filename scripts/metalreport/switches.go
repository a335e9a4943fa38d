package main

import (
	"fmt"

	"pond/inference/ablate"
	"pond/inference/plan"
	"pond/inference/qwen36"
)

// switches prints what the plans become without each optimisation, one at a time: dispatches, levels, and the bytes that they declare. Those of
// launches alone say how, because only a run shows what they cost.
func (r *report) switches(s qwen36.Shape) error {
	shipped := options()
	none, err := r.planned(s, shipped)
	if err != nil {
		return err
	}
	r.line("without\tdecode at %d keys: dispatches, levels\tGB a token\tms more on an M5 Max, from bytes and levels alone\tprefill of 2048: dispatches, levels\tMB a token", contexts[1])
	r.line("nothing\t%d, %d\t%.4f\t\t%d, %d\t%.2f", none.decode.Dispatches, none.decode.Levels, gigabytes(none.decode), none.prefill.Dispatches, none.prefill.Levels, 1e3*gigabytes(none.prefill)/2048)
	var launches []ablate.Entry
	m5 := chips()[len(chips())-1]
	for _, e := range ablate.Table() {
		set, err := ablate.Parse(string(e.Switch))
		if err != nil {
			return err
		}
		o := shipped
		o.Ablate = set
		without, err := r.planned(s, o)
		if err != nil {
			return err
		}
		if without == none {
			launches = append(launches, e)
			continue
		}
		more := (gigabytes(without.decode)-gigabytes(none.decode))/m5.reached + float64(without.decode.Levels-none.decode.Levels)*levelTime
		r.line("%s\t%d, %d\t%.4f\t%+.2f\t%d, %d\t%.2f", e.Switch, without.decode.Dispatches, without.decode.Levels, gigabytes(without.decode), 1e3*more,
			without.prefill.Dispatches, without.prefill.Levels, 1e3*gigabytes(without.prefill)/2048)
	}
	r.line("")
	if err := r.w.Flush(); err != nil {
		return err
	}
	r.line("without, in the same plans\tinstead")
	for _, e := range launches {
		r.line("%s\t%s", e.Switch, e.Off)
	}
	r.line("")
	return r.w.Flush()
}

// planned is both plans in figures.
type planned struct{ decode, prefill plan.Summary }

func (r *report) planned(s qwen36.Shape, o qwen36.Options) (out planned, err error) {
	decode, err := o.Decode(s, s.MaxContext, contexts[1])
	if err != nil {
		return out, fmt.Errorf("decode without %s: %w", o.Ablate, err)
	}
	prefill, err := o.Prefill(s, s.MaxContext, 2048, qwen36.LastLogits)
	if err != nil {
		return out, fmt.Errorf("prefill without %s: %w", o.Ablate, err)
	}
	return planned{decode.Summary(), prefill.Summary()}, nil
}

// gigabytes are those that the dispatches declare.
func gigabytes(s plan.Summary) float64 { return float64(s.WeightBytes+s.StateBytes+s.OtherBytes) / 1e9 }
