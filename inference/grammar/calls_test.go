package grammar

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pond/inference/chat"
)

func tools() []json.RawMessage {
	return []json.RawMessage{
		json.RawMessage(`{"type":"function","function":{"name":"save_file","parameters":{"type":"object","properties":{"path":{"type":"string"},"body":{"type":"string"},"mode":{"type":"string","enum":["add","over"]},"lines":{"type":"integer","minimum":1,"maximum":30}},"required":["path","body"]}}}`),
		json.RawMessage(`{"type":"function","function":{"name":"move","parameters":{"type":"object","properties":{"to":{"$ref":"#/$defs/point"},"fast":{"type":["boolean","null"]}},"required":["to"],"$defs":{"point":{"type":"object","properties":{"x":{"type":"number"},"y":{"type":"number"}},"required":["x","y"],"additionalProperties":false}}}}}`),
		json.RawMessage(`{"name":"now"}`),
		json.RawMessage(`{"name":"log","parameters":{"type":"object","properties":{"n":{"type":"integer","not":{}}},"required":["n"],"additionalProperties":true}}`),
	}
}

func parse(text string) chat.Answer {
	p := chat.NewParser(chat.ParserOptions{Tools: tools()})
	var a chat.Answer
	a.Apply(p.Push(text))
	a.Apply(p.Close(chat.EndStop))
	return a
}

// What the masks let through reads as calls with all that is required, whatever the free texts in them.
func TestCallsAreWhole(t *testing.T) {
	v := made(900)
	g, err := Calls(tools(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	b := g.Bind(v)
	rnd := rand.New(rand.NewPCG(1, 9))
	names := map[string]int{}
	whole, steps := 0, 0
	for range 150 {
		m := b.Start()
		var text, planned []byte // planned is the end of a value, written byte by byte as far as it is allowed
		for len(text) < 600 && !(m.Whole() && (rnd.IntN(2) == 0 || m.Ended())) {
			mask := m.Mask()
			if steps++; steps%7 == 0 {
				if want := slowMask(m.m, v, m.at); !slices.Equal(mask, want) {
					for id := range int32(v.size) {
						if has(mask, id) != has(want, id) {
							t.Fatalf("behind %q, token %q: got allowed %v, want %v", text, v.bytes[id], has(mask, id), has(want, id))
						}
					}
				}
			}
			if len(planned) == 0 && rnd.IntN(12) == 0 {
				planned = []byte([]string{"\n</parameter>\n<parameter=", "\n</parameter>\n</function>", "</parameter></parameter></function>", "</function>\n", "</param</parameter>\n</x"}[rnd.IntN(5)])
			}
			if strings.HasSuffix(string(text), "<parameter=") && rnd.IntN(2) == 0 {
				planned = []byte("n>\n")
			}
			id := int32(-1)
			if len(planned) > 0 {
				id, planned = int32(planned[0]), planned[1:]
				if !has(mask, id) {
					id, planned = -1, nil
				}
			}
			for id < 0 || !has(mask, id) || slices.Contains(v.stops, id) {
				id = rnd.Int32N(int32(v.size))
			}
			if err := m.Accept(id); err != nil {
				t.Fatal(err)
			}
			text = append(text, v.bytes[id]...)
		}
		if !m.Whole() {
			continue
		}
		whole++
		a := parse(string(text))
		if a.Content != "" || len(a.Calls) == 0 {
			t.Fatalf("%q: got content %q and %d calls", text, a.Content, len(a.Calls))
		}
		for _, c := range a.Calls {
			names[c.Name]++
			var args map[string]any
			if err := json.Unmarshal(c.Arguments, &args); err != nil {
				t.Fatal(err)
			}
			for _, need := range map[string][]string{"save_file": {"path", "body"}, "move": {"to"}, "log": {"n"}}[c.Name] {
				if _, ok := args[need]; !ok {
					t.Errorf("%q: got %s without %s", text, c.Arguments, need)
				}
			}
			if to, ok := args["to"]; ok && c.Name == "move" {
				if p, ok := to.(map[string]any); !ok || len(p) != 2 {
					t.Errorf("%q: got %v, want a point", text, to)
				}
			}
			if mode, ok := args["mode"]; ok && c.Name == "save_file" && mode != "add" && mode != "over" {
				t.Errorf("%q: got mode %v, want one of the two", text, mode)
			}
		}
	}
	if whole < 30 || len(names) < 3 {
		t.Errorf("got %d whole answers with calls %v, want many of each", whole, names)
	}
}

// A tool that is strict is called as it is declared, and the model says what it likes before it, or without it.
func TestTextOrCalls(t *testing.T) {
	for _, special := range []bool{true, false} {
		v := made(900)
		if !special {
			v = nil
		}
		g, err := TextOrCalls(tools(), false)
		if err != nil {
			t.Fatal(err)
		}
		n, root := g.build(v)
		m := newMachine(n, root)
		read := func(text string) (at int32) {
			at = m.start
			for text != "" && at != 0 {
				if rest, ok := strings.CutPrefix(text, callOpen); ok && special {
					at, text = m.step(at, symCallOpen), rest
				} else if rest, ok := strings.CutPrefix(text, callClose); ok && special {
					at, text = m.step(at, symCallClose), rest
				} else {
					at, text = m.step(at, symbol(text[0])), text[1:]
				}
			}
			return at
		}
		const save = callOpen + "\n<function=save_file>\n<parameter=path>\na\n</parameter>\n<parameter=body>\nx < y <b>\n</parameter>\n</function>\n" + callClose
		for text, want := range map[string]bool{
			"":                               true,
			"Hello, é 🌍 < > <b> <tool <func": true,
			"a <<tool_cal l> <<function x>":  true,
			save:                             true,
			"I save it. <\n\n" + save:        true,
			save + "\n" + callOpen + "\n<function=now>\n</function>\n" + callClose: true,
			"a" + callOpen + "\n<function=other>":                                  false,
			callOpen + "\n<function=save_file>\n</function>":                       false,
			callOpen + "\n<function=log>\n<parameter=n>\nx":                        false,
			"a <function=": false,
			save + "b":     false,
		} {
			if at := read(text); (at != 0 && m.situations[at].whole) != want {
				t.Errorf("special %v, %q: got a whole answer %v, want %v", special, text, !want, want)
			}
		}
		if !special {
			continue
		}
		// Every mask is the one that is found the slow way.
		for _, text := range []string{"", "a", "a <", "a <tool_cal", "<functio", "x <<", callOpen, callOpen + "\n<function="} {
			at := read(text)
			if !slices.Equal(m.mask(v, at), slowMask(m, v, at)) {
				t.Errorf("%q: the mask differs from the slow one", text)
			}
		}
	}
}

// reads reports whether an answer may be text, whose call tags are tokens.
func reads(b *Bound, text string) bool {
	m := b.m
	at := m.start
	for text != "" && at != 0 {
		switch {
		case strings.HasPrefix(text, callOpen) && m.step(at, symCallOpen) != 0:
			at, text = m.step(at, symCallOpen), text[len(callOpen):]
		case strings.HasPrefix(text, callClose) && m.step(at, symCallClose) != 0:
			at, text = m.step(at, symCallClose), text[len(callClose):]
		default:
			at, text = m.step(at, symbol(text[0])), text[1:]
		}
	}
	return m.situations[at].whole
}

// Cases 7 and 8: a free text may hold anything, and mention the tags that frame it; no quoting, no end at the first line.
func TestFreeTextStaysFree(t *testing.T) {
	g, err := Calls(tools(), "save_file", true)
	if err != nil {
		t.Fatal(err)
	}
	b := g.Bind(made(1000))
	frame := func(body string) string {
		return "<tool_call>\n<function=save_file>\n<parameter=path>\na.py\n</parameter>\n<parameter=body>\n" + body + "\n</parameter>\n</function>\n</tool_call>"
	}
	for _, body := range []string{
		"Close with </parameter> then </tool_call>.\nEnd.",
		"import calendar\nfor m in range(1, 13):\n\tprint(\"%s\" % calendar.month_name[m])\n",
		"Ōsaka, Saint-Étienne 😀 \"quoted\" 'too' \\n",
		"<html><p>a</p></html>", "a < b </ <p <f </function> </function", "</parameter>", "</parameter>\n<p>", "", "\n\n", "<parameter=path>",
		"<tool_call>\n<function=save_file>\n",
	} {
		text := frame(body)
		if !reads(b, text) {
			t.Errorf("body %q: got no way through, want it free", body)
			continue
		}
		var args struct{ Body string }
		a := parse(text)
		if len(a.Calls) != 1 || json.Unmarshal(a.Calls[0].Arguments, &args) != nil || args.Body != body {
			t.Errorf("got %+v, want the body %q", a, body)
		}
	}
	for why, text := range map[string]string{
		"without a required parameter": "<tool_call>\n<function=save_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
		"of another tool":              "<tool_call>\n<function=now>\n</function>\n</tool_call>",
		"twice":                        frame("x") + "\n" + frame("y"),
		"behind prose":                 "Let me save it.\n" + frame("x"),
		"with a value off its list":    strings.Replace(frame("x"), "<parameter=body>", "<parameter=mode>\nunder\n</parameter>\n<parameter=body>", 1),
		"with a number out of range":   strings.Replace(frame("x"), "<parameter=body>", "<parameter=lines>\n31\n</parameter>\n<parameter=body>", 1),
	} {
		if reads(b, text) {
			t.Errorf("a call %s: got a way through", why)
		}
	}
}

func TestSchemaOrCalls(t *testing.T) {
	f, err := Schema([]byte(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`), true)
	if err != nil {
		t.Fatal(err)
	}
	g, err := OrCalls(f.Grammar(), tools(), false)
	if err != nil {
		t.Fatal(err)
	}
	b := g.Bind(made(1000))
	now := "<tool_call>\n<function=now>\n</function>\n</tool_call>"
	for text, want := range map[string]bool{`{"a": 1}`: true, now: true, now + "\n" + now: true, `{"a": 1}` + now: false, now + `{"a": 1}`: false, "": false} {
		if got := reads(b, text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
