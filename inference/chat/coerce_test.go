package chat

import (
	"strings"
	"testing"
)

func TestCoercion(t *testing.T) {
	for _, tt := range []struct{ key, value, want string }{
		{"s", "null", `"null"`}, {"s", "12", `"12"`}, {"s", "", `""`}, {"s", " x ", `" x "`},
		{"any", "12", `"12"`}, {"any", "", `""`}, {"undeclared", "[1]", `"[1]"`}, {"color", "red", `"red"`},
		{"ns", "null", `null`}, {"ns", "None", `null`}, {"ns", " NULL ", `null`}, {"ns", "nullify", `"nullify"`}, {"ns", "no", `"no"`}, {"ns", "", `""`},
		{"opt", "null", `null`}, {"opt", "5", `5`}, {"opt", "x", `"x"`}, {"opt", "", ``},
		{"i", "5", `5`}, {"i", " -5 ", `-5`}, {"i", "3.0", `3`}, {"i", "+7", `7`}, {"i", "007", `7`}, {"i", "-0", `0`}, {"i", "1e3", `1000`},
		{"i", "9007199254740993", `9007199254740993`}, {"i", "123456789012345678901234567890", `123456789012345678901234567890`},
		// Seen elsewhere: an integer that does not parse drops the call.
		{"i", "five", `"five"`}, {"i", "3.5", `"3.5"`}, {"i", "0x10", `"0x10"`}, {"i", "1_000", `"1_000"`}, {"i", "NaN", `"NaN"`}, {"i", "1e400", `"1e400"`},
		{"n", "1.5", `1.5`}, {"n", "3.0", `3`}, {"n", "3", `3`}, {"n", "-2.50", `-2.50`}, {"n", ".5", `0.5`}, {"n", "1e-7", `1e-7`}, {"n", "1e300", `1e300`},
		{"n", "1,5", `"1,5"`}, {"n", "inf", `"inf"`}, {"n", "--1", `"--1"`}, {"n", "1e+-1", `"1e+-1"`}, {"n", ".", `"."`}, {"n", "e5", `"e5"`},
		{"b", "true", `true`}, {"b", "True", `true`}, {"b", "FALSE", `false`}, {"b", "yes", `"yes"`}, {"b", "1", `"1"`},
		{"a", `[1, "x"]`, `[1,"x"]`}, {"a", `['a', True, None, (1,)]`, `["a",true,null,[1]]`}, {"a", `"[1, 2]"`, `[1,2]`}, {"a", `[1`, `"[1"`}, {"a", `"x"`, `"\"x\""`},
		{"o", `{"b":1,"a":2}`, `{"b":1,"a":2}`}, {"o", `{'a': 'it\'s', 'b': 1e-6}`, `{"a":"it's","b":1e-6}`}, {"o", "{\n  \"a\": 1.0\n}", `{"a":1.0}`}, {"o", "{a}", `"{a}"`},
		{"o", "{\"a\":\"x\ny\"}", `{"a":"x\ny"}`}, {"o", `{'re': '\d'}`, `{"re":"\\d"}`},
		{"ref", `{"x":1}`, `{"x":1}`}, {"all", `{"x":1}`, `{"x":1}`}, {"en", "2", `2`}, {"en", "null", `null`},
		// Seen elsewhere: a nullable array is not understood, and arrays are encoded twice.
		{"na", `[1]`, `[1]`}, {"na", `null`, `null`}, {"na", `"[\"a\"]"`, `["a"]`},
		// Seen elsewhere: a schema without a type leaves an object a string.
		{"loose", `{"x":1}`, `{"x":1}`}, {"loose", "5", `"5"`}, {"loose", "{'x':1}", `"{'x':1}"`}, {"items", `["a"]`, `["a"]`},
		// Seen elsewhere: an empty tag of a type that is not string fails; it means "unset".
		{"i", "", ``}, {"n", " ", ``}, {"b", "", ``}, {"a", "", ``}, {"o", "\n", ``}, {"loose", "", ``},
	} {
		text := "<tool_call>\n<function=typed>\n<parameter=" + tt.key + ">\n" + tt.value + closed
		want := "{}"
		if tt.want != "" {
			want = `{"` + tt.key + `":` + tt.want + `}`
		}
		a := parseEverySplit(t, ParserOptions{Tools: testTools}, EndStop, text)
		if len(a.Calls) != 1 || string(a.Calls[0].Arguments) != want {
			t.Errorf("%s %q: got %s, want %s", tt.key, tt.value, show(a), want)
		}
	}
}

// Values whose type needs no quotes end at the first closing tag, whatever follows.
func TestTypedValuesEndEarly(t *testing.T) {
	text := "<tool_call>\n<function=typed>\n<parameter=i>\n5\n</parameter>\n<parameter=made_up>\nx\n</parameter>\n<parameter=o>\n{\"a\": \"</parameter>\\n\"}\n</parameter>\nwell\n</function>\n</tool_call>"
	a := parseEverySplit(t, ParserOptions{Tools: testTools}, EndStop, text)
	if got, want := string(a.Calls[0].Arguments), `{"i":5,"made_up":"x","o":{"a":"</parameter>\n"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A value nested beyond reason stays the string it is.
func TestDeepValueStaysString(t *testing.T) {
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	if v, ok := coerce(paramType{kind: containerType}, deep); !ok || v.kind != jsonString {
		t.Errorf("got %v, want the string", v.kind)
	}
}
