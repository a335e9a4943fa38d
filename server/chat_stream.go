package server

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"

	"pond/inference"
	"pond/inference/chat"
	"pond/server/openai"
)

// chatStream writes the events of a chat answer. Of each choice: the role with the first thing said, then deltas, the finish
// reason; after all of them the usage if asked for.
type chatStream struct {
	*eventStream
	head     envelope
	usage    bool                     // the client asked for it
	pad      bool                     // and for events whose length says nothing
	begun    bool                     // the choice being written
	logprobs []inference.TokenLogprob // of tokens whose text is still held back
}

func (w *chatStream) begin() error { return nil }

func (w *chatStream) update(choice int, u inference.Update) error {
	w.logprobs = append(w.logprobs, u.Logprobs...)
	for _, e := range joined(u.Events) {
		delta, ok := deltaOf(e)
		if !ok {
			continue
		}
		if err := w.delta(choice, delta, nil); err != nil {
			return err
		}
	}
	return nil
}

// joined puts events that only lengthen the one before together, so that each becomes one event on the wire.
func joined(events []chat.Event) []chat.Event {
	var out []chat.Event
	for _, e := range events {
		if n := len(out); n > 0 && joins(out[n-1], e) {
			out[n-1].Text += e.Text
			continue
		}
		out = append(out, e)
	}
	return out
}

// joins says whether b only lengthens a.
func joins(a, b chat.Event) bool {
	return a.Kind == b.Kind && (a.Kind == chat.Text || a.Kind == chat.Reasoning || a.Kind == chat.CallArguments && a.Index == b.Index)
}

func deltaOf(e chat.Event) (openai.Delta, bool) {
	call := openai.CallOfAnswer{Index: &e.Index}
	switch e.Kind {
	case chat.Reasoning:
		return openai.Delta{ReasoningContent: e.Text, Reasoning: e.Text}, e.Text != ""
	case chat.Text:
		return openai.Delta{Content: &e.Text}, e.Text != ""
	case chat.CallStart:
		call.ID, call.Type, call.Function.Name = e.ID, "function", e.Name
		return openai.Delta{ToolCalls: []openai.CallOfAnswer{call}}, true
	case chat.CallArguments:
		call.Function.Arguments = e.Text
		return openai.Delta{ToolCalls: []openai.CallOfAnswer{call}}, e.Text != ""
	}
	return openai.Delta{}, false
}

func (w *chatStream) delta(choice int, d openai.Delta, finish *string) error {
	if !w.begun {
		w.begun = true
		empty := ""
		if err := w.chunk(openai.ChunkChoice{Index: choice, Delta: openai.Delta{Role: "assistant", Content: &empty}}); err != nil {
			return err
		}
	}
	logprobs := chatLogprobs(len(w.logprobs) > 0, w.logprobs)
	w.logprobs = w.logprobs[:0]
	return w.chunk(openai.ChunkChoice{Index: choice, Delta: d, Logprobs: logprobs, FinishReason: finish})
}

func (w *chatStream) chunk(choices ...openai.ChunkChoice) error {
	chunk := w.frame(choices)
	if w.pad {
		chunk.Obfuscation = padding(chunk)
	}
	return w.event(chunk)
}

func (w *chatStream) frame(choices []openai.ChunkChoice) openai.ChatChunk {
	return openai.ChatChunk{ID: w.head.id, Object: openai.ObjectChatChunk, Created: w.head.created, Model: w.head.model,
		SystemFingerprint: w.head.fingerprint, Choices: choices}
}

func (w *chatStream) ended(choice int, r inference.Result) error {
	finish := string(r.Finish)
	err := w.delta(choice, openai.Delta{}, &finish)
	w.begun = false
	return err
}

func (w *chatStream) end(results []inference.Result) error {
	if w.usage {
		last := w.frame([]openai.ChunkChoice{})
		u := usage(results...)
		last.Usage = &u
		if err := w.event(last); err != nil {
			return err
		}
	}
	return w.done()
}

func (w *chatStream) fail(_ int, f failure) error { return w.event(f.openai()) }

// padding is random text that makes the event of value a multiple of 64 bytes, for streams that pass an untrusted network in an
// encrypted tunnel: the lengths of the packets then tell less of the words.
func padding(value any) string {
	const block, letters = 64, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // as the event itself
	if encoder.Encode(value) != nil {
		return ""
	}
	var b strings.Builder
	for n := text.Len() - 1 + len(`,"obfuscation":""`); n%block != 0 || b.Len() == 0; n++ {
		b.WriteByte(letters[rand.IntN(len(letters))])
	}
	return b.String()
}
