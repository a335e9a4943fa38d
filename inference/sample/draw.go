package sample

import "math"

// Everything that decides a draw is an integer or one rounding of float32, so a
// device without float64, which sums in another order, chooses the same token:
// probabilities are weights in parts of 2^40, and the other numbers of a request
// are rounded once, to what Draw says. Package kernels has the same arithmetic.

// Draw is what a device needs to choose the token of a position.
type Draw struct {
	Keep                int     // tokens of largest logits to draw among; 1: the likeliest
	Uniform             uint32  // the random number of the position, parts of 2^24
	Scale               float32 // log2(e)/temperature
	TopP                uint32  // parts of 2^32; 0: off
	Least               uint64  // least weight: min-p
	Marked              bool    // penalties or biases apply
	Presence, Frequency int32   // parts of 2^16
	Lower, Raise        float32 // factors of the positive and of the negative logits of seen tokens
}

// MostKept and MostBiases bound what a device draws: so many tokens of largest
// logits, and tokens with a bias.
const (
	MostKept   = 256
	MostBiases = 511
)

// mostPenalty bounds what is taken from a logit, in parts of 2^16.
const mostPenalty = 1 << 30

// drawOf rounds parameters.
func drawOf(p Params) Draw {
	d := Draw{Keep: 1, Lower: 1, Raise: 1}
	if p.Temperature > 0 {
		d.Keep = p.TopK
		d.Scale = float32(min(math.Log2E/p.Temperature, math.MaxFloat32))
		if p.TopP > 0 && p.TopP < 1 {
			if part := math.Round(p.TopP * (1 << 32)); part < 1<<32 {
				d.TopP = uint32(max(part, 1))
			}
		}
		d.Least = min(uint64(math.Round(p.MinP*(1<<40))), weight(0, 0, 1)) // the likeliest stays
	}
	d.Presence, d.Frequency = int32(math.Round(p.Presence*(1<<16))), int32(math.Round(p.Frequency*(1<<16)))
	if p.Repetition != 0 {
		const most = 1e30
		d.Lower, d.Raise = float32(min(1/p.Repetition, most)), float32(min(p.Repetition, most))
	}
	d.Marked = p.penalised() || len(p.Bias) > 0
	return d
}

// penalised reports whether a penalty asks for what prompt and answer hold.
func (p Params) penalised() bool {
	return p.Presence != 0 || p.Frequency != 0 || p.Repetition != 0 && p.Repetition != 1
}

// Draw returns what a device needs for a position, and false where it cannot
// choose: it draws among at most MostKept tokens, and at most MostBiases have a
// bias.
func (s *Sampler) Draw(position int) (d Draw, ok bool) {
	d = s.draw
	if d.Keep > 1 {
		d.Uniform = uniform(s.params.Seed, position)
	}
	return d, d.Keep >= 1 && d.Keep <= MostKept && len(s.params.Bias) <= MostBiases
}

// Mark is what penalties and bias need to know of a token.
type Mark struct {
	ID    int32
	Count int  // in the answer
	Seen  bool // in prompt or answer
	Bias  int  // index of its bias; below 0: none
}

// Marks returns the marks of all tokens that have one, in no order, and the
// biases.
func (s *Sampler) Marks() (marks []Mark, biases []float32) {
	if !s.draw.Marked {
		return nil, nil
	}
	at := map[int32]int{}
	mark := func(id int32) *Mark {
		i, ok := at[id]
		if !ok {
			i = len(marks)
			at[id] = i
			marks = append(marks, Mark{ID: id, Bias: -1})
		}
		return &marks[i]
	}
	for id := range s.seen {
		mark(id).Seen = true
	}
	for id, n := range s.generated {
		m := mark(id)
		m.Count, m.Seen = n, true
	}
	for id, b := range s.params.Bias {
		mark(id).Bias = len(biases)
		biases = append(biases, float32(b))
	}
	return marks, biases
}

// weight is 2^(40 - (largest - x)·scale), rounded to an integer: about 2^40 for
// the largest, and 0 from 41 powers below it on. Its error is a part in 2^24.
func weight(x, largest, scale float32) uint64 {
	s := float32(largest-x) * scale
	if !(s < 42) {
		return 0
	}
	q := uint32(s * (1 << 24)) // whole powers, and 24 bits of fraction
	whole, fraction := q>>24, uint64(q<<8)
	// 2^-f = 1 - f·ln 2·(1 - f·ln 2/2·(1 - ...)), in parts of 2^32: the powers of ln 2
	// over factorials, the eleventh first.
	var r uint32
	for _, c := range [...]uint32{2, 30, 437, 5676, 65510, 661577, 5726720, 41309550, 238388332, 1031764991, 2977044472} {
		r = c - uint32(fraction*uint64(r)>>32)
	}
	r = math.MaxUint32 - uint32(fraction*uint64(r)>>32)
	return (uint64(r)<<8 + 1<<whole>>1) >> whole
}

// topPart is the least sum that is p of total, p in parts of 2^32.
func topPart(total uint64, p uint32) uint64 {
	return total>>32*uint64(p) + (total&math.MaxUint32*uint64(p)+math.MaxUint32)>>32
}

// uniformPart is u of total, u in parts of 2^24.
func uniformPart(total uint64, u uint32) uint64 {
	return total>>24*uint64(u) + total&(1<<24-1)*uint64(u)>>24
}
