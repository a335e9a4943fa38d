package mslpp

import (
	"regexp"
	"strings"
)

// What Apple's compiler refuses, word by word. A C++ compiler would accept most of it.
var refused = map[string]string{
	"double":                 "'double' is not supported in Metal",
	"__float128":             "'__float128' is not supported in Metal",
	"goto":                   "'goto' is not supported in Metal",
	"try":                    "exceptions are not supported in Metal",
	"catch":                  "exceptions are not supported in Metal",
	"throw":                  "exceptions are not supported in Metal",
	"new":                    "'new' is not supported in Metal",
	"delete":                 "'delete' is not supported in Metal",
	"dynamic_cast":           "'dynamic_cast' is not supported in Metal",
	"typeid":                 "'typeid' is not supported in Metal",
	"thread_local":           "'thread_local' is not supported in Metal",
	"virtual":                "virtual functions are not supported in Metal",
	"asm":                    "'asm' is not supported in Metal",
	"co_await":               "coroutines are not supported in Metal",
	"co_yield":               "coroutines are not supported in Metal",
	"co_return":              "coroutines are not supported in Metal",
	"atomic_long":            "64-bit atomics are not supported: only min and max of atomic_ulong exist, on Apple family 8 and later",
	"atomic_ulong":           "64-bit atomics are not supported: only min and max of atomic_ulong exist, on Apple family 8 and later",
	"vertex":                 "only kernels are supported here, not vertex functions",
	"fragment":               "only kernels are supported here, not fragment functions",
	"visible":                "visible functions are not supported here",
	"texture1d":              "textures are not supported here",
	"texture2d":              "textures are not supported here",
	"texture3d":              "textures are not supported here",
	"texture_buffer":         "textures are not supported here",
	"sampler":                "samplers are not supported here",
	"imageblock":             "imageblocks are not supported here",
	"threadgroup_imageblock": "imageblocks are not supported here",
	"ray_data":               "the ray_data address space is not supported here",
	"object_data":            "the object_data address space is not supported here",
	"std":                    "the C++ standard library is not available in Metal",
}

var spaceWords = []string{"device", "constant", "threadgroup", "thread"}

var vectorRE = regexp.MustCompile(`^(bool|char|uchar|short|ushort|int|uint|long|ulong|float|half|bfloat)[234]$`)

// words looks at single tokens: refuses what Metal does not have, and gives literals their Metal type.
func (r *rewriter) words() {
	for i := range r.ts {
		t := &r.ts[i]
		switch t.kind {
		case ident:
			member := r.is(i-1, ".") || r.is(i-1, "->")
			if why, ok := refused[t.s]; ok && !member && !(t.s == "delete" && r.is(i-1, "=")) && !r.named(i) {
				r.fail(i, "%s", why)
			}
			if t.s == "long" && r.is(i+1, "long") {
				r.fail(i, "'long long' is not supported in Metal; 'long' has 64 bits")
			}
			if t.s == "is_function_constant_defined" && r.is(i+1, "(") {
				r.asked[r.ts[i+2].s] = true
			}
		case number:
			r.literal(t)
		}
	}
}

// named reports whether word i is declared or used as a plain name of the text: a parameter called sampler is no sampler.
func (r *rewriter) named(i int) bool {
	switch r.ts[i].s {
	case "vertex", "fragment", "visible", "sampler":
		return r.ts[i+1].kind != ident
	case "std":
		return !r.is(i+1, "::")
	}
	return false
}

// literal makes an unsuffixed floating literal a float, as Metal has no double, and spells 1.0h and 1.0bf for C++.
func (r *rewriter) literal(t *token) {
	l := strings.ToLower(t.s)
	hex := strings.HasPrefix(l, "0x")
	if hex && !strings.Contains(l, "p") {
		return
	}
	float := func(s string) string {
		if !strings.ContainsAny(s, ".eEpP") {
			s += ".0"
		}
		return s + "f"
	}
	switch {
	case !hex && strings.HasSuffix(l, "bf"):
		t.s = "bfloat(" + float(t.s[:len(t.s)-2]) + ")"
	case !hex && strings.HasSuffix(l, "h"):
		t.s = "half(" + float(t.s[:len(t.s)-1]) + ")"
	case strings.ContainsAny(l, ".p") || !hex && strings.Contains(l, "e"):
		if !strings.HasSuffix(l, "f") {
			t.s += "f"
		}
	}
}

// Attributes of parameters that a kernel may have: what the number of components may be (1: scalar only).
var builtins = map[string]int{
	"thread_position_in_grid":             3,
	"thread_position_in_threadgroup":      3,
	"threadgroup_position_in_grid":        3,
	"threads_per_grid":                    3,
	"threads_per_threadgroup":             3,
	"threadgroups_per_grid":               3,
	"dispatch_threads_per_threadgroup":    3,
	"thread_index_in_threadgroup":         1,
	"thread_index_in_simdgroup":           1,
	"thread_index_in_quadgroup":           1,
	"simdgroup_index_in_threadgroup":      1,
	"quadgroup_index_in_threadgroup":      1,
	"simdgroups_per_threadgroup":          1,
	"quadgroups_per_threadgroup":          1,
	"dispatch_simdgroups_per_threadgroup": 1,
	"dispatch_quadgroups_per_threadgroup": 1,
	"threads_per_simdgroup":               1,
	"thread_execution_width":              1,
}

// Other attributes that mean nothing for running: accepted and removed.
var ignored = map[string]bool{
	"kernel": true, "host_name": true, "max_total_threads_per_threadgroup": true, "function_constant": true, "buffer": true, "threadgroup": true,
	"unroll": true, "maybe_unused": true, "nodiscard": true, "fallthrough": true, "likely": true, "unlikely": true, "clang": true, "loop": true,
	"always_inline": true, "noinline": true, "gnu": true, "aligned": true, "user": true,
}

// attributes reads the attribute lists in [a, b) and removes them. It returns their words with their arguments.
func (r *rewriter) attributes(a, b int) map[string]string {
	out := map[string]string{}
	for i := a; i < b; i++ {
		if r.ts[i].dropped || !r.attribute(i) {
			continue
		}
		e := r.mate[i]
		for j := i + 2; j < e-1; j++ {
			if r.ts[j].kind != ident {
				continue
			}
			n, arg := r.ts[j].s, ""
			if _, ok := builtins[n]; !ok && !ignored[n] {
				r.fail(j, "unknown attribute '%s'", n)
			}
			if r.is(j+1, "(") {
				arg = r.source(j+2, r.mate[j+1])
				j = r.mate[j+1]
			}
			out[n] = arg
		}
		r.drop(i, e+1)
		i = e
	}
	return out
}
