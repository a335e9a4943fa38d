package chat

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// EventKind says what an Event carries.
type EventKind int

const (
	Reasoning     EventKind = iota // Text: more of the thinking
	Text                           // Text: more of the content
	CallStart                      // Index, ID, Name: a call begins
	CallArguments                  // Index, Text: the next fragment of the arguments' JSON
	CallEnd                        // Index, Cut: the fragments form one valid JSON object
)

func (k EventKind) String() string {
	return [...]string{"reasoning", "text", "call start", "call arguments", "call end"}[k]
}

// Event is one thing that the model did. Calls do not interleave: every
// CallArguments and CallEnd belongs to the latest CallStart.
type Event struct {
	Kind     EventKind
	Text     string
	Index    int // of the call within the answer, from 0
	ID, Name string
	Cut      bool // a limit ended the call: its arguments are valid JSON and not all of what the model meant to write
}

// Answer is a whole answer: events folded together.
type Answer struct {
	Reasoning, Content string
	Calls              []ToolCall // Arguments is the text of a JSON object
}

// Apply adds events to the answer, in their order.
func (a *Answer) Apply(events []Event) {
	var reasoning, content strings.Builder
	for _, e := range events {
		switch e.Kind {
		case Reasoning:
			reasoning.WriteString(e.Text)
		case Text:
			content.WriteString(e.Text)
		case CallStart:
			a.Calls = append(a.Calls, ToolCall{ID: e.ID, Name: e.Name})
		case CallArguments:
			call := &a.Calls[e.Index]
			call.Arguments = append(call.Arguments, e.Text...)
		}
	}
	a.Reasoning += reasoning.String()
	a.Content += content.String()
}

// Message returns the answer as a turn of history. Rendered, it repeats what the
// model wrote in its canonical form, byte for byte.
func (a *Answer) Message() Message {
	reasoning := a.Reasoning
	m := Message{Role: "assistant", Content: TextContent(a.Content), Reasoning: &reasoning}
	for _, call := range a.Calls {
		call.Arguments = append(json.RawMessage(nil), call.Arguments...)
		m.ToolCalls = append(m.ToolCalls, call)
	}
	return m
}

// newCallID returns "call_" and 24 random hexadecimal digits.
func newCallID() string {
	var b [12]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return "call_" + hex.EncodeToString(b[:])
}
