package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// MessagesRequest is the body of POST /v1/messages, Anthropic's API, in the terms of the chat API.
type MessagesRequest struct {
	ChatRequest
	HideThinking bool // thinking.display "omitted": blocks of thinking come without their text
}

// DecodeMessages reads a request of Anthropic's API; the error is an *Error. counting is for POST /v1/messages/count_tokens, where no limit
// of the answer is needed.
//
// Thinking is off unless the request turns it on, as the API has it; the other endpoints leave that to the model.
func DecodeMessages(body []byte, counting bool) (*MessagesRequest, error) {
	r := &report{}
	o := decodeBody(body, r)
	req := &MessagesRequest{}
	req.Choices = 1
	if model := o.str("model"); model != nil {
		req.Model = *model
	}
	req.Sampling = o.sampling()
	if req.MaxTokens = o.maxTokens("max_tokens"); req.MaxTokens == 0 && !counting {
		r.fail("max_tokens", CodeMissing, "missing: want the most tokens that the answer may have")
	}
	req.Stop = o.stops("stop_sequences")
	if b := o.boolean("stream"); b != nil {
		req.Stream = *b
	}
	req.Messages = o.turns()
	req.Tools = o.anthropicTools()
	o.anthropicChoice(&req.ChatRequest)
	o.anthropicThinking(req)
	if m := o.object("metadata"); m != nil {
		m.str("user_id")
		m.finish()
	}
	o.take("cache_control") // where to cache is the server's own matter
	o.str("inference_geo")
	// What it takes out of the prompt would only save room, and the prompt cache works without it.
	if m := o.object("context_management"); m != nil {
		r.ignore(m.path)
	}
	o.refuse([]refusal{
		{"container", nil, "Pond runs no tools itself"},
		{"mcp_servers", []string{`[]`}, "Pond connects to nobody: offer the servers' tools in tools"},
		{"service_tier", []string{`"auto"`, `"standard_only"`}, ""},
		{"speed", []string{`"standard"`}, ""},
	})
	o.finish()
	if r.err != nil {
		return nil, r.err
	}
	req.Ignored, req.StrictTools = r.names(), r.strict
	return req, nil
}

// turns takes system and messages.
func (o *object) turns() []Message {
	var messages []Message
	if raw, ok := o.take("system"); ok {
		messages = append(messages, Message{Role: "system", Content: o.textBlocks(raw, o.at("system"))})
	}
	list := o.array("messages")
	if o.report.err != nil {
		return nil
	}
	if len(list) == 0 {
		o.report.fail(o.at("messages"), CodeMissing, "missing: want a list of at least one message")
	}
	role := ""
	for i, raw := range list {
		m := openObject(raw, fmt.Sprintf("%s[%d]", o.at("messages"), i), o.report)
		if m == nil {
			return nil
		}
		messages = append(messages, m.turn(&role)...)
		if o.report.err != nil {
			return nil
		}
	}
	if role == "assistant" {
		o.report.fail(fmt.Sprintf("%s[%d]", o.at("messages"), len(list)-1), CodeUnsupported, "the last message is the assistant's, and Pond does not continue one: end with a user message")
	}
	return messages
}

// turn takes one message, which is several where results of tools stand beside text.
func (o *object) turn(role *string) []Message {
	switch r := o.str("role"); {
	case r == nil:
		o.report.fail(o.at("role"), CodeMissing, "missing: want user or assistant")
		return nil
	case *r != "user" && *r != "assistant" && *r != "system":
		o.report.fail(o.at("role"), CodeInvalidValue, "got %q, want user, assistant or system", clip(*r))
		return nil
	default:
		*role = *r
	}
	defer o.finish()
	raw, ok := o.take("content")
	if !ok {
		o.report.fail(o.at("content"), CodeMissing, "missing: want a string or a list of blocks")
		return nil
	}
	if *role == "system" { // agents remind the model of something in the middle of a conversation
		return []Message{{Role: *role, Content: o.textBlocks(raw, o.at("content"))}}
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []Message{{Role: *role, Content: []string{text}}}
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		o.report.fail(o.at("content"), CodeInvalidType, "got %s, want a string or a list of blocks", kindOf(raw))
		return nil
	}
	if *role == "assistant" {
		return []Message{o.assistantBlocks(list)}
	}
	return o.userBlocks(list)
}

// block opens one block of a content and takes its type.
func (o *object) block(raw json.RawMessage, path string) (*object, string) {
	b := openObject(raw, path, o.report)
	if b == nil {
		return nil, ""
	}
	kind := b.str("type")
	if kind == nil {
		b.report.fail(b.at("type"), CodeMissing, "missing: want the type of the block")
		return nil, ""
	}
	b.take("cache_control")
	return b, *kind
}

// textOf takes the text of a block.
func (o *object) textOf(name string) string {
	text := o.str(name)
	if text == nil {
		o.report.fail(o.at(name), CodeMissing, "missing: want a string")
		return ""
	}
	return *text
}

// textBlocks takes a string or a list of blocks of text.
func (o *object) textBlocks(raw json.RawMessage, path string) []string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []string{text}
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		o.report.fail(path, CodeInvalidType, "got %s, want a string or a list of blocks of text", kindOf(raw))
		return nil
	}
	parts := []string{}
	for i, raw := range list {
		b, kind := o.block(raw, fmt.Sprintf("%s[%d]", path, i))
		if b == nil {
			return nil
		}
		if kind != "text" {
			b.noText(kind, "text")
			return nil
		}
		parts = append(parts, b.textOf("text"))
		b.take("citations")
		b.finish()
	}
	return parts
}

func (o *object) noText(kind, want string) {
	o.report.fail(o.at("type"), CodeUnsupported, "got %q, want %s: Pond reads text only", clip(kind), want)
}

func (o *object) userBlocks(list []json.RawMessage) []Message {
	var messages []Message
	var text []string
	flush := func() {
		if text != nil {
			messages = append(messages, Message{Role: "user", Content: text})
			text = nil
		}
	}
	for i, raw := range list {
		b, kind := o.block(raw, fmt.Sprintf("%s[%d]", o.at("content"), i))
		if b == nil {
			return nil
		}
		switch kind {
		case "text":
			text = append(text, b.textOf("text"))
			b.take("citations")
		case "tool_result":
			flush()
			messages = append(messages, b.toolResult())
		default:
			b.noText(kind, "text or tool_result")
			return nil
		}
		b.finish()
	}
	flush()
	if len(messages) == 0 {
		o.report.fail(o.at("content"), CodeInvalidValue, "got an empty list, want at least one block")
	}
	return messages
}

// toolResult takes what a tool said. The template has no place for is_error, so the text says it.
func (o *object) toolResult() Message {
	m := Message{Role: "tool", Content: []string{}}
	if m.ToolCallID = o.textOf("tool_use_id"); o.report.err != nil {
		return m
	}
	if raw, ok := o.take("content"); ok {
		m.Content = o.textBlocks(raw, o.at("content"))
	}
	if failed := o.boolean("is_error"); failed != nil && *failed {
		m.Content = append([]string{"error: "}, m.Content...)
	}
	return m
}

func (o *object) assistantBlocks(list []json.RawMessage) Message {
	m := Message{Role: "assistant"}
	for i, raw := range list {
		b, kind := o.block(raw, fmt.Sprintf("%s[%d]", o.at("content"), i))
		if b == nil {
			return m
		}
		switch kind {
		case "text":
			m.Content = append(m.Content, b.textOf("text"))
			b.take("citations")
		case "thinking":
			thought := b.textOf("thinking")
			if seal := b.str("signature"); seal != nil && thought == "" {
				thought, _ = Unseal(*seal)
			}
			if m.Reasoning != nil {
				thought = *m.Reasoning + "\n" + thought
			}
			m.Reasoning = &thought
		case "tool_use":
			call := ToolCall{ID: b.textOf("id"), Name: b.textOf("name")}
			call.Arguments, _ = b.take("input")
			b.take("caller")
			m.ToolCalls = append(m.ToolCalls, call)
		default:
			b.noText(kind, "text, thinking or tool_use")
			return m
		}
		b.finish()
	}
	return m
}

// anthropicTools takes the list of tools and gives them the chat API's form, in which the template shows them to the model.
func (o *object) anthropicTools() []json.RawMessage {
	var tools []json.RawMessage
	for i, raw := range o.array("tools") {
		t := openObject(raw, fmt.Sprintf("%s[%d]", o.at("tools"), i), o.report)
		if t == nil {
			return nil
		}
		if kind := t.str("type"); kind != nil && *kind != "custom" {
			t.report.fail(t.at("type"), CodeUnsupported, "got %q, want \"custom\" or nothing: Pond runs no tools itself, so describe it with input_schema and run it where you are", clip(*kind))
			return nil
		}
		tools = append(tools, t.flatTool("input_schema"))
		t.take("cache_control")
		t.boolean("eager_input_streaming") // arguments stream as they come
		t.finish()
	}
	return tools
}

// flatTool takes the fields of a tool that stand beside its type, and gives it the chat API's nested form. schema is the name of the
// field that holds the parameters.
func (o *object) flatTool(schema string) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"type":"function","function":{"name":`)
	b.Write(orNull(o.fields["name"]))
	if raw, ok := o.fields["description"]; ok && !isNull(raw) {
		b.WriteString(`,"description":`)
		b.Write(raw)
	}
	if raw, ok := o.fields[schema]; ok && !isNull(raw) {
		b.WriteString(`,"parameters":`)
		b.Write(raw)
	}
	b.WriteString(`}}`)
	o.checkFunction(schema)
	return b.Bytes()
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

func (o *object) anthropicChoice(req *ChatRequest) {
	choice := o.object("tool_choice")
	if choice == nil {
		return
	}
	if single := choice.boolean("disable_parallel_tool_use"); single != nil {
		req.OneCall = *single
	}
	switch kind := choice.str("type"); {
	case kind == nil:
		o.report.fail(choice.at("type"), CodeMissing, "missing: want auto, any, tool or none")
	case *kind == "auto":
	case *kind == "none":
		o.toolMode(req, choice.at("type"), "none")
	case *kind == "any":
		if len(req.Tools) == 0 {
			o.report.fail(choice.at("type"), CodeInvalidValue, "got \"any\" without tools, want at least one tool")
		}
		req.ToolChoice.Mode = ToolRequired
	case *kind == "tool":
		if name := choice.str("name"); name != nil {
			req.ToolChoice = ToolChoice{ToolNamed, *name}
		}
		o.checkNamed(req, choice.at("name"))
	default:
		o.report.fail(choice.at("type"), CodeInvalidValue, "got %q, want auto, any, tool or none", clip(*kind))
	}
	choice.finish()
}

// anthropicThinking takes thinking, output_config and output_format. An effort alone does not turn thinking on.
func (o *object) anthropicThinking(req *MessagesRequest) {
	on := false
	req.Thinking = &on
	s := &switches{req: &ChatRequest{}}
	if config := o.object("output_config"); config != nil {
		s.effort(config, "effort")
		if f := config.object("format"); f != nil {
			req.Format = f.format(func() *object { return f })
		}
		config.finish()
	}
	if f := o.object("output_format"); f != nil {
		req.Format = f.format(func() *object { return f })
	}
	t := o.object("thinking")
	if t == nil {
		return
	}
	switch kind := t.str("type"); {
	case kind == nil:
		o.report.fail(t.at("type"), CodeMissing, "missing: want enabled, disabled or adaptive")
	case *kind == "disabled":
	case *kind == "adaptive":
		on, req.ThinkingBudget = true, s.req.ThinkingBudget
	case *kind == "enabled":
		on = true
		if n := t.integer("budget_tokens", 1, unboundedNumber); n != nil {
			req.ThinkingBudget = int(min(*n, 1<<30))
		} else {
			o.report.fail(t.at("budget_tokens"), CodeMissing, "missing: want a number of tokens, or the type \"adaptive\"")
		}
	default:
		o.report.fail(t.at("type"), CodeInvalidValue, "got %q, want enabled, disabled or adaptive", clip(*kind))
	}
	switch display := t.str("display"); {
	case display == nil, *display == "summarized", *display == "full":
	case *display == "omitted":
		req.HideThinking = true
	default:
		o.report.fail(t.at("display"), CodeInvalidValue, "got %q, want summarized or omitted", clip(*display))
	}
	t.finish()
}
