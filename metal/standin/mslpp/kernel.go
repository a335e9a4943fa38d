package mslpp

import (
	"fmt"
	"strconv"
	"strings"
)

// kernel is one kernel function, or one template of them.
type kernel struct {
	name       string
	template   bool
	args       []argument
	maxThreads string // as written, "" when absent
	slots      int    // threadgroup variables so far
	id         int    // numbers the tag type of its threadgroup variables
	at         int    // token of its parameters, for messages
}

// argument is one parameter of a kernel.
type argument struct {
	name  string
	role  string // "buffer", "threadgroup", or a built-in attribute
	index int
}

// entry is one name that the host can ask for.
type entry struct {
	host string // what the host calls it
	call string // the function, with namespaces and template arguments
	k    *kernel
}

func (k *kernel) tag() string { return strconv.Itoa(k.id) }

const maxBuffers, maxThreadgroupArgs = 31, 8

// kernel handles the definition of a kernel.
func (r *rewriter) kernel(d shape, in scopeOf, name, maxThreads string) {
	r.unique++
	k := &kernel{name: name, template: d.template, maxThreads: maxThreads, id: r.unique, at: d.params}
	if in.class {
		r.fail(d.params, "kernel '%s' cannot be a member of a struct", name)
	}
	if r.kernels[name] != nil {
		r.fail(r.prev(d.params), "kernel '%s' is defined twice; kernels cannot be overloaded", name)
	}
	usesBuffer, usesThreadgroup := map[int]string{}, map[int]string{}
	components, first := 0, "" // of position attributes, which must agree
	for _, p := range r.params(d.params) {
		a, ok := r.argument(p)
		if !ok {
			continue
		}
		switch a.role {
		case "buffer":
			r.claim(p, usesBuffer, a, maxBuffers)
		case "threadgroup":
			r.claim(p, usesThreadgroup, a, maxThreadgroupArgs)
		default:
			n := r.components(p)
			if builtins[a.role] < n {
				r.fail(p.from, "[[%s]] is a scalar", a.role)
			} else if builtins[a.role] == 3 {
				if first == "" {
					components, first = n, a.role
				}
				if n != components {
					r.fail(p.from, "position attributes must have the same number of components: [[%s]] has %d, [[%s]] has %d", first, components, a.role, n)
				}
			}
		}
		k.args = append(k.args, a)
	}
	r.returnsVoid(d, name)
	head := d.head
	for r.ts[head].dropped || r.ts[head].kind == line {
		head++
	}
	r.ts[head].before = "MSL_KERNEL "
	if r.target == Host {
		r.ts[d.start].before = fmt.Sprintf("struct MslTag%d {}; ", k.id) + r.ts[d.start].before
	}
	r.body(d.body, d.end, k)
	r.kernels[name] = k
	if !d.template {
		r.entries = append(r.entries, entry{name, in.name + name, k})
	}
}

func (r *rewriter) returnsVoid(d shape, name string) {
	for i := d.head; i < d.params; i++ {
		if r.is(i, "void") {
			return
		}
	}
	r.fail(d.head, "kernel '%s' must return void", name)
}

// claim records an argument's index and refuses one used twice or out of range.
func (r *rewriter) claim(p param, used map[int]string, a argument, limit int) {
	if other, ok := used[a.index]; ok {
		r.fail(p.from, "%s and %s have the same index [[%s(%d)]]", other, a.name, a.role, a.index)
	}
	if a.index < 0 || a.index >= limit {
		r.fail(p.from, "[[%s(%d)]]: the index must be below %d", a.role, a.index, limit)
	}
	used[a.index] = a.name
}

// argument reads one parameter of a kernel and removes its attributes.
func (r *rewriter) argument(p param) (argument, bool) {
	a := argument{index: -1}
	pointer, space := false, ""
	for i := p.from; i < p.to && !r.attribute(i); i++ {
		switch {
		case r.isOneOf(i, "*", "&"):
			pointer = true
		case r.is(i, "<"):
			if c := r.closeAngle(i); c > 0 {
				i = c
			}
		case r.is(i, "["):
			r.fail(i, "kernel parameter cannot be an array; use a pointer")
			i = r.mate[i]
		case r.isOneOf(i, spaceWords...):
			space = r.ts[i].s
		case r.ts[i].kind == ident:
			a.name = r.ts[i].s
		}
	}
	r.needSpace(p.from, p.to)
	at := p.from
	words := r.attributes(p.from, p.to)
	for role, index := range words {
		_, builtin := builtins[role]
		if !builtin && role != "buffer" && role != "threadgroup" {
			continue
		}
		if a.role != "" {
			r.fail(at, "parameter '%s' has two attributes: %s and %s", a.name, min(a.role, role), max(a.role, role))
			return a, false
		}
		a.role = role
		if builtin {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(index))
		if err != nil {
			r.fail(at, "[[%s(%s)]]: the index must be a number", role, index)
			return a, false
		}
		a.index = n
	}
	switch {
	case a.role == "" && pointer:
		r.fail(at, "parameter '%s' needs [[buffer(n)]] or [[threadgroup(n)]]", a.name)
		return a, false
	case a.role == "":
		r.fail(at, "parameter '%s' needs an attribute", a.name)
		return a, false
	case a.role == "buffer" && space != "device" && space != "constant" && pointer:
		if space != "" {
			r.fail(at, "[[buffer]] parameter '%s' must be device or constant, not %s", a.name, space)
		}
		return a, space == ""
	case a.role == "threadgroup" && space != "threadgroup":
		r.fail(at, "[[threadgroup]] parameter '%s' must be in the threadgroup address space", a.name)
		return a, false
	case !pointer && a.index >= 0:
		r.fail(at, "[[%s]] parameter '%s' must be a pointer or a reference", a.role, a.name)
		return a, false
	case pointer && a.index < 0:
		r.fail(at, "parameter '%s' with [[%s]] cannot be a pointer or a reference", a.name, a.role)
		return a, false
	}
	return a, true
}

// components returns how many a parameter of a position attribute has, by its type's name.
func (r *rewriter) components(p param) int {
	for i := p.from; i < p.to; i++ {
		if r.ts[i].kind == ident && vectorRE.MatchString(r.ts[i].s) {
			return int(r.ts[i].s[len(r.ts[i].s)-1] - '0')
		}
	}
	return 1
}

// instantiate handles `template [[host_name("x")]] [[kernel]] decltype(f<…>) f<…>;` and the form that repeats the parameters.
func (r *rewriter) instantiate(start, e int, in scopeOf) {
	words := r.attributes(start, e)
	host, ok := words["host_name"]
	if !ok {
		r.fail(start, "an explicit instantiation of a kernel needs [[host_name(\"…\")]]")
		return
	}
	host = strings.ReplaceAll(strings.Trim(host, `"`), `" "`, "")
	for i := e - 1; i > start; i-- {
		k := r.kernels[r.ts[i].s]
		if r.ts[i].kind != ident || k == nil || !r.is(i+1, "<") {
			continue
		}
		if c := r.closeAngle(i + 1); c > 0 {
			for _, x := range r.entries {
				if x.host == host {
					r.fail(start, "kernel '%s' is defined twice", host)
				}
			}
			r.entries = append(r.entries, entry{host, in.name + r.ts[i].s + r.source(i+1, c+1), k})
			return
		}
	}
	r.fail(start, "host_name(\"%s\"): no kernel template found", host)
}

// register writes the entry point of a kernel. Its arguments are proxies that convert to whatever the parameters are.
func (r *rewriter) register(i int, e entry) string {
	var call, info []string
	for _, a := range e.k.args {
		switch a.role {
		case "buffer":
			call = append(call, fmt.Sprintf("msl::BufferArg{%d}", a.index))
			info = append(info, fmt.Sprintf("{%q, 0, %d}", a.name, a.index))
		case "threadgroup":
			call = append(call, fmt.Sprintf("msl::ThreadgroupArg{%d}", a.index))
			info = append(info, fmt.Sprintf("{%q, 1, %d}", a.name, a.index))
		default:
			call = append(call, "msl::"+a.role+"()")
			info = append(info, fmt.Sprintf("{%q, 2, 0}", a.name))
		}
	}
	most := e.k.maxThreads
	if most == "" {
		most = "0"
	}
	if len(info) == 0 {
		info = []string{"{nullptr, 2, 0}"}
	}
	var reads strings.Builder
	for _, name := range r.reads(e.k.name) {
		fmt.Fprintf(&reads, "%q, ", name)
	}
	t := r.ts[e.k.at]
	return fmt.Sprintf("# %d %q\n", t.line, t.file) + fmt.Sprintf("static void mslRun%d() { %s(%s); } static const msl::ArgName mslArgs%d[] = {%s}; static const char* const mslReads%d[] = {%snullptr}; static msl::KernelRegistration mslKernel%d{%q, mslRun%d, mslArgs%d, %d, %s, %v, msl::tagOf<MslTag%s%s>(), mslReads%d, &%s};\n",
		i, e.call, strings.Join(call, ", "), i, strings.Join(info, ", "), i, reads.String(), i, e.host, i, i, len(e.k.args), most, r.synchronises(e.k.name, map[string]bool{}), e.space(), e.k.tag(), i, e.call)
}

// space returns the namespaces of the entry's function.
func (e entry) space() string {
	head, _, _ := strings.Cut(e.call, "<")
	if i := strings.LastIndex(head, "::"); i >= 0 {
		return head[:i+2]
	}
	return ""
}
