package kernels

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// sampleLogits are logits of every kind that a choice has to be made from, the same for a seed.
func (m maker) sampleLogits(kind string, n int) []float32 {
	x := randomVector(m.Rand, n)
	never := float32(math.Inf(-1))
	for i := range x {
		switch kind {
		case "wide":
			x[i] *= 8
		case "ties":
			x[i] = float32(math.Round(2 * float64(x[i])))
		case "equal":
			x[i] = 1.5
		case "zeros": // of both signs, which are equal
			x[i] = float32(math.Copysign(0, float64(x[i])))
		case "one": // and all others banned
			x[i] = never
		case "half":
			if x[i] < 0 {
				x[i] = never
			}
		case "huge":
			x[i] *= 1e38
		}
	}
	if kind == "one" {
		x[m.IntN(n)] = -3
	}
	return x
}

var sampleKinds = []string{"normal", "wide", "ties", "equal", "zeros", "one", "half", "huge"}

// draw is what a position may ask.
func (m maker) draw(n int) Draw {
	d := Draw{Keep: []int{1, 2, 3, 20, 64, MaxKept}[m.IntN(6)], Uniform: m.Uint32N(1 << 24), Scale: []float32{1.4426951, 2.4, 0.5, 1e9, 0, 1e-3}[m.IntN(6)], Lower: 1, Raise: 1}
	switch m.IntN(6) {
	case 0:
		d.TopP = 1
	case 1:
		d.TopP = math.MaxUint32
	case 2, 3:
		d.TopP = m.Uint32()
	}
	if m.IntN(3) == 0 {
		d.Least = m.Uint64N(1 << 40)
	}
	switch m.IntN(8) {
	case 0:
		d.Uniform = 0
	case 1:
		d.Uniform = 1<<24 - 1
	}
	if m.IntN(2) == 0 {
		d.Marked, d.Presence, d.Frequency = true, int32(m.IntN(1<<18)-1<<17), int32(m.IntN(1<<18)-1<<17)
		if m.IntN(2) == 0 {
			d.Lower, d.Raise = 1/1.3, 1.3
		}
	}
	return d
}

// told is what a choice among n tokens is told: words of the draw, marks, biases.
func (m maker) told(n int, d Draw) []Arg {
	words, marks, biases := make([]uint32, DrawWords), make([]uint32, n), make([]float32, MaxBiases)
	d.Put(words)
	for range min(n, 40) {
		marks[m.IntN(n)] = Mark(m.IntN(4), m.IntN(2) == 0, m.IntN(6)-1)
	}
	marks[n-1] = Mark(200_000, true, MaxBiases-1)
	for i := range biases {
		biases[i] = float32(m.IntN(200) - 100)
	}
	return []Arg{{U32: words}, {U32: marks}, {F32: biases}}
}

// sampled is the three kernels of a choice on the same inputs.
func (m maker) sampled(name string, logits []float32, d Draw, block int) []metalCase {
	n := len(logits)
	p := SampleParams{N: n, Block: block}
	name = fmt.Sprintf("%s_block%d", name, block)
	logits = append(slices.Clone(logits), 1e6, 1e6, 1e6) // padding ids are not chosen
	in := append([]Arg{{F32: logits}}, m.told(n, d)...)
	bests := m.ids(2 * p.Bests())
	LogitBests().Run(append(slices.Clone(in), bests), p, 0, p.Bests(), nil)
	return []metalCase{
		{kernel: CountToken(), name: name, params: p, items: 1, args: []Arg{word(n - 1), in[1], in[2]}},
		{kernel: LogitBests(), name: name, params: p, items: p.Bests(), args: append(slices.Clone(in), m.ids(2*p.Bests()))},
		{kernel: DrawToken(), name: name, params: p, items: 1, args: append(slices.Clone(in), bests, m.ids(ChoiceWords))},
	}
}

// sampleCases are choices among few and many tokens, around the edges of blocks, and from logits that no choice can be made from.
func sampleCases(m maker) []metalCase {
	var out []metalCase
	blocks := []int{BestBlock, 64, 8, 4}
	for i, n := range []int{1, 2, 33, 255, 256, 257, 1000, 4096, 20_011} {
		for _, kind := range sampleKinds {
			if n > 5000 && i%2 == len(kind)%2 {
				continue
			}
			out = append(out, m.sampled(fmt.Sprintf("%s_N%d", kind, n), m.sampleLogits(kind, n), m.draw(n), blocks[len(out)/3%len(blocks)])...)
		}
	}
	for _, block := range []int{16, 8, 4} { // 2, 4 and 8 of them to a thread of draw_token
		d := m.draw(20_011)
		d.Keep = max(d.Keep, 20)
		last := m.sampleLogits("wide", 20_011)
		last[20_009] = 500
		out = append(out, m.sampled("many_last_best", last, d, block)...)
		out = append(out, m.sampled("many_ties", m.sampleLogits("ties", 20_011), d, block)...)
	}
	greedy := Draw{Keep: 1, Lower: 1, Raise: 1}
	for name, at := range map[string]struct {
		x     float32
		where int
	}{"nan": {float32(math.NaN()), 700}, "negative_nan": {math.Float32frombits(0xffc00000), 3}, "infinity": {float32(math.Inf(1)), 999}} {
		x := m.sampleLogits("normal", 1000)
		x[at.where] = at.x
		out = append(out, m.sampled(name, x, greedy, BestBlock)...)
		out = append(out, m.sampled(name, x, Draw{Keep: 20, Scale: 1, Uniform: 77, Lower: 1, Raise: 1}, 64)...)
	}
	banned := make([]float32, 600)
	for i := range banned {
		banned[i] = float32(math.Inf(-1))
	}
	return append(out, m.sampled("banned", banned, greedy, 32)...)
}

// TestDrawsByHand: choices that can be worked out on paper.
func TestDrawsByHand(t *testing.T) {
	never := float32(math.Inf(-1))
	half := uint32(1 << 23)
	for _, c := range []struct {
		name   string
		logits []float32
		draw   Draw
		marks  map[int]uint32
		biases []float32
		want   []uint32 // id and status
	}{
		{"the lower of equal ones", []float32{1, 3, 3, 2}, Draw{Keep: 1}, nil, nil, []uint32{1, Chosen}},
		{"zero has no sign", []float32{-1, float32(math.Copysign(0, -1)), 0}, Draw{Keep: 1}, nil, nil, []uint32{1, Chosen}},
		{"half of two equal ones", []float32{5, never, 5}, Draw{Keep: 3, Scale: 1, Uniform: half}, nil, nil, []uint32{2, Chosen}},
		{"just below half", []float32{5, never, 5}, Draw{Keep: 3, Scale: 1, Uniform: half - 1}, nil, nil, []uint32{0, Chosen}},
		{"the last, by the highest number", []float32{0, 0, 0, 0}, Draw{Keep: 4, Scale: 1, Uniform: 1<<24 - 1}, nil, nil, []uint32{3, Chosen}},
		{"the cut takes the lower of equal ones", []float32{0, 0, 0, 0}, Draw{Keep: 2, Scale: 1, Uniform: 1<<24 - 1}, nil, nil, []uint32{1, Chosen}},
		{"top p leaves the likeliest", []float32{0, 9, 8}, Draw{Keep: 3, Scale: 1, TopP: 1, Uniform: 1<<24 - 1}, nil, nil, []uint32{1, Chosen}},
		{"the least weight", []float32{0, 9, 8}, Draw{Keep: 3, Scale: 1, Least: 1 << 38, Uniform: 1<<24 - 1}, nil, nil, []uint32{2, Chosen}},
		{"a penalty", []float32{2, 3}, Draw{Keep: 1, Marked: true, Presence: 1 << 16, Frequency: 1 << 15, Lower: 1, Raise: 1}, map[int]uint32{1: Mark(1, false, -1)}, nil, []uint32{0, Chosen}},
		{"too small a penalty", []float32{2, 3}, Draw{Keep: 1, Marked: true, Presence: 1<<15 - 1, Frequency: 1 << 15, Lower: 1, Raise: 1}, map[int]uint32{1: Mark(1, false, -1)}, nil, []uint32{1, Chosen}},
		{"repetition lowers", []float32{2, 3}, Draw{Keep: 1, Marked: true, Lower: 0.5, Raise: 2}, map[int]uint32{1: Mark(0, true, -1)}, nil, []uint32{0, Chosen}},
		{"repetition below zero", []float32{-3, -2}, Draw{Keep: 1, Marked: true, Lower: 0.5, Raise: 2}, map[int]uint32{1: Mark(0, true, -1)}, nil, []uint32{0, Chosen}},
		{"a bias", []float32{2, 3}, Draw{Keep: 1, Marked: true, Lower: 1, Raise: 1}, map[int]uint32{0: Mark(0, false, 1)}, []float32{-9, 1.5}, []uint32{0, Chosen}},
		{"not marked", []float32{2, 3}, Draw{Keep: 1}, map[int]uint32{0: Mark(0, false, 0)}, []float32{9}, []uint32{1, Chosen}},
		{"banned", []float32{never, never}, Draw{Keep: 1}, nil, nil, []uint32{0, AllBanned}},
		{"not a number", []float32{1, float32(math.NaN()), 2}, Draw{Keep: 2, Scale: 1}, nil, nil, []uint32{1, NotFinite}},
	} {
		p := SampleParams{N: len(c.logits), Block: BestBlock}
		marks, words, bests, choice := make([]uint32, p.N), make([]uint32, DrawWords), make([]uint32, 2), make([]uint32, ChoiceWords)
		for id, m := range c.marks {
			marks[id] = m
		}
		c.draw.Put(words)
		args := []Arg{{F32: c.logits}, {U32: words}, {U32: marks}, {F32: c.biases}, {U32: bests}}
		LogitBests().Run(args, p, 0, 1, nil)
		DrawToken().Run(append(args, Arg{U32: choice}), p, 0, 1, nil)
		if !slices.Equal(choice[:2], c.want) {
			t.Errorf("%s: got %v, want %v", c.name, choice[:2], c.want)
		}
	}
}

// TestWeights: a weight is 2^40 times the power, to a part in 2^24 or half of the smallest weight.
func TestWeights(t *testing.T) {
	m := newMaker(31)
	for i := range 20_000 {
		x, scale := float32(m.Float64()*30), float32(m.Float64()*3)
		if i < 200 {
			x = float32(i) / 4
			scale = 1
		}
		want := math.Exp2(40 - float64(float32(x*scale)))
		if got := float64(Weight(-x, 0, scale)); math.Abs(got-want) > want/(1<<24)+0.5 {
			t.Fatalf("weight of %v below the largest, scale %v: got %v, want %v", x, scale, got, want)
		}
	}
	if w := Weight(float32(math.Inf(-1)), 3, 1); w != 0 {
		t.Errorf("banned: got weight %d, want 0", w)
	}
	if a, b := Weight(3, 3, 0), Weight(3, 3, 3e38); a != b || a>>39 == 0 {
		t.Errorf("the largest: got %d and %d, want the same, about 2^40", a, b)
	}
}
