package standin

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// encodings are Objective-C's type codes of C types. An object's class follows in quotes where it is known.
var encodings = map[string]string{
	"void": "v", "BOOL": "B", "SEL": ":", "id": "@", "instancetype": "@", "ObjectType": "@", "KeyType": "@", "Class": "@",
	"NSUInteger": "Q", "uint64_t": "Q", "unsigned long long": "Q", "NSInteger": "q", "CFTimeInterval": "d", "double": "d", "int": "i", "MTLTimestamp": "Q",
	"const char *": "*", "const void *": "^v", "void *": "^v", "NSError * *": "^@", "const id<MTLAllocation> *": "^@", "MTLTimestamp *": "^Q",
	"NSRange": "{_NSRange=QQ}", "MTLSize": "{?=QQQ}", "NSOperatingSystemVersion": "{?=qqq}",
	"NSErrorDomain": "@", "dispatch_data_t": "@", "NSStringEncoding": "Q", "NSProcessInfoThermalState": "q", "MTLCommandBufferHandler": "@?",
	"MTLLanguageVersion": "Q", "MTLMathMode": "q", "MTLLibraryOptimizationLevel": "q", "MTLResourceOptions": "Q", "MTLGPUFamily": "q",
	"MTLCounterSamplingPoint": "Q", "MTLStorageMode": "Q", "MTLHazardTrackingMode": "Q", "MTLCPUCacheMode": "Q", "MTLPurgeableState": "Q",
	"MTLDispatchType": "Q", "MTLBarrierScope": "Q", "MTLResourceUsage": "Q", "MTLCommandBufferStatus": "Q", "MTLCommandBufferErrorOption": "Q",
	"MTLPipelineOption": "Q", "MTLDataType": "Q", "MTLCaptureDestination": "q", "MTLFunctionType": "Q", "MTLCommandEncoderErrorState": "q",
}

// encode returns the type code of a C type; "?" if this test does not know it.
func encode(c string) string {
	c = strings.TrimPrefix(strings.TrimSpace(c), "NS_RETURNS_INNER_POINTER ")
	c = regexp.MustCompile(`^API_\w+\(.*\)\)? `).ReplaceAllString(c, "")
	if e, ok := encodings[c]; ok {
		return e
	}
	switch {
	case strings.Contains(c, "(^)"):
		return "@?"
	case strings.Contains(c, "const *"), strings.Contains(c, "Reflection *"), strings.HasPrefix(c, "const ") && strings.HasSuffix(c, "*"):
		return "^@"
	case strings.HasPrefix(c, "id<"):
		return `@"` + strings.TrimSuffix(strings.TrimPrefix(c, "id<"), ">") + `"`
	case strings.HasSuffix(c, "*"):
		name, _, _ := strings.Cut(strings.TrimRight(c, " *"), "<")
		return `@"` + name + `"`
	}
	return "?"
}

// split cuts a method's type encoding into result and arguments.
func split(types string) []string {
	return regexp.MustCompile(`@"[^"]*"|@\?|\^.|\{[^}]*\}|.`).FindAllString(types, -1)
}

// same compares two codes: the class of an object counts where both name one.
func same(a, b string) bool {
	object := func(s string) bool { return strings.HasPrefix(s, "@") && s != "@?" }
	return a == b || object(a) && object(b) && (a == "@" || b == "@")
}

// row is a method as a table of C types has it.
type row struct {
	owner, kind, selector, result string
	args                          []string
}

// differences says how the row differs from the stand-in's method; "" if it does not.
func (r row) differences(m Method) string {
	want := []string{encode(r.result)}
	for _, a := range r.args {
		want = append(want, encode(a))
	}
	got := split(m.Types)
	if len(got) != len(want) {
		return fmt.Sprintf("%s[%s %s]: the stand-in has the types %v, want %v", r.kind, r.owner, r.selector, got, want)
	}
	for i := range got {
		if !same(want[i], got[i]) {
			return fmt.Sprintf("%s[%s %s]: type %d (0: the result): the stand-in has %s, want %s of %v", r.kind, r.owner, r.selector, i, got[i], want[i], append([]string{r.result}, r.args...))
		}
	}
	return ""
}

// standinMethods returns the stand-in's methods by class and selector, and by selector alone: what Apple declares for a class or a protocol is found
// at the stand-in's ancestor of it as well.
func standinMethods(t *testing.T) (byClass map[string]Method, bySelector map[string][]Method) {
	t.Helper()
	m := open(t, Options{})
	methods, err := m.lib.Methods()
	if err != nil {
		t.Fatal(err)
	}
	byClass, bySelector = map[string]Method{}, map[string][]Method{}
	for _, s := range methods {
		key := string(s.Kind) + s.Selector
		byClass[s.Class+key] = s
		bySelector[key] = append(bySelector[key], s)
	}
	return byClass, bySelector
}

// bindingRows reads metal/mtl's table of selectors.
func bindingRows(t *testing.T) []row {
	t.Helper()
	source, err := os.ReadFile("../mtl/selectors.go")
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`(?m)^\t\{sel_\w+, "(\w+)", '([-+])', "([^"]+)", "([^"]+)", (nil|\[\]string\{(.*)\}), (\w+)\},$`)
	var rows []row
	for _, f := range form.FindAllStringSubmatch(string(source), -1) {
		r := row{owner: f[1], kind: f[2], selector: f[3], result: f[4]}
		for _, a := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(f[6], -1) {
			r.args = append(r.args, a[1])
		}
		rows = append(rows, r)
	}
	if len(rows) < 80 {
		t.Fatalf("got %d rows of the binding's table, want them all: its form has changed", len(rows))
	}
	return rows
}

// TestTheBindingsTable compares every row of metal/mtl's table of selectors with the stand-in's methods: a selector that is missing here, or whose types
// differ, is a mistake in one of the two. (Apple's headers are the judge; metal/mtl's own tests hold the table to them.)
func TestTheBindingsTable(t *testing.T) {
	byClass, bySelector := standinMethods(t)
	for _, r := range bindingRows(t) {
		m, ok := byClass[r.owner+r.kind+r.selector]
		if all := bySelector[r.kind+r.selector]; !ok && len(all) > 0 {
			m, ok = all[0], true
		}
		if !ok {
			t.Errorf("%s[%s %s]: the stand-in has no such method", r.kind, r.owner, r.selector)
			continue
		}
		if d := r.differences(m); d != "" {
			t.Error(d)
		}
	}
}

func TestPlantedWrongTypesAreSeen(t *testing.T) {
	byClass, _ := standinMethods(t)
	for _, r := range []row{
		{"MTLDevice", "-", "maxBufferLength", "BOOL", nil},
		{"MTLDevice", "-", "maxBufferLength", "NSUInteger", []string{"NSUInteger"}},
		{"MTLCommandBuffer", "-", "GPUStartTime", "NSUInteger", nil},
		{"MTLComputeCommandEncoder", "-", "setBuffer:offset:atIndex:", "void", []string{"id<MTLTexture>", "NSUInteger", "NSUInteger"}},
		{"MTLComputeCommandEncoder", "-", "setBytes:length:atIndex:", "void", []string{"id<MTLBuffer>", "NSUInteger", "NSUInteger"}},
		{"MTLComputeCommandEncoder", "-", "dispatchThreadgroups:threadsPerThreadgroup:", "void", []string{"MTLSize", "NSRange"}},
	} {
		m, ok := byClass[r.owner+r.kind+r.selector]
		if !ok {
			t.Fatalf("no method %s of %s", r.selector, r.owner)
		}
		if r.differences(m) == "" {
			t.Errorf("%+v: got no difference from %s", r, m.Types)
		}
	}
}

// TestApplesHeaders holds the stand-in's own methods to what a compiler read off Apple's headers, a file that is not part of this repository.
func TestApplesHeaders(t *testing.T) {
	const variable = "POND_TEST_APPLE_SPEC"
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skip(variable + " is not set: it names the folder with apple-selectors.tsv")
	}
	text, err := os.ReadFile(filepath.Join(dir, "apple-selectors.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	byClass, _ := standinMethods(t)
	seen := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) < 5 {
			continue
		}
		r := row{owner: f[1], kind: f[2], selector: f[3], result: f[4]}
		if len(f) > 5 && f[5] != "" {
			r.args = splitArguments(f[5])
		}
		m, ok := byClass[r.owner+r.kind+r.selector]
		if !ok {
			continue
		}
		seen++
		if d := r.differences(m); d != "" {
			t.Error(d)
		}
	}
	if seen < 100 {
		t.Errorf("got %d methods in both tables, want most of the stand-in's", seen)
	}
}

// splitArguments cuts at the commas that are not inside parentheses or angle brackets.
func splitArguments(s string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range s {
		switch c {
		case '(', '<':
			depth++
		case ')', '>':
			depth--
		case ',':
			if depth == 0 {
				out, from = append(out, s[from:i]), i+1
			}
		}
	}
	return append(out, s[from:])
}
