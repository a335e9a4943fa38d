package mslpp

import (
	"fmt"
	"slices"
	"strings"
)

// needSpace checks that a pointer or reference declared in [a, b) names its address space, which Metal demands.
func (r *rewriter) needSpace(a, b int) {
	for i := a; i < b; i++ {
		switch {
		case r.ts[i].dropped:
		case r.isOneOf(i, spaceWords...):
			return
		case r.is(i, "<"):
			if c := r.closeAngle(i); c > 0 && c < b {
				i = c
			}
		case r.isOneOf(i, "=", "{"):
			return
		case r.isOneOf(i, "*", "&"):
			what := "pointer"
			if r.is(i, "&") {
				what = "reference"
			}
			r.fail(i, "%s type must have explicit address space qualifier", what)
			return
		case r.isOneOf(i, "[", "("):
			i = r.mate[i]
		}
	}
}

// body walks a function's body: variables in threadgroup memory, and pointers without an address space. k is nil outside kernels.
func (r *rewriter) body(open, close int, k *kernel) {
	for i := open; i < close; i++ {
		if r.ts[i].dropped || r.ts[i].kind == line {
			continue
		}
		if r.attribute(i) {
			e := r.mate[i]
			r.attributes(i, e+1)
			i = e
			continue
		}
		r.cast(i)
		statement := r.isOneOf(r.prev(i), ";", "{", "}", ")") || r.is(r.prev(i), "static") && r.isOneOf(r.prev(r.prev(i)), ";", "{", "}")
		if !statement || r.ts[i].kind != ident {
			continue
		}
		if r.is(i, "threadgroup") {
			r.threadgroupVariable(i, k)
			continue
		}
		r.localPointer(i)
	}
}

// cast recognises `(T*)` and `…_cast<T*>(`, where nothing else can end in a star, without an address space.
func (r *rewriter) cast(i int) {
	switch {
	case r.is(i, "(") && r.isOneOf(r.mate[i]-1, "*") && !r.is(r.prev(i), "sizeof"):
		r.needSpace(i+1, r.mate[i])
	case r.isOneOf(i, "static_cast", "reinterpret_cast", "const_cast") && r.is(i+1, "<"):
		if c := r.closeAngle(i + 1); c > 0 {
			r.needSpace(i+2, c)
		}
	}
}

// localPointer recognises `T* p = …;` and `T& p = …;` at the start of a statement, without an address space.
func (r *rewriter) localPointer(i int) {
	if r.isOneOf(i, "return", "auto", "using", "typedef", "delete", "case", "else", "do", "goto") || r.isOneOf(i, spaceWords...) {
		return
	}
	j := i
	for r.isOneOf(j, "const", "volatile", "typename") {
		j++
	}
	if r.isOneOf(j, spaceWords...) || r.is(j, "auto") {
		return
	}
	for r.ts[j].kind == ident {
		j++
		if r.is(j, "<") {
			c := r.closeAngle(j)
			if c < 0 {
				return
			}
			j = c + 1
		}
		if r.is(j, "::") {
			j++
			continue
		}
		break
	}
	for r.is(j, "const") {
		j++
	}
	if r.isOneOf(j, "*", "&") && r.ts[j+1].kind == ident && r.isOneOf(j+2, "=", ";", ",") && !r.isOneOf(j+1, spaceWords...) {
		r.needSpace(i, j+1)
	}
}

// threadgroupVariable rewrites `threadgroup T a[N], b;` at i. A pointer or reference to threadgroup memory is left alone.
func (r *rewriter) threadgroupVariable(i int, k *kernel) {
	j := i + 1
	for r.isOneOf(j, "const", "volatile", "struct", "typename", "static") || r.ts[j].kind == line {
		j++
	}
	if r.is(j, "alignas") {
		r.fail(j, "alignas on a threadgroup variable is not supported here; each begins at a multiple of 16")
		return
	}
	from := j
	for r.isOneOf(j, "unsigned", "signed") {
		j++
	}
	for r.ts[j].kind == ident {
		j++
		if r.is(j, "<") {
			c := r.closeAngle(j)
			if c < 0 {
				return
			}
			j = c + 1
		}
		if !r.is(j, "::") {
			break
		}
		if j++; r.is(j, "template") {
			j++
		}
	}
	if r.ts[j].kind != ident {
		return // a pointer or a reference
	}
	if k == nil {
		r.fail(i, "variables in the threadgroup address space can only be declared in a kernel")
		return
	}
	typ := r.source(from, j)
	var sb strings.Builder
	for {
		name := r.ts[j].s
		dims := j + 1
		for j++; r.is(j, "["); {
			if r.attribute(j) {
				r.attributes(j, r.mate[j]+1)
			}
			j = r.mate[j] + 1
		}
		if !r.isOneOf(j, ",", ";") {
			r.fail(j, "threadgroup variable '%s' cannot have an initialiser: Metal does not run it", name)
			return
		}
		r.unique++
		alias := fmt.Sprintf("mslA%d", r.unique)
		fmt.Fprintf(&sb, "typedef %s %s%s; ", typ, alias, r.source(dims, j))
		switch r.target {
		case Host:
			fmt.Fprintf(&sb, "%s& %s = msl::threadgroupVariable<%s, MslTag%s, %d>(%q); ", alias, name, alias, k.tag(), k.slots, name)
		case CUDA:
			fmt.Fprintf(&sb, "MSL_THREADGROUP(%s, %s) ", alias, name)
		default:
			fmt.Fprintf(&sb, "threadgroup %s& %s = *(threadgroup %s*)0; ", alias, name, alias)
		}
		if k.slots++; k.slots > maxSlots {
			r.fail(i, "more than %d threadgroup variables in one kernel", maxSlots)
			return
		}
		if r.is(j, ";") {
			break
		}
		j++
	}
	if p := r.prev(i); r.is(p, "static") {
		r.ts[p].dropped = true
	}
	r.drop(i, j+1)
	r.ts[i].before = sb.String()
}

// maxSlots is how many threadgroup variables a kernel may have; it equals MSL_MAX_SLOTS in msl_host.h.
const maxSlots = 64

// spaces replaces the address spaces that are left. For Lint they are macros; else they vanish and constant is const.
func (r *rewriter) spaces() {
	for i := range r.ts {
		t := &r.ts[i]
		if t.kind != ident || t.dropped {
			continue
		}
		switch t.s {
		case "device", "thread", "threadgroup":
			if r.target != Lint && !r.isOneOf(r.prev(i), ".", "->", "::") {
				t.dropped = true
			}
		case "constant":
			r.constantWord(i)
		case "is_function_constant_defined":
			if r.is(i+1, "(") {
				if n := r.ts[i+2].s; r.constants[n] {
					t.s, r.ts[i+2].s = "", "mslDefined_"+n
				} else {
					r.fail(i+2, "'%s' is no function constant", n)
				}
			}
		default:
			if r.target == Lint && r.is(i+1, "(") && vectorRE.MatchString(strings.TrimPrefix(t.s, "packed_")) && !r.is(r.prev(i), "operator") {
				t.s = "msl_make<" + t.s + ">"
			}
			if r.target == Lint && t.s == "vec" && r.is(i+1, "<") {
				if c := r.closeAngle(i + 1); c > 0 && r.is(r.next(c+1), "(") {
					t.s, r.ts[c].s = "msl_make<vec", ">>"
				}
			}
		}
	}
}

// constantWord makes one `constant` a `const`, unless it stands beside another.
func (r *rewriter) constantWord(i int) {
	near := []int{r.prev(i), i + 1}
	if slices.ContainsFunc(near, func(j int) bool { return r.is(j, "constexpr") }) {
		r.ts[i].dropped = true
		return
	}
	if r.target == Lint {
		return
	}
	if slices.ContainsFunc(near, func(j int) bool { return r.is(j, "const") && !r.ts[j].dropped }) {
		r.ts[i].dropped = true
		return
	}
	r.ts[i].s = "const"
}

// programConstant makes `constant float table[4] = {…}` a static constant.
func (r *rewriter) programConstant(d shape, at int, isConstexpr bool) {
	for i := d.head; i < d.end && i != d.equals; i++ {
		if r.is(i, "static") {
			r.ts[i].dropped = true
		}
	}
	static := "static "
	if r.target == CUDA && r.isArray(d) {
		static = "MSL_TABLE " // an array that code indexes lies in memory, which is the host's unless the text says otherwise
	}
	if r.target != Lint || isConstexpr {
		if r.ts[at].dropped = true; isConstexpr {
			r.ts[at].before = static
		} else {
			r.ts[at].before = static + "const "
			for i := d.head; i < d.end && i != d.equals; i++ {
				if r.is(i, "const") {
					r.ts[i].dropped = true
				}
			}
		}
		return
	}
	r.ts[at].before = "static "
}

// fromConstants reports whether [a, b) mentions a function constant, or what depends on one.
func (r *rewriter) fromConstants(a, b int) bool {
	for i := a; i < b; i++ {
		if r.ts[i].kind == ident && r.constants[r.ts[i].s] {
			return true
		}
	}
	return false
}

// functionConstant makes a constant that is given a value before a dispatch a variable, registered in place; for CUDA a constant expression of what
// the compiler is told.
func (r *rewriter) functionConstant(d shape, at, name int, index string, declared bool) {
	n := r.ts[name].s
	typ := strings.TrimSpace(strings.TrimPrefix(r.source(at+1, name), "const "))
	r.constants[n] = true
	if declared {
		r.declared[n] = true
		if !isIndex(index) {
			r.fail(name, "function constant '%s': the index must be a number, got '%s'", n, index)
			return
		}
		r.indexOf[n] = index
	}
	var sb strings.Builder
	if r.target != CUDA {
		fmt.Fprintf(&sb, "static %s %s; ", typ, n)
		if declared {
			fmt.Fprintf(&sb, "static bool mslDefined_%s; ", n)
		}
	} else if declared {
		fmt.Fprintf(&sb, "static constexpr %s %s = msl::constantOf<%s>(MSL_CONSTANT_%s); static constexpr bool mslDefined_%s = MSL_DEFINED_%s;", typ, n, typ, index, n, index)
	}
	if r.target == Host && declared {
		fmt.Fprintf(&sb, "static msl::ConstantRegistration<%s> mslConstant_%s{%q, %s, &%s, &mslDefined_%s, %v};", typ, n, n, index, n, n, r.asked[n])
	}
	if !declared {
		r.mention(n, d.equals+1, d.end)
		value := r.source(d.equals+1, d.end)
		for c := range r.asked {
			value = strings.ReplaceAll(value, "is_function_constant_defined("+c+")", "mslDefined_"+c)
		}
		switch r.target {
		case Host:
			fmt.Fprintf(&sb, "static msl::DerivedConstant mslDerived_%s{[] { %s = %s; }};", n, n, value)
		case CUDA:
			fmt.Fprintf(&sb, "static constexpr %s %s = %s;", typ, n, value)
		}
	}
	r.drop(d.start, d.end+1)
	r.ts[d.start].before = sb.String()
}

func isIndex(s string) bool {
	return s != "" && len(s) <= 5 && strings.Trim(s, "0123456789") == ""
}
