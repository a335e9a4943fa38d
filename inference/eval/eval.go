// Package eval says how far an executor is from a recorded reference: teacher-forced perplexity and agreement of the best tokens over
// given positions, and, when two executors part, at which dispatch.
//
// It makes no references and holds no limits: parity/ records them, the command decides. FORMAT.md is the record. Start with Measure.
package eval

import (
	"context"
	"fmt"
	"math"

	"pond/inference"
)

// Positions is how many positions are compared when nobody says otherwise.
const Positions = 192

// Options of Measure.
type Options struct {
	Positions int  // 0: Positions, or as many as the record has
	ByToken   bool // by the decode plan, one token a run, instead of the prefill plan
}

// Result compares one executor with a reference.
type Result struct {
	Executor   string  `json:"executor"`
	Step       string  `json:"step"` // "prefill" or "decode": the plan that was run
	Positions  int     `json:"positions"`
	Perplexity float64 `json:"perplexity"`
	Reference  float64 `json:"reference_perplexity"` // over the same positions
	Top1       int     `json:"top1"`                 // positions whose best token is the reference's
	Top5       int     `json:"top5"`                 // positions where the reference's best token is among the five best
	Worst      float64 `json:"worst_logprob"`        // largest difference of the following token's log-probability, in nats
	WorstAt    int     `json:"worst_at"`

	Parted []Parted `json:"parted"` // where the best tokens differ
}

// Parted is a position at which the best tokens differ.
type Parted struct {
	Position     int     `json:"position"`
	Got          int32   `json:"got"`
	Want         int32   `json:"want"`
	Gap          float64 `json:"gap"`           // between the executor's two best logits
	ReferenceGap float64 `json:"reference_gap"` // between the reference's
}

// PerplexityDifference is the relative difference from the reference: 0.001 is 0.1 %.
func (r Result) PerplexityDifference() float64 { return r.Perplexity/r.Reference - 1 }

// Top1Share and Top5Share are parts of one.
func (r Result) Top1Share() float64 { return float64(r.Top1) / float64(r.Positions) }

// Top5Share is the part of positions that Top5 counts.
func (r Result) Top5Share() float64 { return float64(r.Top5) / float64(r.Positions) }

// Measure feeds the reference's tokens to an engine and compares what it holds for each next one.
func Measure(ctx context.Context, e *inference.Engine, ref Reference, o Options) (Result, error) {
	n := len(ref.Positions.Logprobs)
	if o.Positions == 0 {
		o.Positions = min(Positions, n)
	}
	if o.Positions < 1 || o.Positions > n {
		return Result{}, fmt.Errorf("positions: got %d, want 1 to the record's %d", o.Positions, n)
	}
	p, n := ref.Positions, o.Positions
	r := Result{Executor: e.Info().Executor, Step: "prefill", Positions: n, Reference: perplexity(p.Logprobs[:n])}
	run := e.Logits
	if o.ByToken {
		r.Step, run = "decode", e.LogitsByToken
	}
	ours := make([]float64, n)
	err := run(ctx, p.Tokens[:n], func(pos int, logits []float32) error {
		lp, err := logprob(logits, p.Tokens[pos+1])
		if err != nil {
			return fmt.Errorf("position %d: %w", pos, err)
		}
		ours[pos] = lp
		best := top(logits, 5)
		for i, c := range best {
			if c == p.Top1[pos] {
				r.Top5++
				if i == 0 {
					r.Top1++
				}
			}
		}
		if best[0] != p.Top1[pos] {
			r.Parted = append(r.Parted, Parted{pos, best[0], p.Top1[pos], float64(logits[best[0]]) - float64(logits[best[1]]), p.gap(pos)})
		}
		if d := math.Abs(lp - p.Logprobs[pos]); d > r.Worst {
			r.Worst, r.WorstAt = d, pos
		}
		return nil
	})
	r.Perplexity = perplexity(ours)
	return r, err
}

// perplexity is exp of the mean negative log-probability.
func perplexity(logprobs []float64) float64 {
	sum := 0.0
	for _, lp := range logprobs {
		sum += lp
	}
	return math.Exp(-sum / float64(len(logprobs)))
}

// logprob is the log-softmax of logits at id, over all rows of the head.
func logprob(logits []float32, id int32) (float64, error) {
	if id < 0 || int(id) >= len(logits) {
		return 0, fmt.Errorf("got token %d in the record, want 0 to %d", id, len(logits)-1)
	}
	highest := math.Inf(-1)
	for _, x := range logits {
		highest = max(highest, float64(x)) // a NaN stays one
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - highest)
	}
	lp := float64(logits[id]) - highest - math.Log(sum)
	if math.IsNaN(lp) || math.IsInf(lp, 0) {
		return 0, fmt.Errorf("got logits that are no numbers")
	}
	return lp, nil
}

// top lists the ids of the n largest logits, largest first, the lower id first among equals.
func top(logits []float32, n int) []int32 {
	best := make([]int32, 0, n+1)
	for i, x := range logits {
		at := len(best)
		for at > 0 && x > logits[best[at-1]] {
			at--
		}
		if at == n {
			continue
		}
		best = append(best, 0)
		copy(best[at+1:], best[at:])
		best[at] = int32(i)
		best = best[:min(len(best), n)]
	}
	return best
}
