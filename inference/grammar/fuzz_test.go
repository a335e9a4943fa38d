package grammar

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// FuzzCompile: any text compiles or is refused by a typed error, and what the automaton reads is valid JSON that the schema allows.
func FuzzCompile(f *testing.F) {
	for _, s := range maskSchemas {
		f.Add(s, uint64(1))
	}
	f.Add(`{"anyOf":[{"$ref":"#"},{"type":"string","pattern":"^a.c$"}]}`, uint64(2))
	f.Add(`{"allOf":[{"properties":{"a":{"type":"number","minimum":1.5}}},{"required":["a"]}],"type":"object"}`, uint64(3))
	f.Add(`{"type":["integer","null"],"multipleOf":3,"maximum":-2,"enum":[-3,null,"x"]}`, uint64(4))
	f.Add(`{"type":"array","prefixItems":[{"enum":[[1],{"a":2}]}],"items":{"type":"boolean"},"minItems":3}`, uint64(5))
	f.Add(`{"oneOf":[{"type":"object","properties":{"k":{"const":1}},"required":["k"]},{"type":"string","format":"date"}],"$defs":{"a":{"$ref":"#/$defs/a"}}}`, uint64(6))
	f.Fuzz(func(t *testing.T, schema string, seed uint64) {
		if len(schema) > 2000 {
			return
		}
		g, err := Compile([]byte(schema))
		if err != nil {
			var unsupported *UnsupportedError
			var wrong *SchemaError
			if !errors.As(err, &unsupported) && !errors.As(err, &wrong) {
				t.Fatalf("got %v, want a typed error", err)
			}
			return
		}
		var judgement *jsonschema.Schema
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if v, err := jsonschema.UnmarshalJSON(strings.NewReader(schema)); err == nil && c.AddResource("mem:///s", v) == nil {
			judgement, _ = c.Compile("mem:///s")
		}
		m := newMachine(g.build(nil))
		rnd := rand.New(rand.NewPCG(seed, 1))
		for range 3 {
			text, whole := walk(m, rnd, 400)
			switch {
			case !whole && len(text) < 400:
				t.Fatalf("stuck behind %q", text)
			case whole && !json.Valid(text):
				t.Fatalf("got %q, want JSON", text)
			case whole && judgement != nil:
				if err := judge(t, judgement, text); err != nil {
					t.Fatalf("got %s: %v", text, err)
				}
			}
		}
	})
}
