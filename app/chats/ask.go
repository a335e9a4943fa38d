package chats

import (
	"context"
	"errors"

	"pond/inference"
	chatproto "pond/inference/chat"
	"pond/inference/sample"
)

// Ask begins an answer. Its error is shown to the user as it is.
type Ask func(ctx context.Context, r inference.ChatRequest) (Stream, error)

// Stream is an answer that is being written: inference.Answer, or a script of a test. Next and the others belong to one goroutine;
// StopThinking to any. Repeating tells whether the answer goes round in circles just now; nil: nobody looks.
type Stream struct {
	Next         func() (inference.Update, bool)
	Err          func() error
	Result       func() inference.Result
	StopThinking func()
	Repeating    func() bool
}

// ErrNotRunning is what a question gets while no model is loaded.
var ErrNotRunning = errors.New("the model is not running; start it and ask again")

// FromEngine asks the engine: chat is that of an inference.Engine, or of what loads one first. The questions wait in the same queue as those
// of the server's clients. running tells whether there is an engine, or will be in a moment; nil: there is.
func FromEngine(chat func(context.Context, inference.ChatRequest) (*inference.Answer, error), running func() bool) Ask {
	return func(ctx context.Context, r inference.ChatRequest) (Stream, error) {
		if running != nil && !running() {
			return Stream{}, ErrNotRunning
		}
		a, err := chat(ctx, r)
		if err != nil {
			return Stream{}, err
		}
		return Stream{Next: a.Next, Err: a.Err, Result: a.Result, StopThinking: a.StopThinking, Repeating: a.Repeating}, nil
	}
}

// request is the conversation of a path, in the engine's words. Answers that say nothing are left out: they failed or were stopped
// before their first word.
func request(path []Message, p Params) inference.ChatRequest {
	var r inference.ChatRequest
	if p.System != "" {
		r.Conversation.Messages = append(r.Conversation.Messages, chatproto.Message{Role: "system", Content: chatproto.TextContent(p.System)})
	}
	for _, m := range path {
		switch {
		case m.Role == User:
			r.Conversation.Messages = append(r.Conversation.Messages, chatproto.Message{Role: "user", Content: chatproto.TextContent(prompt(m))})
		case m.Text != "":
			thinking := m.Thinking // not nil even when empty: the text is not searched for a think block
			r.Conversation.Messages = append(r.Conversation.Messages, chatproto.Message{Role: "assistant", Content: chatproto.TextContent(m.Text), Reasoning: &thinking})
		}
	}
	thinks := p.Thinks()
	r.Conversation.Thinking = &thinks
	r.Generation.MaxTokens = p.MaxTokens
	if p.Temperature != nil || p.TopP != nil || p.TopK != nil {
		s := inference.DefaultSampling(thinks)
		r.Generation.Sampling = override(s, p)
	}
	return r
}

func override(s sample.Params, p Params) *sample.Params {
	if p.Temperature != nil {
		s.Temperature = *p.Temperature
	}
	if p.TopP != nil {
		s.TopP = *p.TopP
	}
	if p.TopK != nil {
		s.TopK = *p.TopK
	}
	return &s
}

// sentence is an error as the chat shows it.
func sentence(err error) string {
	var fits *inference.ContextError
	switch {
	case errors.As(err, &fits):
		return "This conversation is too long for the memory of this machine: it has about " + count(fits.PromptTokens) + " tokens, and " + count(fits.LimitTokens) +
			" fit. Start a new chat, or go back to an earlier question and edit it."
	case errors.Is(err, inference.ErrBusy):
		return "Too many questions are waiting already. Try again in a moment."
	case errors.Is(err, inference.ErrClosed):
		return "The model was stopped while it answered."
	case errors.Is(err, ErrNotRunning):
		return "The model is not running. Start it and ask again."
	}
	return "The answer failed: " + err.Error() + "."
}
