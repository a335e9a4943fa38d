package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// The rules of normalisation: what clients send that the official template refuses
// or misreads, and what becomes of it.
//
//   - developer is system.
//   - The leading run of system messages becomes one, its texts trimmed and joined by
//     a blank line, blank ones left out.
//   - A later system message stays where it is and is rendered as a turn of its own.
//     Moved to the front it would change the prefix and cost the cache; as a user turn
//     it would move the border behind which thinking is kept.
//   - Tool arguments become an ordered JSON object; a string is decoded first; nil,
//     null and blank strings are the empty object; all else is an error.
//   - The results of one turn's calls come in the order of the calls, to which a client
//     ties them by their ids: the template shows no ids. Those that name no call stay
//     where they are.
//   - Content that is not text is an error: this engine runs the text part only.
//   - Without a user message there is nothing to answer: an error.
//
// Paths in errors count messages as the client sent them.

// Normalise returns the conversation in the form that the template takes. The
// argument is not changed. Errors are *Error. Normalising twice changes nothing.
func Normalise(c Conversation) (Conversation, error) {
	if len(c.Messages) == 0 {
		return Conversation{}, &Error{"messages", "got an empty list, want at least one message"}
	}
	messages := make([]Message, 0, len(c.Messages))
	for i, m := range c.Messages {
		m, err := normaliseMessage(fmt.Sprintf("messages[%d]", i), m)
		if err != nil {
			return Conversation{}, err
		}
		messages = append(messages, m)
	}
	orderResults(messages)
	c.Messages = mergeLeadingSystem(messages)
	if lastQuery(c.Messages) < 0 {
		return Conversation{}, &Error{"messages", "got no user message, want at least one"}
	}
	tools := make([]json.RawMessage, len(c.Tools))
	for i, tool := range c.Tools {
		v, err := parseJSON(string(tool))
		if err == nil && v.kind != jsonObject {
			err = fmt.Errorf("got %s", v.kind)
		}
		if err != nil {
			return Conversation{}, &Error{fmt.Sprintf("tools[%d]", i), err.Error() + ", want a JSON object"}
		}
		tools[i] = appendJSON(nil, v, pythonForm)
	}
	c.Tools = tools
	return c, nil
}

func normaliseMessage(path string, m Message) (Message, error) {
	switch m.Role {
	case "system", "user", "assistant", "tool":
	case "developer":
		m.Role = "system"
	default:
		return m, &Error{path + ".role", fmt.Sprintf("got %q, want system, developer, user, assistant or tool", m.Role)}
	}
	for i, part := range m.Content.Parts {
		if err := checkPart(fmt.Sprintf("%s.content[%d]", path, i), part.Type); err != nil {
			return m, err
		}
	}
	if m.Role != "assistant" {
		m.ToolCalls = nil
		return m, nil
	}
	calls := make([]ToolCall, len(m.ToolCalls))
	for i, call := range m.ToolCalls {
		path := fmt.Sprintf("%s.tool_calls[%d].function", path, i)
		if call.Name == "" {
			return m, &Error{path + ".name", "got an empty name, want the function's name"}
		}
		arguments, err := parseArguments(call.Arguments)
		if err != nil {
			return m, &Error{path + ".arguments", err.Error()}
		}
		call.Arguments = appendJSON(nil, arguments, pythonForm)
		calls[i] = call
	}
	if len(calls) > 0 {
		m.ToolCalls = calls
	}
	return m, nil
}

func checkPart(path, kind string) error {
	switch kind {
	case "", "text", "input_text", "output_text":
		return nil
	case "image", "image_url", "input_image", "video", "video_url", "input_audio", "file", "input_file":
		return &Error{path, fmt.Sprintf("got a part of type %q, want text only", kind)}
	}
	return &Error{path, fmt.Sprintf("got a part of unknown type %q, want text", kind)}
}

// parseArguments reads a call's arguments, which are an object or a string that
// holds one.
func parseArguments(raw json.RawMessage) (jsonValue, error) {
	empty := jsonValue{kind: jsonObject}
	if len(raw) == 0 {
		return empty, nil
	}
	v, err := parseJSON(string(raw))
	if err != nil {
		return empty, fmt.Errorf("got invalid JSON (%w), want an object", err)
	}
	inside := ""
	if v.kind == jsonString {
		if trim(v.text) == "" {
			return empty, nil
		}
		inside = " inside the string"
		if v, err = parseJSON(v.text); err != nil {
			return empty, fmt.Errorf("got invalid JSON inside the string (%w), want an object", err)
		}
	}
	switch v.kind {
	case jsonObject:
		return v, nil
	case jsonNull:
		return empty, nil
	}
	return empty, fmt.Errorf("got %s%s, want an object", v.kind, inside)
}

// orderResults puts the results that follow a turn with calls into the order of the calls.
func orderResults(messages []Message) {
	for i, m := range messages {
		if len(m.ToolCalls) < 2 {
			continue
		}
		order := map[string]int{}
		for at, call := range m.ToolCalls {
			if _, twice := order[call.ID]; !twice && call.ID != "" {
				order[call.ID] = at
			}
		}
		var places []int
		var results []Message
		for j := i + 1; j < len(messages) && messages[j].Role == "tool"; j++ {
			if _, ok := order[messages[j].ToolCallID]; ok {
				places, results = append(places, j), append(results, messages[j])
			}
		}
		slices.SortStableFunc(results, func(a, b Message) int { return cmp.Compare(order[a.ToolCallID], order[b.ToolCallID]) })
		for n, at := range places {
			messages[at] = results[n]
		}
	}
}

// mergeLeadingSystem joins the system messages that the conversation starts with.
func mergeLeadingSystem(messages []Message) []Message {
	n := 0
	for n < len(messages) && messages[n].Role == "system" {
		n++
	}
	if n < 2 {
		return messages
	}
	var texts []string
	for _, m := range messages[:n] {
		if text := trim(m.Content.String()); text != "" {
			texts = append(texts, text)
		}
	}
	merged := messages[0]
	merged.Content = TextContent(strings.Join(texts, "\n\n"))
	return append([]Message{merged}, messages[n:]...)
}

// lastQuery returns the index of the last user message that asks something, or -1.
// A user message that is a tool response by hand does not count: the turn it
// belongs to is still the one before it.
func lastQuery(messages []Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role != "user" {
			continue
		}
		text := trim(messages[i].Content.String())
		if !strings.HasPrefix(text, "<tool_response>") || !strings.HasSuffix(text, "</tool_response>") {
			return i
		}
	}
	return -1
}

// trim is Python's str.strip: Unicode white space and U+001C to U+001F, which
// Go's unicode.IsSpace leaves out.
func trim(s string) string { return strings.TrimFunc(s, isSpace) }

func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F }
