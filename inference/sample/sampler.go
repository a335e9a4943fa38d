package sample

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
)

// Sampler is one request's state. It belongs to one goroutine.
type Sampler struct {
	params    Params
	draw      Draw // of every position, but for its random number
	vocab     int
	generated map[int32]int      // how often the answer holds a token; nil where no penalty asks
	seen      map[int32]struct{} // tokens of prompt and answer; nil without a repetition penalty

	adjusted   []float32   // [vocab] scratch: logits after penalties and bias
	candidates []candidate // scratch of largest and all
	nucleus    []candidate // scratch of topP
}

// Choice is the token of one position.
type Choice struct {
	ID      int32
	Logprob float64
	Top     []TokenLogprob // the likeliest tokens, best first, the lower id first of equal ones
}

// TokenLogprob is a token and its log-probability: the log-softmax, over the
// usable vocabulary, of the logits after penalties and bias and before
// temperature and filters. So it says what the model thinks and does not change
// with the temperature; a banned token shows as banned.
type TokenLogprob struct {
	ID      int32
	Logprob float64
}

// New returns a sampler for one answer. vocab is the number of usable ids:
// logits from there on are padding and are never chosen. prompt counts for the
// repetition penalty only.
func New(p Params, vocab int, prompt []int32) (*Sampler, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if vocab < 1 {
		return nil, fmt.Errorf("vocab: got %d, want at least 1", vocab)
	}
	for id := range p.Bias {
		if int(id) >= vocab {
			return nil, fmt.Errorf("logit_bias: got token %d, want one below %d", id, vocab)
		}
	}
	p.Bias = maps.Clone(p.Bias)
	s := &Sampler{params: p, draw: drawOf(p), vocab: vocab}
	if p.Presence != 0 || p.Frequency != 0 {
		s.generated = map[int32]int{}
	}
	if p.Repetition != 0 && p.Repetition != 1 {
		s.seen = map[int32]struct{}{}
		for _, id := range prompt {
			if id < 0 || int(id) >= vocab {
				return nil, fmt.Errorf("prompt: got token %d, want one below %d", id, vocab)
			}
			s.seen[id] = struct{}{}
		}
	}
	return s, nil
}

// Accept counts a token of the answer. An id that Next cannot return counts for
// nothing.
func (s *Sampler) Accept(id int32) {
	if id < 0 || int(id) >= s.vocab {
		return
	}
	if s.generated != nil {
		s.generated[id]++
	}
	if s.seen != nil {
		s.seen[id] = struct{}{}
	}
}

// Next chooses the token of a position from its logits [at least vocab], which
// it does not change. top is how many likeliest tokens to return with their
// log-probabilities; below 0 none are wanted, not the chosen token's either,
// which saves a pass over the vocabulary. It does not accept the token.
//
// A NaN or +Inf among the usable logits is an error, and so are logits that ban
// every token: the model or its weights are broken, and any choice would hide it.
func (s *Sampler) Next(logits []float32, position int, top int) (Choice, error) {
	return s.NextAmong(logits, nil, position, top)
}

// NextAmong is Next among the tokens whose bit is set in allowed, [at least vocab/64] words, the lowest bit first; nil allows all.
// The others count as banned, in the log-probabilities too.
func (s *Sampler) NextAmong(logits []float32, allowed []uint64, position int, top int) (Choice, error) {
	logits, best, err := s.prepare(logits, allowed)
	if err != nil {
		return Choice{}, err
	}
	c := Choice{ID: int32(best)}
	if s.params.Temperature > 0 {
		c.ID = pick(s.keep(logits, logits[best]), uniform(s.params.Seed, position))
	}
	s.report(&c, logits, best, top)
	return c, nil
}

// Given is the choice of a token that was not drawn, with its log-probability and the likeliest in its place.
func (s *Sampler) Given(logits []float32, id int32, top int) (Choice, error) {
	if id < 0 || int(id) >= s.vocab {
		return Choice{}, fmt.Errorf("token: got %d, want one below %d", id, s.vocab)
	}
	logits, best, err := s.prepare(logits, nil)
	if err != nil {
		return Choice{}, err
	}
	c := Choice{ID: id}
	s.report(&c, logits, best, top)
	return c, nil
}

// prepare returns the logits after penalties, bias and mask, and the likeliest token.
func (s *Sampler) prepare(logits []float32, allowed []uint64) ([]float32, int, error) {
	if len(logits) < s.vocab {
		return nil, 0, fmt.Errorf("logits: got %d, want at least %d", len(logits), s.vocab)
	}
	if allowed != nil && len(allowed) < (s.vocab+63)/64 {
		return nil, 0, fmt.Errorf("mask: got %d words, want at least %d", len(allowed), (s.vocab+63)/64)
	}
	logits = s.adjust(logits[:s.vocab], allowed)
	best, err := argmax(logits)
	return logits, best, err
}

// report adds what top asks for.
func (s *Sampler) report(c *Choice, logits []float32, best, top int) {
	if top < 0 {
		return
	}
	norm := logSumExp(logits, logits[best])
	c.Logprob = float64(logits[c.ID]) - norm
	for _, t := range s.largest(logits, min(top, s.vocab)) {
		c.Top = append(c.Top, TokenLogprob{t.id, float64(t.logit) - norm})
	}
}

// argmax returns the lowest id of the largest logit, and an error for logits that
// no choice can be made from.
func argmax(logits []float32) (int, error) {
	best, largest := -1, float32(math.Inf(-1))
	for id, x := range logits {
		if x <= largest {
			continue
		}
		if x != x { // one comparison a token finds this too
			return 0, fmt.Errorf("logits[%d]: got NaN, want a number or -Inf", id)
		}
		best, largest = id, x
	}
	if best < 0 {
		return 0, fmt.Errorf("logits: got -Inf for each of %d tokens, want a finite one", len(logits))
	}
	if math.IsInf(float64(largest), 1) {
		return 0, fmt.Errorf("logits[%d]: got +Inf, want a number or -Inf", best)
	}
	return best, nil
}

// adjust returns the logits after penalties, bias and mask: the given slice
// where there is nothing to do, else a copy.
func (s *Sampler) adjust(logits []float32, allowed []uint64) []float32 {
	if len(s.seen) == 0 && len(s.generated) == 0 && len(s.params.Bias) == 0 && allowed == nil {
		return logits
	}
	if allowed == nil {
		s.adjusted = append(s.adjusted[:0], logits...)
	} else {
		s.adjusted = slices.Grow(s.adjusted[:0], len(logits))[:len(logits)]
		copyAllowed(s.adjusted, logits, allowed)
	}
	out := s.adjusted
	for id := range s.seen {
		x := out[id]
		if math.IsInf(float64(x), 0) {
			continue
		}
		factor := s.draw.Raise
		if x > 0 {
			factor = s.draw.Lower
		}
		// A finite logit stays finite for any penalty; NaN stays NaN.
		out[id] = max(-math.MaxFloat32, min(float32(x*factor), math.MaxFloat32))
	}
	for id, n := range s.generated {
		taken := int64(s.draw.Presence) + int64(n)*int64(s.draw.Frequency)
		out[id] -= float32(float32(max(-mostPenalty, min(taken, mostPenalty))) * (1.0 / 65536))
	}
	for id, b := range s.params.Bias {
		out[id] += float32(b)
	}
	return out
}

// copyAllowed copies the logits of allowed tokens; the others' are -Inf, which stays what it is under every penalty and bias.
func copyAllowed(to, logits []float32, allowed []uint64) {
	never := float32(math.Inf(-1))
	for first := 0; first < len(logits); first += 64 {
		end := min(first+64, len(logits))
		part := to[first:end]
		switch word := allowed[first/64]; word {
		case math.MaxUint64:
			copy(part, logits[first:end])
		case 0:
			for i := range part {
				part[i] = never
			}
		default:
			copy(part, logits[first:end])
			for rest := ^word; rest != 0; rest &= rest - 1 {
				if i := bits.TrailingZeros64(rest); i < len(part) {
					part[i] = never
				}
			}
		}
	}
}

// logSumExp returns log(sum(exp(logits))); largest is their maximum.
func logSumExp(logits []float32, largest float32) float64 {
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - float64(largest))
	}
	return float64(largest) + math.Log(sum)
}
