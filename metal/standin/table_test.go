package standin

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// encodings are Objective-C's type codes of the C types that the binding's table has. An object's class follows in quotes where it is known.
var encodings = map[string]string{
	"void": "v", "BOOL": "B", "SEL": ":", "id": "@", "instancetype": "@", "ObjectType": "@",
	"NSUInteger": "Q", "uint64_t": "Q", "NSInteger": "q", "CFTimeInterval": "d",
	"const char *": "*", "const void *": "^v", "void *": "^v", "NSError * *": "^@",
	"NSRange": "{_NSRange=QQ}", "MTLSize": "{?=QQQ}",
	"NSErrorDomain": `@`, "dispatch_data_t": "@",
	"MTLLanguageVersion": "Q", "MTLMathMode": "q", "MTLResourceOptions": "Q", "MTLGPUFamily": "q", "MTLCounterSamplingPoint": "Q", "MTLStorageMode": "Q",
	"MTLDispatchType": "Q", "MTLBarrierScope": "Q", "MTLResourceUsage": "Q", "MTLCommandBufferStatus": "Q", "MTLCommandBufferErrorOption": "Q",
	"MTLPipelineOption": "Q", "MTLDataType": "Q", "MTLCaptureDestination": "q",
}

// encode returns the type code of a C type; an object is "@" with its class, if the type names one.
func encode(t *testing.T, c string) string {
	if e, ok := encodings[c]; ok {
		return e
	}
	switch {
	case strings.Contains(c, "(^)"):
		return "@?"
	case strings.HasSuffix(c, "const *"), strings.HasSuffix(c, "Reflection *"):
		return "^@"
	case strings.HasPrefix(c, "id<"):
		return `@"` + strings.TrimSuffix(strings.TrimPrefix(c, "id<"), ">") + `"`
	case strings.HasSuffix(c, " *"):
		name, _, _ := strings.Cut(strings.TrimSuffix(c, " *"), "<")
		return `@"` + name + `"`
	}
	t.Errorf("the binding's table has the type %q, which this test does not know", c)
	return "?"
}

// split cuts a method's type encoding into result and arguments.
func split(types string) []string {
	return regexp.MustCompile(`@"[^"]*"|@\?|\^.|\{[^}]*\}|.`).FindAllString(types, -1)
}

// same compares what the binding sends with what the stand-in takes: the class of an object counts where both name one, and protocols that
// the stand-in derives from each other are as good as equal.
func same(binding, standin string) bool {
	if binding == standin {
		return true
	}
	return strings.HasPrefix(binding, "@") && strings.HasPrefix(standin, "@") && binding != "@?" && standin != "@?" &&
		(binding == "@" || standin == "@")
}

// TestTheBindingsTable compares every row of metal/mtl's table of selectors with the stand-in's methods: a selector that is missing here, or whose types
// differ, is a mistake in one of the two. (Apple's headers are the judge; metal/mtl's own tests hold the table to them.)
func TestTheBindingsTable(t *testing.T) {
	source, err := os.ReadFile("../mtl/selectors.go")
	if err != nil {
		t.Fatal(err)
	}
	m := open(t, Options{})
	methods, err := m.lib.Methods()
	if err != nil {
		t.Fatal(err)
	}
	// By class or protocol, kind and selector; what Metal declares for a parent protocol is found at its children as well.
	known := map[string]Method{}
	bySelector := map[string][]Method{}
	for _, s := range methods {
		key := string(s.Kind) + s.Selector
		known[s.Class+key] = s
		bySelector[key] = append(bySelector[key], s)
	}
	row := regexp.MustCompile(`(?m)^\t\{sel_\w+, "(\w+)", '([-+])', "([^"]+)", "([^"]+)", (nil|\[\]string\{(.*)\}), (\w+)\},$`)
	rows := row.FindAllStringSubmatch(string(source), -1)
	if len(rows) < 80 {
		t.Fatalf("got %d rows of the binding's table, want them all: its form has changed", len(rows))
	}
	for _, r := range rows {
		owner, key, result := r[1], r[2]+r[3], r[4]
		s, ok := known[owner+key]
		if !ok {
			if all := bySelector[key]; len(all) > 0 {
				s, ok = all[0], true
			}
		}
		if !ok {
			t.Errorf("%s[%s %s]: the stand-in has no such method", r[2], owner, r[3])
			continue
		}
		want := []string{encode(t, result)}
		for _, a := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(r[6], -1) {
			want = append(want, encode(t, a[1]))
		}
		got := split(s.Types)
		if len(got) != len(want) {
			t.Errorf("%s[%s %s]: the stand-in has the types %v, the binding %v", r[2], owner, r[3], got, want)
			continue
		}
		for i := range got {
			if !same(want[i], got[i]) {
				t.Errorf("%s[%s %s]: type %d (0: the result): the stand-in has %s, the binding %s", r[2], owner, r[3], i, got[i], want[i])
			}
		}
	}
}
