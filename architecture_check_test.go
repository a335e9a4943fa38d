package main

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// source is one file of the tree; file is nil unless it is Go.
type source struct {
	path  string // slash path from the module root
	dir   string // "." for the root
	lines int
	file  *ast.File
}

func (s source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

// sourceTree is the parsed module.
type sourceTree struct {
	module string
	fset   *token.FileSet
	files  []source
}

// readTree parses every source under fsys. Folders named testdata, hidden folders and Python's are not part of the law.
func readTree(fsys fs.FS, module string) (*sourceTree, error) {
	t := &sourceTree{module: module, fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != "." && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "build") {
				return fs.SkipDir
			}
			return nil
		}
		if !slices.Contains(lengthExtensions, path.Ext(name)) {
			return nil
		}
		text, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		s := source{path: p, dir: path.Dir(p), lines: strings.Count(string(text), "\n")}
		if path.Ext(name) == ".go" {
			if s.file, err = parser.ParseFile(t.fset, p, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
				return err
			}
		}
		t.files = append(t.files, s)
		return nil
	})
	return t, err
}

// packages lists the folders with Go files that are not tests.
func (t *sourceTree) packages() []string {
	seen := map[string]bool{}
	for _, f := range t.goFiles(false) {
		seen[f.dir] = true
	}
	var out []string
	for d := range seen {
		out = append(out, d)
	}
	sort.Strings(out)
	return out
}

func (t *sourceTree) goFiles(tests bool) []source {
	var out []source
	for _, f := range t.files {
		if f.file != nil && (tests || !f.test()) {
			out = append(out, f)
		}
	}
	return out
}

// check is one rule; run returns its violations as sentences.
type check struct {
	name string
	run  func(*sourceTree) []string
}

var checks = []check{
	{"imports", checkImports},
	{"libraries", checkLibraries},
	{"package doc", checkDocs},
	{"file length", checkLength},
	{"package names", checkNames},
	{"build tags", checkTags},
	{"init", checkInit},
	{"package state", checkState},
}

// within reports whether dir matches a pattern of layers.
func within(dir, pattern string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return dir == base || strings.HasPrefix(dir, base+"/")
	}
	return dir == pattern
}

func withinAny(dir string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return within(dir, p) })
}

func rowFor(rows []layer, dir string) (layer, bool) {
	for _, r := range rows {
		if within(dir, r.pkg) {
			return r, true
		}
	}
	return layer{}, false
}

func importPaths(f source) []string {
	var out []string
	for _, im := range f.file.Imports {
		p, err := strconv.Unquote(im.Path.Value)
		if err != nil {
			panic("architecture: internal error: " + err.Error()) // the parser accepted it
		}
		out = append(out, p)
	}
	return out
}

// ownDir turns an import path of the module into a folder; ok is false for anything else.
func (t *sourceTree) ownDir(importPath string) (string, bool) {
	if importPath == t.module {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.module+"/")
}

func checkImports(t *sourceTree) []string {
	var bad []string
	for _, f := range t.goFiles(true) {
		row, ok := rowFor(layers, f.dir)
		if !ok {
			bad = append(bad, fmt.Sprintf("%s: package %s has no row in layers", f.path, f.dir))
			continue
		}
		may := row.may
		if f.test() {
			extra, _ := rowFor(testExtra, f.dir)
			may = append(append([]string{f.dir}, may...), extra.may...)
		}
		for _, p := range importPaths(f) {
			dir, own := t.ownDir(p)
			if !own {
				continue
			}
			if !withinAny(dir, may) {
				bad = append(bad, fmt.Sprintf("%s: imports %s; package %s may import %s", f.path, dir, f.dir, list(may)))
			} else if within(dir, "metal/...") && withinAny(f.dir, deviceFree) {
				bad = append(bad, fmt.Sprintf("%s: imports %s; package %s knows nothing of devices", f.path, dir, f.dir))
			}
		}
	}
	return bad
}

func list(words []string) string {
	if len(words) == 0 {
		return "nothing of this module"
	}
	return strings.Join(words, ", ")
}

// standard reports whether an import path belongs to Go itself: its first element has no dot.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

func checkLibraries(t *sourceTree) []string {
	var bad []string
	for _, f := range t.goFiles(true) {
		for _, p := range importPaths(f) {
			if _, own := t.ownDir(p); own || (f.test() && withinAny(p, testLibraries)) {
				continue
			}
			i := slices.IndexFunc(libraries, func(l library) bool { return within(p, l.path) })
			switch {
			case i < 0 && standard(p):
			case i < 0:
				bad = append(bad, fmt.Sprintf("%s: imports %s, which has no row in libraries", f.path, p))
			case !slices.ContainsFunc(libraries[i].files, func(pattern string) bool { return fileMatches(f, pattern) }):
				bad = append(bad, fmt.Sprintf("%s: imports %s; only %s may", f.path, p, list(libraries[i].files)))
			}
		}
	}
	return bad
}

// fileMatches reports whether a pattern of libraries covers a file: a folder pattern, or path.Match on the file's path.
func fileMatches(f source, pattern string) bool {
	if strings.HasSuffix(pattern, ".go") {
		ok, err := path.Match(pattern, f.path)
		return err == nil && ok
	}
	return within(f.dir, pattern)
}

func checkDocs(t *sourceTree) []string {
	docs := map[string][]string{}
	var bad []string
	for _, f := range t.goFiles(false) {
		if f.file.Doc == nil {
			continue
		}
		docs[f.dir] = append(docs[f.dir], f.path)
		want := "Package " + f.file.Name.Name + " "
		if f.file.Name.Name == "main" {
			want = "Command "
		}
		if !strings.HasPrefix(f.file.Doc.Text(), want) {
			bad = append(bad, fmt.Sprintf("%s: package doc begins %.30q, want %q", f.path, f.file.Doc.Text(), want))
		}
	}
	for _, dir := range t.packages() {
		if n := len(docs[dir]); n != 1 {
			bad = append(bad, fmt.Sprintf("package %s: got %d package doc comments %v, want 1", dir, n, docs[dir]))
		}
	}
	return bad
}

func checkLength(t *sourceTree) []string {
	var bad []string
	for _, f := range t.files {
		if f.lines > lineLimit {
			bad = append(bad, fmt.Sprintf("%s: got %d lines, want at most %d", f.path, f.lines, lineLimit))
		}
	}
	return bad
}

func checkNames(t *sourceTree) []string {
	var bad []string
	for _, f := range t.goFiles(true) {
		name := strings.TrimSuffix(f.file.Name.Name, "_test")
		for _, n := range []string{name, path.Base(f.dir)} {
			if slices.Contains(forbiddenNames, n) {
				bad = append(bad, fmt.Sprintf("%s: package %s: the name says nothing; name its idea", f.path, n))
				break
			}
		}
	}
	return bad
}

func checkTags(t *sourceTree) []string {
	var bad []string
	for _, f := range t.goFiles(true) {
		for _, group := range f.file.Comments {
			if group.Pos() > f.file.Package {
				break
			}
			for _, c := range group.List {
				if !constraint.IsGoBuild(c.Text) {
					continue
				}
				expr, err := constraint.Parse(c.Text)
				if err != nil {
					bad = append(bad, fmt.Sprintf("%s: %v", f.path, err))
					continue
				}
				if want, ok := tagPair[f.path]; ok {
					if expr.String() != want {
						bad = append(bad, fmt.Sprintf("%s: got //go:build %s, want %s", f.path, expr, want))
					}
					continue
				}
				expr.Eval(func(tag string) bool {
					if !slices.Contains(buildTags, tag) || tag == "cgo" || tag == "ci" {
						bad = append(bad, fmt.Sprintf("%s: build tag %s: want one of %v, and cgo and ci only in gui.go and nogui.go", f.path, tag, buildTags))
					}
					return true
				})
			}
		}
	}
	return bad
}

func checkInit(t *sourceTree) []string {
	var bad []string
	for _, f := range t.goFiles(true) {
		for _, d := range f.file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				bad = append(bad, fmt.Sprintf("%s: func init: what a thing needs is passed to it", f.path))
			}
		}
	}
	return bad
}
