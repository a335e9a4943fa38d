package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestPlantedViolations runs every rule on small trees: one that obeys, and for each way to break a rule one that must be
// caught with a sentence that names the place.
func TestPlantedViolations(t *testing.T) {
	const doc = "// Package x is a test.\npackage x\n"
	cases := []struct {
		name  string
		check string
		files map[string]string
		want  string // part of the one violation; empty: none
	}{
		{"downwards", "imports", map[string]string{"server/a.go": `package server; import "pond/inference"`}, ""},
		{"server reaches a device", "imports", map[string]string{"server/a.go": `package server; import "pond/metal/host"`}, "server/a.go: imports metal/host"},
		{"app reaches a device in a test", "imports", map[string]string{"app/a_test.go": `package app; import "pond/metal"`}, "app/a_test.go: imports metal"},
		{"app reaches the root", "imports", map[string]string{"app/a.go": `package app; import "pond"`}, "app/a.go: imports ."},
		{"inference looks up", "imports", map[string]string{"inference/a.go": `package inference; import "pond/server"`}, "inference/a.go: imports server"},
		{"metal looks up", "imports", map[string]string{"metal/gpu/a.go": `package gpu; import "pond/inference/qwen36"`}, "metal/gpu/a.go: imports inference/qwen36"},
		{"plan knows a device", "imports", map[string]string{"inference/plan/a.go": `package plan; import "pond/metal"`}, "inference/plan/a.go: imports metal"},
		{"plan's test knows a device", "imports", map[string]string{"inference/plan/a_test.go": `package plan_test; import "pond/metal/host"`}, "knows nothing of devices"},
		{"openai imports ours", "imports", map[string]string{"server/openai/a.go": `package openai; import "pond/inference/chat"`}, "server/openai/a.go: imports inference/chat"},
		{"a package nobody placed", "imports", map[string]string{"extra/a.go": `package extra`}, "package extra has no row"},

		{"unknown library", "libraries", map[string]string{"app/a.go": `package app; import "example.com/shiny"`}, "app/a.go: imports example.com/shiny"},
		{"fyne's driver outside gui.go", "libraries", map[string]string{"app/ui/a.go": `package ui; import "fyne.io/fyne/v2/app"`}, "only gui.go may"},
		{"fyne in app", "libraries", map[string]string{"app/a.go": `package app; import "fyne.io/fyne/v2"`}, "only gui.go, app/ui may"},
		{"fyne in app/ui", "libraries", map[string]string{"app/ui/a.go": `package ui; import "fyne.io/fyne/v2/widget"`}, ""},
		{"echo outside server", "libraries", map[string]string{"cmd_serve.go": `package main; import "github.com/labstack/echo/v4"`}, "only server may"},
		{"echo in the wire types", "libraries", map[string]string{"server/openai/a.go": `package openai; import "github.com/labstack/echo/v4"`}, "only server may"},
		{"purego in gpu", "libraries", map[string]string{"metal/gpu/a.go": `package gpu; import "github.com/ebitengine/purego/objc"`}, "metal/gpu/a.go: imports github.com/ebitengine/purego/objc"},
		{"purego in app on darwin", "libraries", map[string]string{"app/life_darwin.go": `package app; import "github.com/ebitengine/purego/objc"`}, ""},
		{"purego in app elsewhere", "libraries", map[string]string{"app/life.go": `package app; import "github.com/ebitengine/purego"`}, "app/life.go"},
		{"xdg outside settings", "libraries", map[string]string{"app/a.go": `package app; import "github.com/adrg/xdg"`}, "only app/settings may"},
		{"unsafe in the server", "libraries", map[string]string{"server/a.go": `package server; import "unsafe"`}, "server/a.go: imports unsafe"},
		{"unsafe in a test", "libraries", map[string]string{"inference/a_test.go": `package inference; import "unsafe"`}, "imports unsafe"},
		{"unsafe in the reader", "libraries", map[string]string{"inference/checkpoint/a.go": `package checkpoint; import "unsafe"`}, ""},
		{"cgo", "libraries", map[string]string{"metal/mtl/a.go": `package mtl; import "C"`}, "metal/mtl/a.go: imports C"},
		{"test library in a test", "libraries", map[string]string{"app/a_test.go": `package app; import "github.com/google/go-cmp/cmp"`}, ""},
		{"test library in the product", "libraries", map[string]string{"app/a.go": `package app; import "github.com/google/go-cmp/cmp"`}, "no row in libraries"},

		{"one doc", "package doc", map[string]string{"x/a.go": doc, "x/b.go": "package x", "x/a_test.go": "package x"}, ""},
		{"no doc", "package doc", map[string]string{"x/a.go": "package x"}, "package x: got 0 package doc comments"},
		{"two docs", "package doc", map[string]string{"x/a.go": doc, "x/b.go": doc}, "package x: got 2 package doc comments"},
		{"a doc about nothing", "package doc", map[string]string{"x/a.go": "// Things.\npackage x"}, `want "Package x "`},

		{"long file", "file length", map[string]string{"metal/kernels/gdn.metal": strings.Repeat("\n", lineLimit+1)}, "gdn.metal: got 801 lines"},
		{"long enough", "file length", map[string]string{"metal/kernels/gdn.metal": strings.Repeat("\n", lineLimit)}, ""},
		{"empty name", "package names", map[string]string{"app/helpers/a.go": "package helpers"}, "package helpers"},
		{"empty name of a folder", "package names", map[string]string{"app/util/a.go": "package strings"}, "package util"},

		{"the pair", "build tags", map[string]string{"gui.go": "//go:build cgo || ci\n\npackage main", "nogui.go": "//go:build !cgo && !ci\n\npackage main"}, ""},
		{"half a pair", "build tags", map[string]string{"gui.go": "//go:build cgo\n\npackage main"}, "gui.go: got //go:build cgo"},
		{"a third file of the pair", "build tags", map[string]string{"app/a.go": "//go:build cgo\n\npackage app"}, "app/a.go: build tag cgo"},
		{"a tag of one's own", "build tags", map[string]string{"app/a.go": "//go:build integration\n\npackage app"}, "build tag integration"},

		{"init", "init", map[string]string{"x/a.go": doc + "func init() {}"}, "x/a.go: func init"},
		{"init in a test", "init", map[string]string{"x/a_test.go": "package x\nfunc init() {}"}, "func init"},
		{"a method named init", "init", map[string]string{"x/a.go": doc + "type T struct{}\nfunc (T) init() {}"}, ""},

		{"constants", "package state", map[string]string{"x/a.go": doc + `
import ("embed"; "errors"; "regexp"; "sync")
//go:embed demo
var files embed.FS
var ErrGone = errors.New("gone")
var word = regexp.MustCompile("a+")
var _ error = (*E)(nil)
var table = map[string]int{"a": 1}
var load = sync.OnceValue(func() int { return 1 })
func f(table []int) int { table[0] = 1; word := 2; word++; return word }
`}, ""},
		{"no value", "package state", map[string]string{"x/a.go": doc + "var cache map[string]int"}, "var cache: has no value"},
		{"a lock", "package state", map[string]string{"x/a.go": doc + `import "sync"; var mu = sync.Mutex{}`}, "var mu: holds a lock"},
		{"a declared lock", "package state", map[string]string{"x/a.go": doc + `import "sync"; var mu [2]sync.Mutex = pair()`}, "var mu: its type"},
		{"a counter", "package state", map[string]string{"x/a.go": doc + "var n = 0\nfunc f() { n++ }"}, "changes package variable n"},
		{"an element", "package state", map[string]string{"x/a.go": doc + "var t = []int{1}", "x/b.go": "package x\nfunc f() { t[0] = 2 }"}, "x/b.go:2:12: changes package variable t"},
		{"a deletion", "package state", map[string]string{"x/a.go": doc + "var t = map[int]int{}\nfunc f() { delete(t, 1) }"}, "changes package variable t"},
		{"an address", "package state", map[string]string{"x/a.go": doc + "var n = 3\nfunc f() *int { return &n }"}, "takes the address of"},
		{"a made map", "package state", map[string]string{"x/a.go": doc + "var m = make(map[int]int)"}, "var m: holds"},
		{"a pointer", "package state", map[string]string{"x/a.go": doc + "type T struct{}\nvar p = &T{}"}, "var p: holds"},
	}
	covered := map[string]bool{}
	for _, c := range cases {
		t.Run(c.check+"/"+c.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for name, text := range c.files {
				fsys[name] = &fstest.MapFile{Data: []byte(text)}
			}
			tree, err := readTree(fsys, "pond")
			if err != nil {
				t.Fatal(err)
			}
			for _, rule := range checks {
				if rule.name != c.check {
					continue
				}
				got := rule.run(tree)
				switch {
				case c.want == "" && len(got) > 0:
					t.Errorf("got %q, want no violation", got)
				case c.want != "" && len(got) == 0:
					t.Errorf("got no violation, want one with %q", c.want)
				case c.want != "" && !strings.Contains(strings.Join(got, "\n"), c.want):
					t.Errorf("got %q, want %q in it", got, c.want)
				}
			}
		})
		if c.want != "" {
			covered[c.check] = true
		}
	}
	for _, rule := range checks {
		if !covered[rule.name] {
			t.Errorf("rule %s has no planted violation", rule.name)
		}
	}
}
