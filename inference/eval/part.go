package eval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"pond/inference"
)

// Trace is what an executor wrote along one prefill: the residual stream after each dispatch that changes it and, between two of those
// where asked for, everything else.
type Trace struct {
	Executor string
	steps    []step
}

type step struct {
	dispatch, param string
	stream          bool
	values          []float32
}

// TakeTrace runs a prefill of ids as one chunk. Keep says which dispatches' outputs are kept besides the stream; nil keeps none: a trace of
// the full model over 192 tokens is 126 MB of stream alone, and ten times that with all.
func TakeTrace(ctx context.Context, e *inference.Engine, ids []int32, keep func(dispatch string) bool) (*Trace, error) {
	t := &Trace{Executor: e.Info().Executor}
	err := e.Taps(ctx, ids, func(tap inference.Tap) {
		if tap.Stream || keep != nil && keep(tap.Dispatch) {
			t.steps = append(t.steps, step{tap.Dispatch, tap.Param, tap.Stream, slices.Clone(tap.Values)})
		}
	})
	return t, err
}

// Distance is how far two executors are from each other at one tap.
type Distance struct {
	Dispatch string  `json:"dispatch"`
	Param    string  `json:"param"`
	Stream   bool    `json:"stream"`   // the residual stream; what is not it is told only where the two part
	Relative float64 `json:"relative"` // root mean square of the difference over that of the values; the largest float64 where that is no number
	Largest  float64 `json:"largest"`  // difference of one value, in parts of the root mean square
	At       int     `json:"at"`       // index of that value
}

// Compare lists the distances of b from a, in plan order. Two executors that run different plans are an error.
func Compare(a, b *Trace) ([]Distance, error) {
	if len(a.steps) != len(b.steps) {
		return nil, fmt.Errorf("taps: got %d of %s and %d of %s, want the same plan", len(a.steps), a.Executor, len(b.steps), b.Executor)
	}
	out := make([]Distance, len(a.steps))
	for i, x := range a.steps {
		y := b.steps[i]
		if x.dispatch != y.dispatch || x.param != y.param || len(x.values) != len(y.values) {
			return nil, fmt.Errorf("taps: got %s.%s of %d values and %s.%s of %d, want the same plan", x.dispatch, x.param, len(x.values), y.dispatch, y.param, len(y.values))
		}
		out[i] = distance(x.values, y.values)
		out[i].Dispatch, out[i].Param, out[i].Stream = x.dispatch, x.param, x.stream
	}
	return out, nil
}

func distance(want, got []float32) (d Distance) {
	var squares, apart float64
	for i, w := range want {
		diff := math.Abs(float64(got[i]) - float64(w))
		squares += float64(w) * float64(w)
		apart += diff * diff
		if diff > d.Largest {
			d.Largest, d.At = diff, i
		}
	}
	if squares == 0 && apart == 0 {
		return Distance{}
	}
	d.Relative = math.Sqrt(apart / squares)
	d.Largest /= math.Sqrt(squares / float64(len(want)))
	for _, v := range []*float64{&d.Relative, &d.Largest} { // JSON has neither
		if math.IsNaN(*v) || math.IsInf(*v, 0) {
			*v = math.MaxFloat64
		}
	}
	return d
}

// Parting finds the first place at which the distance passes a limit, and the stream's last good place before it: between the two lies the
// fault. It returns -1, -1 when the executors stay together, and good -1 when they part at the first tap.
func Parting(ds []Distance, limit float64) (good, bad int) {
	good = -1
	for i, d := range ds {
		if d.Relative > limit {
			return good, i
		}
		if d.Stream {
			good = i
		}
	}
	return -1, -1
}

// Between is a keep for TakeTrace: the dispatches after one and up to another, in the plan's order. From "" is the plan's start.
func Between(from, to string) func(string) bool {
	open, done := from == "", false
	return func(dispatch string) bool {
		kept := open && !done
		if dispatch == from {
			open = true
		}
		if dispatch == to {
			done = true
		}
		return kept
	}
}
