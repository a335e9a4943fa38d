package gpu

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pond/metal"
	"pond/metal/kernels"
	"pond/metal/mtl"
)

// Products of many rows, and attention of a chunk, have two texts: simdgroup matrices, which every GPU runs, and the tensor operations of Metal 4, for GPUs with units
// for them. Nobody has seen every system's compiler, so the second is used only after it has compiled here and given the first one's
// results for small problems on this GPU. If it does not, the device says why and works with the first; products do not wait for attention.

// tensors is what became of the second text.
type tensors struct {
	library mtl.Library // nil where it was not tried or does not compile
	from    string      // what it was loaded from
	kernels []string    // that are used
	why     string      // not all are used; empty where nobody would expect it: no units, or switched off
}

// note is what a name says of it.
func (t tensors) note() string {
	switch {
	case len(t.kernels) > 0 && t.why != "":
		return "with tensor operations but for attention: " + t.why
	case len(t.kernels) > 0:
		return "with tensor operations"
	case t.why != "":
		return "without tensor operations: " + t.why
	}
	return ""
}

// TensorKernels lists the kernels that run by tensor operations; their operands are rounded to bf16.
func (d *Device) TensorKernels() []string { return d.tensors.kernels }

// openTensors compiles and checks the text by tensor operations where it is wanted. It never fails: the other text is there.
func (d *Device) openTensors() {
	o := d.options
	switch {
	case o.Source != "" && o.TensorSource == "", !o.EmulatedTensorOps && !d.dev.SupportsFamily(mtl.GPUFamilyApple10):
		return
	case !d.dev.SupportsFamily(mtl.GPUFamilyMetal4):
		d.tensors.why = "they need macOS 26"
		return
	case o.TensorOpsOff != nil && o.TensorOpsOff():
		return
	}
	var err error
	var found []string
	if d.tensors.library, d.tensors.from, err = d.load(kernels.Tensor(), o.TensorSource, "pond tensor kernels"); err == nil {
		found, err = d.checkTensors()
	}
	if err != nil {
		d.tensors.why = firstError(err.Error())
	}
	d.useTensors(found)
}

// firstError is the line of a message that says most: a compiler's first error, without the pages behind it.
func firstError(text string) string {
	lines := strings.Split(text, "\n")
	for _, l := range lines[1:] {
		if strings.Contains(l, "error:") {
			return lines[0] + " " + strings.TrimSpace(l)
		}
	}
	return lines[0]
}

// useTensors takes these kernels from the second text, the others from the first; for passes that are compiled from then on.
func (d *Device) useTensors(names []string) {
	d.tensors.kernels = names
	for _, name := range kernels.TensorKernels() {
		tuning := d.options.Tuning
		tuning.TensorOps = slices.Contains(names, name)
		d.kernels[name] = kernels.Tuned(d.kernels[name], tuning)
	}
}

// libraryOf is where a kernel is taken from.
func (d *Device) libraryOf(kernel string) mtl.Library {
	if slices.Contains(d.tensors.kernels, kernel) {
		return d.tensors.library
	}
	return d.library
}

// checkTensors runs small products and attentions by both texts. Inputs, weights and sums of products are numbers that bf16 and float32 hold, so that both
// must give the same but for the exponential between gate and up. Attention's weights of values are rounded by one of the two. It returns the kernels that
// may be used: all; but for attention's, where only they differ or do not run; or none. The error says what was found first.
func (d *Device) checkTensors() (found []string, err error) {
	first := d.made
	defer func() { // what the check allocated
		for n := first + 1; n <= d.made; n++ {
			if b, ok := d.live[n]; ok {
				delete(d.live, n)
				d.drop(b)
			}
		}
	}()
	c := tensorCheck{device: d}
	ds := c.dispatches()
	if c.err != nil {
		return nil, c.err
	}
	defer d.useTensors(nil)
	var products, attention []int
	for i, x := range ds {
		if ofAttention(x.Kernel) {
			attention = append(attention, i)
		} else {
			products = append(products, i)
		}
	}
	if err := c.compare(ds, products); err != nil {
		return nil, err
	}
	found = kernels.TensorKernels()
	if err = c.compare(ds, attention); err != nil {
		found = slices.DeleteFunc(found, ofAttention)
	}
	return found, err
}

// ofAttention says whether a kernel is among those that are checked behind the products.
func ofAttention(kernel string) bool { return strings.HasPrefix(kernel, "attn_") }

// compare runs some of the dispatches by both texts.
func (c *tensorCheck) compare(all []metal.Dispatch, which []int) error {
	var level []metal.Dispatch
	for _, i := range which {
		level = append(level, all[i])
	}
	want := map[int][]float32{}
	for _, names := range [][]string{nil, kernels.TensorKernels()} {
		c.device.useTensors(names)
		for _, i := range which {
			copy(c.outputs[i].F32(), c.before[i])
		}
		p, err := c.device.Compile(metal.Program{Label: "check of tensor operations", Levels: [][]metal.Dispatch{level}})
		if err == nil {
			err = c.device.Run(p, metal.RunOptions{})
		}
		if err != nil {
			return err
		}
		for _, i := range which {
			if names == nil {
				want[i] = slices.Clone(c.outputs[i].F32())
			} else if err := agree(c.outputs[i].F32(), want[i], c.tolerances[i]); err != nil {
				return fmt.Errorf("%s: %w", all[i].Label, err)
			}
		}
	}
	return nil
}

// Tolerances of the check, in parts of one more than what is wanted: the rounding of an exponential; of a row's weights, which add up to one; of
// weights that are not divided by their sum yet.
const (
	toleranceExponential = 1e-5
	toleranceWeights     = 5e-3
	toleranceSums        = 0.25
)

// agree compares; what is not float32 must be the same.
func agree(got, want []float32, tolerance float64) error {
	for i, w := range want {
		if math.Float32bits(got[i]) == math.Float32bits(w) {
			continue
		}
		if d := math.Abs(float64(got[i]) - float64(w)); !(d <= tolerance*(1+math.Abs(float64(w)))) {
			return fmt.Errorf("element %d: got %v, want %v", i, got[i], w)
		}
	}
	return nil
}

// tensorCheck makes the dispatches of the check, in memory of the device.
type tensorCheck struct {
	device     *Device
	outputs    []metal.Buffer // of each dispatch
	before     [][]float32    // what they hold at first
	tolerances []float64
	made       int // matrices, no two of which are alike
	err        error
}

// Sizes of the check: rows for two heights of tiles, columns that no tile likes, more than one step along K.
const (
	checkRows, checkFewRows   = 40, 9
	checkWidth, checkInter    = 192, 64
	checkExperts, checkChoose = 3, 2
	checkQueries, checkKeys   = 9, 259 // of the real head: rows for a tile and a rest, keys for a part and a few
)

func (c *tensorCheck) dispatches() []metal.Dispatch {
	var out []metal.Dispatch
	tolerance := toleranceExponential
	add := func(kernel string, params any, items int, result metal.Buffer, args ...metal.Buffer) {
		ds := metal.Dispatch{Label: kernel, Kernel: kernel, Params: params, Items: items}
		for _, b := range args {
			if b == nil {
				return // c.err says why
			}
			ds.Args = append(ds.Args, metal.Slice{Buffer: b, Len: int64(len(b.Bytes()))})
		}
		out = append(out, ds)
		c.outputs, c.before, c.tolerances = append(c.outputs, result), append(c.before, slices.Clone(result.F32())), append(c.tolerances, tolerance)
	}
	for _, rows := range []int{checkRows, checkFewRows} {
		p := kernels.LinearParams{M: rows, K: checkWidth, Bits: 4, Rows: [kernels.MaxSegments]int{70, 3}}
		x, y := c.numbers(rows*checkWidth), c.numbers(rows*p.N())
		add("q4_gemm", p, p.N(), y, append([]metal.Buffer{x, y}, append(c.matrix(70, checkWidth), c.matrix(3, checkWidth)...)...)...)
		p.Rows = [kernels.MaxSegments]int{66}
		x, y = c.numbers(rows*checkWidth), c.numbers(rows*p.N())
		add("q4_gemm_add", p, p.N(), y, append([]metal.Buffer{x, y}, c.matrix(66, checkWidth)...)...)
		p.Parts = 3
		x, y = c.numbers(rows*checkWidth), c.numbers(p.Parts*rows*p.N())
		add("q4_gemm_split", p, p.N(), y, append([]metal.Buffer{x, y}, c.matrix(66, checkWidth)...)...)
	}
	p := kernels.MoEParams{M: checkRows, D: checkWidth, E: checkExperts, T: checkChoose, I: checkInter, SI: checkInter}
	order, offsets := c.routes(p)
	h, act := c.numbers(p.M*p.D), c.numbers(p.M*p.T*p.I)
	add("moe_gate_up_grouped", p, p.E*p.I, act, append([]metal.Buffer{h, order, offsets, act}, append(c.matrix(p.E*p.I, p.D), c.matrix(p.E*p.I, p.D)...)...)...)
	act, y := c.numbers(p.M*p.T*p.I), c.numbers(p.M*p.T*p.D)
	add("moe_down_grouped", p, p.E*p.D, y, append([]metal.Buffer{act, order, offsets, y}, c.matrix(p.E*p.D, p.I)...)...)
	half := c.numbers(p.M * p.T * p.D / 2)
	add("moe_down_grouped_bf16", p, p.E*p.D, half, append([]metal.Buffer{act, order, offsets, half}, c.matrix(p.E*p.D, p.I)...)...)
	a := kernels.AttentionParams{M: checkQueries, H: 16, KV: 2, HD: 256, Context: checkKeys, Blocks: 2}
	q, keys, values, step := c.halves(a.M*a.H*a.HD), c.halves(a.Context*a.KVWidth()), c.halves(a.Context*a.KVWidth()), c.memory(1)
	qkv, o, acc, stats := c.numbers(a.M*a.Stride()), c.numbers(a.M*a.H*a.HD), c.numbers(a.SplitItems()*a.HD), c.numbers(2*a.SplitItems())
	if c.err != nil {
		return nil
	}
	step.U32()[0] = checkKeys - checkQueries
	tolerance = toleranceWeights
	add("attn_prefill_bf16", a, a.PrefillItems(), o, q, keys, values, qkv, step, o)
	tolerance = toleranceSums
	add("attn_prefill_split_bf16", a, a.SplitItems(), acc, q, keys, values, step, acc, stats)
	return out
}

// memory is a buffer of n words; nil after an error.
func (c *tensorCheck) memory(n int) metal.Buffer {
	if c.err != nil {
		return nil
	}
	b, err := c.device.NewBuffer("check", 4*int64(n))
	if err != nil {
		c.err = err
		return nil
	}
	return b
}

// numbers are n eighths between -2 and 2.
func (c *tensorCheck) numbers(n int) metal.Buffer {
	b := c.memory(n)
	if b != nil {
		for i := range b.F32() {
			b.F32()[i] = float32((i*7+i/31)%33-16) / 8
		}
	}
	return b
}

// halves are n numbers as bf16, those of numbers in another order each time: n is even.
func (c *tensorCheck) halves(n int) metal.Buffer {
	b := c.memory(n / 2)
	c.made++
	if b != nil {
		for i := range n {
			bits := math.Float32bits(float32((i*(7+2*c.made)+i/31+i/256*5)%33-16)/8) >> 16
			b.Bytes()[2*i], b.Bytes()[2*i+1] = byte(bits), byte(bits>>8)
		}
	}
	return b
}

// matrix is n rows of k 4-bit weights: thirty-seconds to eighths, times -8 to 7.
func (c *tensorCheck) matrix(n, k int) []metal.Buffer {
	codes, scales, biases := make([]byte, n*k/2), make([]byte, n*k/kernels.Group*2), make([]byte, n*k/kernels.Group*2)
	c.made++
	for i := range codes {
		codes[i] = byte(i*89 + i>>7*13 + c.made*57)
	}
	for i := range len(scales) / 2 {
		scale := float32(1) / float32(int(8)<<(i%3))
		put := func(to []byte, x float32) {
			bits := math.Float32bits(x) >> 16 // exact: these numbers have few bits
			to[2*i], to[2*i+1] = byte(bits), byte(bits>>8)
		}
		put(scales, scale)
		put(biases, -8*scale)
	}
	var out []metal.Buffer
	for _, data := range [][]byte{codes, scales, biases} {
		var b metal.Buffer
		if c.err == nil {
			b, c.err = c.device.PlaceWeights("check", data)
		}
		if c.err != nil {
			return make([]metal.Buffer, kernels.SegmentArgs)
		}
		out = append(out, b)
	}
	return out
}

// routes gives the last expert the fewest rows, so that tiles have several heights.
func (c *tensorCheck) routes(p kernels.MoEParams) (order, offsets metal.Buffer) {
	order, offsets = c.memory(p.M*p.T), c.memory(p.E+1)
	if order == nil || offsets == nil {
		return nil, nil
	}
	byExpert := make([][]uint32, p.E)
	for m := range p.M {
		a, b := 0, 1
		if m%5 == 0 {
			b = 2
		}
		byExpert[a] = append(byExpert[a], uint32(m*p.T))
		byExpert[b] = append(byExpert[b], uint32(m*p.T+1))
	}
	n := 0
	for e, pairs := range byExpert {
		n += copy(order.U32()[n:], pairs)
		offsets.U32()[e+1] = uint32(n)
	}
	return order, offsets
}
