package openai

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Message is one turn as the client sent it.
type Message struct {
	Role       string   // system, developer, user, assistant or tool
	Content    []string // text parts in order; a plain string is one part; nil when null or absent
	Reasoning  *string  // reasoning_content, else reasoning
	ToolCalls  []ToolCall
	ToolCallID string
	Name       string
}

// ToolCall is one call of an earlier answer that the client sends back.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage // as received: a JSON string, an object, or null when absent
}

func (o *object) messages() []Message {
	list := o.array("messages")
	if o.report.err != nil {
		return nil
	}
	if len(list) == 0 {
		o.report.fail(o.at("messages"), CodeMissing, "missing: want a list of at least one message")
		return nil
	}
	messages := make([]Message, 0, len(list))
	for i, raw := range list {
		m := openObject(raw, fmt.Sprintf("%s[%d]", o.at("messages"), i), o.report)
		if m == nil {
			return nil
		}
		messages = append(messages, m.message())
		if o.report.err != nil {
			return nil
		}
	}
	return messages
}

func (o *object) message() Message {
	var m Message
	if role := o.str("role"); role != nil {
		m.Role = *role
	}
	switch m.Role {
	case "system", "developer", "user", "assistant", "tool":
	case "":
		o.report.fail(o.at("role"), CodeMissing, "missing: want system, developer, user, assistant or tool")
	case "function":
		o.report.fail(o.at("role"), CodeUnsupported, "got \"function\", want \"tool\" (functions became tools)")
	default:
		o.report.fail(o.at("role"), CodeInvalidValue, "got %q, want system, developer, user, assistant or tool", clip(m.Role))
	}
	m.Content = o.content()
	if s := o.str("name"); s != nil {
		if m.Name = *s; m.Role != "tool" && *s != "" {
			o.report.ignore(o.at("name")) // the template has no place for it; a tool's result stands by its call
		}
	}
	if s := o.str("tool_call_id"); s != nil {
		m.ToolCallID = *s
	}
	// Our own answers carry both spellings, so a client may echo both.
	other := o.str("reasoning")
	if m.Reasoning = o.str("reasoning_content"); m.Reasoning == nil {
		m.Reasoning = other
	}
	if s := o.str("refusal"); s != nil && m.Content == nil && *s != "" {
		m.Content = []string{*s}
	}
	// An assistant may have said nothing beside its calls; a user has not.
	switch {
	case m.Role != "user" || len(m.Content) > 0:
	case m.Content == nil:
		o.report.fail(o.at("content"), CodeMissing, "missing: want a string or a list of parts")
	default:
		o.report.fail(o.at("content"), CodeInvalidValue, "got an empty list, want a string or at least one part")
	}
	m.ToolCalls = o.toolCalls()
	if m.Role != "assistant" && len(m.ToolCalls) > 0 {
		o.report.fail(o.at("tool_calls"), CodeInvalidValue, "got tool calls in a %s message, want them only in assistant messages", m.Role)
	}
	o.refuse([]refusal{
		{"audio", nil, "Pond reads text"},
		{"function_call", nil, "use tool_calls"},
	})
	o.take("annotations") // part of every answer of the hosted API, of no use here
	o.finish()
	return m
}

// content takes a string or a list of parts.
func (o *object) content() []string {
	raw, ok := o.take("content")
	if !ok {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []string{text}
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		o.report.fail(o.at("content"), CodeInvalidType, "got %s, want a string or a list of parts", kindOf(raw))
		return nil
	}
	parts := make([]string, 0, len(list))
	for i, raw := range list {
		path := fmt.Sprintf("%s[%d]", o.at("content"), i)
		if !isNull(raw) && json.Unmarshal(raw, &text) == nil {
			parts = append(parts, text)
			continue
		}
		part := openObject(raw, path, o.report)
		if part == nil {
			return nil
		}
		parts = append(parts, part.textPart())
	}
	return parts
}

func (o *object) textPart() string {
	kind := o.str("type")
	field := "text"
	switch {
	case kind == nil && o.fields["text"] != nil: // the template asks no type of a part with text
	case kind == nil:
		o.report.fail(o.at("type"), CodeMissing, "missing: want \"text\"")
		return ""
	case *kind == "text" || *kind == "input_text" || *kind == "output_text":
	case *kind == "refusal":
		field = "refusal"
	case *kind == "image_url" || *kind == "input_image" || *kind == "input_audio" || *kind == "file" || *kind == "input_file" || strings.HasPrefix(*kind, "video"):
		o.report.fail(o.at("type"), CodeUnsupported, "got %q, want \"text\": Pond reads text only", *kind)
		return ""
	default:
		o.report.fail(o.at("type"), CodeInvalidValue, "got %q, want \"text\"", clip(*kind))
		return ""
	}
	text := o.str(field)
	if text == nil {
		o.report.fail(o.at(field), CodeMissing, "missing: want a string")
		return ""
	}
	// Where to cache is the server's own matter.
	o.take("prompt_cache_breakpoint")
	o.take("cache_control")
	o.take("annotations")
	o.finish()
	return *text
}

func (o *object) toolCalls() []ToolCall {
	list := o.array("tool_calls")
	if len(list) == 0 {
		return nil
	}
	calls := make([]ToolCall, 0, len(list))
	for i, raw := range list {
		c := openObject(raw, fmt.Sprintf("%s[%d]", o.at("tool_calls"), i), o.report)
		if c == nil {
			return nil
		}
		calls = append(calls, c.toolCall())
	}
	return calls
}

// toolCall accepts the API's form and the flat one without "function".
func (o *object) toolCall() ToolCall {
	var call ToolCall
	if kind := o.str("type"); kind != nil && *kind != "function" && *kind != "" {
		o.report.fail(o.at("type"), CodeUnsupported, "got %q, want \"function\"", clip(*kind))
	}
	if id := o.str("id"); id != nil {
		call.ID = *id
	}
	o.take("index") // left over from the stream's deltas
	f := o.object("function")
	if f == nil {
		f = o
	}
	if name := f.str("name"); name != nil && *name != "" {
		call.Name = *name
	} else {
		f.report.fail(f.at("name"), CodeMissing, "missing: want the function's name")
	}
	if raw, ok := f.take("arguments"); ok {
		call.Arguments = raw
	}
	if f != o {
		f.finish()
	}
	o.finish()
	return call
}
