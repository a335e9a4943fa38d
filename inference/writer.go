package inference

import (
	"pond/inference/chat"
	"pond/inference/sample"
	"pond/inference/tokenizer"
)

// writer turns tokens into updates: whole characters, up to a stop text, parsed.
type writer struct {
	job       *job
	tok       *tokenizer.Tokenizer
	decoder   *tokenizer.Decoder
	stopper   *sample.Stopper
	reasoning bool
	calls     bool
	stopped   bool
	repeats   sample.Repeats
}

// token adds one token; it reports that a stop text was reached.
func (w *writer) token(c sample.Choice) (stopped bool) {
	var u Update
	w.job.usage.CompletionTokens++
	if w.job.gen.Logprobs {
		u.Logprobs = []TokenLogprob{w.logprob(c)}
	}
	u.Events = w.until(w.parse(w.decoder.Push(c.ID)))
	if w.reasoning {
		w.job.usage.ReasoningTokens++
	}
	w.job.answer.loop.Store(w.repeats.Accept(c.ID))
	w.job.answer.add(u)
	return w.stopped
}

// full reports whether the answer has all the tokens that it may have.
func (w *writer) full() bool { return w.job.usage.CompletionTokens >= w.job.gen.MaxTokens }

// goesOn reports whether the answer needs a token behind the next one, as far as is known before that is.
func (w *writer) goesOn() bool {
	u, g := &w.job.usage, &w.job.gen
	closes := w.reasoning && (w.job.answer.stop.Load() || g.ThinkingBudget > 0 && u.ReasoningTokens >= g.ThinkingBudget)
	return u.CompletionTokens+1 < g.MaxTokens && !closes
}

func (w *writer) parse(text string) []chat.Event {
	if w.job.parser == nil {
		if text == "" {
			return nil
		}
		return []chat.Event{{Kind: chat.Text, Text: text}}
	}
	ev := w.job.parser.Push(text)
	w.reasoning = w.job.parser.InReasoning()
	return ev
}

// until cuts events at a stop text. Only content is searched: a line end in the thinking, or in a tool's argument, is not the end
// that a client asked for. What may be the start of a stop text is held back until it is known not to be.
func (w *writer) until(events []chat.Event) []chat.Event {
	var out []chat.Event
	for _, e := range events {
		if w.stopped {
			break
		}
		if e.Kind == chat.CallStart && e.Index > 0 && w.job.gen.OneCall {
			w.stopped = true
			break
		}
		if e.Kind != chat.Text {
			out = append(out, w.held()...)
			w.calls = w.calls || e.Kind == chat.CallStart
			out = append(out, e)
			continue
		}
		if e.Text, w.stopped = w.stopper.Push(e.Text); e.Text != "" {
			out = append(out, e)
		}
	}
	return out
}

// held is the content that was held back.
func (w *writer) held() []chat.Event {
	if text := w.stopper.Flush(); text != "" {
		return []chat.Event{{Kind: chat.Text, Text: text}}
	}
	return nil
}

// close emits what was held back and says how the answer ended.
func (w *writer) close(end chat.End) Finish {
	var u Update
	events := w.parse(w.decoder.Flush())
	if p := w.job.parser; p != nil {
		events = append(events, p.Close(end)...)
	}
	u.Events = w.until(events)
	if !w.stopped {
		u.Events = append(u.Events, w.held()...)
	}
	w.job.answer.add(u)
	w.job.answer.matched(w.stopper.Matched())
	switch {
	case end == chat.EndLength && !w.stopped:
		return FinishLength
	case w.calls:
		return FinishToolCalls
	}
	return FinishStop
}

func (w *writer) logprob(c sample.Choice) TokenLogprob {
	out := TokenLogprob{ID: c.ID, Bytes: w.tok.Bytes(c.ID), Logprob: c.Logprob}
	for _, t := range c.Top {
		out.Top = append(out.Top, TokenLogprob{ID: t.ID, Bytes: w.tok.Bytes(t.ID), Logprob: t.Logprob})
	}
	return out
}
