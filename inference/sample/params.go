// Package sample chooses the next token from a model's logits and finds stop
// strings in the text.
//
// It is pure: no clock, no global random source, no devices, no text model. A
// choice depends on the logits, the parameters, the tokens accepted so far, the
// seed and the position, and on nothing else, so the same seed gives the same
// tokens. What a grammar allows comes as a bit mask.
//
// Start at Sampler.Next, which applies the steps in this order (that of
// Hugging Face transformers and vLLM, for which the model card's settings are
// meant):
//
//	repetition, frequency and presence penalty -> logit bias -> temperature
//	-> top-k -> top-p -> min-p -> draw
package sample

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Params are one request's sampling parameters. The zero value is greedy.
type Params struct {
	Temperature float64 // 0 = greedy: the largest logit, the lowest id of equal ones
	TopK        int     // keep the k largest logits; 0 = off
	TopP        float64 // keep the smallest set of likeliest tokens whose probabilities reach p; 0 or 1 = off
	MinP        float64 // drop tokens less likely than p times the likeliest; 0 = off

	// Repetition divides the positive and multiplies the negative logits of all
	// tokens of the prompt and of the answer, once each; 0 or 1 = off.
	Repetition float64
	// Presence is subtracted from the logit of each token that the answer holds,
	// Frequency as many times as it holds it. The prompt does not count (OpenAI,
	// vLLM).
	Presence  float64
	Frequency float64

	Bias map[int32]float64 // added to the logits of these ids; -100 bans and 100 forces for logits of usual size
	Seed uint64            // any value; the random number of a position is Uniform(Seed, position)
}

// Validate reports the first parameter outside its range.
func (p Params) Validate() error {
	for _, c := range []struct {
		name     string
		got      float64
		min, max float64
	}{
		{"temperature", p.Temperature, 0, math.MaxFloat64},
		{"top_k", float64(p.TopK), 0, math.MaxFloat64},
		{"top_p", p.TopP, 0, 1},
		{"min_p", p.MinP, 0, 1},
		{"repetition_penalty", p.Repetition, 0, math.MaxFloat64},
		{"presence_penalty", p.Presence, -2, 2},
		{"frequency_penalty", p.Frequency, -2, 2},
	} {
		if c.got >= c.min && c.got <= c.max { // false for NaN
			continue
		}
		if c.max == math.MaxFloat64 {
			return fmt.Errorf("%s: got %v, want a finite number not below %v", c.name, c.got, c.min)
		}
		return fmt.Errorf("%s: got %v, want a number from %v to %v", c.name, c.got, c.min, c.max)
	}
	for _, id := range slices.Sorted(maps.Keys(p.Bias)) {
		if id < 0 {
			return fmt.Errorf("logit_bias: got token %d, want one not below 0", id)
		}
		if b := p.Bias[id]; !(b >= -100 && b <= 100) {
			return fmt.Errorf("logit_bias[%d]: got %v, want a number from -100 to 100", id, b)
		}
	}
	return nil
}
