package standin

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// toolchains are the compilers of this machine that a test runs with; it skips where there is none. Most tests take the usual one, so that a cold cache
// costs little; POND_STANDIN_CXX=g++ runs them with the other.
func toolchains(t *testing.T, names ...string) map[string]*Toolchain {
	t.Helper()
	if len(names) == 0 {
		names = []string{""}
	}
	out := map[string]*Toolchain{}
	for _, name := range names {
		tc, err := NewToolchain(name, "")
		if errors.Is(err, ErrNoCompiler) || errors.Is(err, ErrUnsupported) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(tc.cxx)] = tc
	}
	if len(out) == 0 {
		t.Skip("kernels cannot be compiled here: neither clang++-19 nor g++ is installed, or the system is not Linux")
	}
	return out
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return "#line 1 \"" + name + "\"\n" + string(b)
}

func u32s(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// orders are ways to run threads; results must not depend on them.
var orders = []KernelOptions{{}, {Order: Descending, Poison: true}, {Order: Shuffled, Seed: 7, Poison: true}, {Order: Shuffled, Seed: 8, Workers: 2}, {Workers: 2}}

// floats makes n numbers that bfloat holds exactly.
func floats(r *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(r.IntN(33)-16) / 8
	}
	return out
}

func TestKernelsAgreeWithGo(t *testing.T) {
	for name, tc := range toolchains(t, "clang++-19", "g++") {
		t.Run(name, func(t *testing.T) {
			for _, checked := range []bool{false, true} {
				k, err := tc.Compile(fixture(t, "basic.metal"), CompileOptions{Checked: checked})
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range orders {
					o.Check = checked
					testScale(t, k, o)
					testRowSum(t, k, o)
					testProduct(t, k, o)
				}
			}
		})
	}
}

func testScale(t *testing.T, k *Kernels, o KernelOptions) {
	t.Helper()
	const n = 1000
	x, y := k.NewMemory("x", 4*n), k.NewMemory("y", 4*n)
	defer x.Free()
	defer y.Free()
	copy(x.F32(), floats(rand.New(rand.NewPCG(1, 1)), n))
	params := append(u32s(n), u32s(math.Float32bits(3))...)
	for _, doubled := range []float32{1, 2} {
		o.Constants = nil
		if doubled == 2 {
			o.Constants = []KernelConstant{{0, []byte{1}}}
		}
		if _, err := k.Run("scale", []KernelArg{{Memory: x}, {Memory: y}, {Bytes: params}}, KernelGrid{Groups: [3]int{4}, Threads: [3]int{256}}, o); err != nil {
			t.Fatal(err)
		}
		for i, got := range y.F32() {
			if want := x.F32()[i] * 3 * doubled * []float32{0.5, 1, 1.5, 2}[i%4]; got != want {
				t.Fatalf("%+v: y[%d]: got %v, want %v", o, i, got, want)
			}
		}
	}
}

func testRowSum(t *testing.T, k *Kernels, o KernelOptions) {
	t.Helper()
	const rows, n = 300, 515
	x, y := k.NewMemory("x", 4*rows*n), k.NewMemory("y", 4*rows)
	defer x.Free()
	defer y.Free()
	copy(x.F32(), floats(rand.New(rand.NewPCG(2, 2)), rows*n))
	if _, err := k.Run("row_sum", []KernelArg{{Memory: x}, {Memory: y}, {Bytes: u32s(n)}}, KernelGrid{Groups: [3]int{rows}, Threads: [3]int{128}}, o); err != nil {
		t.Fatal(err)
	}
	for r := range rows {
		var want float32 // eighths: exact in any order
		for _, v := range x.F32()[r*n : (r+1)*n] {
			want += v
		}
		if got := y.F32()[r]; got != want {
			t.Fatalf("%+v: row %d: got %v, want %v", o, r, got, want)
		}
	}
}

func testProduct(t *testing.T, k *Kernels, o KernelOptions) {
	t.Helper()
	const m, n, kk = 16, 24, 640 // longer than a ring of matrix operations
	r := rand.New(rand.NewPCG(3, 3))
	a, b := floats(r, m*kk), floats(r, n*kk)
	for _, name := range []string{"product_f32", "product_bf16"} {
		bytes := 4
		if name == "product_bf16" {
			bytes = 2
		}
		ma, mb, y := k.NewMemory("a", bytes*m*kk), k.NewMemory("b", bytes*n*kk), k.NewMemory("y", 4*m*n)
		put := func(to *Memory, v []float32) {
			for i, f := range v {
				if bytes == 4 {
					to.F32()[i] = f
				} else {
					binary.LittleEndian.PutUint16(to.Bytes()[2*i:], uint16(math.Float32bits(f)>>16))
				}
			}
		}
		put(ma, a)
		put(mb, b)
		if _, err := k.Run(name, []KernelArg{{Memory: ma}, {Memory: mb}, {Memory: y}, {Bytes: u32s(m, n, kk, 0)}}, KernelGrid{Groups: [3]int{n / 8, m / 8}, Threads: [3]int{32}}, o); err != nil {
			t.Fatal(err)
		}
		for i := range m {
			for j := range n {
				var want float32
				for q := range kk {
					want += a[i*kk+q] * b[j*kk+q]
				}
				if got := y.F32()[i*n+j]; got != want+1 {
					t.Fatalf("%+v: %s[%d,%d]: got %v, want %v", o, name, i, j, got, want+1)
				}
			}
		}
		ma.Free()
		mb.Free()
		y.Free()
	}
}

// TestOrderChangesNoBit: sums that round give the same bits in every order, with any number of workers, with and without access hooks, and
// with both compilers.
func TestOrderChangesNoBit(t *testing.T) {
	const rows, n, m, cols, depth = 200, 515, 16, 24, 640
	r := rand.New(rand.NewPCG(9, 9))
	values := make([]float32, rows*n)
	for i := range values {
		values[i] = r.Float32()*2 - 1
	}
	var want []uint32
	for name, tc := range toolchains(t, "clang++-19", "g++") {
		for _, checked := range []bool{false, true} {
			k, err := tc.Compile(fixture(t, "basic.metal"), CompileOptions{Checked: checked})
			if err != nil {
				t.Fatal(err)
			}
			x, y, d := k.NewMemory("x", 4*rows*n), k.NewMemory("y", 4*rows), k.NewMemory("d", 4*m*cols)
			copy(x.F32(), values)
			for _, o := range orders {
				run(t, k, "row_sum", []KernelArg{{Memory: x}, {Memory: y}, {Bytes: u32s(n)}}, KernelGrid{Groups: [3]int{rows}, Threads: [3]int{128}}, o)
				run(t, k, "product_f32", []KernelArg{{Memory: x}, {Memory: x, Offset: 4 * m * depth}, {Memory: d}, {Bytes: u32s(m, cols, depth, 0)}}, KernelGrid{Groups: [3]int{cols / 8, m / 8}, Threads: [3]int{32}}, o)
				got := append(append([]uint32{}, y.U32()...), d.U32()...)
				if want == nil {
					want = got
				}
				for i := range want {
					if got[i] != want[i] {
						t.Fatalf("%s, hooks %v, %+v: result %d: got %08x, want %08x", name, checked, o, i, got[i], want[i])
					}
				}
			}
			x.Free()
			y.Free()
			d.Free()
		}
	}
}

// TestConstantsThatAKernelReads: a kernel asks for the constants that it or what it calls reads, and for no others.
func TestConstantsThatAKernelReads(t *testing.T) {
	const text = `#include <metal_stdlib>
using namespace metal;
constant int a [[function_constant(0)]];
constant int b [[function_constant(1)]];
constant int twice = b * 2;
static int helper() { return twice; }
kernel void none(device int* y [[buffer(0)]]) { y[0] = 1; }
kernel void direct(device int* y [[buffer(0)]]) { y[0] = a; }
kernel void derived(device int* y [[buffer(0)]]) { y[0] = helper(); }
`
	for _, tc := range toolchains(t) {
		k, err := tc.Compile(text, CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		y := k.NewMemory("y", 4)
		defer y.Free()
		a, b := KernelConstant{0, u32s(5)}, KernelConstant{1, u32s(6)}
		for _, c := range []struct {
			kernel    string
			constants []KernelConstant
			want      uint32
			missing   string
		}{
			{"none", nil, 1, ""},
			{"direct", []KernelConstant{a}, 5, ""},
			{"direct", []KernelConstant{b}, 0, "direct: function constant a (index 0) has no value"},
			{"derived", []KernelConstant{b}, 12, ""},
			{"derived", []KernelConstant{a}, 0, "derived: function constant b (index 1) has no value"},
			{"derived", nil, 0, "derived: function constant b (index 1) has no value"},
		} {
			_, err := k.Run(c.kernel, []KernelArg{{Memory: y}}, KernelGrid{}, KernelOptions{Constants: c.constants})
			switch {
			case c.missing != "":
				if err == nil || !strings.Contains(err.Error(), c.missing) {
					t.Errorf("%s with %d constants: got %v, want %q", c.kernel, len(c.constants), err, c.missing)
				}
			case err != nil:
				t.Errorf("%s: %v", c.kernel, err)
			case y.U32()[0] != c.want:
				t.Errorf("%s: got %d, want %d", c.kernel, y.U32()[0], c.want)
			}
		}
	}
}
