package openai

import (
	"encoding/json"
	"fmt"
)

func indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// input takes a string or a list of items.
func (o *object) input(req *ResponseRequest, item func(id string) (json.RawMessage, bool)) {
	path := o.at("input")
	raw, ok := o.take("input")
	if !ok {
		if req.PreviousID == "" {
			o.report.fail(path, CodeMissing, "missing: want a string or a list of items")
		}
		return
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		content, _ := json.Marshal(text)
		req.Input = []json.RawMessage{json.RawMessage(`{"type":"message","role":"user","content":[{"type":"input_text","text":` + string(content) + `}]}`)}
		req.Messages = []Message{{Role: "user", Content: []string{text}}}
		return
	}
	if json.Unmarshal(raw, &req.Input) != nil {
		o.report.fail(path, CodeInvalidType, "got %s, want a string or a list of items", kindOf(raw))
		return
	}
	t := &turns{}
	for i, raw := range req.Input {
		entry := openObject(raw, indexed(path, i), o.report)
		if entry == nil {
			return
		}
		if kind := string(entry.fields["type"]); kind == `"item_reference"` || kind == "" && len(entry.fields) == 1 && entry.fields["id"] != nil {
			entry.take("type")
			id := entry.str("id")
			if id == nil {
				o.report.fail(entry.at("id"), CodeMissing, "missing: want the id of an item")
				return
			}
			found, ok := item(*id)
			if !ok {
				o.report.fail(entry.at("id"), CodeInvalidValue, "got %q, which is not stored (any more): send the item itself", clip(*id))
				return
			}
			req.Input[i] = found
			entry = openObject(found, indexed(path, i), o.report)
		}
		t.add(entry)
		if o.report.err != nil {
			return
		}
	}
	req.Messages = t.messages
}

// turns puts items together to messages: the model wrote thinking, text and calls of one answer as one turn.
type turns struct {
	messages []Message
	open     bool // the last message is an assistant's that further items may belong to
}

// assistant gives the open turn of the assistant, or begins one.
func (t *turns) assistant(fresh bool) *Message {
	if !t.open || fresh {
		t.messages = append(t.messages, Message{Role: "assistant"})
		t.open = true
	}
	return &t.messages[len(t.messages)-1]
}

func (t *turns) other(m Message) {
	t.messages = append(t.messages, m)
	t.open = false
}

func (t *turns) add(o *object) {
	kind := "message"
	if k := o.str("type"); k != nil {
		kind = *k
	}
	o.take("id")
	o.take("status")
	switch kind {
	case "message":
		t.message(o)
	case "reasoning":
		m := t.assistant(t.open && (t.last().Content != nil || t.last().ToolCalls != nil))
		thinking := o.thought()
		if m.Reasoning != nil {
			thinking = *m.Reasoning + "\n" + thinking
		}
		m.Reasoning = &thinking
	case "function_call":
		m := t.assistant(false)
		call := ToolCall{ID: o.textOf("call_id"), Name: o.textOf("name")}
		call.Arguments, _ = o.take("arguments")
		if namespace := o.str("namespace"); namespace != nil {
			call.Name = qualified(*namespace, call.Name)
		}
		o.take("caller")
		m.ToolCalls = append(m.ToolCalls, call)
	case "custom_tool_call":
		m := t.assistant(false)
		m.ToolCalls = append(m.ToolCalls, ToolCall{ID: o.textOf("call_id"), Name: o.textOf("name"), Arguments: customArguments(o.textOf("input"))})
	case "function_call_output", "custom_tool_call_output":
		m := Message{Role: "tool", ToolCallID: o.textOf("call_id")}
		o.fields["content"] = o.fields["output"]
		delete(o.fields, "output")
		if m.Content = o.content(); m.Content == nil {
			o.report.fail(o.at("output"), CodeMissing, "missing: want a string or a list of parts")
		}
		t.other(m)
	default:
		o.report.fail(o.at("type"), CodeUnsupported, "got %q, want message, reasoning, function_call, custom_tool_call, their outputs or item_reference", clip(kind))
	}
	o.finish()
}

func (t *turns) last() *Message { return &t.messages[len(t.messages)-1] }

func (t *turns) message(o *object) {
	role := o.str("role")
	switch {
	case role == nil:
		o.report.fail(o.at("role"), CodeMissing, "missing: want system, developer, user or assistant")
		return
	case *role != "system" && *role != "developer" && *role != "user" && *role != "assistant":
		o.report.fail(o.at("role"), CodeInvalidValue, "got %q, want system, developer, user or assistant", clip(*role))
		return
	}
	content := o.content()
	if len(content) == 0 && *role == "user" {
		o.report.fail(o.at("content"), CodeMissing, "missing: want a string or a list of parts")
	}
	o.take("phase")
	if *role != "assistant" {
		t.other(Message{Role: *role, Content: content})
		return
	}
	m := t.assistant(t.open && (t.last().Content != nil || t.last().ToolCalls != nil))
	m.Content = content
}

// thought takes the thinking of a reasoning item from where it is: its content, its seal, or its summary.
func (o *object) thought() string {
	join := func(name string) (text string) {
		for i, raw := range o.array(name) {
			p := openObject(raw, indexed(o.at(name), i), o.report)
			if p == nil {
				return ""
			}
			p.take("type")
			text += p.textOf("text")
			p.finish()
		}
		return text
	}
	content, summary := join("content"), join("summary")
	if seal := o.str("encrypted_content"); seal != nil && content == "" {
		if text, ok := Unseal(*seal); ok {
			return text
		}
		if summary == "" {
			o.report.fail(o.at("encrypted_content"), CodeInvalidValue, "got content that another service sealed, which nobody else can read: leave the item out")
		}
	}
	if content == "" {
		return summary
	}
	return content
}
