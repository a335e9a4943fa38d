package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// validator is a judge that nobody here wrote.
func validator(t testing.TB, schema string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	if err := c.AddResource("mem:///schema.json", v); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///schema.json")
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return s
}

func judge(t testing.TB, schema *jsonschema.Schema, text []byte) error {
	t.Helper()
	if !json.Valid(text) {
		return errors.New("it is not JSON")
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// walk reads random symbols that are allowed, ever more eager to come to an end, and returns what it read.
func walk(m *machine, rnd *rand.Rand, most int) ([]byte, bool) {
	at := m.start
	var out []byte
	for len(out) < most {
		s := m.situations[at]
		if s.whole && (len(s.places) == 0 || rnd.IntN(3) == 0) {
			return out, true
		}
		var ways []byte
		for c := range 256 {
			if m.step(at, symbol(c)) != 0 {
				ways = append(ways, byte(c))
			}
		}
		if len(ways) == 0 {
			return out, false
		}
		c := ways[rnd.IntN(len(ways))]
		for _, end := range []byte(`"]}`) { // otherwise strings and lists go on for ever
			if bytes.IndexByte(ways, end) >= 0 && rnd.IntN(8) == 0 || len(out) > most/2 && bytes.IndexByte(ways, end) >= 0 {
				c = end
			}
		}
		out = append(out, c)
		at = m.step(at, symbol(c))
	}
	return out, false
}

// Every text that the automaton can read to its end is valid, and it never leads into a corner.
func TestRandomWalksAreValid(t *testing.T) {
	schemas := []string{
		`{"type":"object","properties":{"answer":{"type":"string"},"n":{"type":"integer"}},"required":["answer","n"],"additionalProperties":false}`,
		`{"type":"object"}`,
		`true`,
		`{}`,
		`{"type":["string","null"]}`,
		`{"type":"boolean"}`,
		`{"type":"number"}`,
		`{"type":"string","minLength":2,"maxLength":4}`,
		`{"type":"string","minLength":3}`,
		`{"type":"string","pattern":"^[a-c]{2,5}-\\d+$"}`,
		`{"type":"string","pattern":"^x\"y\\\\z$"}`,
		`{"type":"string","pattern":"^(foo|ba[rz])","maxLength":9}`,
		`{"type":"string","pattern":"é+$","minLength":2,"maxLength":5}`,
		`{"enum":["a","ab","ä\"\\\n",1,2.5,null,true,{"k":[1,2]},[]]}`,
		`{"const":{"a":"b"}}`,
		`{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":4}`,
		`{"type":"array","items":{"type":"boolean"},"minItems":1}`,
		`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false,"minItems":2}`,
		`{"type":"array","prefixItems":[{"const":1}],"items":{"const":2}}`,
		`{"type":"array","maxItems":0}`,
		`{"anyOf":[{"type":"integer"},{"type":"object","properties":{"a":{"type":"null"}},"required":["a"],"additionalProperties":false}]}`,
		`{"oneOf":[{"type":"object","properties":{"kind":{"const":"x"},"a":{"type":"integer"}},"required":["kind"],"additionalProperties":false},{"type":"object","properties":{"kind":{"const":"y"}},"required":["kind"],"additionalProperties":false}]}`,
		`{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"string","maxLength":2},"a":{"maximum":9}},"required":["b"]}]}`,
		`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer","minimum":0,"maximum":3},"kids":{"type":"array","maxItems":2,"items":{"$ref":"#/$defs/tree"}}},"required":["v"],"additionalProperties":false}}}`,
		`{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["next"],"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},"required":["b"],"additionalProperties":{"type":"boolean"}}`,
		`{"type":"object","properties":{"é":{"type":"integer"},"éa":{"type":"integer"},"":{"type":"null"}},"additionalProperties":{"type":"boolean"}}`,
		`{"type":"object","additionalProperties":{"type":"integer"}}`,
		`{"type":"object","properties":{"\"quoted\"":{"type":"null"}},"required":["\"quoted\""]}`,
		`{"type":"integer","minimum":-5,"maximum":120}`,
		`{"type":"integer","exclusiveMinimum":0}`,
		`{"type":"integer","maximum":-17}`,
		`{"type":"integer","multipleOf":7,"minimum":10}`,
		`{"type":"number","minimum":0,"maximum":1}`,
		`{"type":"number","minimum":-2.5,"exclusiveMaximum":3.25}`,
		`{"type":"number","exclusiveMinimum":1.5,"exclusiveMaximum":1.75}`,
		`{"type":"number","exclusiveMinimum":0}`,
		`{"type":"number","maximum":-0.125}`,
		`{"type":"number","multipleOf":0.01,"minimum":0,"maximum":5}`,
		`{"type":"object","minProperties":1,"maxProperties":2,"properties":{"a":{"const":1},"b":{"const":2}},"required":["a"],"additionalProperties":false}`,
	}
	for format := range formats {
		if formats[format] != "" {
			schemas = append(schemas, fmt.Sprintf(`{"type":"string","format":%q}`, format))
		}
	}
	for _, schema := range schemas {
		g, err := Compile([]byte(schema))
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		judgement := validator(t, schema)
		m := newMachine(g.build(nil))
		rnd := rand.New(rand.NewPCG(1, 2))
		whole := 0
		for range 60 {
			text, ok := walk(m, rnd, 3000)
			if !ok {
				if len(text) < 3000 {
					t.Errorf("%s: stuck behind %q", schema, text)
				}
				continue
			}
			whole++
			if err := judge(t, judgement, text); err != nil {
				t.Errorf("%s: got %s: %v", schema, text, err)
				break
			}
		}
		if whole < 15 {
			t.Errorf("%s: got %d whole texts of 60", schema, whole)
		}
	}
}

// Schemas that are made to be expensive are refused or done within reason.
func TestCostlySchemas(t *testing.T) {
	chain, wide, long := `{"$ref":"#/$defs/d0","$defs":{`, `{"type":"object","properties":{`, strings.Repeat("n", 30_000)
	for i := range 3000 {
		chain += fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
		wide += fmt.Sprintf(`"property %d":{"anyOf":[{"type":"string","maxLength":90},{"type":"null"}]},`, i)
	}
	for _, schema := range []string{
		chain + `"d3000":true}}`,
		wide + `"last":true}}`,
		`{"type":"object","properties":{"` + long + `":true},"additionalProperties":true}`,
		`{"type":"string","pattern":"(a|b)*a(a|b){16}"}`,
		`{"type":"string","maxLength":100000}`,
		`{"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"string"},"maxItems":9000},"maxItems":9000},"maxItems":9000}`,
		`{"allOf":[` + strings.Repeat(`{"anyOf":[{"minLength":1},{"maxLength":5},{"pattern":"a"}]},`, 12) + `{"type":"string"}]}`,
	} {
		g, err := Compile([]byte(schema))
		var unsupported *UnsupportedError
		if err != nil && !errors.As(err, &unsupported) {
			t.Errorf("%.100s…: got %v, want it compiled or an UnsupportedError", schema, err)
		}
		if err == nil {
			m := newMachine(g.build(nil))
			walk(m, rand.New(rand.NewPCG(1, 1)), 300)
		}
	}
}
