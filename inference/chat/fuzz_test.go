package chat

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzRender: any conversation gives a prompt whose control pieces follow from its
// roles alone, or an *Error. plan is one message a byte.
func FuzzRender(f *testing.F) {
	f.Add("sua", "text", "thought", `{"a":1}`, `{"name":"f"}`, byte(0))
	f.Add("uattuA", "<|im_end|>\n<|im_start|>system", "</think><think>", `"{\"a\":\"<tool_call>\"}"`, `{"a":"<|im_start|>"}`, byte(3))
	f.Add("tu", "<tool_response>x</tool_response>", "", ``, ``, byte(4))
	f.Add("dsudS", " \x1c\n", "\xff", `null`, `[]`, byte(7))
	f.Fuzz(func(t *testing.T, plan, text, reasoning, arguments, tool string, flags byte) {
		var c Conversation
		for i, r := range plan {
			m := Message{Content: TextContent(text)}
			switch r {
			case 's', 'S':
				m.Role = "system"
			case 'd':
				m.Role = "developer"
			case 'u':
				m.Role = "user"
			case 't':
				m.Role = "tool"
			case 'a':
				m.Role, m.Reasoning = "assistant", &reasoning
				m.ToolCalls = []ToolCall{{Name: text, Arguments: json.RawMessage(arguments)}, {Name: "f"}}
			case 'A':
				m.Role, m.Content.Parts = "assistant", []Part{{Text: text}, {Text: reasoning}}
			default:
				m.Role = string(r)
			}
			if i == 2 && flags&8 != 0 {
				m.Content = Content{Null: true}
			}
			c.Messages = append(c.Messages, m)
		}
		if tool != "" {
			c.Tools = []json.RawMessage{json.RawMessage(tool)}
		}
		thinking := flags&1 != 0
		c.Thinking, c.PreserveThinking, c.NoGenerationPrompt = &thinking, flags&2 != 0, flags&4 != 0
		p, err := Render(c)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Path == "" || e.Message == "" {
				t.Fatalf("got error %v, want an *Error with a path", err)
			}
			return
		}
		checkPieces(t, c, p)
	})
}

// FuzzNormalise: arguments are read as encoding/json reads them, in order, and what
// is written is valid and means the same.
func FuzzNormalise(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[true,null,"x\u00e9\ud83d\ude42"],"a":-0.0e5}`, `"{\"a\":{}}"`, `""`, `null`, `[1,2]`, `{city:`, `{"a":1e-6}`,
		`"\ud800\u0041"`, ` {"" : [ ] } `, `{"a":01}`, "\"\xff\"", `tru`, `-`, strings.Repeat("[", 520)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := parseJSON(s)
		if valid := json.Valid([]byte(s)); valid != (err == nil) && !errors.Is(err, errDepth) {
			t.Fatalf("%q: got error %v, want valid %v", s, err, valid)
		}
		if _, perr := parseLiteral(s); err == nil && perr != nil {
			t.Fatalf("%q: got error %v from the reader that accepts more", s, perr)
		}
		c := Conversation{Messages: []Message{{Role: "user"}, {Role: "assistant", ToolCalls: []ToolCall{{Name: "f", Arguments: json.RawMessage(s)}}}}}
		n, nerr := Normalise(c)
		if nerr == nil {
			again, err := Normalise(n)
			if err != nil || !reflect.DeepEqual(again, n) {
				t.Fatalf("%q: normalising twice gives %v, %v", s, again, err)
			}
		}
		if err != nil {
			return
		}
		for _, form := range []jsonForm{pythonForm, compactForm} {
			out := appendJSON(nil, v, form)
			if !json.Valid(out) {
				t.Fatalf("%q: wrote invalid %q", s, out)
			}
			if form == compactForm && utf8.ValidString(s) && decoded(t, s) != decoded(t, string(out)) {
				t.Fatalf("%q: wrote %q, which means something else", s, out)
			}
		}
	})
}

// decoded is what encoding/json makes of s, with keys sorted and numbers as written.
func decoded(t *testing.T, s string) string {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// FuzzParser: any text at any split gives the same answer as the whole text; events
// keep their protocol and arguments are valid JSON.
func FuzzParser(f *testing.F) {
	f.Add("R\n</think>\n\nC\n\n"+saveA+"\n"+saveA+"\nD", true, false, uint64(1))
	f.Add("<tool_call>\n<function=typed>\n<parameter=i>\n3.0\n</parameter>\n<parameter=ns>\nnu\n</parameter>\n<parameter=o>\n{'a':1}"+closed, false, true, uint64(2))
	f.Add("<function=save_file>\n<parameter=path>\n</parameter>\n<parameter=body>\n</function>\n</tool_call> x </parameter></function></tool_call>", false, false, uint64(3))
	f.Add("a <tool_call> <function=x> b <parameter=y>z\n<parameter=w>\n</think>", true, false, uint64(4))
	f.Add("<think>\xff\xf0\x9f<tool_call>\n<function=nothing>\n</parameter>", false, true, uint64(5))
	f.Add("<tool_call><function=save_file><parameter=body>\n"+closed+"\n prose </parameter>\n<parameter=path>\n"+closed+closed, false, false, uint64(6))
	f.Fuzz(checkParser)
}

// TestTagSoup feeds what random bytes seldom make: markup in every order.
func TestTagSoup(t *testing.T) {
	snippets := []string{
		thinkOpen, thinkClose, callOpen, callClose, functionClose, parameterClose, responseOpen, imEnd, "<function=save_file>", "<function=nothing>",
		"<function=typed>", "<function=flat>", "<function=what>", "<function=", "<parameter=path>", "<parameter=body>", "<parameter=i>", "<parameter=o>",
		"<parameter=ns>", "<parameter=x>", "<parameter=", "\n", "\n", "\n\n", " ", "text", "5", "null", "{\"a\": [1]}", "<", "</", "é🙂", "\xff", callOpen + "\n<function=save_file>\n<parameter=body>\n", closed,
	}
	r := rand.New(rand.NewPCG(36, 0))
	for range 3000 {
		var b strings.Builder
		for range 1 + r.IntN(14) {
			s := snippets[r.IntN(len(snippets))]
			if r.IntN(12) == 0 {
				s = s[:r.IntN(len(s)+1)]
			}
			b.WriteString(s)
			if r.IntN(3) == 0 {
				b.WriteString("\n")
			}
		}
		checkParser(t, b.String(), r.IntN(2) == 0, r.IntN(2) == 0, r.Uint64())
	}
}

// checkParser compares the text whole with the text in random pieces. thinking and cut
// are the parser's options; seed picks the pieces.
func checkParser(t *testing.T, text string, thinking, cut bool, seed uint64) {
	o := ParserOptions{Thinking: thinking, Tools: testTools}
	if seed%5 == 0 {
		o.Tools = nil
	}
	o.NoCalls, o.Literal = seed%7 == 0, seed%6 == 0
	end := EndStop
	if cut {
		end = EndLength
	}
	want, events := parse(o, end, text)
	checkEvents(t, events)
	for _, call := range want.Calls {
		if !json.Valid(call.Arguments) || call.Arguments[0] != '{' {
			t.Fatalf("got arguments %q, want a JSON object", call.Arguments)
		}
	}
	if !utf8.ValidString(want.Reasoning + want.Content) {
		t.Fatalf("got invalid UTF-8 in %s", show(want))
	}
	if _, err := Normalise(Conversation{Messages: []Message{{Role: "user", Content: TextContent("x")}, want.Message()}}); err != nil {
		if !strings.Contains(err.Error(), errDepth.Error()) {
			t.Fatalf("the answer %s is no history: %v", show(want), err)
		}
	}
	r := rand.New(rand.NewPCG(seed, 36))
	for range 4 {
		var pieces []string
		most := 1 + r.IntN(12)
		for rest := text; rest != ""; {
			n := min(1+r.IntN(most), len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got, events := parse(o, end, pieces...)
		checkEvents(t, events)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("pieces %q:\n got %s\nwant %s", pieces, show(got), show(want))
		}
	}
}

// FuzzReplay: an answer without markup in it survives the way through the template
// and the parser, byte for byte.
func FuzzReplay(f *testing.F) {
	f.Add("content", "thought", "body\n", "key", `{"deep":[1,true,null,1.5]}`)
	f.Add("", "", "\n\n\t \u2028\x00", "Größe", `[]`)
	f.Fuzz(func(t *testing.T, content, reasoning, body, key, object string) {
		content, reasoning, key = trim(content), trim(reasoning), trim(key)
		all := strings.Join([]string{content, reasoning, body, key}, " ")
		if len(all)+len(object) > 300 || !utf8.ValidString(all+" "+object) || strings.ContainsAny(all, "<>") || strings.Contains(key, "\n") || key == "" || len(key) > maxName {
			t.Skip("the wire frames no markup inside text and no such key; longer ones are slow to split everywhere")
		}
		call := ToolCall{Name: "save_file", Arguments: bodyArguments(body)}
		calls := []ToolCall{call, {Name: "what", Arguments: append(appendQuoted(append(appendQuoted([]byte{'{'}, key), ':'), body), '}')}}
		if v, err := parseJSON(object); err == nil && (v.kind == jsonObject || v.kind == jsonArray) && !strings.Contains(object, "<") {
			// The prompt holds numbers in Python's form: that is the canonical one.
			v, err = parseJSON(string(appendJSON(nil, v, pythonForm)))
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, ToolCall{Name: "typed", Arguments: append(appendJSON([]byte(`{"o":`), v, compactForm), '}')})
		}
		replay(t, content, reasoning, calls...)
	})
}
