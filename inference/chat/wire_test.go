package chat

import (
	"bytes"
	"encoding/json"
	"testing"
)

// wire is a conversation as the golden files and the tests write it.
type wire struct {
	Messages []struct {
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		Reasoning *string         `json:"reasoning_content"`
		ToolCalls []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
		ToolCallID string `json:"tool_call_id"`
	} `json:"messages"`
	Tools    []json.RawMessage `json:"tools"`
	Thinking *bool             `json:"enable_thinking"`
	Preserve *bool             `json:"preserve_thinking"`
}

func (w wire) conversation(t testing.TB) Conversation {
	t.Helper()
	c := Conversation{Tools: w.Tools, Thinking: w.Thinking, PreserveThinking: w.Preserve != nil && *w.Preserve}
	for _, m := range w.Messages {
		out := Message{Role: m.Role, Reasoning: m.Reasoning, ToolCallID: m.ToolCallID}
		switch raw := bytes.TrimSpace(m.Content); {
		case len(raw) == 0 || string(raw) == "null":
			out.Content.Null = true
		case raw[0] == '"':
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				t.Fatal(err)
			}
			out.Content = TextContent(s)
		default:
			var parts []struct{ Type, Text string }
			if err := json.Unmarshal(raw, &parts); err != nil {
				t.Fatal(err)
			}
			for _, p := range parts {
				out.Content.Parts = append(out.Content.Parts, Part{Type: p.Type, Text: p.Text})
			}
		}
		for _, call := range m.ToolCalls {
			out.ToolCalls = append(out.ToolCalls, ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
		}
		c.Messages = append(c.Messages, out)
	}
	return c
}

// parseWire reads a conversation written as the body of a chat request.
func parseWire(t testing.TB, body string) Conversation {
	t.Helper()
	var w wire
	if err := json.Unmarshal([]byte(body), &w); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return w.conversation(t)
}

func ptr[T any](v T) *T { return &v }

// firstDifference cuts two texts to the place where they part.
func firstDifference(got, want string) (string, string) {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	from := max(0, i-40)
	return got[from:min(len(got), i+60)], want[from:min(len(want), i+60)]
}
