package standin

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pond/metal/kernels"
	"pond/metal/standin/mslpp"
)

// realConstants are the function constants of the real model, by index: one pipeline of each kernel.
var realConstants = []int32{8, 8, 1, 4, 64, 8, 4, 8, 0, 0, 0, 2048, 512, 512}

// cudaByClang compiles a rewritten text for the GPU with clang, which needs no CUDA: it returns the PTX. All kernels go into one file, each by its own name.
func cudaByClang(t *testing.T, tc *Toolchain, text string, settings ...string) string {
	t.Helper()
	clang, err := exec.LookPath("clang++-19")
	if err != nil {
		t.Skip("clang++-19 is not installed: it compiles for NVIDIA GPUs without CUDA")
	}
	dir := t.TempDir()
	stub, err := filepath.Abs("testdata/cuda_stub.h")
	if err != nil {
		t.Fatal(err)
	}
	source, ptx := filepath.Join(dir, "kernels.cu"), filepath.Join(dir, "kernels.ptx")
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_90a", "-std=c++20", "-O2", "-S", "-w", "-Wno-error", "-include", stub, "-I" + tc.shim, source, "-o", ptx}
	for _, m := range regexp.MustCompile(`#ifdef MSL_ENTRY_(\w+)`).FindAllStringSubmatch(text, -1) {
		args = append(args, "-DMSL_ENTRY_"+m[1]+"="+m[1])
	}
	if b, err := exec.Command(clang, append(args, settings...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	out, err := os.ReadFile(ptx)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func cudaRewritten(t *testing.T, source string) (*Toolchain, string) {
	t.Helper()
	tc, err := NewToolchain("", "")
	if err != nil {
		t.Skip(err)
	}
	text, err := tc.rewrite(source, CompileOptions{Language: 400}, mslpp.CUDA)
	if err != nil {
		t.Fatal(err)
	}
	return tc, text
}

// TestEveryKernelCompilesForCUDA: the texts that ship, for an NVIDIA GPU, with the constants of the real model; what a 16-byte load is in the text is one
// there.
func TestEveryKernelCompilesForCUDA(t *testing.T) {
	var settings []string
	for i, v := range realConstants {
		settings = append(settings, fmt.Sprintf("-DMSL_CONSTANT_%d=%d", i, v))
	}
	for _, c := range []struct {
		name, source string
		least        int
		want         []string
	}{
		{"matrices", kernels.Source(), 30, []string{"ld.global.v4.u32", "bar.sync", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "griddepcontrol.wait"}},
		{"tensors", kernels.TensorSource(), 5, []string{"ldmatrix.sync.aligned.m8n8.x4.shared.b16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tc, text := cudaRewritten(t, c.source)
			ptx := cudaByClang(t, tc, text, settings...)
			names := regexp.MustCompile(`#ifdef MSL_ENTRY_(\w+)`).FindAllStringSubmatch(text, -1)
			if len(names) < c.least {
				t.Errorf("got %d kernels, want %d or more", len(names), c.least)
			}
			for _, m := range names {
				if !strings.Contains(ptx, ".entry "+m[1]+"(") {
					t.Errorf("%s: no machine code", m[1])
				}
			}
			for _, want := range c.want {
				if !strings.Contains(ptx, want) {
					t.Errorf("the machine code has no %s", want)
				}
			}
		})
	}
}

// TestFixturesCompileForCUDA: what the tests of the processor's kernels use of the language, but for what this executor has not: Apple's layout of a simdgroup
// matrix, and tensors in registers.
func TestFixturesCompileForCUDA(t *testing.T) {
	absent := regexp.MustCompile(`(?m)^.*thread_elements.*$|(?s)kernel void fragments.*`)
	for _, f := range []string{"basic.metal", "kernels.metal", "builtins.metal"} {
		t.Run(f, func(t *testing.T) {
			tc, text := cudaRewritten(t, absent.ReplaceAllString(fixture(t, f), ""))
			cudaByClang(t, tc, text, "-DMSL_NAN_FIRST=1")
		})
	}
}

// TestCUDAChoosesAKernel: a compilation is told its kernel and the constants that this one reads, and no others, so that pipelines that differ in nothing are one.
func TestCUDAChoosesAKernel(t *testing.T) {
	_, text := cudaRewritten(t, "#include <metal_stdlib>\nusing namespace metal;\nconstant int n [[function_constant(3)]];\nconstant float s [[function_constant(1)]];\nconstant bool b [[function_constant(0)]];\n"+
		"kernel void k(device float* y [[buffer(0)]]) { for (int i = 0; i < n; ++i) y[i] = s; }\nkernel void l(device float* y [[buffer(0)]]) { y[0] = 1; }\n")
	constants := []KernelConstant{{3, []byte{0xff, 0xff, 0xff, 0xff}}, {1, []byte{0, 0, 0x80, 0x3f}}, {0, []byte{1}}}
	for _, c := range []struct{ kernel, want string }{
		{"k", "-DMSL_ENTRY_k=msl_kernel -DMSL_CONSTANT_1=0x3f800000ull -DMSL_CONSTANT_3=0xffffffffull"},
		{"l", "-DMSL_ENTRY_l=msl_kernel"},
	} {
		got, err := kernelSettings(text, c.kernel, constants)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.kernel, got, err, c.want)
		}
	}
	if _, err := kernelSettings(text, "m", nil); err == nil || !strings.Contains(err.Error(), "no kernel named m") {
		t.Errorf("got %v, want that there is no such kernel", err)
	}
}

// TestCUDACompiler: with nvcc, a kernel becomes machine code, once; a mistake that only the compiler sees is a *CompileError with its line.
func TestCUDACompiler(t *testing.T) {
	tc := privateToolchain(t)
	c, err := NewCUDA(tc, "")
	if errors.Is(err, ErrNoNVCC) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	lib, err := c.Build("#line 1 \"two.metal\"\n#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device float* y [[buffer(0)]], constant uint2& n [[buffer(1)]], uint i [[thread_position_in_grid]]) { y[i] = simd_sum(float(n.y)); }\n"+
		"kernel void l(device float* y [[buffer(0)]], device float& x [[buffer(1)]]) { y[0] = x; }\n", CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Kernel(lib, "k", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(first)
	if err != nil || !strings.HasPrefix(string(code), "\x7fELF") {
		t.Errorf("got %.4q, %v, want machine code", code, err)
	}
	if again, err := c.Kernel(lib, "k", []KernelConstant{{7, []byte{1}}}, false); err != nil || again != first {
		t.Errorf("got %s, %v, want the same file for a constant that is not read", again, err)
	}
	if other, err := c.Kernel(lib, "k", nil, true); err != nil || other == first {
		t.Errorf("got %s, %v, want other code with poison", other, err)
	}
	var bad *CompileError
	if _, err = c.Kernel(lib, "l", nil, false); !errors.As(err, &bad) || !strings.Contains(bad.Text, "a reference to device memory") {
		t.Errorf("got %v, want a compile error that says so", err)
	}
}

// TestCUDAHalves: the conversions that constants go through at compile time are those of the compiler's own half, for every half and for floats around
// every boundary between two.
func TestCUDAHalves(t *testing.T) {
	tc, err := NewToolchain("", "")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "halves.cpp"), filepath.Join(dir, "halves")
	text := "#define MSL_INLINE inline\n#define __host__\n#include \"msl_cuda_small.h\"\n#include <cstdio>\n#include <cstring>\n" + `
static unsigned bits(float f) { unsigned u; memcpy(&u, &f, 4); return u; }
static bool nan(unsigned b) { return (b & 0x7c00) == 0x7c00 && (b & 0x3ff); }
static int round(float f) {
  _Float16 h = (_Float16)f;
  unsigned short want, got = metal::msl_half_format::round(f);
  memcpy(&want, &h, 2);
  if (want == got || (nan(want) && nan(got))) return 0;
  printf("round(%a): got %04x, want %04x\n", f, got, want);
  return 1;
}
int main() {
  int bad = 0;
  for (unsigned b = 0; b < 65536 && bad < 9; b++) {
    unsigned short s = (unsigned short)b;
    _Float16 h;
    memcpy(&h, &s, 2);
    float want = (float)h, got = metal::msl_half_format::widen(s);
    if (bits(want) != bits(got) && !nan(b)) bad++, printf("widen(%04x): got %a, want %a\n", b, got, want);
    for (int d = -1; d <= 1; d++) {
      unsigned u = bits(want), halfway = u + 0x1000;
      float f, g;
      u += d; halfway += d;
      memcpy(&f, &u, 4); memcpy(&g, &halfway, 4);
      bad += round(f) + round(g);
    }
  }
  for (float f = 0x1p-30f; f < 0x1p20f; f *= 1.0009765f) bad += round(f) + round(-f);
  return bad != 0;
}
`
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if b, err := exec.Command(tc.cxx, "-std=c++20", "-O1", "-w", "-I"+tc.shim, source, "-o", program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if b, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, b)
	}
}
