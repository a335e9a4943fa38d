package kernels

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pond/metal/standin"
)

// head is the head with the choice among the first n of rows tokens; weights and the input are random.
func (m maker) head(width, rows, n int, d Draw) metalCase {
	p := HeadParams{Product: LinearParams{M: 1, K: width, Bits: 4, Rows: [MaxSegments]int{rows}, Eps: 1e-6}, Choice: SampleParams{N: n}}
	p.Choice.Block = Tuning{}.HeadBlock(p.Product)
	args := append([]Arg{m.f32(width), m.bf16(width, 1, 0.2), m.out(rows)}, m.told(n, d)...)
	args = append(append(args, m.ids(2*p.Choice.Bests())), m.matrix(rows, width, 4)...)
	return metalCase{kernel: Q4GemvNormBests(), name: fmt.Sprintf("K%d_rows%d_N%d", width, rows, n), params: p, items: p.Blocks(), args: args, tolerance: 1e-5}
}

// exact gives a head numbers whose sums no order rounds, so that kernel and reference have the same logits, and many of them are equal: an input of
// ones of both signs, more of them positive, and rows that repeat a few.
func (m maker) exact(c metalCase) metalCase {
	p := c.params.(HeadParams)
	p.Product.Eps = 0
	c.params, c.tolerance, c.args = p, 0, slices.Clone(c.args)
	x := make([]float32, p.Product.K)
	for i := range x {
		if x[i] = 1; i%5 == 0 {
			x[i] = -1
		}
	}
	c.args[0], c.args[1] = Arg{F32: x}, m.bf16(p.Product.K, 1, 0)
	const kinds = 7
	w := m.matrix(kinds, p.Product.K, 4)
	for i := range kinds * p.Product.K / Group {
		put(w[1], i, []float32{1, 0.5, -1, 0.25}[m.IntN(4)])
		put(w[2], i, float32(m.IntN(16))-8)
	}
	for i, a := range c.args[len(c.args)-SegmentArgs:] {
		each := len(w[i].Raw) / kinds
		for r := range p.Product.N() {
			k := m.IntN(kinds)
			copy(a.Raw[r*each:(r+1)*each], w[i].Raw[k*each:])
		}
	}
	return c
}

// put is element i of bf16 numbers.
func put(a Arg, i int, v float32) {
	b := math.Float32bits(v)
	a.Raw[2*i], a.Raw[2*i+1] = byte(b>>16), byte(b>>24)
}

// biased is a head one of whose rows has v in every logit's sum.
func (c metalCase) biased(what string, v float32, rows ...int) metalCase {
	p := c.params.(HeadParams)
	biases := Arg{Raw: slices.Clone(c.args[len(c.args)-1].Raw)}
	for _, r := range rows {
		for g := range p.Product.K / Group {
			put(biases, r*p.Product.K/Group+g, v)
		}
	}
	c.args = append(slices.Clone(c.args[:len(c.args)-1]), biases)
	c.name += "_" + what
	return c
}

// headCases are heads of one and of several threadgroups, with padding rows in the last one, in all of it, and in none, of sets in part of a simdgroup, in
// one and in two, of one group of rows, two and four, and logits that no choice can be made from.
func headCases(m maker) []metalCase {
	var out []metalCase
	for i, s := range []struct{ width, rows, n int }{
		{64, 1, 1}, {64, 31, 31}, {64, 32, 32}, {64, 33, 33}, {64, 100, 64}, {256, 100, 65}, {256, 300, 299}, {1024, 63, 60}, {1024, 40, 9}, {1088, 40, 40}, {2048, 33, 33},
		{2048, 48, 17}, {4096, 17, 16}, {64, 16_411, 16_000}, {64, 68_000, 67_001}, {64, 131_100, 131_007}, {1088, 4_100, 4_090},
	} {
		d := m.draw(s.n)
		d.Marked = i%3 != 0
		out = append(out, m.exact(m.head(s.width, s.rows, s.n, d)))
	}
	draw := Draw{Keep: 20, Scale: 1, Uniform: 77, Lower: 1, Raise: 1}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	all := make([]int, 90)
	for i := range all {
		all[i] = i
	}
	for _, width := range []int{256, 2048} {
		for _, marked := range []bool{false, true} {
			draw.Marked = marked
			c := m.exact(m.head(width, 90, 81, draw))
			c.name = fmt.Sprintf("%s_marked_%v", c.name, marked)
			out = append(out, c.biased("nan", nan, 3, 50), c.biased("nan_among_padding", nan, 81), c.biased("infinity", inf, 40, 80), c.biased("some_banned", -inf, 0, 1, 5, 33, 80), c.biased("banned", -inf, all...))
		}
	}
	return out
}

// headShapes are sizes of heads that choose among n of their rows.
var headShapes = []struct{ width, rows, n int }{{64, 100, 99}, {256, 1000, 900}, {2048, 300, 290}, {64, 68_000, 67_901}, {64, 131_100, 131_000}, {1088, 8_193, 8_100}}

// TestHeadFindsWhatLogitBestsFinds: the head that chooses writes the logits of the head that does not, to the bit, and finds in them what logit_bests
// finds; and draw_token chooses the same token from blocks of its size as from those of logit_bests.
func TestHeadFindsWhatLogitBestsFinds(t *testing.T) {
	m := openMachine(t, false)
	mk := newMaker(21)
	o := standin.KernelOptions{Poison: true}
	for _, s := range headShapes {
		for _, tuning := range []Tuning{{}, {NarrowSets: true}} {
			d := mk.draw(s.n)
			d.Keep = max(d.Keep, 2)
			c := mk.head(s.width, s.rows, s.n, d)
			p := c.params.(HeadParams)
			p.Choice.Block = tuning.HeadBlock(p.Product)
			c.params, c.kernel, c.args[6] = p, Tuned(c.kernel, tuning), mk.ids(2*p.Choice.Bests())
			got := m.run(t, c, o)
			w := c.args[len(c.args)-SegmentArgs:]
			logits := m.run(t, metalCase{kernel: Tuned(Q4GemvNorm(), tuning), params: p.Product, items: s.rows, args: append([]Arg{c.args[0], c.args[1], mk.out(s.rows)}, w...)}, o)[2]
			if onCUDA() { // which fuses products and sums differently in the two
				c.compareFloats(t, "logits", got[2].F32, logits.F32)
			} else if err := equalBits([]Arg{got[2]}, []Arg{logits}); err != nil {
				t.Errorf("%v %+v: logits: %v", c, tuning, err)
			}
			in := append([]Arg{got[2]}, c.args[3:6]...)
			bests := func(p SampleParams) Arg {
				return m.run(t, metalCase{kernel: LogitBests(), params: p, items: p.Bests(), args: append(slices.Clone(in), mk.ids(2*p.Bests()))}, o)[4]
			}
			if err := equalBits([]Arg{got[6]}, []Arg{bests(p.Choice)}); err != nil {
				t.Errorf("%v %+v: bests: %v", c, tuning, err)
			}
			choice := func(p SampleParams, bests Arg) Arg {
				return m.run(t, metalCase{kernel: DrawToken(), params: p, items: 1, args: append(slices.Clone(in), bests, mk.ids(ChoiceWords))}, o)[5]
			}
			plain := SampleParams{N: s.n, Block: BestBlock}
			if a, b := choice(p.Choice, got[6]), choice(plain, bests(plain)); !slices.Equal(a.U32, b.U32) {
				t.Errorf("%v %+v: got choice %v, want %v", c, tuning, a.U32, b.U32)
			}
		}
	}
}
