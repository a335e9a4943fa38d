package kernels

// The products and the attention of a chunk by tensor operations, on the stand-in, which models the part of Metal 4 that they use.

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"pond/metal/standin"
)

// openTensorMachine compiles TensorSource as Metal 4.0.
func openTensorMachine(t testing.TB, checked bool) machine {
	t.Helper()
	skipChecked(t, checked)
	k, err := standin.Compile(TensorSource(), standin.CompileOptions{Checked: checked, Language: 400})
	if errors.Is(err, standin.ErrNoCompiler) || errors.Is(err, standin.ErrUnsupported) || errors.Is(err, standin.ErrNoNVCC) {
		t.Skipf("kernels cannot be compiled here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return machine{k}
}

// tensorCases are calls of the kernels that tensor operations take over, around every edge of their tiles. x and the rebuilt weights are numbers
// that bf16 holds, so that the rounding changes nothing and what is left is the order of sums.
func tensorCases() []metalCase {
	m := newMaker(15)
	all := []metalCase{m.linear(Q4Gemm(), 1, 64, 4, 5), m.linear(Q4Gemm(), 31, 192, 4, 65, 3), m.linear(Q4Gemm(), 32, 64, 4, 64), m.linear(Q4Gemm(), 33, 128, 4, 1, 64, 2, 3),
		m.linear(Q4GemmAdd(), 8, 64, 4, 70), m.linear(Q4GemmAdd(), 64, 128, 4, 63), m.linear(Q4GemmAdd(), 65, 128, 4, 66)}
	for _, c := range []struct{ rows, width, columns, parts int }{{9, 128, 65, 2}, {33, 256, 64, 4}} {
		l := m.linear(Q4Gemm(), c.rows, c.width, 4, c.columns)
		p := l.params.(LinearParams)
		p.Parts = c.parts
		l.kernel, l.params, l.name, l.args[1] = Q4GemmSplit(), p, l.name+fmt.Sprint("_parts", c.parts), m.out(c.parts*c.rows*c.columns)
		all = append(all, l)
	}
	most := 128
	if os.Getenv("POND_METAL_CHECK") != "" {
		most = 4096
	}
	for _, c := range moeCases(m) {
		if p := c.params.(MoEParams); p.D <= most {
			all = append(all, c)
		}
	}
	all = append(all, tensorAttentionCases(m)...)
	var out []metalCase
	for _, c := range all {
		if slices.Contains(TensorKernels(), c.kernel.Name) {
			c.kernel = Tuned(c.kernel, Tuning{TensorOps: true})
			out = append(out, c.forBF16())
		}
	}
	return out
}

// Weights of values are rounded to bf16, off by a part in 512 each: a result is off by a thousandth of the root mean square on average, and by ten times as
// much at worst where rows of parts differ in size.
const (
	tensorAttentionTolerance = 1.5e-2
	tensorAttentionMean      = 2e-3
)

// meanError is the root mean square of the difference in parts of that of what is wanted.
func meanError(got, want []float32) float64 {
	var d, w float64
	for i := range want {
		d += math.Pow(float64(got[i])-float64(want[i]), 2)
		w += math.Pow(float64(want[i]), 2)
	}
	return math.Sqrt(d / max(w, math.SmallestNonzeroFloat64))
}

// tensorAttentionCases are chunks whose rows end before, at and behind an edge of 64, and whose keys do, with heads as wide as the launch's tile and
// narrower, in one piece and in parts.
func tensorAttentionCases(m maker) []metalCase {
	var out []metalCase
	for _, shape := range append(slices.Clone(attnShapes), AttentionParams{H: 2, KV: 1, HD: 96, R: 32}) {
		for _, c := range []struct{ pos, tokens int }{{0, 1}, {0, 9}, {63, 1}, {64, 8}, {60, 4}, {5, 17}, {300, 7}} {
			out = append(out, m.prefill(shape, c.pos, c.tokens)...)
		}
		for _, c := range []struct{ pos, tokens, parts int }{{700, 1, 2}, {1023, 2, 3}, {200, 60, 2}} {
			out = append(out, m.split(shape, c.pos, c.tokens, c.parts)...)
		}
	}
	out = append(out, m.prefill(attnShapes[0], 5000, 9)...)
	out = append(out, m.split(attnShapes[0], 9000, 5, 4)...)
	if os.Getenv("POND_METAL_CHECK") != "" {
		out = append(out, m.prefill(attnShapes[2], 6001, 19)...)
		out = append(out, m.split(attnShapes[2], 9000, 13, 4)...)
	}
	for i, c := range out {
		if strings.HasPrefix(c.kernel.Name, "attn_prefill") {
			out[i].tolerance = tensorAttentionTolerance
		}
	}
	return out
}

// forBF16 is the case with x and weights that bf16 holds: scales become powers of two, biases whole multiples of them. Queries are bf16 as they are.
func (c metalCase) forBF16() metalCase {
	c.args = slices.Clone(c.args)
	if c.args[0].F32 == nil {
		return c
	}
	x := slices.Clone(c.args[0].F32)
	for i, v := range x {
		var half [2]byte
		putBF16(half[:], 0, v)
		x[i] = bf16(half[:], 0)
	}
	c.args[0].F32 = x
	for at := len(c.kernel.Buffers); at < len(c.args); at += SegmentArgs {
		scales, biases := slices.Clone(c.args[at+1].Raw), slices.Clone(c.args[at+2].Raw)
		for i := range len(scales) / 2 {
			_, exponent := math.Frexp(float64(bf16(scales, i)))
			scale := math.Ldexp(1, exponent)
			putBF16(scales, i, float32(scale))
			putBF16(biases, i, float32(scale*math.Round(max(-8, min(8, float64(bf16(biases, i))/scale)))))
		}
		c.args[at+1].Raw, c.args[at+2].Raw = scales, biases
	}
	return c
}

// TestTensorOpsAgreeWithReference: within the case's tolerance, nothing left unwritten, and to the last bit the same in any order.
func TestTensorOpsAgreeWithReference(t *testing.T) {
	m := openTensorMachine(t, false)
	seen := map[string]int{}
	for _, c := range tensorCases() {
		seen[c.kernel.Name]++
		got := m.run(t, c, standin.KernelOptions{Poison: true})
		want := c.reference(t)
		c.compare(t, "", got, want)
		if strings.HasPrefix(c.kernel.Name, "attn_prefill") {
			out := slices.IndexFunc(c.kernel.Buffers, func(b Buffer) bool { return b.Access == Write })
			if d := meanError(got[out].F32, want[out].F32); !(d <= tensorAttentionMean) {
				t.Errorf("%v: got a root mean square error of %.2g, want at most %g", c, d, tensorAttentionMean)
			}
		}
		if err := equalBits(got, m.run(t, c, standin.KernelOptions{Order: standin.Shuffled, Seed: 7, Poison: true})); err != nil {
			t.Errorf("%v: another order changes the result: %v", c, err)
		}
	}
	for _, k := range TensorKernels() {
		if seen[k] < 2 {
			t.Errorf("%s: got %d cases, want at least 2", k, seen[k])
		}
	}
}

// TestTensorOpsAreClean: no race, no access out of bounds, no unwritten memory read.
func TestTensorOpsAreClean(t *testing.T) {
	m := openTensorMachine(t, true)
	for _, c := range tensorCases() {
		if p, ok := c.params.(AttentionParams); ok && p.Context > 2000 && os.Getenv("POND_METAL_CHECK") == "" {
			continue // more of the same steps, at length
		}
		m.run(t, c, standin.KernelOptions{Check: true})
	}
}

// TestTensorRowsDoNotDependOnTheirNeighbours: a query's attention is the same to the last bit wherever a chunk's rows are cut into tiles.
func TestTensorRowsDoNotDependOnTheirNeighbours(t *testing.T) {
	m := openTensorMachine(t, false)
	mk := newMaker(16)
	for _, shape := range attnShapes {
		for _, c := range mk.prefill(shape, 77, 35) {
			if c.kernel.Name != "attn_prefill_bf16" {
				continue
			}
			c.kernel = Tuned(c.kernel, Tuning{TensorOps: true})
			all := m.run(t, c, standin.KernelOptions{})
			for _, rows := range []int{1, 5, 8, 13, 16, 34} {
				p := c.params.(AttentionParams)
				p.M = rows
				w := p.H * p.HD
				part := m.run(t, c.head(p, p.PrefillItems(), rows, 0, 0, 0, p.Stride(), 0, w).firstQueries(c, rows), standin.KernelOptions{})
				if err := sameRows([]Arg{{F32: part[5].F32}}, []Arg{{F32: all[5].F32[:rows*w]}}); err != nil {
					t.Errorf("%v: %d queries of 35 differ from those alone: %v", c, rows, err)
				}
			}
		}
	}
}

// TestTensorTilesOfAnyHeightGiveTheSameBits: as with simdgroup matrices, a row does not depend on the tile that it lies in.
func TestTensorTilesOfAnyHeightGiveTheSameBits(t *testing.T) {
	m := openTensorMachine(t, false)
	for _, c := range tensorCases() {
		tall := c
		tall.kernel = Tuned(c.kernel, Tuning{TensorOps: true, TallTiles: true})
		c.sameResults(t, "tall tiles", m.run(t, tall, standin.KernelOptions{}), m.run(t, c, standin.KernelOptions{}))
	}
}
