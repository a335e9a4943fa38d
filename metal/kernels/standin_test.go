package kernels

// The Metal text on the stand-in, which runs it on the CPU: every kernel against its reference. POND_METAL_CHECK=1 runs the wide cases
// too, minutes of them; `make metal-check` sets it.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"pond/metal/standin"
)

// onCUDA says that kernels run on an NVIDIA GPU: POND_STANDIN_BACKEND=cuda.
func onCUDA() bool { return os.Getenv(standin.BackendVariable) == string(standin.OnCUDA) }

// shortVariable is the environment variable of compute-sanitizer's racecheck, under which a dispatch takes long: on a GPU, where an order of lanes means nothing,
// each case runs once, and many keys are a sixteenth of them.
const shortVariable = "POND_METAL_SHORT"

// inShort says that a test is to be short, and says so in its log.
func inShort(t testing.TB, how string) bool {
	t.Helper()
	if !onCUDA() || os.Getenv(shortVariable) == "" {
		return false
	}
	t.Logf("%s: %s", shortVariable, how)
	return true
}

// machine runs cases on the stand-in.
type machine struct{ *standin.Kernels }

// skipChecked skips what has every access checked where the processor does not run it.
func skipChecked(t testing.TB, checked bool) {
	t.Helper()
	if checked && onCUDA() {
		t.Skip("accesses are not checked on a GPU: compute-sanitizer does it there, over the other tests")
	}
}

// openMachine compiles the kernels; a test skips where no compiler can. Compiled text is kept between runs.
func openMachine(t testing.TB, checked bool) machine {
	t.Helper()
	skipChecked(t, checked)
	k, err := standin.Compile(Source(), standin.CompileOptions{Checked: checked})
	if errors.Is(err, standin.ErrNoCompiler) || errors.Is(err, standin.ErrUnsupported) || errors.Is(err, standin.ErrNoNVCC) {
		t.Skipf("kernels cannot be compiled here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return machine{k}
}

// constants are the case's function constants as the stand-in takes them.
func (c metalCase) constants() (out []standin.KernelConstant) {
	if c.kernel.Constants == nil {
		return nil
	}
	for _, k := range c.kernel.Constants(c.params) {
		out = append(out, standin.KernelConstant{Index: k.Index, Value: binary.LittleEndian.AppendUint32(nil, uint32(k.Value.(int32)))})
	}
	return out
}

// run runs one case and returns what its arguments hold afterwards.
func (m machine) run(t testing.TB, c metalCase, o standin.KernelOptions) []Arg {
	t.Helper()
	return m.observe(t, c, o, nil)
}

// observe is run with a look at what was counted, when see is not nil.
func (m machine) observe(t testing.TB, c metalCase, o standin.KernelOptions, see func(standin.KernelCounts, []*standin.Memory)) []Arg {
	t.Helper()
	if c.kernel.Check != nil {
		if err := c.kernel.Check(c.params); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
	}
	o.Constants = c.constants()
	o.Poison = o.Poison && !onCUDA() // machine code of its own there, for what racecheck and initcheck see without
	args := c.fresh(t)
	memory := make([]*standin.Memory, len(args))
	for i, a := range args {
		sig, err := c.kernel.Param(i, len(args))
		if err != nil {
			t.Fatal(err)
		}
		b := bytesOf(a)
		memory[i] = m.NewMemory(sig.Name, len(b))
		defer memory[i].Free()
		copy(memory[i].Bytes(), b)
		if sig.Access == Write {
			memory[i].Unwritten(0, len(b))
		}
	}
	var bound []standin.KernelArg
	for _, i := range c.slots(args) {
		bound = append(bound, standin.KernelArg{Memory: memory[i]})
	}
	params, err := EncodeParams(c.params)
	if err != nil {
		t.Fatal(err)
	}
	bound = append(bound, standin.KernelArg{Bytes: params})
	g := c.kernel.Grid(c.params, c.items)
	counts, err := m.Run(c.kernel.Name, bound, standin.KernelGrid{Groups: g.Groups, Threads: g.Threads, ThreadgroupBytes: g.ThreadgroupBytes}, o)
	if err != nil {
		t.Errorf("%v: %v", c, err)
	}
	if see != nil {
		see(counts, memory)
	}
	for i := range args {
		fromBytes(&args[i], memory[i].Bytes())
		if sig, err := c.kernel.Param(i, len(args)); args[i].Raw != nil {
			if err != nil || sig.Access&Write == 0 {
				args[i].Raw = nil // weights are only read
			}
		}
	}
	return args
}

// byKernel runs f for the cases of each kernel as a subtest.
func byKernel(t *testing.T, cases []metalCase, f func(t *testing.T, c metalCase)) {
	for _, k := range All() {
		t.Run(k.Name, func(t *testing.T) {
			n := 0
			for _, c := range cases {
				if c.kernel.Name == k.Name {
					f(t, c)
					n++
				}
			}
			if n == 0 {
				t.Error("no case")
			}
		})
	}
}

// TestMetalAgreesWithReference: within the case's tolerance, and to the last bit the same in three orders of lanes, simdgroups and
// threadgroups, with NaN in threadgroup memory. A GPU has its own order: there a case runs three times.
func TestMetalAgreesWithReference(t *testing.T) {
	m := openMachine(t, false)
	orders := []standin.KernelOptions{{Order: standin.Descending, Poison: true}, {Order: standin.Shuffled, Seed: 7, Poison: true}}
	if inShort(t, "each case once") {
		orders = nil
	}
	byKernel(t, shortCases(), func(t *testing.T, c metalCase) {
		got := m.run(t, c, standin.KernelOptions{Poison: true})
		c.compare(t, "", got, c.reference(t))
		for _, o := range orders {
			if err := equalBits(got, m.run(t, c, o)); err != nil {
				t.Errorf("%v: order %v changes the result: %v", c, o.Order, err)
			}
		}
	})
}

// TestMetalIsClean: no race, no access out of bounds, no unwritten memory read, no divergent barrier.
func TestMetalIsClean(t *testing.T) {
	m := openMachine(t, true)
	byKernel(t, shortCases(), func(t *testing.T, c metalCase) { m.run(t, c, standin.KernelOptions{Check: true}) })
}

// TestManyKeys: attention over 32,767 to 66,048 keys; a 16-bit index would wrap.
func TestManyKeys(t *testing.T) {
	m := openMachine(t, false)
	cases := wideKeys(newMaker(6))
	if inShort(t, "2,048 and 4,128 keys, of whose indices none would wrap") {
		mk := newMaker(6)
		cases = append(mk.wideKeysOf(2048), mk.wideKeysOf(4128)...)
	}
	for _, c := range cases {
		c.compare(t, "", m.run(t, c, standin.KernelOptions{Poison: true}), c.reference(t))
	}
}

// mostCUDAGroups is CUDA's limit of a grid's second and third dimension. Metal has none there.
const mostCUDAGroups = 65535

// TestManyRows: the same for rows of every kernel.
func TestManyRows(t *testing.T) {
	if os.Getenv("POND_METAL_CHECK") == "" {
		t.Skip("takes minutes: POND_METAL_CHECK=1 runs it")
	}
	m := openMachine(t, false)
	for _, c := range wideRows(newMaker(6)) {
		if g := c.kernel.Grid(c.params, c.items).Groups; onCUDA() && max(g[1], g[2]) > mostCUDAGroups {
			t.Logf("%v: not run: a CUDA grid has at most %d threadgroups in its second dimension", c, mostCUDAGroups)
			continue
		}
		c.compare(t, "", m.run(t, c, standin.KernelOptions{Order: standin.Shuffled, Seed: 3, Poison: true}), c.reference(t))
	}
}

// sameResults reports where two results of a case differ in a bit; on CUDA, whose compiler fuses products and sums differently in every pipeline, by more
// than the case's tolerance.
func (c metalCase) sameResults(t testing.TB, how string, got, want []Arg) {
	t.Helper()
	if onCUDA() {
		c.compare(t, how, got, want)
	} else if err := equalBits(got, want); err != nil {
		t.Errorf("%v: %s: %v", c, how, err)
	}
}

// head is a case with the first rows of its buffers: rows of m, cut[i] elements a row (0: whole).
func (c metalCase) head(params any, items, rows int, cut ...int) metalCase {
	c.params, c.items = params, items
	args := append([]Arg(nil), c.args...)
	for i, n := range cut {
		if n == 0 {
			continue
		}
		if args[i].F32 != nil {
			args[i].F32 = args[i].F32[:rows*n]
		} else {
			args[i].U32 = args[i].U32[:rows*n]
		}
	}
	c.args = args
	return c
}

// firstQueries is the case with the first tokens of another's queries, which are laid out KV head by KV head.
func (c metalCase) firstQueries(all metalCase, tokens int) metalCase {
	p := all.params.(AttentionParams)
	var q Arg
	for kv := range p.KV {
		from, to := kv*p.M*p.HeadsPerKV()*p.HD, (kv*p.M+tokens)*p.HeadsPerKV()*p.HD
		if raw := all.args[0].Raw; raw != nil {
			q.Raw = append(q.Raw, raw[2*from:2*to]...)
		} else {
			q.F32 = append(q.F32, all.args[0].F32[from:to]...)
		}
	}
	c.args[0] = q
	return c
}

// sameRows is equalBits; on CUDA, whose compiler fuses products and sums differently in pipelines of different heights, nearly.
func sameRows(a, b []Arg) error {
	if !onCUDA() {
		return equalBits(a, b)
	}
	for i := range a {
		for j, v := range a[i].F32 {
			if w := b[i].F32[j]; math.Abs(float64(v-w)) > 1e-5*(1e-2+math.Abs(float64(w))) {
				return fmt.Errorf("argument %d, element %d: %v and %v", i, j, v, w)
			}
		}
	}
	return nil
}

// TestRowsDoNotDependOnTheirNeighbours: the result of a row is the same to the last bit in a chunk of any size, so in a tile of any height.
func TestRowsDoNotDependOnTheirNeighbours(t *testing.T) {
	m := openMachine(t, false)
	mk := newMaker(8)
	c := mk.linear(Q4Gemm(), 70, 192, 4, 70, 4)
	all := m.run(t, c, standin.KernelOptions{})
	for _, rows := range []int{1, 8, 9, 17, 33, 64} {
		p := c.params.(LinearParams)
		p.M = rows
		part := m.run(t, c.head(p, c.items, rows, p.K, p.N()), standin.KernelOptions{})
		if err := sameRows([]Arg{{F32: part[1].F32}}, []Arg{{F32: all[1].F32[:rows*p.N()]}}); err != nil {
			t.Errorf("q4_gemm: %d rows of 70 differ from those rows alone: %v", rows, err)
		}
	}
	for _, shape := range attnShapes {
		for _, c := range mk.prefill(shape, 77, 35) {
			if !strings.HasPrefix(c.kernel.Name, "attn_prefill") {
				continue
			}
			all := m.run(t, c, standin.KernelOptions{})
			for _, rows := range []int{8, 13, 16, 34} {
				p := c.params.(AttentionParams)
				p.M = rows
				w := p.H * p.HD
				part := m.run(t, c.head(p, p.PrefillItems(), rows, 0, 0, 0, p.Stride(), 0, w).firstQueries(c, rows), standin.KernelOptions{})
				if err := sameRows([]Arg{{F32: part[5].F32}}, []Arg{{F32: all[5].F32[:rows*w]}}); err != nil {
					t.Errorf("%v %+v: %d queries of 35 differ from those alone: %v", c, shape, rows, err)
				}
			}
		}
	}
}

// TestHeadsSharedOrNot: attn_decode gives the same bits whether a threadgroup takes one query head or all, and nearly the same where all go by matrices.
func TestHeadsSharedOrNot(t *testing.T) {
	var shipped Tuning
	m := openMachine(t, false)
	for _, shape := range attnShapes {
		for _, few := range newMaker(9).decode(shape, 300, 2)[:2] {
			many := few
			p := few.params.(AttentionParams)
			p.Blocks = 128
			cache := few.kernel.Buffers[5].DType
			if shipped.sharedHeads(cache, p) == shipped.sharedHeads(cache, few.params.(AttentionParams)) && p.HeadsPerKV() > 1 {
				t.Errorf("%+v: the same number of heads in both cases", shape)
			}
			many.params, many.items = p, p.DecodeItems()
			many.args = append([]Arg(nil), few.args...)
			many.args[7], many.args[8] = newMaker(1).out(p.H*p.Blocks*p.HD), newMaker(1).out(2*p.H*p.Blocks)
			a, b := m.run(t, few, standin.KernelOptions{}), m.run(t, many, standin.KernelOptions{})
			for h := range p.H {
				for _, w := range []struct{ arg, n int }{{7, p.HD}, {8, 2}} {
					x, y := a[w.arg].F32[h*2*w.n:][:2*w.n], b[w.arg].F32[h*p.Blocks*w.n:][:2*w.n]
					if many.byMatrices() {
						many.compareFloats(t, fmt.Sprintf("head %d", h), y, x)
					} else if err := equalBits([]Arg{{F32: x}}, []Arg{{F32: y}}); err != nil {
						t.Errorf("%+v: head %d: %v", shape, h, err)
					}
				}
			}
		}
	}
}

// TestChunksOfTheScan: tokens one by one through gdn_step, and in chunks through gdn_conv, gdn_scan and gdn_window_store, end in the same
// bits of state and window, and of output, which a step gives gated: gdn_gate_norm, with an epsilon beside which y is nothing, gates what the scan gives.
func TestChunksOfTheScan(t *testing.T) {
	m := openMachine(t, false)
	for _, shape := range gdnShapes {
		mk := newMaker(10)
		const tokens = 37
		p := mk.gdn(shape, tokens)
		in, conv, aLog, dt := mk.f32(tokens*p.Stride), mk.bf16(p.C()*ConvTaps, 0, 0.5), mk.bf16(p.HV, 0.5, 1), mk.bf16(p.HV, 0, 1)
		norm := mk.bf16(p.DV, 1, 0.2)
		type carried struct{ state, window, y Arg }
		chunks := func(sizes ...int) carried {
			c := carried{state: mk.f32(p.ValueWidth() * p.DK), window: mk.f32(ConvTaps * p.C())}
			pos := 0
			for _, n := range sizes {
				q := mk.gdn(shape, n)
				part := Arg{F32: in.F32[pos*p.Stride:][:n*p.Stride]}
				if n == 1 {
					r := m.run(t, metalCase{kernel: GDNStep(), params: q, items: q.StateItems(), args: []Arg{part, conv, aLog, dt, word(pos), c.window, c.state,
						mk.out(q.ValueWidth() * q.DK), norm, mk.out(q.ValueWidth()), mk.out(q.ValueWidth() / SquareRows)}}, standin.KernelOptions{})
					c.window, c.state, c.y.F32 = r[5], r[7], append(c.y.F32, r[9].F32...)
					pos++
					continue
				}
				cv := m.run(t, metalCase{kernel: GDNConv(), params: q, items: n, args: []Arg{part, conv, word(pos), c.window, mk.out(n * q.C())}}, standin.KernelOptions{})[4]
				r := m.run(t, metalCase{kernel: GDNScan(), params: q, items: q.StateItems(), args: []Arg{cv, part, aLog, dt, word(pos), c.state, mk.out(n * q.ValueWidth())}}, standin.KernelOptions{})
				c.state = r[5]
				q.Eps = 1 << 40 // a factor of 2^-20 that no y changes
				o := m.run(t, metalCase{kernel: GDNGateNorm(), params: q, items: n, args: []Arg{r[6], part, norm, mk.out(n * q.ValueWidth())}}, standin.KernelOptions{})[3].F32
				for i := range o {
					o[i] *= 1 << 20
				}
				c.y.F32 = append(c.y.F32, o...)
				c.window = m.run(t, metalCase{kernel: GDNWindowStore(), params: q, items: q.WindowItems(), args: []Arg{part, word(pos), c.window}}, standin.KernelOptions{})[2]
				pos += n
			}
			return c
		}
		ones := make([]int, tokens)
		for i := range ones {
			ones[i] = 1
		}
		want := chunks(tokens)
		for _, sizes := range [][]int{{16, 21}, {2, 3, 32}, ones, {1, 35, 1}} {
			got := chunks(sizes...)
			if err := equalBits([]Arg{got.y, got.state, got.window}, []Arg{want.y, want.state, want.window}); err != nil {
				t.Errorf("%+v in chunks of %v: %v", shape, sizes, err)
			}
		}
	}
}

// TestAddressSpaces: what Apple's compiler would refuse for a wrong or missing address space is refused here.
func TestAddressSpaces(t *testing.T) {
	tc, err := standin.NewToolchain("clang++-19", "")
	if errors.Is(err, standin.ErrNoCompiler) || errors.Is(err, standin.ErrUnsupported) {
		t.Skipf("no compiler with address spaces here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := tc.Lint(Source(), standin.CompileOptions{}); err != nil {
		t.Error(err)
	}
}
