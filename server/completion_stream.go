package server

import (
	"errors"

	"github.com/labstack/echo/v4"

	"pond/inference"
	"pond/inference/chat"
	"pond/server/openai"
)

// completionStream writes the events of a text completion.
type completionStream struct {
	completionAnswer
	*eventStream
	usage bool
	pad   bool
	begun bool
}

func (w *completionStream) begin() error { return nil }

func (w *completionStream) update(choice int, u inference.Update) error {
	w.open(choice)
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
	return w.chunk(w.choice(choice, text, nil))
}

// open starts the choice with its first update.
func (w *completionStream) open(choice int) {
	if !w.begun {
		w.begun = true
		w.start(choice)
	}
}

func (w *completionStream) chunk(c openai.CompletionChoice) error {
	frame := w.frame(c)
	if w.pad {
		frame.Obfuscation = padding(frame)
	}
	return w.event(frame)
}

func (w *completionStream) ended(choice int, r inference.Result) error {
	w.open(choice)
	w.begun = false
	finish := string(r.Finish)
	return w.chunk(w.choice(choice, "", &finish))
}

func (w *completionStream) end(results []inference.Result) error {
	if w.usage {
		last := w.frame()
		last.Choices = []openai.CompletionChoice{}
		u := completionUsage(results, w.perPrompt)
		last.Usage = &u
		if err := w.event(last); err != nil {
			return err
		}
	}
	return w.done()
}

// broken tells an error that came before the answer: as an event where the stream is open.
func (s *Server) broken(c echo.Context, out *eventStream, err error) error {
	if out != nil && !errors.Is(err, errClientGone) {
		_, f := s.describe(c, err)
		out.event(f.openai()) // a client that does not take it has left: the error is told to the log
	}
	return err
}

func (w *completionStream) fail(_ int, f failure) error { return w.event(f.openai()) }
