package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"pond/inference"
	"pond/inference/chat"
	"pond/server/openai"
)

// completion answers POST /v1/completions: text is continued as it stands, without the chat template.
func (s *Server) completion(c echo.Context) error {
	body, err := s.readBody(c)
	if err != nil {
		return err
	}
	req, err := openai.DecodeCompletion(body)
	if err != nil {
		return err
	}
	if err := s.checkModel(req.Model); err != nil {
		return err
	}
	for i, id := range req.Tokens {
		if vocab := s.engine.Info().VocabSize; int(id) >= vocab {
			return &openai.Error{Param: fmt.Sprintf("prompt[%d]", i), Code: openai.CodeInvalidValue, Message: fmt.Sprintf("got the token id %d, want below %d", id, vocab)}
		}
	}
	var p progress
	g, err := s.generation(req.Generation, false, &p) // no template, no thinking
	if err != nil {
		return err
	}
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	answer, err := s.engine.Complete(ctx, inference.CompletionRequest{Prompt: req.Prompt, Tokens: req.Tokens, Generation: g})
	if err != nil {
		return endOf(ctx, err)
	}
	noteIgnored(c, req.Ignored)
	w := completionStream{server: s, envelope: s.newEnvelope("cmpl-"), logprobs: req.Logprobs, usage: req.IncludeUsage}
	if req.Stream {
		if w.eventStream, err = openStream(c, s.options.Heartbeat); err != nil {
			cancel()
			drain(answer.Next)
			return err
		}
		return s.finishStream(ctx, c, w.eventStream, w.pump(answer.Next, cancel, p.String, w.update), answer, w.end)
	}
	for u, ok := answer.Next(); ok; u, ok = answer.Next() {
		w.pending = append(w.pending, u.Logprobs...)
	}
	if err := endOf(ctx, answer.Err()); err != nil {
		return err
	}
	r := answer.Result()
	finish := string(r.Finish)
	whole := w.frame(w.choice(r.Answer.Content, &finish))
	u := usage(r.Usage)
	whole.Usage = &u
	return writeJSON(c, http.StatusOK, whole)
}

// completionStream writes the events of one text completion.
type completionStream struct {
	*eventStream
	server   *Server
	envelope envelope
	usage    bool
	logprobs bool
	pending  []inference.TokenLogprob // of tokens whose text is still held back
	offset   int                      // characters before the pending tokens
}

func (w *completionStream) update(u inference.Update) error {
	w.pending = append(w.pending, u.Logprobs...)
	text := ""
	for _, e := range u.Events {
		if e.Kind == chat.Text {
			text += e.Text
		}
	}
	if text == "" {
		return nil
	}
	return w.event(w.frame(w.choice(text, nil)))
}

func (w *completionStream) choice(text string, finish *string) openai.CompletionChoice {
	c := openai.CompletionChoice{Text: text, FinishReason: finish}
	if w.logprobs {
		c.Logprobs, w.offset = completionLogprobs(w.pending, w.offset)
		w.pending = w.pending[:0]
	}
	return c
}

func (w *completionStream) frame(choices ...openai.CompletionChoice) openai.Completion {
	return openai.Completion{ID: w.envelope.id, Object: openai.ObjectCompletion, Created: w.envelope.created, Model: w.envelope.model,
		SystemFingerprint: w.server.fingerprint, Choices: choices}
}

func (w *completionStream) end(r inference.Result) error {
	finish := string(r.Finish)
	if err := w.event(w.frame(w.choice("", &finish))); err != nil {
		return err
	}
	if w.usage {
		last := w.frame()
		last.Choices = []openai.CompletionChoice{}
		u := usage(r.Usage)
		last.Usage = &u
		if err := w.event(last); err != nil {
			return err
		}
	}
	return w.done()
}
