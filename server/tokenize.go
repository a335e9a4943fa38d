package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"pond/inference/chat"
	"pond/server/openai"
)

// tokenize answers POST /tokenize: the tokens of a text, or of a conversation as the model would get it. The fields are those of llama.cpp's and
// vLLM's endpoints of the same name.
func (s *Server) tokenize(c echo.Context) error {
	body, err := s.readBody(c)
	if err != nil {
		return err
	}
	req, err := openai.DecodeTokenize(body)
	if err != nil {
		return err
	}
	if err := s.checkModel(req.Model); err != nil {
		return err
	}
	tok := s.engine.Tokenizer()
	var ids []int32
	switch {
	case req.Chat != nil:
		if ids, err = s.promptTokens(conversation(req.Chat)); err != nil {
			return err
		}
	case req.Special:
		ids = tok.EncodeSpecial(req.Text)
	default:
		ids = tok.Encode(req.Text)
	}
	noteIgnored(c, req.Ignored)
	answer := openai.Tokens{Tokens: append([]int32{}, ids...), Count: len(ids), MaxModelLen: s.engine.Info().ContextTokens}
	if req.Strings {
		for _, id := range ids {
			answer.Strings = append(answer.Strings, tokenText(tok.Bytes(id)))
		}
	}
	return writeJSON(c, http.StatusOK, answer)
}

// promptTokens renders a conversation and encodes it.
func (s *Server) promptTokens(talk chat.Conversation) ([]int32, error) {
	prompt, err := chat.Render(talk)
	if err != nil {
		return nil, err
	}
	return s.engine.Tokenizer().EncodePieces(prompt.Pieces), nil
}

// detokenize answers POST /detokenize.
func (s *Server) detokenize(c echo.Context) error {
	body, err := s.readBody(c)
	if err != nil {
		return err
	}
	req, err := openai.DecodeDetokenize(body)
	if err != nil {
		return err
	}
	if err := s.checkModel(req.Model); err != nil {
		return err
	}
	for i, id := range req.Tokens {
		if vocab := s.engine.Info().VocabSize; int(id) >= vocab {
			return &openai.Error{Param: fmt.Sprintf("tokens[%d]", i), Code: openai.CodeInvalidValue, Message: fmt.Sprintf("got the token id %d, want below %d", id, vocab)}
		}
	}
	noteIgnored(c, req.Ignored)
	text := s.text(req.Tokens)
	return writeJSON(c, http.StatusOK, openai.Text{Content: text, Prompt: text})
}

// text is what tokens stand for, control tokens by their names; bytes that are no character become U+FFFD.
func (s *Server) text(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.Write(s.engine.Tokenizer().Bytes(id))
	}
	return strings.ToValidUTF8(b.String(), "\ufffd")
}

// embeddings answers POST /v1/embeddings, which no checkpoint of this model can.
func (s *Server) embeddings(echo.Context) error {
	return refuse(http.StatusNotImplemented, "not_implemented",
		"embeddings: %s is a model that writes; it was not trained to place texts in a space. Use an embedding model at another endpoint", s.engine.Info().ID)
}
