package server

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"pond/inference"
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
	w, head, err := s.beginChat(c, c.Request().Context(), req, "chatcmpl-")
	if err != nil {
		return err
	}
	defer w.end()
	if req.Stream {
		return s.stream(c, w, func(out *eventStream) encoder {
			return &chatStream{eventStream: out, head: head, usage: req.IncludeUsage, pad: req.Obfuscate}
		})
	}
	choices, err := w.wait()
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, wholeChat(head, choices, req.Logprobs))
}

// beginChat starts the answers to a conversation, for every endpoint that holds one.
func (s *Server) beginChat(c echo.Context, ctx context.Context, req *openai.ChatRequest, prefix string) (*work, envelope, error) {
	head := s.newEnvelope(prefix)
	if err := s.checkModel(req.Model); err != nil {
		return nil, head, err
	}
	g, err := s.generation(req.Generation, req.Thinking == nil || *req.Thinking)
	if err != nil {
		return nil, head, err
	}
	if err := bind(&g, req); err != nil {
		return nil, head, err
	}
	talk := conversation(req)
	w, err := s.begin(ctx, requestID(c), head.id, req.Choices, func(ctx context.Context, w *work, choice int) (*inference.Answer, error) {
		return s.engine.Chat(ctx, inference.ChatRequest{Conversation: talk, Generation: nth(g, choice, w)})
	})
	if err == nil {
		noteIgnored(c, req.Ignored)
	}
	return w, head, err
}

func wholeChat(head envelope, choices []choice, logprobs bool) openai.Chat {
	chat := openai.Chat{ID: head.id, Object: openai.ObjectChat, Created: head.created, Model: head.model, SystemFingerprint: head.fingerprint}
	for i, c := range choices {
		message := openai.AnswerMessage{Role: "assistant", ReasoningContent: c.Answer.Reasoning, Reasoning: c.Answer.Reasoning}
		for _, call := range c.Answer.Calls {
			message.ToolCalls = append(message.ToolCalls, openai.CallOfAnswer{ID: call.ID, Type: "function",
				Function: openai.CallFunction{Name: call.Name, Arguments: string(call.Arguments)}})
		}
		if c.Answer.Content != "" || message.Reasoning == "" && len(message.ToolCalls) == 0 {
			message.Content = &choices[i].Answer.Content
		}
		chat.Choices = append(chat.Choices, openai.ChatChoice{Index: i, Message: message, Logprobs: chatLogprobs(logprobs, c.logprobs), FinishReason: string(c.Finish)})
	}
	chat.Usage = usage(resultsOf(choices)...)
	return chat
}

func resultsOf(choices []choice) []inference.Result {
	results := make([]inference.Result, len(choices))
	for i, c := range choices {
		results[i] = c.Result
	}
	return results
}
