package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Reason is something that makes a number worthless, unless it is allowed; then the report names it.
type Reason string

// The reasons. The flag that allows one is --allow-NAME.
const (
	Battery Reason = "battery" // the machine runs on its battery, or saves power
	Thermal Reason = "thermal" // the system slows the machine because it is hot
	Load    Reason = "load"    // another program works
	Drift   Reason = "drift"   // the rounds of one arm lie apart by more than DriftLimit
	Dirty   Reason = "dirty"   // the build is of sources that no commit has
)

// Reasons lists them in the order of flags.
func Reasons() []Reason { return []Reason{Battery, Thermal, Load, Drift, Dirty} }

// Objection is a reason that holds now, in words.
type Objection struct {
	Reason Reason `json:"reason"`
	Detail string `json:"detail"`
	Times  int    `json:"times,omitempty"` // in a report: how often it was heard; the detail is the first
}

// RefusedError says why there is no measurement.
type RefusedError struct{ Objections []Objection }

func (e *RefusedError) Error() string {
	var words []string
	for _, o := range e.Objections {
		words = append(words, fmt.Sprintf("%s (--allow-%s)", o.Detail, o.Reason))
	}
	return "refused: " + strings.Join(words, "; ")
}

// Options of Run.
type Options struct {
	Engines   []string
	Contexts  []int
	Rounds    int // at least Rounds
	Intervals int
	Vocab     int
	Cooldown  time.Duration // before each arm; four times as long from 65,536 tokens on
	Allow     []Reason
	Dirty     string // in words, why the build is of no commit; empty: it is

	Launch  func(context.Context, Arm) (Sample, error)
	Machine func(context.Context) []Objection // what is wrong with the machine now; nil: nothing
	Tell    func(string)                      // progress, a line each
	Now     func() time.Time
}

// longContext is from where on an arm warms the machine so much that it needs a longer rest.
const longContext = 65536

// Run runs the schedule. Objections that are not allowed end it with a *RefusedError: before the first arm, between arms, and, for drift, at
// the end, when the rows are returned with the error. A digest that changes between rounds is always an error.
func Run(ctx context.Context, o Options) (rows []Row, overrides []Objection, err error) {
	if o.Rounds < Rounds || o.Intervals < 1 || len(o.Engines) == 0 || len(o.Contexts) == 0 || o.Vocab < 1 {
		return nil, nil, fmt.Errorf("bench: got %d rounds, %d intervals, %d engines, %d contexts, vocabulary of %d; want at least %d rounds and one of the rest", o.Rounds, o.Intervals, len(o.Engines), len(o.Contexts), o.Vocab, Rounds)
	}
	j := judge{allow: o.Allow}
	if o.Dirty != "" {
		if err := j.hear(Objection{Reason: Dirty, Detail: o.Dirty}); err != nil {
			return nil, nil, err
		}
	}
	arms := Schedule(o.Engines, o.Contexts, o.Rounds, o.Intervals, o.Vocab)
	t := table{}
	begun := o.Now()
	for i, a := range arms {
		if i > 0 {
			if err := rest(ctx, o.Cooldown, a.Context); err != nil {
				return nil, j.overrides, err
			}
		}
		if err := j.hear(o.Machine(ctx)...); err != nil {
			return nil, j.overrides, err
		}
		o.Tell(fmt.Sprintf("%d of %d: round %d, %s at %d tokens%s", i+1, len(arms), a.Round, a.Engine, a.Context, remaining(o.Now().Sub(begun), arms[:i], arms[i:])))
		s, err := o.Launch(ctx, a)
		if err == nil {
			err = s.check(a)
		}
		if err == nil {
			err = t.add(a, s)
		}
		if err != nil {
			return nil, j.overrides, err
		}
		o.Tell(fmt.Sprintf("    prefill %.1f tok/s, decode %.1f tok/s", float64(a.Context)/s.PrefillS, s.decodeRate()))
	}
	rows = t.rows
	var drifted []Objection
	for _, r := range rows {
		if r.Drift > DriftLimit {
			drifted = append(drifted, Objection{Reason: Drift, Detail: fmt.Sprintf("%s at %d: the rounds lie %.1f %% apart, want at most %.0f %%", r.Engine, r.Context, 100*r.Drift, 100*DriftLimit)})
		}
	}
	err = j.hear(drifted...)
	return rows, j.overrides, err
}

// rest waits for the machine to cool.
func rest(ctx context.Context, d time.Duration, context int) error {
	if context >= longContext {
		d *= 4
	}
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// remaining guesses how long the rest takes, by the tokens of its prompts; silent until something was measured.
func remaining(took time.Duration, done, left []Arm) string {
	work := func(arms []Arm) (n float64) {
		for _, a := range arms {
			n += float64(a.Context + 20*a.Intervals)
		}
		return n
	}
	if len(done) == 0 {
		return ""
	}
	return fmt.Sprintf(", about %s left", time.Duration(float64(took)*work(left)/work(done)).Round(time.Second))
}

// judge keeps what was allowed.
type judge struct {
	allow     []Reason
	overrides []Objection
}

// hear refuses what is not allowed and notes what is, once a reason.
func (j *judge) hear(os ...Objection) error {
	var refused []Objection
	for _, o := range os {
		if !slices.Contains(j.allow, o.Reason) {
			refused = append(refused, o)
			continue
		}
		i := slices.IndexFunc(j.overrides, func(x Objection) bool { return x.Reason == o.Reason })
		if i < 0 {
			i = len(j.overrides)
			j.overrides = append(j.overrides, o)
		}
		j.overrides[i].Times++
	}
	if len(refused) > 0 {
		return &RefusedError{refused}
	}
	return nil
}

// Row is one engine at one context, all rounds.
type Row struct {
	Engine   string            `json:"engine"`
	Executor string            `json:"executor"`
	Context  int               `json:"context"`
	Decode   float64           `json:"decode_tok_s"`  // median of the rounds
	Prefill  float64           `json:"prefill_tok_s"` // likewise
	Drift    float64           `json:"drift"`         // of decode or prefill, the larger
	Digest   string            `json:"digest"`
	Versions map[string]string `json:"versions,omitempty"`
	Switches []string          `json:"switches,omitempty"`
	Samples  []Sample          `json:"rounds"`
}

// table gathers samples into rows, ordered by context, then by the engines' first appearance.
type table struct{ rows []Row }

func (t *table) add(a Arm, s Sample) error {
	for i := range t.rows {
		r := &t.rows[i]
		if r.Engine != a.Engine || r.Context != a.Context {
			continue
		}
		if r.Digest != s.Digest {
			return fmt.Errorf("%s at %d: got token digest %s in round %d, want %s as before: the same prompt gave other tokens", a.Engine, a.Context, s.Digest, a.Round, r.Digest)
		}
		if r.Executor != s.Executor {
			return fmt.Errorf("%s at %d: got %s in round %d, want %s as before", a.Engine, a.Context, s.Executor, a.Round, r.Executor)
		}
		r.Samples = append(r.Samples, s)
		r.settle()
		return nil
	}
	r := Row{Engine: a.Engine, Executor: s.Executor, Context: a.Context, Digest: s.Digest, Versions: s.Versions, Switches: s.Switches, Samples: []Sample{s}}
	r.settle()
	t.rows = append(t.rows, r)
	slices.SortStableFunc(t.rows, func(x, y Row) int { return x.Context - y.Context })
	return nil
}

// settle works the figures out from the samples.
func (r *Row) settle() {
	var decode, prefill []float64
	for _, s := range r.Samples {
		decode = append(decode, s.decodeRate())
		prefill = append(prefill, float64(r.Context)/s.PrefillS)
	}
	r.Decode, r.Prefill, r.Drift = median(decode), median(prefill), max(drift(decode), drift(prefill))
}
