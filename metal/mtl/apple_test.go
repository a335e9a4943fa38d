package mtl

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The tables against what a compiler read off Apple's headers: two files of tab-separated values that are not part of this repository.
// POND_TEST_APPLE_SPEC names the folder that has them.

// appleFile reads one of them, without its header.
func appleFile(t *testing.T, name string) [][]string {
	t.Helper()
	dir := os.Getenv("POND_TEST_APPLE_SPEC")
	if dir == "" {
		t.Skip("POND_TEST_APPLE_SPEC is not set: it names the folder with " + name)
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for _, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n")[1:] {
		rows = append(rows, strings.Split(line, "\t"))
	}
	if len(rows) < 100 {
		t.Fatalf("%s: got %d rows, want Apple's API", name, len(rows))
	}
	return rows
}

// differences compares the table with rows of kind, owner, +/-, selector, result, arguments.
func differences(table []method, rows [][]string) []string {
	known := map[string][]string{}
	for _, r := range rows {
		known[r[1]+" "+r[2]+r[3]] = r
	}
	var bad []string
	for _, m := range table {
		r := known[m.owner+" "+string(m.kind)+m.text]
		switch {
		case r == nil && m.from == sdk14:
			bad = append(bad, fmt.Sprintf("%s %c%s: not in the headers", m.owner, m.kind, m.text))
			continue
		case r == nil:
			continue
		case m.from == unverified:
			bad = append(bad, fmt.Sprintf("%s %c%s: is in the headers, so it is not unverified", m.owner, m.kind, m.text))
		}
		if want := strings.TrimPrefix(r[4], "NS_RETURNS_INNER_POINTER "); m.returns != want {
			bad = append(bad, fmt.Sprintf("%s %s: got result %s, want %s", m.owner, m.text, m.returns, want))
		}
		args := ""
		if len(r) > 5 {
			args = r[5]
		}
		if got := strings.Join(m.args, ","); got != strings.ReplaceAll(args, ", ", ",") && got != args {
			bad = append(bad, fmt.Sprintf("%s %s: got arguments %s, want %s", m.owner, m.text, got, args))
		}
	}
	return bad
}

func TestTableEqualsApplesHeaders(t *testing.T) {
	rows := appleFile(t, "apple-selectors.tsv")
	for _, d := range differences(methods, rows) {
		t.Error(d)
	}
}

func TestPlantedWrongTypesAreFound(t *testing.T) {
	rows := [][]string{
		{"protocol", "MTLDevice", "-", "maxBufferLength", "NSUInteger", ""},
		{"protocol", "MTLBuffer", "-", "contents", "void *"},
		{"protocol", "MTLLibrary", "-", "newFunctionWithName:", "id<MTLFunction>", "NSString *"},
	}
	for want, m := range map[string]method{
		"not in the headers":    {0, "MTLDevice", '-', "maxBuffer", "NSUInteger", nil, sdk14},
		"not in the header":     {0, "MTLDevice", '+', "maxBufferLength", "NSUInteger", nil, sdk14},
		"got result float":      {0, "MTLDevice", '-', "maxBufferLength", "float", nil, sdk14},
		"got arguments MTLSize": {0, "MTLLibrary", '-', "newFunctionWithName:", "id<MTLFunction>", []string{"MTLSize"}, sdk14},
		"it is not unverified":  {0, "MTLBuffer", '-', "contents", "void *", nil, unverified},
	} {
		if got := differences([]method{m}, rows); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("got %q, want one difference with %q", got, want)
		}
	}
}

// newer are the constants that the headers of macOS 14.2 do not have.
var newer = map[string]string{
	"LanguageVersion3_2": "https://developer.apple.com/documentation/metal/mtllanguageversion/version3_2",
	"LanguageVersion4_0": "https://developer.apple.com/documentation/metal/mtllanguageversion/version4_0",
	"GPUFamilyApple10":   "https://developer.apple.com/documentation/metal/mtlgpufamily/apple10",
	"GPUFamilyMetal4":    "https://developer.apple.com/documentation/metal/mtlgpufamily/metal4",
	"MathModeSafe":       "https://developer.apple.com/documentation/metal/mtlmathmode/safe",
}

func TestConstantsEqualApplesHeaders(t *testing.T) {
	known := map[string]string{}
	for _, r := range appleFile(t, "apple-constants.tsv") {
		known[r[1]] = r[2]
	}
	f, err := parser.ParseFile(token.NewFileSet(), "constants.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, decl := range f.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST {
			continue
		}
		for _, spec := range d.Specs {
			v := spec.(*ast.ValueSpec)
			name := v.Names[0].Name
			got, err := strconv.Atoi(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			count++
			want, ok := known["MTL"+name]
			switch {
			case !ok && newer[name] == "":
				t.Errorf("%s is not in the headers, and no page says where it is from", name)
			case ok && want != strconv.Itoa(got):
				t.Errorf("%s: got %d, want %s", name, got, want)
			}
		}
	}
	if count < 20 {
		t.Errorf("got %d constants, want all of them", count)
	}
}

func TestEachTypeHasItsApplePage(t *testing.T) {
	page := regexp.MustCompile(`https://developer\.apple\.com/documentation/\S+`)
	for name, text := range sources(t) {
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE {
				continue
			}
			for _, spec := range d.Specs {
				if s := spec.(*ast.TypeSpec); s.Name.IsExported() && s.Name.Name != "Runtime" && !page.MatchString(d.Doc.Text()) {
					t.Errorf("%s: %s has no Apple page", name, s.Name.Name)
				}
			}
		}
	}
}
