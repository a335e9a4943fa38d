package server

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"pond/inference"
	"pond/inference/chat"
	"pond/server/openai"
)

// chat answers POST /v1/chat/completions.
func (s *Server) chat(c echo.Context) error {
	body, err := s.readBody(c)
	if err != nil {
		return err
	}
	req, err := openai.DecodeChat(body)
	if err != nil {
		return err
	}
	if err := s.checkModel(req.Model); err != nil {
		return err
	}
	var p progress
	g, err := s.generation(req.Generation, req.Thinking == nil || *req.Thinking, &p)
	if err != nil {
		return err
	}
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	answer, err := s.engine.Chat(ctx, inference.ChatRequest{Conversation: conversation(req), Generation: g})
	if err != nil {
		return endOf(ctx, err)
	}
	noteIgnored(c, req.Ignored)
	if req.Stream {
		out, err := openStream(c, s.options.Heartbeat)
		if err != nil {
			cancel()
			drain(answer.Next)
			return err
		}
		w := chatStream{eventStream: out, server: s, envelope: s.newEnvelope("chatcmpl-"), usage: req.IncludeUsage}
		return s.finishStream(ctx, c, out, out.pump(answer.Next, cancel, p.String, w.update), answer, w.end)
	}
	var logprobs []inference.TokenLogprob
	for u, ok := answer.Next(); ok; u, ok = answer.Next() {
		logprobs = append(logprobs, u.Logprobs...)
	}
	if err := endOf(ctx, answer.Err()); err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, s.wholeChat(s.newEnvelope("chatcmpl-"), answer.Result(), chatLogprobs(req.Logprobs, logprobs)))
}

// finishStream ends a stream whose updates are all written: with end, or with the error as last event.
func (s *Server) finishStream(ctx context.Context, c echo.Context, out *eventStream, written error, answer *inference.Answer, end func(inference.Result) error) error {
	if written != nil {
		return written
	}
	if err := endOf(ctx, answer.Err()); err != nil {
		_, body := s.describe(c, err)
		out.event(body)
		return err
	}
	return end(answer.Result())
}

func (s *Server) wholeChat(e envelope, r inference.Result, logprobs *openai.ChatLogprobs) openai.Chat {
	message := openai.AnswerMessage{Role: "assistant", ReasoningContent: r.Answer.Reasoning, Reasoning: r.Answer.Reasoning}
	for _, call := range r.Answer.Calls {
		message.ToolCalls = append(message.ToolCalls, openai.CallOfAnswer{ID: call.ID, Type: "function",
			Function: openai.CallFunction{Name: call.Name, Arguments: string(call.Arguments)}})
	}
	if r.Answer.Content != "" || message.Reasoning == "" && len(message.ToolCalls) == 0 {
		message.Content = &r.Answer.Content
	}
	return openai.Chat{
		ID: e.id, Object: openai.ObjectChat, Created: e.created, Model: e.model, SystemFingerprint: s.fingerprint,
		Choices: []openai.ChatChoice{{Message: message, Logprobs: logprobs, FinishReason: string(r.Finish)}},
		Usage:   usage(r.Usage),
	}
}

// chatStream writes the events of one chat answer: the role with the first thing said, then deltas, the finish reason, and the
// usage if asked for.
type chatStream struct {
	*eventStream
	server   *Server
	envelope envelope
	usage    bool // the client asked for it
	begun    bool
	logprobs []inference.TokenLogprob // of tokens whose text is still held back
}

func (w *chatStream) update(u inference.Update) error {
	w.logprobs = append(w.logprobs, u.Logprobs...)
	for i := 0; i < len(u.Events); i++ {
		e := u.Events[i]
		for i+1 < len(u.Events) && joins(e, u.Events[i+1]) {
			i++
			e.Text += u.Events[i].Text
		}
		delta, ok := deltaOf(e)
		if !ok {
			continue
		}
		if err := w.delta(delta, nil); err != nil {
			return err
		}
	}
	return nil
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

func (w *chatStream) delta(d openai.Delta, finish *string) error {
	if !w.begun {
		w.begun = true
		empty := ""
		if err := w.chunk(openai.ChunkChoice{Delta: openai.Delta{Role: "assistant", Content: &empty}}); err != nil {
			return err
		}
	}
	logprobs := chatLogprobs(len(w.logprobs) > 0, w.logprobs)
	w.logprobs = w.logprobs[:0]
	return w.chunk(openai.ChunkChoice{Delta: d, Logprobs: logprobs, FinishReason: finish})
}

func (w *chatStream) chunk(choices ...openai.ChunkChoice) error { return w.event(w.frame(choices)) }

func (w *chatStream) frame(choices []openai.ChunkChoice) openai.ChatChunk {
	return openai.ChatChunk{ID: w.envelope.id, Object: openai.ObjectChatChunk, Created: w.envelope.created, Model: w.envelope.model,
		SystemFingerprint: w.server.fingerprint, Choices: choices}
}

func (w *chatStream) end(r inference.Result) error {
	finish := string(r.Finish)
	if err := w.delta(openai.Delta{}, &finish); err != nil {
		return err
	}
	if w.usage {
		last := w.frame([]openai.ChunkChoice{})
		u := usage(r.Usage)
		last.Usage = &u
		if err := w.event(last); err != nil {
			return err
		}
	}
	return w.done()
}
