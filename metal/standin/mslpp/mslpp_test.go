package mslpp

import (
	"errors"
	"strings"
	"testing"
)

func host(t *testing.T, src string) string {
	t.Helper()
	out, err := Rewrite(src, "a.metal", Host)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return out
}

// TestRewrite: pieces of Metal and what C++ gets.
func TestRewrite(t *testing.T) {
	cases := []struct{ name, src, want string }{
		{"literals are floats", "constant constexpr float a = 1.0; constant constexpr float b = 2e3 + 0x1p-2 + 3.f;", "static  constexpr float a = 1.0f; static  constexpr float b = 2e3f + 0x1p-2f + 3.f;"},
		{"integers stay", "constant constexpr uint n = 0xfeu + 12 + 1'000;", "0xfeu + 12 + 1'000"},
		{"half and bfloat literals", "constant constexpr half h = 1.5h; constant constexpr bfloat b = 2bf;", "half h = half(1.5f); static  constexpr bfloat b = bfloat(2.0f);"},
		{"a table", "constant float t[2] = {1, 2};", "static const  float t[2] = {1, 2};"},
		{"spaces vanish, constant is const", "static float f(device const float* p, constant float& q, threadgroup float* r, thread float& s);", "static float f( const float* p, const float& q,  float* r,  float& s);"},
		{"no const twice", "static float f(constant const float* p);", "static float f( const float* p);"},
		{"threadgroup variables", "kernel void k(device float* y [[buffer(0)]]) { threadgroup float a[2][3], b; y[0] = b; }", `typedef float mslA2[2][3]; mslA2& a = msl::threadgroupVariable<mslA2, MslTag1, 0>("a"); typedef float mslA3; mslA3& b = msl::threadgroupVariable<mslA3, MslTag1, 1>("b");`},
		{"a pointer to threadgroup memory", "kernel void k(threadgroup float* s [[threadgroup(2)]]) { threadgroup float* p = s + 1; *p = 0; }", "float* p = s + 1;"},
		{"an entry point", "kernel void k(device float* y [[buffer(3)]], uint i [[thread_position_in_grid]]) { y[i] = 0; }", "k(msl::BufferArg{3}, msl::thread_position_in_grid());"},
		{"needs no stop", "kernel void k(device float* y [[buffer(0)]]) { y[0] = 0; }", "1, 0, false, msl::tagOf"},
		{"needs to stop, by way of another", "static void f() { threadgroup_barrier(mem_flags::mem_none); } kernel void k(device float* y [[buffer(0)]]) { f(); y[0] = 0; }", "1, 0, true, msl::tagOf"},
		{"most threads", "[[kernel, max_total_threads_per_threadgroup(128)]] void k(device float* y [[buffer(0)]]) { y[0] = 0; }", "1, 128, false,"},
		{"templates by their host name", "template <typename T, int N> [[kernel]] void k(device T* y [[buffer(0)]]) { y[N] = 0; }\ntemplate [[host_name(\"k_f\")]] [[kernel]] decltype(k<float, 4>) k<float, 4>;", `{"k_f", `},
		{"namespaces", "namespace a { namespace b { kernel void k(device float* y [[buffer(0)]]) { y[0] = 0; } } }", "a::b::k(msl::BufferArg{0})"},
		{"function constants", "constant bool on [[function_constant(7)]];", `static bool on; static bool mslDefined_on; static msl::ConstantRegistration<bool> mslConstant_on{"on", 7, &on, &mslDefined_on, false};`},
		{"what follows from them", "constant int a [[function_constant(0)]]; constant int b = is_function_constant_defined(a) ? a * 2 : 1;", "static int b; static msl::DerivedConstant mslDerived_b{[] { b = mslDefined_a ? a * 2 : 1; }};"},
		{"constants that a kernel reads, by way of others too", "constant int a [[function_constant(0)]]; constant int b [[function_constant(1)]]; constant int c [[function_constant(2)]]; constant int twice = b * 2; struct s { int get() { return twice; } }; static int f() { s x; return x.get(); } kernel void k(device int* y [[buffer(0)]]) { y[0] = f() + a; }", `mslReads0[] = {"a", "b", nullptr};`},
		{"swizzles that are used", "static float f(float4 v) { return v.zyx.x; }", "#define MSL_SWIZZLES_3 msl_swizzle<T, 3, 2, 1, 0> zyx;"},
		{"comments and strings", "// device\n/* kernel\n */ constant constexpr int a = 1;", "\n \n static  constexpr int a = 1;"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := host(t, c.src); !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant %q in it", got, c.want)
			}
		})
	}
}

// TestCUDA: what CUDA gets where it differs from C++ for the processor.
func TestCUDA(t *testing.T) {
	cases := []struct{ name, src, want string }{
		{"functions are the device's", "static inline float f(float x) { return x; }", "MSL_DEVICE static inline float f("},
		{"templates too", "template <typename T> static T f(T x) { return x; }", "template <typename T> MSL_DEVICE static T f("},
		{"prototypes too", "static float f(device const float* p);", "MSL_DEVICE static float f( const float* p);"},
		{"members too", "struct s { int get() { return 1; } };", "MSL_DEVICE int get()"},
		{"a number is a constant expression", "constant constexpr uint n = 4;", "static  constexpr uint n = 4;"},
		{"a table lies in the device's memory", "constant float t[2] = {1, 2};", "MSL_TABLE const  float t[2] = {1, 2};"},
		{"threadgroup variables", "kernel void k(device float* y [[buffer(0)]]) { threadgroup float a[2][3]; y[0] = a[0][0]; }", "typedef float mslA2[2][3]; MSL_THREADGROUP(mslA2, a)"},
		{"function constants", "constant int on [[function_constant(7)]];", "static constexpr int on = msl::constantOf<int>(MSL_CONSTANT_7); static constexpr bool mslDefined_on = MSL_DEFINED_7;"},
		{"those without a value", "constant int on [[function_constant(7)]];", "#ifdef MSL_CONSTANT_7\n#define MSL_DEFINED_7 true\n#else\n#define MSL_CONSTANT_7 0\n#define MSL_DEFINED_7 false\n#endif\n"},
		{"what follows from them", "constant int a [[function_constant(0)]]; constant int b = is_function_constant_defined(a) ? a * 2 : 1;", "static constexpr int b = mslDefined_a ? a * 2 : 1;"},
		{"an entry", "kernel void k(device float* y [[buffer(3)]], constant uint& n [[buffer(1)]], threadgroup float* s [[threadgroup(2)]], uint i [[thread_position_in_grid]]) { y[i] = n; s[0] = 0; }",
			"#ifdef MSL_ENTRY_k // constants\n# 1 \"a.metal\"\nextern \"C\" __global__ void MSL_ENTRY_k(const __grid_constant__ msl::Block<decltype(&k)> block) { msl::begin(); " +
				"k(block.buffer<0, 3>(), block.buffer<1, 1>(), block.threadgroup<2, 2>(), msl::thread_position_in_grid()); }\n#endif\n"},
		{"most threads", "[[kernel, max_total_threads_per_threadgroup(128)]] void k(device float* y [[buffer(0)]]) { y[0] = 0; }", "__launch_bounds__(128) MSL_ENTRY_k("},
		{"the constants that it reads", "constant int a [[function_constant(9)]]; constant int b [[function_constant(4)]]; static int f() { return b; } kernel void k(device int* y [[buffer(0)]]) { y[0] = f(); }", "#ifdef MSL_ENTRY_k // constants 4\n"},
		{"templates by their host name", "template <typename T, int N> [[kernel]] void k(device T* y [[buffer(0)]]) { y[N] = 0; }\ntemplate [[host_name(\"k_f\")]] [[kernel]] decltype(k<float, 4>) k<float, 4>;", "MSL_ENTRY_k_f(const __grid_constant__ msl::Block<decltype(&k<float, 4>)> block)"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Rewrite(c.src, "a.metal", CUDA)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant %q in it", got, c.want)
			}
		})
	}
}

// TestLinesStayLines: whatever is rewritten, a message about line n is about line n of the text.
func TestLinesStayLines(t *testing.T) {
	src := "# 10 \"b.metal\"\nkernel void k(device float* y [[buffer(0)]],\n  uint i\n  [[thread_position_in_grid]]) {\n  threadgroup\n  float s[4];\n  s[0] = 1.0;\n  y[i] = s[0];\n}\n"
	body, _, _ := strings.Cut(host(t, src), "# 1 \"kernels\"")
	_, body, _ = strings.Cut(body, "# 10 \"b.metal\"\n")
	if got, want := strings.Count(body, "\n"), strings.Count(src, "\n"); got != want {
		t.Errorf("got %d line ends, want %d:\n%s", got, want, body)
	}
	for i, want := range []string{"void k(", "uint i", "", "", "", "s[0] = 1.0f;", "y[i]"} {
		if got := strings.Split(body, "\n")[i]; !strings.Contains(got, want) {
			t.Errorf("line %d: got %q, want %q", i, got, want)
		}
	}
}

// TestErrorsNameTheirLine, and all of them are told at once.
func TestErrorsNameTheirLine(t *testing.T) {
	_, err := Rewrite("# 1 \"c.metal\"\nstatic float f(float* p);\n# 100 \"d.metal\"\nstruct s { float& r; };\nkernel int k() { double d; }\n", "", Host)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *Error", err)
	}
	want := []string{
		"c.metal:1: error: pointer type must have explicit address space qualifier",
		"d.metal:100: error: reference type must have explicit address space qualifier",
		"d.metal:101: error: kernel 'k' must return void",
		"d.metal:101: error: 'double' is not supported in Metal",
	}
	if got := strings.Join(e.Lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// FuzzRewrite: no text makes the pre-pass panic or hang; what it says about a text at fault is an *Error.
func FuzzRewrite(f *testing.F) {
	for _, s := range []string{"", "kernel void k(", "template <", "}{", "constant int a[[function_constant(", "threadgroup float a[3", "[[", "(T*)", "struct {", "template [[host_name(\"x\")]] kernel void f<int>();",
		"kernel void k(device float* y [[buffer(0)]]) { threadgroup float a, b[4]; (float*)y; }", "# 1 \"x", "0x1p", "'", "/*", "operator<(", "namespace", "using a = b<c>;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, target := range []Target{Host, Lint, CUDA} {
			if _, err := Rewrite(src, "fuzz.metal", target); err != nil {
				var e *Error
				if !errors.As(err, &e) {
					t.Errorf("got %T %v, want an *Error", err, err)
				}
			}
		}
	})
}
