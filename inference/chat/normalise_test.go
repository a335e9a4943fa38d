package chat

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// Seen elsewhere: the second turn of any tool conversation is a 500, because the
// wire carries arguments as a string.
func TestArgumentsAsStringOrObject(t *testing.T) {
	for _, tt := range []struct{ raw, want, err string }{
		{raw: `"{\"city\":\"Oslo\"}"`, want: `{"city": "Oslo"}`},
		{raw: `{"city":"Oslo"}`, want: `{"city": "Oslo"}`},
		{raw: `"{}"`, want: `{}`},
		{raw: `""`, want: `{}`},
		{raw: `" \n"`, want: `{}`},
		{raw: `"null"`, want: `{}`},
		{raw: `null`, want: `{}`},
		{raw: ``, want: `{}`},
		{raw: `{"z":9007199254740993,"a":-9223372036854775808,"m":{"y":1,"b":2}}`, want: `{"z": 9007199254740993, "a": -9223372036854775808, "m": {"y": 1, "b": 2}}`},
		{raw: `{"a":1.0,"b":1e-6,"c":1E5}`, want: `{"a": 1.0, "b": 1e-06, "c": 100000.0}`},
		{raw: `{"a":1,"b":2,"a":3}`, want: `{"a": 3, "b": 2}`},
		{raw: `{"a":"\u00e9\ud83d\ude42\u0001\/<&>\u2028"}`, want: "{\"a\": \"é🙂\\u0001/<&>\u2028\"}"},
		{raw: `{"a":"\ud800x\udc00\ud800\ud800\udc00"}`, want: "{\"a\": \"\uFFFDx\uFFFD\uFFFD\U00010000\"}"},
		{raw: `"[1,2]"`, err: "got an array inside the string, want an object"},
		{raw: `[1,2]`, err: "got an array, want an object"},
		{raw: `"{city:"`, err: "invalid JSON inside the string"},
		{raw: `"\"{}\""`, err: "got a string inside the string, want an object"},
		{raw: `5`, err: "got a number, want an object"},
		{raw: `{"a":01}`, err: "invalid JSON"},
		{raw: `{"a":'x'}`, err: "invalid JSON"},
		{raw: `{"a":None}`, err: "invalid JSON"},
		{raw: `{"a":[1,]}`, err: "invalid JSON"},
		{raw: `{"a":1} x`, err: "invalid JSON"},
		{raw: "{\"a\":\"\x01\"}", err: "invalid JSON"},
		{raw: strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600), err: "nested deeper than 512 levels"},
	} {
		c := Conversation{Messages: []Message{
			{Role: "user", Content: TextContent("go")},
			{Role: "assistant", Content: Content{Null: true}, ToolCalls: []ToolCall{{Name: "f"}, {Name: "f", Arguments: json.RawMessage(tt.raw)}}},
			{Role: "tool", Content: TextContent("r")},
			{Role: "user", Content: TextContent("on")},
		}}
		n, err := Normalise(c)
		if tt.err != "" {
			var e *Error
			if !errors.As(err, &e) || e.Path != "messages[1].tool_calls[1].function.arguments" || !strings.Contains(e.Message, tt.err) {
				t.Errorf("%s: got error %v, want %q", tt.raw, err, tt.err)
			}
			if _, again := Render(c); again == nil || again.Error() != err.Error() {
				t.Errorf("%s: Render got error %v, want %v", tt.raw, again, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.raw, err)
			continue
		}
		if got := string(n.Messages[1].ToolCalls[1].Arguments); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.raw, got, tt.want)
		}
		if twice, err := Normalise(n); err != nil || !reflect.DeepEqual(twice, n) {
			t.Errorf("%s: normalising twice changes the conversation (error %v)", tt.raw, err)
		}
		if string(c.Messages[1].ToolCalls[1].Arguments) != tt.raw {
			t.Errorf("%s: the caller's conversation was changed", tt.raw)
		}
	}
}

// An agent that runs calls side by side sends each result when it has it. The template shows no ids: the first result was read as the first
// call's, whichever it belonged to.
func TestResultsComeInTheOrderOfTheCalls(t *testing.T) {
	result := func(id, text string) Message {
		return Message{Role: "tool", ToolCallID: id, Content: TextContent(text)}
	}
	call := func(ids ...string) Message {
		m := Message{Role: "assistant"}
		for _, id := range ids {
			m.ToolCalls = append(m.ToolCalls, ToolCall{ID: id, Name: "f"})
		}
		return m
	}
	user := Message{Role: "user", Content: TextContent("x")}
	for name, c := range map[string]struct {
		messages []Message
		want     string
	}{
		"swapped":        {[]Message{user, call("a", "b", "c"), result("c", "3"), result("a", "1"), result("b", "2")}, "123"},
		"one unknown":    {[]Message{user, call("a", "b"), result("b", "2"), result("z", "?"), result("a", "1")}, "1?2"},
		"without ids":    {[]Message{user, call("", ""), result("", "1"), result("", "2")}, "12"},
		"the same twice": {[]Message{user, call("a", "a"), result("a", "1"), result("a", "2")}, "12"},
		"one missing":    {[]Message{user, call("a", "b", "c"), result("c", "3"), result("b", "2"), user}, "23"},
		"two rounds":     {[]Message{user, call("a", "b"), result("b", "2"), result("a", "1"), call("b", "a"), result("a", "4"), result("b", "3")}, "1234"},
	} {
		n, err := Normalise(Conversation{Messages: c.messages})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, m := range n.Messages {
			if m.Role == "tool" {
				got += m.Content.String()
			}
		}
		if got != c.want {
			t.Errorf("%s: got the results %q, want %q", name, got, c.want)
		}
	}
}

func TestNormaliseErrorsNameTheirPath(t *testing.T) {
	user := Message{Role: "user", Content: TextContent("x")}
	part := func(kind string) Message {
		return Message{Role: "user", Content: Content{Parts: []Part{{Text: "a"}, {Type: kind}}}}
	}
	for _, tt := range []struct {
		name, path, message string
		c                   Conversation
	}{
		{"none", "messages", "empty list", Conversation{}},
		{"only system", "messages", "no user message", Conversation{Messages: []Message{{Role: "system"}, {Role: "developer"}}}},
		{"only hand-made result", "messages", "no user message", Conversation{Messages: []Message{{Role: "user", Content: TextContent(" <tool_response>x</tool_response> ")}}}},
		{"role", "messages[2].role", `"function"`, Conversation{Messages: []Message{{Role: "system"}, user, {Role: "function"}}}},
		{"image", "messages[3].content[1]", `"image_url"`, Conversation{Messages: []Message{{Role: "system"}, {Role: "system"}, user, part("image_url")}}},
		{"video", "messages[0].content[1]", `"video"`, Conversation{Messages: []Message{part("video")}}},
		{"unknown part", "messages[0].content[1]", `"hologram"`, Conversation{Messages: []Message{part("hologram")}}},
		{"call without name", "messages[1].tool_calls[0].function.name", "empty", Conversation{Messages: []Message{user, {Role: "assistant", ToolCalls: []ToolCall{{}}}}}},
		{"broken tool", "tools[1]", "unexpected end", Conversation{Messages: []Message{user}, Tools: []json.RawMessage{[]byte("{}"), []byte("{")}}},
		{"tool is a list", "tools[0]", "an array", Conversation{Messages: []Message{user}, Tools: []json.RawMessage{[]byte("[]")}}},
	} {
		_, err := Normalise(tt.c)
		var e *Error
		if !errors.As(err, &e) || e.Path != tt.path || !strings.Contains(e.Message, tt.message) {
			t.Errorf("%s: got %v, want %s: …%s…", tt.name, err, tt.path, tt.message)
		}
	}
}

func TestTrimIsPythonStrip(t *testing.T) {
	// Every character for which Python 3's str.isspace is true.
	space := "\t\n\v\f\r\x1c\x1d\x1e\x1f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
	if got := trim(space + "x" + space); got != "x" {
		t.Errorf("got %q, want %q", got, "x")
	}
	for _, keep := range []string{"\u200b", "\ufeff", "\u180e", "\x00", "\x1b"} {
		if got := trim(keep); got != keep {
			t.Errorf("got %q, want %q kept", got, keep)
		}
	}
}
