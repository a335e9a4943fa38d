package mslpp

import (
	"slices"
	"strings"
)

// scopeOf says where a declaration stands.
type scopeOf struct {
	class bool   // a member of a struct
	name  string // namespaces around it, "a::b::"
}

// scope walks the declarations in [i, end).
func (r *rewriter) scope(i, end int, in scopeOf) {
	for i = r.next(i); i < end; i = r.next(i) {
		switch {
		case r.isOneOf(i, ";", "}"):
			i++
		case r.isOneOf(i, "public", "private", "protected") && r.is(i+1, ":"):
			i += 2
		case r.is(i, "namespace") || r.is(i, "inline") && r.is(i+1, "namespace"):
			i = r.namespace(i, in)
		case r.is(i, "template") && !r.is(r.next(i+1), "<"):
			e := r.semicolon(i)
			r.instantiate(i, e, in)
			r.drop(i, e+1)
			i = e + 1
		default:
			i = r.declaration(i, end, in)
		}
	}
}

func (r *rewriter) namespace(i int, in scopeOf) int {
	start := i
	if i = r.find(i, "{", ";"); !r.is(i, "{") { // an alias
		return i + 1
	}
	if name := r.source(start, i); !strings.HasPrefix(name, "inline ") {
		if words := strings.Fields(name); len(words) > 1 {
			in.name += words[1] + "::"
		}
	}
	r.scope(i+1, r.mate[i], in)
	return r.mate[i] + 1
}

// semicolon returns the end of the statement that begins at i.
func (r *rewriter) semicolon(i int) int {
	for ; i < len(r.ts)-1 && r.ts[i].kind != end && !r.is(i, ";"); i++ {
		if r.isOneOf(i, "(", "[", "{") {
			i = r.mate[i]
		}
	}
	return i
}

// shape is what a look at a declaration tells before anything is rewritten.
type shape struct {
	start, head int // with and without the template heads
	template    bool
	params      int // "(" of a function's parameters, or -1
	body        int // "{" of a function's body, or -1
	equals      int // "=" of an initialiser, or -1
	end         int // ";" or the body's "}"
}

// declaration handles one declaration and returns the index behind it.
func (r *rewriter) declaration(i, end int, in scopeOf) int {
	d := shape{start: i, head: i, params: -1, body: -1, equals: -1}
	for r.is(d.head, "template") {
		d.template = true
		c := r.closeAngle(r.next(d.head + 1))
		if c < 0 {
			r.fail(d.head, "template parameters are never closed")
			return end
		}
		d.head = r.next(c + 1)
		if r.is(d.head, "requires") {
			if d.head = r.find(d.head, "("); !r.is(d.head, "(") {
				return end
			}
			d.head = r.next(r.mate[d.head] + 1)
		}
	}
	class := r.classKey(d.head)
	for d.end = d.head; d.end < end && !r.is(d.end, ";"); d.end++ {
		j := d.end
		switch {
		case r.is(j, "=") && d.equals < 0 && !r.is(r.prev(j), "operator"):
			d.equals = j
		case r.is(j, "("):
			if d.params < 0 && d.equals < 0 && r.calledHere(j) {
				d.params = j
			}
			d.end = r.mate[j]
		case r.is(j, "["):
			d.end = r.mate[j]
		case r.is(j, "{"):
			if d.params >= 0 && d.equals < 0 {
				d.body, d.end = j, r.mate[j]
				r.function(d, in)
				return d.end + 1
			}
			if class && d.params < 0 && d.equals < 0 && !r.is(r.classAt(d.head), "enum") {
				r.attributes(d.head, j)
				r.scope(j+1, r.mate[j], scopeOf{class: true, name: in.name})
			}
			d.end = r.mate[j]
		}
	}
	r.variable(d, in, class)
	return d.end + 1
}

// classAt skips what may stand before struct, class, union or enum.
func (r *rewriter) classAt(i int) int {
	for i < len(r.ts)-1 && r.ts[i].kind == line || r.attribute(i) || r.isOneOf(i, "typedef", "static", "const", "constant", "constexpr") {
		if r.attribute(i) {
			i = r.mate[i]
		}
		i++
	}
	return i
}

func (r *rewriter) classKey(i int) bool {
	return r.isOneOf(r.classAt(i), "struct", "class", "union", "enum")
}

// calledHere reports whether the "(" at j opens a function's parameters: it follows a name, an operator's name or a template
// argument list.
func (r *rewriter) calledHere(j int) bool {
	p := r.prev(j)
	if p < 0 {
		return false
	}
	if r.ts[p].kind == ident {
		return !r.isOneOf(p, "__attribute__", "decltype", "alignas", "static_assert", "noexcept", "explicit", "requires")
	}
	for k := p; k >= 0 && k > p-5; k-- {
		if r.isOneOf(k, ";", "{", "}") {
			break
		}
		if r.is(k, "operator") {
			return true
		}
	}
	return r.is(p, ">")
}

// functionName returns the name before the parameters; for a specialisation f<int>(…) it is f.
func (r *rewriter) functionName(params int) string {
	p := r.prev(params)
	if !r.is(p, ">") {
		return r.ts[p].s
	}
	for depth := 0; p >= 0; p-- {
		if r.is(p, ">") {
			depth++
		} else if r.is(p, "<") {
			if depth--; depth == 0 {
				return r.ts[r.prev(p)].s
			}
		}
	}
	return ""
}

// function handles a definition with a body.
func (r *rewriter) function(d shape, in scopeOf) {
	isKernel := false
	for i := d.head; i < d.params; i++ {
		if r.is(i, "kernel") {
			isKernel = true
			if !r.attributed(i, d.head) {
				r.ts[i].dropped = true
			}
		}
	}
	name := r.functionName(d.params)
	words := r.attributes(d.start, d.params)
	r.attributes(r.mate[d.params]+1, d.body)
	r.mention(name, d.body, d.end)
	if !isKernel {
		r.onDevice(d)
	} else {
		r.kernel(d, in, name, words["max_total_threads_per_threadgroup"])
		return
	}
	ps := r.params(d.params)
	for _, p := range ps {
		r.attributes(p.from, p.to)
		r.needSpace(p.from, p.to)
	}
	r.body(d.body, d.end, nil)
	for i := r.mate[d.params] + 1; i < d.body; i++ {
		if r.isOneOf(i, spaceWords...) {
			r.fail(i, "member functions of one address space are not supported here")
		}
	}
	r.overload(d, in, name)
}

// attributed reports whether token i stands inside an attribute list that begins at or after from.
func (r *rewriter) attributed(i, from int) bool {
	for j := from; j < i; j++ {
		if r.attribute(j) && r.mate[j] > i {
			return true
		}
	}
	return false
}

// overload refuses two definitions that differ only in address spaces: a C++ compiler sees them as one.
func (r *rewriter) overload(d shape, in scopeOf, name string) {
	if in.class || r.target == Lint {
		return
	}
	var key strings.Builder
	key.WriteString(in.name)
	for i := d.start; i < d.body; i++ {
		if t := r.ts[i]; t.kind != line && !t.dropped && !r.isOneOf(i, spaceWords...) && !r.isOneOf(i, "const", "static", "inline") {
			key.WriteString(t.s + " ")
		}
	}
	if first, ok := r.signatures[key.String()]; ok {
		r.fail(r.prev(d.params), "'%s' is defined at %s too, with no difference but the address space; give the functions different names", name, first)
		return
	}
	r.signatures[key.String()] = r.ts[d.params].pos()
}

// param is the token range of one parameter.
type param struct{ from, to int }

// params splits the parameter list that opens at i.
func (r *rewriter) params(i int) []param {
	var out []param
	e := r.mate[i]
	from := i + 1
	for j := from; j <= e; j++ {
		switch {
		case r.is(j, "<") && r.ts[r.prev(j)].kind == ident:
			if c := r.closeAngle(j); c > 0 && c < e {
				j = c
			}
		case j < e && r.isOneOf(j, "(", "[", "{"):
			j = r.mate[j]
		case j == e || r.is(j, ","):
			if r.source(from, j) != "" && r.source(from, j) != "void" {
				out = append(out, param{from, j})
			}
			from = j + 1
		}
	}
	return out
}

// mention records the words of a body under the function's name.
func (r *rewriter) mention(name string, a, b int) {
	m := r.mentions[name]
	if m == nil {
		m = map[string]bool{}
		r.mentions[name] = m
	}
	for i := a; i < b; i++ {
		if r.ts[i].kind == ident {
			m[r.ts[i].s] = true
		}
	}
}

// synchronises reports whether a function, or one it may call, uses what makes threads wait for each other.
func (r *rewriter) synchronises(fn string, seen map[string]bool) bool {
	if seen[fn] {
		return false
	}
	seen[fn] = true
	for w := range r.mentions[fn] {
		if r.mentions[w] != nil {
			if r.synchronises(w, seen) {
				return true
			}
			continue
		}
		if w == "threadgroup_barrier" || w == "tensor_ops" || strings.HasPrefix(w, "matmul2d") || strings.HasPrefix(w, "simd") || strings.HasPrefix(w, "quad_") || strings.Contains(w, "cooperative_tensor") {
			return true
		}
	}
	return false
}

// reads lists the function constants that a function, or one that it may call, mentions.
func (r *rewriter) reads(fn string) []string {
	seen := map[string]bool{}
	var out []string
	var walk func(word string)
	walk = func(word string) {
		if seen[word] {
			return
		}
		seen[word] = true
		if r.declared[word] {
			out = append(out, word)
		}
		for w := range r.mentions[word] {
			walk(w)
		}
	}
	walk(fn)
	slices.Sort(out)
	return out
}

// variable handles a declaration without a function body: a variable, an alias, a prototype, a type.
func (r *rewriter) variable(d shape, in scopeOf, class bool) {
	words := r.attributes(d.start, d.end)
	if d.params >= 0 && d.equals < 0 { // a prototype
		r.onDevice(d)
		for _, p := range r.params(d.params) {
			r.needSpace(p.from, p.to)
		}
		return
	}
	if r.isOneOf(d.head, "using", "typedef", "static_assert", "friend") {
		return
	}
	if in.class && !class {
		if last := d.end; d.equals < 0 || d.equals > last {
			r.needSpace(d.head, last)
		}
	}
	if in.class || d.template {
		return
	}
	at, isConstexpr, name, stop := -1, false, -1, d.end
	if d.equals >= 0 {
		stop = d.equals
	}
	for i := d.head; i < stop; i++ {
		switch {
		case r.is(i, "constant") && at < 0:
			at = i
		case r.is(i, "constexpr"):
			isConstexpr = true
		case r.is(i, "<") && r.closeAngle(i) > 0:
			i = r.closeAngle(i)
		case r.isOneOf(i, "[", "(", "{"):
			stop = i
		case r.ts[i].kind == ident && !r.ts[i].dropped:
			name = i
		}
	}
	if name < 0 || class && d.equals < 0 {
		return
	}
	index, isFunctionConstant := words["function_constant"]
	switch {
	case at < 0 && isFunctionConstant:
		r.fail(name, "function constant '%s' must be declared constant", r.ts[name].s)
	case at < 0 && !isConstexpr:
		r.fail(name, "program scope variable '%s' must reside in constant address space", r.ts[name].s)
	case at < 0:
	case isFunctionConstant && d.equals >= 0:
		r.fail(name, "function constant '%s' must not have an initialiser", r.ts[name].s)
	case isFunctionConstant || d.equals >= 0 && !isConstexpr && r.fromConstants(d.equals, d.end):
		r.functionConstant(d, at, name, index, isFunctionConstant)
	default:
		r.programConstant(d, at, isConstexpr)
	}
}
