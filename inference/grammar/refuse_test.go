package grammar

import (
	"errors"
	"strings"
	"testing"
)

// What cannot be held to is named, with its place; what is no schema is told from it.
func TestUnsupportedIsNamed(t *testing.T) {
	for schema, want := range map[string]UnsupportedError{
		`{"type":"object","patternProperties":{"a":{}}}`:                                 {"", "patternProperties", ""},
		`{"type":"object","properties":{"a":{"not":{"type":"null"}}}}`:                   {"/properties/a", "not", ""},
		`{"properties":{"a~/b":{"if":true}}}`:                                            {"/properties/a~0~1b", "if", ""},
		`{"type":"array","items":{"type":"string"},"uniqueItems":true}`:                  {"", "uniqueItems", ""},
		`{"type":"array","contains":{"const":1}}`:                                        {"", "contains", ""},
		`{"type":"object","requred":["a"]}`:                                              {"", "requred", ""},
		`{"type":"object","minProperties":2,"properties":{"a":true}}`:                    {"", "minProperties", ""},
		`{"oneOf":[{"type":"integer"},{"type":"number"}]}`:                               {"", "oneOf", ""},
		`{"type":"string","format":"iri"}`:                                               {"", "format", ""},
		`{"type":"string","pattern":"(?=a)b"}`:                                           {"", "pattern", ""},
		`{"type":"string","pattern":"a\\bb"}`:                                            {"", "pattern", ""},
		`{"type":"string","maxLength":5000000}`:                                          {"", "maxLength", ""},
		`{"type":"array","items":true,"maxItems":5000000}`:                               {"", "maxItems", ""},
		`{"type":"number","multipleOf":0.3}`:                                             {"", "multipleOf", ""},
		`{"$ref":"https://example.com/schema"}`:                                          {"", "$ref", ""},
		`{"anyOf":[{"type":"null"},{"type":"object","properties":{"b":{"unknown":1}}}]}`: {"/anyOf/1/properties/b", "unknown", ""},
	} {
		_, err := Compile([]byte(schema))
		var got *UnsupportedError
		if !errors.As(err, &got) || got.Path != want.Path || got.Keyword != want.Keyword {
			t.Errorf("%s: got %v, want the keyword %s at %q", schema, err, want.Keyword, want.Path)
		} else if !strings.Contains(err.Error(), want.Keyword) || !strings.Contains(err.Error(), want.Path) {
			t.Errorf("got the text %q, want keyword and path in it", err)
		}
	}
	for _, schema := range []string{
		``, `x`, `{} {}`, `3`, `{"type":"text"}`, `{"type":[]}`, `{"type":3}`, `{"enum":3}`, `{"enum":[]}`, `false`, `{"properties":[]}`, `{"properties":{"a":7}}`, `{"required":"a"}`,
		`{"minLength":-1}`, `{"minimum":"1"}`, `{"$ref":"#/$defs/a"}`, `{"$ref":"#"}`, `{"anyOf":[]}`, `{"allOf":[{"type":"string"},{"type":"null"}]}`,
		`{"type":"integer","minimum":3,"maximum":2}`, `{"type":"object","properties":{"a":false},"required":["a"]}`, `{"minItems":2,"maxItems":1,"type":"array"}`,
		strings.Repeat(`{"not":`, 100_000), strings.Repeat(`[`, 100_000), `{"description":"` + strings.Repeat("x", maxSchema) + `"}`,
		`{"type":"object","properties":{"next":{"$ref":"#"}},"required":["next"]}`, `{"type":"string","minLength":3,"maxLength":2}`, `{"multipleOf":0}`,
	} {
		var got *SchemaError
		if _, err := Compile([]byte(schema)); !errors.As(err, &got) {
			t.Errorf("%.200s: got %v, want a SchemaError", schema, err)
		}
	}
}

// What OpenAI's strict mode says of objects, and what holds without it.
func TestStrict(t *testing.T) {
	for _, c := range []struct {
		schema, text string
		strict, want bool
	}{
		{`{"type":"object","properties":{"a":{"type":"null"}}}`, `{"a": null, "b": 1}`, false, false}, // what is named is what there is
		{`{"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":true}`, `{"a": null, "b": 1}`, true, true},
		{`{"type":"object"}`, `{"b": 1}`, false, true},
		{`{"type":"object"}`, `{"b": 1}`, true, false},
		{`{"type":"object"}`, `{}`, true, true},
		{`{"type":"object","properties":{"a":true,"b":true}}`, `{"b": 1, "a": 2}`, false, false}, // the order is the schema's
		{`{"type":"object","properties":{"a":true,"b":true}}`, "{\n  \"a\": 1,\n  \"b\": [\n    1\n  ]\n}", false, true},
		{`{"type":"object","properties":{"a":true,"b":true}}`, `{"a":1,"b":[1,2]}`, false, true},
		{`{"type":"object","properties":{"a":true}}`, `{"a":1 }`, false, true},
		{`{"type":"object","properties":{"a":true}}`, `{"a":  1}`, false, false},
		{`{"type":"object","properties":{"a":true}}`, "{\n\n\"a\":1}", false, false},
		{`{"type":"string"}`, `"\ud83d\ude00 \u00e9 é 😀 \" \\ \/"`, false, true},
		{`{"type":"string"}`, `"\ud83d"`, false, false}, // half a character
		{`{"type":"string"}`, `"\ude00"`, false, false},
		{`{"type":"string"}`, "\"a\nb\"", false, false},
		{`{"type":"string"}`, "\"\xff\"", false, false},
		{`{"type":"string","maxLength":2}`, `"\ud83d\ude00é"`, false, true}, // characters, not bytes or units
		{`{"type":"string","maxLength":2}`, `"abc"`, false, false},
	} {
		f, err := Schema([]byte(c.schema), c.strict)
		if err != nil {
			t.Fatal(err)
		}
		m := newMachine(f.Grammar().build(nil))
		if got := m.situations[m.read(m.start, []byte(c.text))].whole; got != c.want {
			t.Errorf("%s, strict %v: %s: got %v, want %v", c.schema, c.strict, c.text, got, c.want)
		}
	}
}
