package standin

import (
	"errors"
	"strings"
	"testing"
)

// TestStrictness: what Apple's compiler refuses is refused here, with the line. Each case is a text with one mistake on its second line; want is part of
// the message. With lint set, the mistake is one that only address spaces show.
func TestStrictness(t *testing.T) {
	cases := []struct {
		name, text, want string
		lint             bool
	}{
		{"no address space", "static float first(const float* p) { return p[0]; }", "pointer type must have explicit address space qualifier", false},
		{"no address space of a reference", "static void set(float& x) { x = 1; }", "reference type must have explicit address space qualifier", false},
		{"no address space of a local", "kernel void k(device float* x [[buffer(0)]]) {\n float* p = x; p[0] = 1; }", "pointer type must have explicit address space qualifier", false},
		{"no address space of a member", "struct view { float* p; };", "pointer type must have explicit address space qualifier", false},
		{"threadgroup for device", "static float first(device const float* p) { return p[0]; } kernel void k(device float* y [[buffer(0)]]) { threadgroup float s[4]; s[0] = 1;\n y[0] = first(s); }", "no matching function", true},
		{"device for threadgroup", "kernel void k(device float* y [[buffer(0)]]) {\n threadgroup float* p = y; p[0] = 1; }", "cannot initialize a variable of type 'threadgroup float *'", true},
		{"constant for device", "kernel void k(constant float* c [[buffer(0)]], device float* y [[buffer(1)]]) {\n device const float* p = c; y[0] = p[0]; }", "cannot initialize a variable of type 'device float const *'", true},
		{"store to constant", "kernel void k(constant float* c [[buffer(0)]]) {\n c[0] = 1.0f; }", "", false},
		{"cast forgets the space", "kernel void k(device float* y [[buffer(0)]]) {\n float4 v = *(float4*)y; y[0] = v.x; }", "pointer type must have explicit address space qualifier", false},
		{"matrix from private memory", "kernel void k(device float* y [[buffer(0)]]) { float a[64]; a[0] = y[0]; simdgroup_matrix<float, 8, 8> m;\n simdgroup_load(m, a, 8); simdgroup_store(m, y, 8); }", "no matching function for call to 'simdgroup_load'", true},
		{"atomic in constant memory", "kernel void k(constant atomic_uint& a [[buffer(0)]]) {\n atomic_fetch_add_explicit(&a, 1u, memory_order_relaxed); }", "atomic_fetch_add_explicit", false},
		{"tensor over the wrong space", "kernel void k(device half* a [[buffer(0)]]) { threadgroup half s[64]; s[0] = a[0];\n tensor<device half, dextents<int, 2>, tensor_inline> v(s, dextents<int, 2>(8, 8)); a[0] = half(v.get_extent(0)); }", "no matching constructor", true},

		{"double", "kernel void k(device float* y [[buffer(0)]]) {\n double d = 1; y[0] = d; }", "'double' is not supported", false},
		{"long long", "kernel void k(device int* y [[buffer(0)]]) {\n long long d = 1; y[0] = d; }", "'long long' is not supported", false},
		{"64-bit atomics", "kernel void k(\n device atomic_ulong* y [[buffer(0)]]) {}", "64-bit atomics are not supported", false},
		{"64-bit atomics by name", "kernel void k(device atomic<ulong>* y [[buffer(0)]]) {\n atomic_fetch_add_explicit(y, 1ul, memory_order_relaxed); }", "atomics hold int, uint, float or bool", false},
		{"initialised threadgroup variable", "kernel void k(device float* y [[buffer(0)]]) {\n threadgroup float s = 0.0f; y[0] = s; }", "cannot have an initialiser", false},
		{"threadgroup variable in a function", "static float f(float x) {\n threadgroup float s[4]; s[0] = x; return s[0]; }", "can only be declared in a kernel", false},
		{"overload by space", "static float f(device const float* p) { return p[0]; }\nstatic float f(threadgroup const float* p) { return p[1]; }", "no difference but the address space", false},
		{"unknown attribute", "kernel void k(device float* y [[buffer(0)]],\n uint i [[thread_position_in_world]]) { y[i] = 0; }", "unknown attribute 'thread_position_in_world'", false},
		{"no attribute", "kernel void k(device float* y [[buffer(0)]],\n uint i) { y[i] = 0; }", "parameter 'i' needs an attribute", false},
		{"index used twice", "kernel void k(device float* y [[buffer(0)]],\n device float* z [[buffer(0)]]) { y[0] = z[0]; }", "have the same index", false},
		{"index too high", "kernel void k(\n device float* y [[buffer(31)]]) { y[0] = 0; }", "must be below 31", false},
		{"positions of different shape", "kernel void k(device float* y [[buffer(0)]], uint2 i [[thread_position_in_grid]],\n uint n [[threads_per_threadgroup]]) { y[i.x] = n; }", "same number of components", false},
		{"signed position", "kernel void k(device float* y [[buffer(0)]], int i [[thread_position_in_grid]]) { y[i] = 0; }", "", false},
		{"bfloat from float", "kernel void k(device bfloat* y [[buffer(0)]], device const float* x [[buffer(1)]]) {\n y[0] = x[0]; }", "", false},
		{"simd sum of bfloat", "kernel void k(device bfloat* y [[buffer(0)]]) {\n y[0] = simd_sum(y[0]); }", "simd_sum", false},
		{"program scope variable", "\nfloat x = 1;", "must reside in constant address space", false},
		{"standard library", "kernel void k(device float* y [[buffer(0)]]) {\n y[0] = std::exp(y[0]); }", "C++ standard library", false},
		{"unknown header", "#include <vector>", "vector", false},
		{"unknown function", "kernel void k(device float* y [[buffer(0)]]) {\n y[0] = erfinv(y[0]); }", "erfinv", false},
		{"vectors of different type", "kernel void k(device float4* y [[buffer(0)]], device int4* x [[buffer(1)]]) {\n y[0] = y[0] + x[0]; }", "", false},
		{"goto", "kernel void k(device float* y [[buffer(0)]]) {\n goto end; end: y[0] = 1; }", "'goto' is not supported", false},
		{"vector index", "kernel void k(device float* y [[buffer(0)]],\n uint2 i [[thread_index_in_simdgroup]]) { y[i.x] = 1; }", "is a scalar", false},
	}
	for name, tc := range toolchains(t) {
		for _, c := range cases {
			if c.lint && !tc.clang {
				continue
			}
			t.Run(name+"/"+c.name, func(t *testing.T) {
				source := "#line 1 \"strict.metal\"\n#include <metal_stdlib>\n" + strings.Replace("using namespace metal; "+c.text, "using namespace metal; #", "#", 1) + "\n"
				check := func() error { _, err := tc.Build(source, CompileOptions{}); return err }
				if c.lint {
					if err := check(); err != nil {
						t.Fatalf("without address spaces the text is right, got %v", err)
					}
					check = func() error { return tc.Lint(source, CompileOptions{}) }
				}
				err := check()
				var bad *CompileError
				if !errors.As(err, &bad) {
					t.Fatalf("got %v, want a compile error", err)
				}
				line := 2 + strings.Count(strings.TrimSuffix(c.text, "\n"), "\n")
				if strings.Contains(c.text, "\n") && strings.Contains(c.text, "];\n") {
					line = 3
				}
				where := "strict.metal:" + string(rune('0'+line)) + ":"
				if !strings.Contains(bad.Text, where) || !strings.Contains(bad.Text, c.want) {
					t.Errorf("got %q, want %q at %s", bad.Text, c.want, where)
				}
			})
		}
	}
}

// TestLintPassesWhatIsRight: the fixtures of the other tests, and with them everything they use.
func TestLintPassesWhatIsRight(t *testing.T) {
	for _, tc := range toolchains(t) {
		for _, f := range []string{"basic.metal", "kernels.metal"} {
			if err := tc.Lint(fixture(t, f), CompileOptions{}); err != nil && !errors.Is(err, ErrNoLint) {
				t.Errorf("%s: %v", f, err)
			}
		}
	}
}
