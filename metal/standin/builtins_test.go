package standin

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// TestBuiltins runs every simdgroup operation, atomics, positions, values and tensors against what Go says, in every order, with both compilers.
func TestBuiltins(t *testing.T) {
	for name, tc := range toolchains(t) {
		t.Run(name, func(t *testing.T) {
			if err := tc.Lint(fixture(t, "builtins.metal"), CompileOptions{Language: 400}); err != nil && !errors.Is(err, ErrNoLint) {
				t.Error(err)
			}
			for _, checked := range []bool{false, true} {
				k, err := tc.Compile(fixture(t, "builtins.metal"), CompileOptions{Checked: checked, Language: 400})
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range orders {
					o.Check = checked
					testLanes(t, k, o)
					testValues(t, k, o)
					testAtomics(t, k, o)
					testPositions(t, k, o)
					testTensors(t, k, o)
				}
			}
		})
	}
}

// expect compares floats that have one right answer.
func expect(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] && !(got[i] != got[i] && want[i] != want[i]) {
			t.Fatalf("%s[%d]: got %v, want %v", what, i, got[i], want[i])
		}
	}
}

func run(t *testing.T, k *Kernels, name string, args []KernelArg, g KernelGrid, o KernelOptions) {
	t.Helper()
	if _, err := k.Run(name, args, g, o); err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
}

func testLanes(t *testing.T, k *Kernels, o KernelOptions) {
	t.Helper()
	in, out := k.NewMemory("in", 128), k.NewMemory("out", 20*128)
	defer in.Free()
	defer out.Free()
	v := floats(rand.New(rand.NewPCG(4, 4)), 32)
	copy(in.F32(), v)
	run(t, k, "lanes", []KernelArg{{Memory: in}, {Memory: out}}, KernelGrid{Groups: [3]int{1}, Threads: [3]int{32}}, o)

	fold := func(f func(a, b float32) float32, of func(i int) float32) float32 { // pairwise, as the runtime says
		x := make([]float32, 32)
		for i := range x {
			x[i] = of(i)
		}
		for s := 16; s > 0; s /= 2 {
			for i := range s {
				x[i] = f(x[i], x[i+s])
			}
		}
		return x[0]
	}
	add := func(a, b float32) float32 { return a + b }
	at := func(i int) float32 { return v[i] }
	var and, or, xor, vote uint32 = math.MaxUint32, 0, 0, 0
	for i := range uint32(32) {
		u := i*3 + 1
		and, or, xor = and&(u|64), or|u, xor^u
		if v[i] > 0 {
			vote |= 1 << i
		}
	}
	anyAll := float32(0)
	if vote == math.MaxUint32 {
		anyAll++
	}
	if vote != 0 {
		anyAll += 2
	}
	nan := float32(math.NaN())
	var before float32
	for i := range 32 {
		down, filled := nan, 100+v[(32+i-4)%32]
		if i+3 < 32 {
			down = v[i+3]
		}
		if i >= 4 {
			filled = v[i-4]
		}
		q := i &^ 3
		want := []float32{
			fold(add, at), fold(func(a, b float32) float32 { return max(a, b) }, at), fold(func(a, b float32) float32 { return min(a, b) }, at),
			fold(func(a, b float32) float32 { return a * b }, func(i int) float32 { return 1 + v[i]/64 }),
			float32(and), float32(or), float32(xor), v[i*7%32], v[i^5], down, filled, v[9], v[0], before + v[i], before, float32(vote & 0xffff), anyAll,
			v[q] + v[q+1] + v[q+2] + v[q+3], v[q+2], 2 * fold(add, at),
		}
		if i >= 29 {
			want[9] = nan
		}
		got := make([]float32, len(want))
		for n := range got {
			got[n] = out.F32()[n*32+i]
		}
		expect(t, "lane operations", got, want)
		before += v[i]
	}
}

func testValues(t *testing.T, k *Kernels, o KernelOptions) {
	t.Helper()
	out, in := k.NewMemory("out", 4*64), k.NewMemory("in", 16)
	defer out.Free()
	defer in.Free()
	copy(in.F32(), []float32{1.5, -2, 3, 0.25})
	run(t, k, "values", []KernelArg{{Memory: out}, {Memory: in}}, KernelGrid{}, o)
	expect(t, "values", out.F32(), []float32{
		3, 0.25, -2, 1.5, 4.5 - 0.5 - 6 + 0.375, 1.001953125, 1, 1.015625, 3.03125, 3, 0.25, 127, 42, 0xbc, 7, 2, 2, 2.5, 258, 0x3f80, 15.5, 4464, 2.25, 1.75, 1, 31,
	})
}

func testAtomics(t *testing.T, k *Kernels, o KernelOptions) {
	t.Helper()
	const n = 16384
	in, counts := k.NewMemory("in", 4*n), k.NewMemory("counts", 20)
	defer in.Free()
	defer counts.Free()
	var want [5]uint32
	r := rand.New(rand.NewPCG(5, 5))
	for i := range in.U32() {
		v := r.Uint32N(1000)
		in.U32()[i] = v
		want[v%4]++
		want[4] = max(want[4], v)
	}
	run(t, k, "atomics", []KernelArg{{Memory: in}, {Memory: counts}}, KernelGrid{Groups: [3]int{n / 128}, Threads: [3]int{128}}, o)
	if got := [5]uint32(counts.U32()); got != want {
		t.Fatalf("%+v: atomics: got %v, want %v", o, got, want)
	}
}

func testPositions(t *testing.T, k *Kernels, o KernelOptions) {
	t.Helper()
	// Two by three threadgroups of 6 x 8 threads, the last column of which has 4 x 8: dispatchThreads: with 10 x 24.
	out := k.NewMemory("out", 4*240)
	defer out.Free()
	run(t, k, "positions", []KernelArg{{Memory: out}}, KernelGrid{Groups: [3]int{2, 3}, Threads: [3]int{6, 8}, Last: [3]int{4}, ThreadgroupBytes: 192}, o)
	for i, got := range out.U32() {
		if got != uint32(i+1) {
			t.Fatalf("%+v: position %d: got %d", o, i, got)
		}
	}
}

func halfBits(f float32) uint16 { // of small multiples of an eighth
	if f == 0 {
		return 0
	}
	b := math.Float32bits(f)
	return uint16(b>>16&0x8000 | (b>>23&0xff-112)<<10 | b>>13&0x3ff)
}

func testTensors(t *testing.T, k *Kernels, o KernelOptions) {
	t.Helper()
	const m, n, depth = 40, 24, 20 // ragged at every edge
	r := rand.New(rand.NewPCG(6, 6))
	a, b := floats(r, m*depth), floats(r, n*depth)
	ma, mb, mc := k.NewMemory("a", 2*m*depth), k.NewMemory("b", 2*n*depth), k.NewMemory("c", 4*m*n)
	for i, f := range a {
		binary.LittleEndian.PutUint16(ma.Bytes()[2*i:], halfBits(f))
	}
	for i, f := range b {
		binary.LittleEndian.PutUint16(mb.Bytes()[2*i:], halfBits(f))
	}
	run(t, k, "tensors", []KernelArg{{Memory: ma}, {Memory: mb}, {Memory: mc}, {Bytes: u32s(m, n, depth, 0)}}, KernelGrid{Groups: [3]int{2, 2}, Threads: [3]int{128}}, o)
	product := func(i, j, depth int) (sum float32) {
		for q := range depth {
			sum += a[i*depth+q] * b[j*depth+q]
		}
		return sum
	}
	for i := range m {
		for j := range n {
			if got, want := mc.F32()[i*n+j], 2*product(i, j, depth); got != want {
				t.Fatalf("%+v: tensors[%d,%d]: got %v, want %v", o, i, j, got, want)
			}
		}
	}
	for _, x := range []*Memory{ma, mb, mc} {
		x.Free()
	}

	ma, mb, mc = k.NewMemory("a", 2*16*16), k.NewMemory("b", 2*32*16), k.NewMemory("c", 4*16*32)
	b = floats(r, 32*16)
	for i, f := range a[:256] {
		binary.LittleEndian.PutUint16(ma.Bytes()[2*i:], uint16(math.Float32bits(f)>>16))
	}
	for i, f := range b {
		binary.LittleEndian.PutUint16(mb.Bytes()[2*i:], uint16(math.Float32bits(f)>>16))
	}
	run(t, k, "fragments", []KernelArg{{Memory: ma}, {Memory: mb}, {Memory: mc}}, KernelGrid{Threads: [3]int{32}}, o)
	for i := range 16 {
		for j := range 32 {
			if got, want := mc.F32()[i*32+j], 1+product(i, j, 16); got != want {
				t.Fatalf("%+v: fragments[%d,%d]: got %v, want %v", o, i, j, got, want)
			}
		}
	}
	for _, x := range []*Memory{ma, mb, mc} {
		x.Free()
	}
}
