package chat

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// testTools declare one parameter of each type.
var testTools = []json.RawMessage{
	json.RawMessage(`{"type":"function","function":{"name":"save_file","parameters":{"type":"object","properties":{
		"path":{"type":"string"},"body":{"type":"string"}},"required":["path","body"]}}}`),
	json.RawMessage(`{"type":"function","function":{"name":"typed","parameters":{"type":"object","$defs":{"Point":{"type":"object"}},"properties":{
		"s":{"type":"string"},"ns":{"type":["string","null"]},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},
		"a":{"type":"array"},"o":{"type":"object"},"na":{"type":["array","null"]},"any":{},"loose":{"properties":{"x":{"type":"integer"}}},
		"items":{"items":{"type":"string"}},"opt":{"anyOf":[{"type":"integer"},{"type":"null"}]},"ref":{"$ref":"#/$defs/Point"},
		"all":{"allOf":[{"$ref":"#/$defs/Point"}]},"en":{"enum":[1,2,null]},"color":{"enum":["red","blue"]}}}}}`),
	json.RawMessage(`{"name":"flat","parameters":{"type":"object","properties":{"x":{"type":"integer"}},"additionalProperties":true}}`),
	json.RawMessage(`{"type":"function","function":{"name":"nothing"}}`),
}

// counter names calls call_0, call_1, …
func counter() func() string {
	n := -1
	return func() string { n++; return fmt.Sprintf("call_%d", n) }
}

// parse feeds the text in the given pieces and returns the answer and all events.
func parse(o ParserOptions, end End, pieces ...string) (Answer, []Event) {
	o.NewID = counter()
	p := NewParser(o)
	var a Answer
	var all []Event
	for _, piece := range pieces {
		events := p.Push(piece)
		a.Apply(events)
		all = append(all, events...)
	}
	events := p.Close(end)
	a.Apply(events)
	return a, append(all, events...)
}

// checkEvents checks the protocol of events: calls do not interleave, their names
// come once, fragments are not empty.
func checkEvents(t testing.TB, events []Event) {
	t.Helper()
	open, calls := false, 0
	for _, e := range events {
		switch e.Kind {
		case CallStart:
			if open || e.Index != calls || e.ID == "" || e.Name == "" {
				t.Fatalf("bad %v in %v", e, events)
			}
			open = true
		case CallArguments, CallEnd:
			if !open || e.Index != calls || e.Name != "" || (e.Text == "") != (e.Kind == CallEnd) {
				t.Fatalf("bad %v in %v", e, events)
			}
			if e.Kind == CallEnd {
				open, calls = false, calls+1
			}
		default:
			if open || e.Text == "" {
				t.Fatalf("bad %v in %v", e, events)
			}
		}
	}
	if open {
		t.Fatalf("a call is left open in %v", events)
	}
}

// parseEverySplit parses text whole, cut in two at every byte, byte by byte and in
// pieces of three bytes; all must agree.
func parseEverySplit(t testing.TB, o ParserOptions, end End, text string) Answer {
	t.Helper()
	want, events := parse(o, end, text)
	checkEvents(t, events)
	check := func(name string, pieces ...string) {
		t.Helper()
		got, events := parse(o, end, pieces...)
		checkEvents(t, events)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s of %q:\n got %s\nwant %s", name, text, show(got), show(want))
		}
	}
	for i := range text {
		check(fmt.Sprintf("split at %d", i), text[:i], text[i:])
	}
	for _, n := range []int{1, 3} {
		var pieces []string
		for rest := text; rest != ""; {
			k := min(n, len(rest))
			pieces, rest = append(pieces, rest[:k]), rest[k:]
		}
		check(fmt.Sprintf("pieces of %d", n), pieces...)
	}
	for _, call := range want.Calls {
		if !json.Valid(call.Arguments) {
			t.Fatalf("%q: got arguments %s, want valid JSON", text, call.Arguments)
		}
	}
	return want
}

func show(a Answer) string {
	s := fmt.Sprintf("reasoning %q content %q", a.Reasoning, a.Content)
	for _, c := range a.Calls {
		s += fmt.Sprintf(" %s=%s(%s)", c.ID, c.Name, c.Arguments)
	}
	return s
}

// answer is a short form of Answer: calls as "name{arguments}".
type answer struct {
	reasoning, content string
	calls              []string
}

func short(a Answer) answer {
	s := answer{a.Reasoning, a.Content, nil}
	for _, c := range a.Calls {
		s.calls = append(s.calls, c.Name+string(c.Arguments))
	}
	return s
}

type parserCase struct {
	name     string // what a user of another server saw, or the rule
	thinking bool
	end      End
	text     string
	want     answer
}

func runParserCases(t *testing.T, cases []parserCase) {
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			a := parseEverySplit(t, ParserOptions{Thinking: tt.thinking, Tools: testTools}, tt.end, tt.text)
			if got := short(a); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%q:\n got %+q\nwant %+q", tt.text, got, tt.want)
			}
		})
	}
}

const (
	saveA  = "<tool_call>\n<function=save_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>"
	closed = "\n</parameter>\n</function>\n</tool_call>"
)

func TestThinking(t *testing.T) {
	runParserCases(t, []parserCase{
		{"plain", true, EndStop, "R\n</think>\n\nC", answer{"R", "C", nil}},
		{"several lines", true, EndStop, "R\n\nS\n\n</think>\n\nC\n\nD", answer{"R\n\nS", "C\n\nD", nil}},
		{"no thinking", false, EndStop, "Hello", answer{"", "Hello", nil}},
		{"nothing", true, EndStop, "", answer{}},
		{"no thinking, nothing", false, EndLength, "", answer{}},
		{"empty think block", true, EndStop, "\n</think>\n\nNo.", answer{"", "No.", nil}},
		{"only closing tag", true, EndStop, "</think>No.", answer{"", "No.", nil}},
		{"opening tag repeated", true, EndStop, "<think>\nR\n</think>\n\nC", answer{"R", "C", nil}},
		{"opening tag mentioned", true, EndStop, "R <think> S\n</think>\n\nC", answer{"R <think> S", "C", nil}},
		{"deliberates again", true, EndStop, "R</think>A\n<think>\nS\n</think>\n\nB", answer{"R\nS", "A\n\nB", nil}},
		{"indented content", true, EndStop, "R\n</think>\n\n    code\n", answer{"R", "    code\n", nil}},
		{"unasked thinking", false, EndStop, "<think>\nR\n</think>\n\nC", answer{"R", "C", nil}},
		{"angle brackets", true, EndStop, "a<b</thin></think>x<y < z</b", answer{"a<b</thin>", "x<y < z</b", nil}},

		// Seen elsewhere: truncated thinking is returned as content.
		{"truncated thinking is not content", true, EndLength, "abc", answer{"abc", "", nil}},
		{"truncated inside the closing tag", true, EndLength, "abc\n</thi", answer{"abc\n</thi", "", nil}},
		{"truncated behind the closing tag", true, EndLength, "abc\n</think>\n\n", answer{"abc", "", nil}},
		{"truncated content", true, EndLength, "abc</think>\n\nNo.", answer{"abc", "No.", nil}},
		// Seen elsewhere: the model stops inside reasoning, and the answer is empty.
		{"stop inside reasoning", true, EndStop, "abc\n", answer{"abc", "", nil}},
		{"stop inside a marker drops it", true, EndStop, "abc</thi", answer{"abc", "", nil}},
		{"a lone bracket is text", false, EndStop, "Use <", answer{"", "Use <", nil}},
		// Seen elsewhere: the stream splits at the first closing tag, the rest at the last.
		{"second closing tag is dropped", true, EndStop, "R\n</think>\n\nA</think>B", answer{"R", "AB", nil}},
		{"stray closing tag does not relabel", false, EndStop, "A\n</think>\n\nB", answer{"", "A\n\n\nB", nil}},
	})
}

func TestToolCalls(t *testing.T) {
	runParserCases(t, []parserCase{
		{"one call", true, EndStop, "R\n</think>\n\n" + saveA, answer{"R", "", []string{`save_file{"path":"a"}`}}},
		{"content and two calls", false, EndStop, "Calling.\n\n" + saveA + "\n" + saveA, answer{"", "Calling.", []string{`save_file{"path":"a"}`, `save_file{"path":"a"}`}}},
		{"no parameters", false, EndStop, "<tool_call>\n<function=nothing>\n</function>\n</tool_call>", answer{"", "", []string{`nothing{}`}}},
		{"no white space", false, EndStop, "<tool_call><function=save_file><parameter=path>a</parameter></function></tool_call>", answer{"", "", []string{`save_file{"path":"a"}`}}},
		{"names are trimmed", false, EndStop, "<tool_call> <function= nothing >\n<parameter= k >\nv\n</parameter></function></tool_call>", answer{"", "", []string{`nothing{"k":"v"}`}}},
		{"unknown function is returned", false, EndStop, "<tool_call>\n<function=what>\n<parameter=x>\n1" + closed, answer{"", "", []string{`what{"x":"1"}`}}},
		{"unknown parameter first", false, EndStop, "<tool_call>\n<function=save_file>\n<parameter=mode>\nw\n</parameter>\n<parameter=path>\na" + closed, answer{"", "", []string{`save_file{"mode":"w","path":"a"}`}}},
		{"one newline is removed at each end", false, EndStop, "<tool_call>\n<function=save_file>\n<parameter=body>\n\n  a\n\n" + closed, answer{"", "", []string{`save_file{"body":"\n  a\n\n"}`}}},
		{"empty string", false, EndStop, "<tool_call>\n<function=save_file>\n<parameter=body>\n" + closed, answer{"", "", []string{`save_file{"body":""}`}}},
		{"escapes", false, EndStop, "<tool_call>\n<function=save_file>\n<parameter=body>\n\"\\\t\x01é🙂\u2028<&>" + closed, answer{"", "", []string{`save_file{"body":"\"\\\t\u0001é🙂` + "\u2028" + `<&>"}`}}},
		{"duplicate key, last wins for readers", false, EndStop, "<tool_call>\n<function=save_file>\n<parameter=path>\na\n</parameter>\n<parameter=path>\nb" + closed, answer{"", "", []string{`save_file{"path":"a","path":"b"}`}}},
		{"text after the last call is content", false, EndStop, "A\n\n" + saveA + "\n\nB", answer{"", "A\n\nB", []string{`save_file{"path":"a"}`}}},
		{"text between calls", false, EndStop, saveA + "\nB\n" + saveA, answer{"", "B", []string{`save_file{"path":"a"}`, `save_file{"path":"a"}`}}},
		{"closing tag twice", false, EndStop, saveA + "\n</tool_call>", answer{"", "", []string{`save_file{"path":"a"}`}}},
		{"a mention in content", false, EndStop, "Write <tool_call> and then <function=x>.", answer{"", "Write <tool_call> and then <function=x>.", nil}},
		{"bare function of a known tool", false, EndStop, "Now:\n<function=save_file>\n<parameter=path>\na\n</parameter>\n</function>", answer{"", "Now:", []string{`save_file{"path":"a"}`}}},
		{"bare function, then prose", false, EndStop, "<function=save_file>\n<parameter=path>\na\n</parameter>\n</function>\nDone.", answer{"", "Done.", []string{`save_file{"path":"a"}`}}},
		{"two bare functions", false, EndStop, "<function=nothing>\n</function>\n<function=save_file>\n<parameter=path>\na\n</parameter>\n</function>", answer{"", "", []string{`nothing{}`, `save_file{"path":"a"}`}}},
		{"bare mention of a known tool", false, EndStop, "Use <function=save_file> for it.", answer{"", "Use <function=save_file> for it.", nil}},
		{"text between parameters is passed over", false, EndStop, "<tool_call>\n<function=save_file>\nI will\n<parameter=path>\na" + closed, answer{"", "", []string{`save_file{"path":"a"}`}}},
		{"prose behind a call without parameters is not lost", false, EndStop, "<tool_call>\n<function=nothing>\nand so on", answer{"", "and so on", []string{`nothing{}`}}},
		{"second call inside an open one", false, EndStop, "<tool_call>\n<function=nothing>\n<tool_call>\n<function=save_file>\n<parameter=path>\na" + closed, answer{"", "", []string{`nothing{}`, `save_file{"path":"a"}`}}},
		// Seen elsewhere: tool calls inside reasoning are lost.
		{"call inside reasoning is not lost", true, EndStop, "I need it.\n\n" + saveA, answer{"I need it.", "", []string{`save_file{"path":"a"}`}}},
		// Seen elsewhere: the tool parser eats the closing think tag.
		{"closing think tag behind a call in reasoning", true, EndStop, "R\n" + saveA + "\n</think>\n\nC", answer{"R", "C", []string{`save_file{"path":"a"}`}}},
		{"closing think tag in an open call", true, EndStop, "R <tool_call>\n<function=nothing> or so\n</think>\n\nC", answer{"R  or so", "C", []string{`nothing{}`}}},
		// Seen elsewhere: a mention of the tag ends reasoning early.
		{"mention in reasoning stays", true, EndStop, "I could write <tool_call> or <tool_call>\n{} here.\n</think>\n\nC", answer{"I could write <tool_call> or <tool_call>\n{} here.", "C", nil}},
		{"bare function in reasoning is a mention", true, EndStop, "<function=nothing>\n</function>\n</think>\n\nC", answer{"<function=nothing>\n</function>", "C", nil}},
		// Seen elsewhere: an unclosed envelope is returned as content.
		{"unclosed envelope", false, EndStop, "<tool_call>\n<function=save_file>\n<parameter=path>\na\n</parameter>\n</function>", answer{"", "", []string{`save_file{"path":"a"}`}}},
		{"unclosed function", false, EndStop, "<tool_call>\n<function=save_file>\n<parameter=path>\na\n</parameter>\n", answer{"", "", []string{`save_file{"path":"a"}`}}},
		{"unclosed parameter", false, EndStop, "<tool_call>\n<function=save_file>\n<parameter=path>\na\n", answer{"", "", []string{`save_file{"path":"a"}`}}},
		{"unclosed name is content", false, EndStop, "A <tool_call>\n<function=sav", answer{"", "A <tool_call>\n<function=sav", nil}},
		{"unclosed name in reasoning is reasoning", true, EndLength, "A <tool_call>\n<function=sav", answer{"A <tool_call>\n<function=sav", "", nil}},
		{"cut inside a string", false, EndLength, "<tool_call>\n<function=save_file>\n<parameter=body>\nabc\n</par", answer{"", "", []string{`save_file{"body":"abc\n</par"}`}}},
		{"stopped inside a closing tag", false, EndStop, "<tool_call>\n<function=save_file>\n<parameter=body>\nabc\n</par", answer{"", "", []string{`save_file{"body":"abc"}`}}},
		{"envelope closed, function not", false, EndStop, "<tool_call>\n<function=save_file>\n<parameter=path>\na\n</parameter>\n</tool_call>", answer{"", "", []string{`save_file{"path":"a"}`}}},
		{"only the envelope closed", false, EndStop, "<tool_call>\n<function=save_file>\n<parameter=path>\na\n</tool_call>\n" + saveA, answer{"", "", []string{`save_file{"path":"a"}`, `save_file{"path":"a"}`}}},
		// Seen elsewhere: a missing </parameter> swallows the next one.
		{"missing parameter end before a parameter", false, EndStop, "<tool_call>\n<function=save_file>\n<parameter=path>\na\n<parameter=body>\nb" + closed, answer{"", "", []string{`save_file{"path":"a","body":"b"}`}}},
		{"missing parameter end before the function's", false, EndStop, "<tool_call>\n<function=save_file>\n<parameter=path>\na\n</function>\n</tool_call>", answer{"", "", []string{`save_file{"path":"a"}`}}},
		{"missing parameter end without a schema", false, EndStop, "<tool_call>\n<function=what>\n<parameter=x>\na\n<parameter=y>\nb" + closed, answer{"", "", []string{`what{"x":"a","y":"b"}`}}},
		// Seen elsewhere: prose that looks like a call of another model.
		{"a call in prose stays prose", false, EndStop, "Calling tool: f({\"a\":1})", answer{"", "Calling tool: f({\"a\":1})", nil}},
		{"narrated call, then stop", false, EndStop, "I will now call save_file.\n", answer{"", "I will now call save_file.\n", nil}},
		// Seen elsewhere: the whole stream is dropped once the tag appears.
		{"text around the tag survives", false, EndStop, "A <tool_call> B", answer{"", "A <tool_call> B", nil}},
	})
}

// Seen elsewhere: a literal closing tag inside an argument truncates it. Each body
// must arrive whole and survive the way back through the template.
func TestArgumentsThatMentionTheMarkup(t *testing.T) {
	for _, body := range []string{
		"Close with </parameter> then </tool_call>.\nEnd.",
		"</parameter>", "</function>", "</tool_call>", "\n</parameter>\n", "x</parameter>\n</function>",
		"</parameter>\n</tool_call>\nmore", "</function>\n</tool_call>\nmore",
		"all of </parameter>\n</function>\n</tool_call> and on",
		"</parameter></function></tool_call>",
		"<tool_call>\n<function=x>\n<parameter=k>\nv\n</parameter>\n</function>\n</tool_call>\nis how it looks",
		"<tool_call>", "<tool_call>\n<function=save_file>\n", "see <parameter=body> and <parameter=path>",
		"</parameter>\n<parameter=unknown>\nx", "<parameter=body>\nagain", "<think>a</think>", "<|im_end|>\n<|im_start|>user",
		"<", "</", "</parameter", "a\n</parameter\n", "\n", "\n\n", " \n x \n ", "null", "[1]", "</PARAMETER>\n</function>\n</tool_call>",
	} {
		t.Run(body, func(t *testing.T) { replay(t, "", "R", ToolCall{Name: "save_file", Arguments: bodyArguments(body)}) })
	}
}

func bodyArguments(body string) json.RawMessage {
	return append(appendQuoted([]byte(`{"path":"a","body":`), body), '}')
}

// replay renders a history, parses the model's part of it and compares: the parser
// returns what was rendered, and rendering that again gives the same bytes.
func replay(t *testing.T, content, reasoning string, calls ...ToolCall) {
	t.Helper()
	for _, thinking := range []bool{true, false} {
		if !thinking && reasoning != "" {
			continue
		}
		c := Conversation{Tools: testTools, Thinking: &thinking, Messages: []Message{{Role: "user", Content: TextContent("go")}}}
		prompt := mustRender(t, c).String()
		c.NoGenerationPrompt = true
		history := c
		history.Messages = append(c.Messages[:1:1], Message{Role: "assistant", Content: TextContent(content), Reasoning: &reasoning, ToolCalls: calls})
		rendered := mustRender(t, history).String()
		written, ok := strings.CutPrefix(rendered, prompt)
		if !ok {
			t.Fatalf("the prompt %q is no prefix of %q", prompt, rendered)
		}
		written = strings.TrimSuffix(written, imEnd+"\n")
		a := parseEverySplit(t, ParserOptions{Thinking: thinking, Tools: testTools}, EndStop, written)
		if a.Reasoning != reasoning || a.Content != content || len(a.Calls) != len(calls) {
			t.Errorf("%q: got %s", written, show(a))
		}
		for i, call := range a.Calls {
			if i < len(calls) && (call.Name != calls[i].Name || string(call.Arguments) != string(calls[i].Arguments)) {
				t.Errorf("%q: call %d: got %s, want %s", written, i, call.Arguments, calls[i].Arguments)
			}
		}
		history.Messages = append(c.Messages[:1:1], a.Message())
		if again := mustRender(t, history).String(); again != rendered {
			t.Errorf("got %q, want %q again", again, rendered)
		}
	}
}

func TestExactReplay(t *testing.T) {
	typed := ToolCall{Name: "typed", Arguments: json.RawMessage(
		`{"s":"x\ny","ns":null,"i":-5,"n":1.5,"b":false,"a":[1,"a</parameter>",{"k":[]}],"o":{"deep":[1,true,null],"f":1.0},"any":"x","loose":{"x":1},"opt":12345678901234567890}`)}
	replay(t, "Hello!", "")
	replay(t, "Hello\n\nworld <b>", "a\n\nb")
	replay(t, "", "R", typed)
	replay(t, "Calling.", "", typed, ToolCall{Name: "nothing", Arguments: json.RawMessage(`{}`)}, ToolCall{Name: "what", Arguments: json.RawMessage(`{"z":"1","a":""}`)})
	replay(t, "Text <tool_call> mention", "mention <tool_call> too", typed)
}

// Seen elsewhere: the streaming parser leaks XML, loses the second call, or delivers
// arguments in one burst.
func TestStreamingCalls(t *testing.T) {
	body := strings.Repeat("line of text\n", 20)
	text := "Let me look.\n\n<tool_call>\n<function=save_file>\n<parameter=path>\nnotes.txt\n</parameter>\n<parameter=body>\n" + body + closed +
		"\n<tool_call>\n<function=typed>\n<parameter=i>\n7" + closed + "\n\nThat is all."
	a := parseEverySplit(t, ParserOptions{Tools: testTools}, EndStop, text)
	want := answer{"", "Let me look.\n\nThat is all.", []string{
		`save_file{"path":"notes.txt","body":"` + strings.ReplaceAll(body, "\n", `\n`) + `"}`, `typed{"i":7}`}}
	if got := short(a); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+q, want %+q", got, want)
	}
	if a.Calls[0].ID == a.Calls[1].ID {
		t.Errorf("got the id %s twice", a.Calls[0].ID)
	}

	// The name leaves as soon as its tag closes; long strings leave as they come.
	p := NewParser(ParserOptions{Tools: testTools})
	p.Push("<tool_call>\n<function=save_file")
	if events := p.Push(">"); len(events) != 1 || events[0].Kind != CallStart || !strings.HasPrefix(events[0].ID, "call_") || len(events[0].ID) != 29 {
		t.Errorf("got %v, want the call's start", events)
	}
	p.Push("\n<parameter=body>\n")
	for range 5 {
		if events := p.Push("word "); len(events) != 1 || events[0].Kind != CallArguments || events[0].Text != "word " {
			t.Errorf("got %v, want the word", events)
		}
	}
}

// Seen elsewhere: emoji and accents arrive as U+FFFD, also in tool arguments.
func TestPartialCharacters(t *testing.T) {
	const emoji = "🌍 👩‍👩‍👧‍👦 ď 你好世界"
	a := parseEverySplit(t, ParserOptions{Thinking: true, Tools: testTools}, EndStop,
		emoji+"</think>"+emoji+"<tool_call>\n<function=save_file>\n<parameter=body>\n"+emoji+closed)
	if got, want := short(a), (answer{emoji, emoji, []string{`save_file{"body":"` + emoji + `"}`}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+q, want %+q", got, want)
	}
	for _, tt := range []struct{ text, want string }{
		{"a\xffb", "a\uFFFDb"}, {"cut \xF0\x9F", "cut \uFFFD\uFFFD"}, {"\xE4\xBD<b>", "\uFFFD\uFFFD<b>"},
	} {
		if got := parseEverySplit(t, ParserOptions{}, EndLength, tt.text).Content; got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestInReasoning(t *testing.T) {
	p := NewParser(ParserOptions{Thinking: true})
	p.Push("abc</thi")
	if !p.InReasoning() {
		t.Error("got content, want reasoning until the tag is complete")
	}
	p.Push("nk>")
	if p.InReasoning() {
		t.Error("got reasoning, want content after the tag")
	}
	q := NewParser(ParserOptions{Thinking: true})
	q.Push("abc")
	q.Close(EndStop)
	if !q.InReasoning() {
		t.Error("got content, want to know that the model never answered")
	}
	if events := append(q.Push("more"), q.Close(EndStop)...); len(events) != 0 {
		t.Errorf("got %v after the end, want nothing", events)
	}
}
