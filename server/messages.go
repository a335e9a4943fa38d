package server

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"pond/inference"
	"pond/inference/chat"
	"pond/server/openai"
)

// messages answers POST /v1/messages, Anthropic's API: the same conversation and the same engine in other words.
func (s *Server) messages(c echo.Context) error {
	body, err := s.readBody(c)
	if err != nil {
		return err
	}
	req, err := openai.DecodeMessages(body, false)
	if err != nil {
		return err
	}
	w, head, err := s.beginChat(c, c.Request().Context(), &req.ChatRequest, "msg_")
	if err != nil {
		return err
	}
	defer w.end()
	if req.Stream {
		return s.stream(c, w, func(out *eventStream) encoder {
			return &messageStream{eventStream: out, head: head, progress: &w.progress, hide: req.HideThinking, request: requestID(c)}
		})
	}
	choices, err := w.wait()
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, wholeMessage(head, choices[0], req.HideThinking))
}

// countTokens answers POST /v1/messages/count_tokens without asking the device.
func (s *Server) countTokens(c echo.Context) error {
	body, err := s.readBody(c)
	if err != nil {
		return err
	}
	req, err := openai.DecodeMessages(body, true)
	if err != nil {
		return err
	}
	if err := s.checkModel(req.Model); err != nil {
		return err
	}
	ids, err := s.promptTokens(conversation(&req.ChatRequest))
	if err != nil {
		return err
	}
	noteIgnored(c, req.Ignored)
	return writeJSON(c, http.StatusOK, openai.MessageCount{InputTokens: len(ids)})
}

func wholeMessage(head envelope, w choice, hide bool) openai.MessageAnswer {
	m := newMessage(head)
	for _, b := range blocksOf(w.events) {
		m.Content = append(m.Content, messageBlock(b, hide))
	}
	m.StopReason, m.StopSequence = stopReason(w.Result)
	m.Usage = messageUsage(w.Usage)
	return m
}

func newMessage(head envelope) openai.MessageAnswer {
	return openai.MessageAnswer{ID: head.id, Type: "message", Role: "assistant", Model: head.model, Content: []openai.MessageBlock{}}
}

// messageBlock is a block as it stands in a whole message.
func messageBlock(b *block, hide bool) openai.MessageBlock {
	switch b.kind {
	case chat.Reasoning:
		thinking, signature := b.text, signatureOf(b, hide)
		if hide {
			thinking = ""
		}
		return openai.MessageBlock{Type: "thinking", Thinking: &thinking, Signature: &signature}
	case chat.Text:
		return openai.MessageBlock{Type: "text", Text: &b.text}
	}
	return openai.MessageBlock{Type: "tool_use", ID: b.id, Name: b.name, Input: json.RawMessage(b.text)}
}

// signatureOf is what the client sends back with a block of thinking. Nothing has to be proven to Pond; thinking that is hidden from the
// client is in it.
func signatureOf(b *block, hide bool) string {
	if hide {
		return openai.Seal(b.text)
	}
	return "pond"
}

func stopReason(r inference.Result) (reason, sequence *string) {
	text := "end_turn"
	switch {
	case r.Finish == inference.FinishLength:
		text = "max_tokens"
	case r.Finish == inference.FinishToolCalls:
		text = "tool_use"
	case r.StopText != "":
		text, sequence = "stop_sequence", &r.StopText
	}
	return &text, sequence
}

func messageUsage(u inference.Usage) openai.MessageUsage {
	return openai.MessageUsage{InputTokens: u.PromptTokens - u.CachedTokens, CacheReadInputTokens: u.CachedTokens, OutputTokens: u.CompletionTokens}
}

// anthropicModels is the list of models for a client that speaks Anthropic's API.
func (s *Server) anthropicModels() openai.MessageModelList {
	m := s.anthropicModel()
	return openai.MessageModelList{Data: []openai.MessageModel{m}, FirstID: m.ID, LastID: m.ID}
}

func (s *Server) anthropicModel() openai.MessageModel {
	info := s.engine.Info()
	return openai.MessageModel{Type: "model", ID: info.ID, DisplayName: info.ID, CreatedAt: info.Created.UTC().Format(time.RFC3339)}
}
