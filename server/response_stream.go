package server

import (
	"strings"

	"pond/inference"
	"pond/inference/chat"
	"pond/server/openai"
)

// responseStream writes the events of the Responses API in its order: created, in_progress; of each item: added, its parts and deltas, done; and
// at last completed, incomplete or failed, with the whole response. Numbers count up from 0 without a gap.
type responseStream struct {
	*eventStream
	response *response
	keep     func(*response, chat.Answer)
	pad      bool
	number   int
	blocks   blocks
	ids      []string
	finish   inference.Finish // "" until the answer has ended
}

func (w *responseStream) send(e openai.ResponseEvent) error {
	e.SequenceNumber = w.number
	w.number++
	if w.pad && e.Delta != nil {
		e.Obfuscation = padding(e)
	}
	return w.named(e.Type, e)
}

// whole sends the response as it is now.
func (w *responseStream) whole(kind string) error {
	r := w.response.object
	return w.send(openai.ResponseEvent{Type: "response." + kind, Response: &r})
}

func (w *responseStream) begin() error {
	if err := w.whole("created"); err != nil {
		return err
	}
	return w.whole("in_progress")
}

func (w *responseStream) update(_ int, u inference.Update) error {
	for _, e := range joined(u.Events) {
		if err := w.blocks.apply(e, w); err != nil {
			return err
		}
	}
	return nil
}

// of gives an event about a block.
func (w *responseStream) of(b *block, kind string) openai.ResponseEvent {
	return openai.ResponseEvent{Type: "response." + kind, OutputIndex: &b.index, ItemID: w.ids[b.index]}
}

// in gives an event about the only part of a block.
func (w *responseStream) in(b *block, kind string) openai.ResponseEvent {
	e, zero := w.of(b, kind), 0
	if strings.HasPrefix(kind, "reasoning_summary") {
		e.SummaryIndex = &zero
	} else {
		e.ContentIndex = &zero
	}
	return e
}

func (w *responseStream) opened(b *block) error {
	w.ids = append(w.ids, w.response.itemID(b))
	item := w.response.item(b, w.ids[b.index], "in_progress")
	if err := w.send(openai.ResponseEvent{Type: "response.output_item.added", OutputIndex: &b.index, Item: &item}); err != nil {
		return err
	}
	part := textPart("")
	kind := "content_part.added"
	switch {
	case b.kind == chat.CallStart:
		return nil
	case b.kind == chat.Reasoning && w.response.req.Summary:
		part, kind = openai.ResponsePart{Type: "summary_text"}, "reasoning_summary_part.added"
	case b.kind == chat.Reasoning:
		part = openai.ResponsePart{Type: "reasoning_text"}
	}
	e := w.in(b, kind)
	e.Part = &part
	return w.send(e)
}

// deltaKind is the name of the events that carry a block's text.
func (w *responseStream) deltaKind(b *block) string {
	switch {
	case b.kind == chat.Text:
		return "output_text"
	case w.response.isCustom(b):
		return "custom_tool_call_input"
	case b.kind == chat.CallStart:
		return "function_call_arguments"
	case w.response.req.Summary:
		return "reasoning_summary_text"
	}
	return "reasoning_text"
}

func (w *responseStream) grew(b *block, text string) error {
	if w.response.isCustom(b) {
		if text = b.moreInput(); text == "" {
			return nil
		}
	}
	e := w.in(b, w.deltaKind(b)+".delta")
	e.Delta = &text
	switch b.kind {
	case chat.CallStart:
		e.ContentIndex = nil
	case chat.Text:
		e.Logprobs = &[]string{}
	}
	return w.send(e)
}

func (w *responseStream) closed(b *block) error {
	e := w.in(b, w.deltaKind(b)+".done")
	if b.kind == chat.CallStart {
		item := w.response.item(b, "", "")
		if e.ContentIndex, e.Arguments, e.Input = nil, item.Arguments, item.Input; e.Arguments != nil {
			e.Name = item.Name
		}
		if err := w.send(e); err != nil {
			return err
		}
		return w.itemDone(b)
	}
	e.Text = &b.text
	part, kind := textPart(b.text), "content_part.done"
	switch {
	case b.kind == chat.Text:
		e.Logprobs = &[]string{}
	case w.response.req.Summary:
		part, kind = openai.ResponsePart{Type: "summary_text", Text: b.text}, "reasoning_summary_part.done"
	default:
		part = openai.ResponsePart{Type: "reasoning_text", Text: b.text}
	}
	if err := w.send(e); err != nil {
		return err
	}
	e = w.in(b, kind)
	e.Part = &part
	if err := w.send(e); err != nil {
		return err
	}
	return w.itemDone(b)
}

func (w *responseStream) itemDone(b *block) error {
	item := w.response.item(b, w.ids[b.index], itemStatus(b, w.finish))
	return w.send(openai.ResponseEvent{Type: "response.output_item.done", OutputIndex: &b.index, Item: &item})
}

func (w *responseStream) ended(_ int, r inference.Result) error {
	w.finish = r.Finish
	if err := w.blocks.finish(w); err != nil {
		return err
	}
	w.response.complete(w.blocks.list, w.ids, r)
	w.keep(w.response, r.Answer)
	return nil
}

func (w *responseStream) end([]inference.Result) error {
	return w.whole(w.response.object.Status)
}

func (w *responseStream) fail(_ int, f failure) error {
	body := f.openai().Error
	err := w.named("error", openai.ResponseErrorEvent{Type: "error", SequenceNumber: w.number, Code: body.Code, Message: f.message, Param: body.Param})
	if err != nil {
		return err
	}
	w.number++
	w.response.broke(f)
	return w.whole("failed")
}
