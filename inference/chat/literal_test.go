package chat

import "testing"

// Structured content is a document: whatever its strings mention is neither thinking nor a call, and nothing of it is lost, however it is split.
func TestLiteralContent(t *testing.T) {
	call := callOpen + "\n<function=nothing>\n</function>\n" + callClose
	for _, c := range []struct {
		name, text         string
		thinking, noCalls  bool
		reasoning, content string
		calls              int
	}{
		{name: "tags in strings", text: `{"a": "</think><think>` + call + `"}`, content: `{"a": "</think><think>` + call + `"}`},
		{name: "behind thinking", thinking: true, text: "R\n</think>\n\n{\"a\": \"<think>\"}", reasoning: "R", content: `{"a": "<think>"}`},
		{name: "a call instead", thinking: true, text: "R\n</think>\n\n" + call + "\n" + call, reasoning: "R", calls: 2},
		{name: "no call instead", noCalls: true, text: `"` + call + `"`, content: `"` + call + `"`},
		{name: "a call in the thinking is a mention", thinking: true, noCalls: true, text: "R " + call + " S\n</think>\n\n{}", reasoning: "R " + call + " S", content: "{}"},
		{name: "cut", text: `{"a": "<tool_c`, content: `{"a": "<tool_c`},
	} {
		for i := range len(c.text) + 1 {
			a, events := parse(ParserOptions{Thinking: c.thinking, Tools: testTools, NoCalls: c.noCalls, Literal: true}, EndLength, c.text[:i], c.text[i:])
			checkEvents(t, events)
			if a.Reasoning != c.reasoning || a.Content != c.content || len(a.Calls) != c.calls {
				t.Fatalf("%s, split at %d: got %s, want thinking %q, content %q and %d calls", c.name, i, show(a), c.reasoning, c.content, c.calls)
			}
		}
	}
}
