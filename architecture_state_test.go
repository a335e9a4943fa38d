package main

import (
	"fmt"
	"go/ast"
	"go/token"
)

// The rule of state: a package-level variable is a constant that Go cannot spell `const` (a table, an error value, a compiled
// pattern, an embedded file). So it has a value where it is declared, its type holds no lock, channel or counter, and
// nothing in its package assigns to it, changes an element of it or takes its address. The check reads syntax only: a
// pointer hidden in a struct literal escapes it, and review has to see that.

// stateful are the packages whose types exist to be changed.
var stateful = map[string]bool{"sync": true, "atomic": true}

// lazy are the functions of sync that make a constant on first use.
var lazy = map[string]bool{"OnceValue": true, "OnceValues": true}

func checkState(t *sourceTree) []string {
	vars := map[string]map[string]token.Pos{} // dir -> name -> place
	var bad []string
	for _, f := range t.goFiles(false) {
		for _, d := range f.file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.VAR {
				continue
			}
			for _, spec := range decl.Specs {
				v := spec.(*ast.ValueSpec)
				embedded := hasEmbed(decl.Doc) || hasEmbed(v.Doc)
				for i, name := range v.Names {
					if name.Name == "_" || mutable[f.dir+"."+name.Name] != "" {
						continue
					}
					where := fmt.Sprintf("%s: var %s", t.fset.Position(name.Pos()), name.Name)
					switch {
					case len(v.Values) == 0 && !embedded:
						bad = append(bad, where+": has no value, so something must change it later")
					case v.Type != nil && isStateful(v.Type):
						bad = append(bad, where+": its type exists to be changed")
					case i < len(v.Values) && isState(v.Values[i]):
						bad = append(bad, where+": holds a lock, channel, counter or pointer to one value")
					}
					if vars[f.dir] == nil {
						vars[f.dir] = map[string]token.Pos{}
					}
					vars[f.dir][name.Name] = name.Pos()
				}
			}
		}
	}
	for _, f := range t.goFiles(false) {
		if len(vars[f.dir]) > 0 {
			bad = append(bad, writes(t, f, vars[f.dir])...)
		}
	}
	return bad
}

func hasEmbed(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if len(c.Text) > 11 && c.Text[:11] == "//go:embed " {
			return true
		}
	}
	return false
}

// isStateful reports whether a type is a channel, comes from sync or sync/atomic, or is an array or map of such.
func isStateful(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ChanType:
		return true
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		return ok && stateful[x.Name]
	case *ast.IndexExpr:
		return isStateful(e.X)
	case *ast.StarExpr:
		return isStateful(e.X)
	case *ast.ArrayType:
		return isStateful(e.Elt)
	case *ast.MapType:
		return isStateful(e.Value)
	}
	return false
}

// isState reports whether a value is made to be changed: make, new, &T{...}, or a literal of a stateful type.
func isState(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		switch fn := e.Fun.(type) {
		case *ast.Ident:
			return fn.Name == "make" || fn.Name == "new"
		case *ast.SelectorExpr:
			x, ok := fn.X.(*ast.Ident)
			return ok && stateful[x.Name] && !lazy[fn.Sel.Name]
		}
	case *ast.UnaryExpr:
		return e.Op == token.AND
	case *ast.CompositeLit:
		return e.Type != nil && isStateful(e.Type)
	}
	return false
}

// writes finds every place of a file that changes one of its package's variables. Names that a function declares anew
// (parameters, results, locals) hide the package's.
func writes(t *sourceTree, f source, vars map[string]token.Pos) []string {
	var bad []string
	for _, d := range f.file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		local := declared(fn)
		report := func(e ast.Expr, what string) {
			if id := root(e); id != nil && !local[id.Name] {
				if _, ours := vars[id.Name]; ours {
					bad = append(bad, fmt.Sprintf("%s: %s package variable %s", t.fset.Position(e.Pos()), what, id.Name))
				}
			}
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, l := range n.Lhs {
						report(l, "changes")
					}
				}
			case *ast.IncDecStmt:
				report(n.X, "changes")
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					report(n.X, "takes the address of")
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (id.Name == "delete" || id.Name == "clear" || id.Name == "copy") {
					report(n.Args[0], "changes")
				}
			}
			return true
		})
	}
	return bad
}

// root is the identifier that an element, field or pointer expression starts from.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// declared collects the names a function introduces itself.
func declared(fn *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	fields := func(l *ast.FieldList) {
		if l == nil {
			return
		}
		for _, f := range l.List {
			for _, n := range f.Names {
				names[n.Name] = true
			}
		}
	}
	fields(fn.Recv)
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			fields(n.Params)
			fields(n.Results)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, l := range n.Lhs {
					if id, ok := l.(*ast.Ident); ok {
						names[id.Name] = true
					}
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				for _, e := range []ast.Expr{n.Key, n.Value} {
					if id, ok := e.(*ast.Ident); ok {
						names[id.Name] = true
					}
				}
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		}
		return true
	})
	return names
}
