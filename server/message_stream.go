package server

import (
	"encoding/json"

	"pond/inference"
	"pond/inference/chat"
	"pond/server/openai"
)

// messageStream writes the events of Anthropic's API: message_start, the blocks one after the other, message_delta, message_stop.
//
// message_start has the count of the prompt's tokens, and what of them the cache held: so it comes with the first token. Before it there are
// comments.
type messageStream struct {
	*eventStream
	head     envelope
	progress *progress
	hide     bool
	request  string
	blocks   blocks
	begun    bool
}

func (w *messageStream) begin() error { return nil }

func (w *messageStream) start() error {
	if w.begun {
		return nil
	}
	w.begun = true
	m := newMessage(w.head)
	cached := int(w.progress.cached.Load())
	m.Usage = openai.MessageUsage{InputTokens: int(w.progress.total.Load()) - cached, CacheReadInputTokens: cached}
	return w.send(openai.MessageEvent{Type: "message_start", Message: &m})
}

func (w *messageStream) send(e openai.MessageEvent) error { return w.named(e.Type, e) }

func (w *messageStream) update(_ int, u inference.Update) error {
	if err := w.start(); err != nil {
		return err
	}
	for _, e := range joined(u.Events) {
		if err := w.blocks.apply(e, w); err != nil {
			return err
		}
	}
	return nil
}

func (w *messageStream) opened(b *block) error {
	empty, start := "", openai.MessageBlock{}
	switch b.kind {
	case chat.Reasoning:
		start = openai.MessageBlock{Type: "thinking", Thinking: &empty, Signature: &empty}
	case chat.Text:
		start = openai.MessageBlock{Type: "text", Text: &empty}
	default:
		start = openai.MessageBlock{Type: "tool_use", ID: b.id, Name: b.name, Input: json.RawMessage("{}")}
	}
	return w.send(openai.MessageEvent{Type: "content_block_start", Index: &b.index, Block: &start})
}

func (w *messageStream) grew(b *block, text string) error {
	switch b.kind {
	case chat.Reasoning:
		if w.hide {
			return nil
		}
		return w.delta(b, openai.MessageDelta{Type: "thinking_delta", Thinking: &text})
	case chat.Text:
		return w.delta(b, openai.MessageDelta{Type: "text_delta", Text: &text})
	}
	return w.delta(b, openai.MessageDelta{Type: "input_json_delta", PartialJSON: &text})
}

func (w *messageStream) delta(b *block, d openai.MessageDelta) error {
	return w.send(openai.MessageEvent{Type: "content_block_delta", Index: &b.index, Delta: &d})
}

func (w *messageStream) closed(b *block) error {
	if b.kind == chat.Reasoning {
		signature := signatureOf(b, w.hide)
		if err := w.delta(b, openai.MessageDelta{Type: "signature_delta", Signature: &signature}); err != nil {
			return err
		}
	}
	return w.send(openai.MessageEvent{Type: "content_block_stop", Index: &b.index})
}

func (w *messageStream) ended(_ int, r inference.Result) error {
	if err := w.start(); err != nil {
		return err
	}
	if err := w.blocks.finish(w); err != nil {
		return err
	}
	reason, sequence := stopReason(r)
	u := messageUsage(r.Usage)
	return w.send(openai.MessageEvent{Type: "message_delta", Delta: &openai.MessageStop{StopReason: reason, StopSequence: sequence}, Usage: &u})
}

func (w *messageStream) end([]inference.Result) error {
	return w.send(openai.MessageEvent{Type: "message_stop"})
}

func (w *messageStream) fail(status int, f failure) error {
	return w.named("error", f.anthropic(status, w.request))
}
