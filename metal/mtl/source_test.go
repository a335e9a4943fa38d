package mtl

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// The source of this package against its table: every message must exist for the class it is sent to, with as many arguments, of the
// same kinds, and be sent by the way that fits its result.

// kind is how a C type travels.
type kind string

const (
	nothing   kind = "nothing"
	integer   kind = "integer"  // NSUInteger, enums, BOOL, SEL
	boolean   kind = "boolean"  // BOOL
	objective kind = "object"   // id
	address   kind = "address"  // C pointers, blocks
	floating  kind = "floating" // CFTimeInterval
	sized     kind = "MTLSize"
	ranged    kind = "NSRange" // two integers
)

func kindOf(ctype string) kind {
	switch {
	case ctype == "void":
		return nothing
	case ctype == "BOOL":
		return boolean
	case ctype == "MTLSize":
		return sized
	case ctype == "NSRange":
		return ranged
	case ctype == "CFTimeInterval", ctype == "double", ctype == "float":
		return floating
	case strings.HasPrefix(ctype, "MTLAutoreleased"), strings.HasSuffix(ctype, "* *"), strings.Contains(ctype, "const *"), strings.Contains(ctype, "(^)"), ctype == "const char *", strings.HasSuffix(ctype, "void *"):
		return address
	case strings.HasPrefix(ctype, "id"), strings.HasSuffix(ctype, "*"), ctype == "instancetype", ctype == "ObjectType", ctype == "NSErrorDomain", ctype == "dispatch_data_t":
		return objective
	}
	return integer
}

// protocols are what a class answers to besides its own.
func protocols(owner string) []string {
	switch owner {
	case "MTLBuffer":
		return []string{owner, "MTLResource", "NSObject"}
	case "MTLComputeCommandEncoder":
		return []string{owner, "MTLCommandEncoder", "NSObject"}
	}
	return []string{owner, "NSObject"}
}

// className says which class a Go type is.
func className(goType string) string {
	switch goType {
	case "String", "Array", "Data", "URL", "Error":
		return "NS" + goType
	case "object":
		return "NSObject"
	}
	return "MTL" + goType
}

// message is a message found in the source.
type message struct {
	where    string
	owner    string
	class    bool // sent to the class itself
	selector string
	args     []kind
	result   kind // as the way of sending and what becomes of it say
}

// messages reads the messages out of Go source.
func messages(t *testing.T, sources map[string]string) []message {
	t.Helper()
	var out []message
	fset := token.NewFileSet()
	for name, text := range sources {
		f, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			locals := variables(fn)
			var stack []ast.Node
			ast.Inspect(fn, func(n ast.Node) bool {
				if n == nil {
					stack = stack[:len(stack)-1]
					return true
				}
				if c, ok := n.(*ast.CallExpr); ok {
					if m, ok := asMessage(c, stack, locals); ok {
						m.where = fset.Position(c.Pos()).String()
						out = append(out, m)
					}
				}
				stack = append(stack, n)
				return true
			})
		}
	}
	return out
}

// variables says which class the names in a function are of: the receiver and parameters by their types; `e` for an NSError.
func variables(fn *ast.FuncDecl) map[string]string {
	out := map[string]string{}
	add := func(fields *ast.FieldList) {
		if fields == nil {
			return
		}
		for _, f := range fields.List {
			name := strings.TrimPrefix(exprText(f.Type), "*")
			for _, id := range f.Names {
				out[id.Name] = className(name)
			}
		}
	}
	add(fn.Recv)
	add(fn.Type.Params)
	if fn.Name.Name == "errorOf" {
		out["e"] = "NSError"
	}
	return out
}

func exprText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return "*" + exprText(e.X)
	case *ast.SelectorExpr:
		return exprText(e.X) + "." + e.Sel.Name
	case *ast.CallExpr:
		var args []string
		for _, a := range e.Args {
			args = append(args, exprText(a))
		}
		return exprText(e.Fun) + "(" + strings.Join(args, ", ") + ")"
	case *ast.UnaryExpr:
		return e.Op.String() + exprText(e.X)
	case *ast.IndexExpr:
		return exprText(e.X) + "[" + exprText(e.Index) + "]"
	case *ast.CompositeLit:
		return exprText(e.Type) + "{}"
	}
	return fmt.Sprintf("%T", e)
}

// asMessage recognises the ways of sending: send, hot, sized, sendFloat and sendSize.
func asMessage(c *ast.CallExpr, parents []ast.Node, locals map[string]string) (m message, ok bool) {
	fun, isSel := c.Fun.(*ast.SelectorExpr)
	if !isSel || len(c.Args) == 0 {
		return m, false
	}
	receiver, args := exprText(fun.X), c.Args
	switch fun.Sel.Name {
	case "send", "hot", "sized":
		m.selector = exprText(args[0])
		args = args[1:]
	case "sendFloat", "sendSize":
		if len(args) != 2 {
			return m, false
		}
		receiver = strings.TrimSuffix(exprText(args[0]), ".id")
		m.selector = strings.TrimSuffix(exprText(args[1])[strings.Index(exprText(args[1]), "[")+1:], "]")
		args = nil
	default:
		return m, false
	}
	if !strings.HasPrefix(m.selector, "sel_") {
		return m, false
	}
	if i := strings.Index(receiver, "rt.class(class_"); i >= 0 {
		m.class, m.owner = true, strings.TrimSuffix(receiver[i+len("rt.class(class_"):], ")")
	} else {
		m.owner = locals[receiver]
	}
	for _, a := range args {
		m.args = append(m.args, kindOfArg(exprText(a), a, fun.Sel.Name == "sized"))
	}
	if fun.Sel.Name == "hot" { // always three; those beyond the selector's are zeros
		for len(m.args) > 0 && exprText(args[len(m.args)-1]) == exprText(&ast.BasicLit{}) {
			m.args = m.args[:len(m.args)-1]
		}
	}
	m.result = kindOfResult(fun.Sel.Name, parents)
	return m, true
}

func kindOfArg(text string, e ast.Expr, size bool) kind {
	switch {
	case size:
		return sized
	case strings.Contains(text, "unsafe.Pointer"):
		return address
	case strings.HasSuffix(text, ".id"):
		return objective
	case strings.HasPrefix(text, "yes("):
		return boolean
	case strings.HasPrefix(text, "no"): // a named zero: noDeallocator, noReflection
		return address
	}
	return integer
}

// kindOfResult says what the source takes the result for, by what is around the call.
func kindOfResult(way string, parents []ast.Node) kind {
	switch way {
	case "hot", "sized":
		return nothing
	case "sendFloat":
		return floating
	case "sendSize":
		return sized
	}
	switch p := parents[len(parents)-1].(type) {
	case *ast.ExprStmt:
		return nothing
	case *ast.CallExpr:
		switch name := exprText(p.Fun); {
		case name == "isTrue":
			return boolean
		case strings.HasSuffix(name, "goString"), strings.HasSuffix(name, "pointer"):
			return address
		case strings.HasSuffix(name, ".object"), strings.HasSuffix(name, ".made"), strings.HasSuffix(name, ".errorOf"):
			return objective
		}
	}
	return integer
}

// violations compares messages with a table.
func violations(ms []message, table []method) []string {
	var bad []string
	for _, m := range ms {
		row, ok := rowOf(m, table)
		if !ok {
			bad = append(bad, fmt.Sprintf("%s: %s does not take %s by the table", m.where, m.owner, m.selector))
			continue
		}
		var want []kind
		for _, a := range row.args {
			switch k := kindOf(a); {
			case k == ranged:
				want = append(want, integer, integer)
			default:
				want = append(want, k)
			}
		}
		if !slices.Equal(m.args, want) {
			bad = append(bad, fmt.Sprintf("%s: %s: got arguments %v, want %v", m.where, m.selector, m.args, want))
		}
		if want := kindOf(row.returns); m.result != want && !(row.text == "retain" && m.result == nothing) && !(m.selector == "sel_bytes" && m.result == integer) {
			bad = append(bad, fmt.Sprintf("%s: %s: got the result as %s, want %s", m.where, m.selector, m.result, want))
		}
	}
	return bad
}

func rowOf(m message, table []method) (method, bool) {
	for _, owner := range protocols(m.owner) {
		for _, row := range table {
			if row.owner == owner && constant(row.text) == m.selector && (row.kind == '+') == m.class {
				return row, true
			}
		}
	}
	return method{}, false
}

// constant is the name of a selector's constant.
func constant(text string) string {
	return "sel_" + strings.ReplaceAll(strings.TrimSuffix(text, ":"), ":", "_")
}

func sources(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".go") && !strings.HasSuffix(f.Name(), "_test.go") {
			text, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			out[f.Name()] = string(text)
		}
	}
	return out
}

func TestEveryMessageIsInTheTable(t *testing.T) {
	ms := messages(t, sources(t))
	if len(ms) < 100 {
		t.Fatalf("got %d messages in the source, want all of them: the test is not reading it", len(ms))
	}
	for _, v := range violations(ms, methods) {
		t.Error(v)
	}
	// and nothing in the table that is not sent
	for _, row := range methods {
		if !slices.ContainsFunc(ms, func(m message) bool {
			return m.selector == constant(row.text) && slices.Contains(protocols(m.owner), row.owner)
		}) {
			t.Errorf("%s %s: nothing sends it", row.owner, row.text)
		}
	}
}

func TestPlantedMistakesInMessagesAreFound(t *testing.T) {
	const head = "package mtl\n"
	for want, text := range map[string]string{
		"does not take sel_commit":    "func (q CommandQueue) x() { q.send(sel_commit) }",
		"got arguments [integer]":     "func (b Buffer) x() { b.send(sel_setLabel, uintptr(1)) }",
		"got arguments []":            "func (b Buffer) x() { b.send(sel_setLabel) }",
		"got the result as integer":   "func (b CommandBuffer) x() float64 { return float64(b.send(sel_GPUStartTime)) }",
		"want MTLSize":                "func (d Device) x() int { return int(d.send(sel_maxThreadsPerThreadgroup)) }",
		"want boolean":                "func (d Device) x() int { return int(d.send(sel_hasUnifiedMemory)) }",
		"got the result as floating":  "func (b CommandBuffer) x() { b.rt.sendFloat(b.id, b.rt.sels[sel_status]) }",
		"NSString does not take":      "func (rt *Runtime) x() { rt.class(class_NSString).send(sel_UTF8String) }",
		"got arguments [object]":      "func (d Device) x(o object) { d.rt.object(d.send(sel_newBufferWithLength_options, o.id)) }",
		"sel_memoryBarrierWithScope:": "func (e ComputeCommandEncoder) x(b Buffer) { e.hot(sel_memoryBarrierWithScope, b.id, 0, 0) }",
	} {
		found := violations(messages(t, map[string]string{"x.go": head + text}), methods)
		if len(found) != 1 || !strings.Contains(found[0], want) {
			t.Errorf("%s: got %q, want one violation with %q", text, found, want)
		}
	}
}

func TestTableIsWhole(t *testing.T) {
	seen := map[selector]string{}
	for _, m := range methods {
		if text, ok := seen[m.sel]; ok && text != m.text {
			t.Errorf("one constant for %s and %s", text, m.text)
		}
		seen[m.sel] = m.text
		if n := strings.Count(m.text, ":"); n != len(m.args) {
			t.Errorf("%s: got %d argument types, want %d", m.text, len(m.args), n)
		}
		if m.from == unverified && docs[m.owner] == "" {
			t.Errorf("%s %s: unverified without its Apple page", m.owner, m.text)
		}
	}
	if len(seen) != int(numSelectors) {
		t.Errorf("got %d selectors in the table, want %d", len(seen), numSelectors)
	}
}

// Go methods that return something owned are named by Apple's rule, so that a reader sees who releases.
func TestOwnedResultsAreNew(t *testing.T) {
	for name, text := range sources(t) {
		f, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok || !strings.HasPrefix(id.Name, "sel_") {
					return true
				}
				for _, m := range methods {
					if constant(m.text) == id.Name && m.owned() != strings.HasPrefix(fn.Name.Name, "New") && m.text != "retain" {
						t.Errorf("%s: %s sends %s: a name begins with New if, and only if, the caller must release", name, fn.Name.Name, m.text)
					}
				}
				return true
			})
		}
	}
}
