// Package bench measures speed honestly: a schedule of arms, each in a fresh process, refused where the machine or the build makes a number
// worthless, and a report that says everything a reader needs to judge it.
//
// It holds no speeds that must be reached. CONTRACT.md says what is inside the clock. Start with Run for engines and RunHTTP for servers.
package bench

import (
	"fmt"
	"hash/fnv"
	"slices"
)

// Contexts are the lengths of prompts of the field's reports.
func Contexts() []int {
	return []int{256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}
}

// Intervals is how many intervals between tokens one arm times.
const Intervals = 64

// Rounds is the least number of rounds.
const Rounds = 2

// DriftLimit is how far the rounds of one arm may lie apart: the fastest over the slowest, less one.
const DriftLimit = 0.03

// Prompt is the synthetic prompt: id i is (i·2654435761 mod 2^32) mod vocab. Every engine gets the same ids, and no two neighbours are alike.
func Prompt(n, vocab int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(uint32(i) * 2654435761 % uint32(vocab))
	}
	return ids
}

// Digest is FNV-1a (64 bits) over ids, each as 4 bytes little endian.
func Digest(ids []int32) string {
	h := fnv.New64a()
	for _, id := range ids {
		h.Write([]byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)})
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// Arm is one measurement of the schedule, in a process of its own.
type Arm struct {
	Engine    string `json:"engine"` // "pond", "mlx-lm"
	Round     int    `json:"round"`
	Context   int    `json:"context"` // tokens of the prompt
	Intervals int    `json:"intervals"`
	Vocab     int    `json:"vocab"` // of Prompt
}

// Sample is what an arm's process prints, as one line of JSON, last on its standard output.
type Sample struct {
	Executor  string            `json:"executor"` // what computed, in words
	PrefillS  float64           `json:"prefill_s"`
	Intervals []float64         `json:"intervals_s"`
	Digest    string            `json:"digest"` // of the tokens, the first included
	LoadS     float64           `json:"load_s"`
	Versions  map[string]string `json:"versions,omitempty"`
	Switches  []string          `json:"switches,omitempty"` // of package ablate, those that acted
}

// check refuses a sample that is not of its arm.
func (s Sample) check(a Arm) error {
	if len(s.Intervals) != a.Intervals || !(s.PrefillS > 0) || s.Digest == "" {
		return fmt.Errorf("%s at %d: got %d intervals, prefill of %g s, digest %q; want %d intervals, a time and a digest", a.Engine, a.Context, len(s.Intervals), s.PrefillS, s.Digest, a.Intervals)
	}
	for _, v := range s.Intervals {
		if !(v > 0) {
			return fmt.Errorf("%s at %d: got an interval of %g s, want more than 0", a.Engine, a.Context, v)
		}
	}
	return nil
}

// decodeRate is tokens a second over all intervals together.
func (s Sample) decodeRate() float64 {
	sum := 0.0
	for _, v := range s.Intervals {
		sum += v
	}
	return float64(len(s.Intervals)) / sum
}

// Schedule lists the arms in the order they are run: the engines' order alternates from round to round, the contexts' order reverses.
func Schedule(engines []string, contexts []int, rounds, intervals, vocab int) []Arm {
	var out []Arm
	for r := range rounds {
		cs, es := slices.Clone(contexts), slices.Clone(engines)
		if r%2 == 1 {
			slices.Reverse(cs)
			slices.Reverse(es)
		}
		for _, c := range cs {
			for _, e := range es {
				out = append(out, Arm{Engine: e, Round: r + 1, Context: c, Intervals: intervals, Vocab: vocab})
			}
		}
	}
	return out
}

// median of some numbers; of two, their mean.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// drift is the largest over the smallest, less one.
func drift(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return slices.Max(v)/slices.Min(v) - 1
}
