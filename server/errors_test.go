package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"pond/inference"
	"pond/inference/chat"
	"pond/server/openai"
)

func TestDescribe(t *testing.T) {
	s := &Server{log: slog.New(slog.DiscardHandler)}
	c := echo.New().NewContext(httptest.NewRequest("POST", "/chat/completions", nil), httptest.NewRecorder())
	for _, test := range []struct {
		err    error
		status int
		body   openai.ErrorBody
	}{
		{refuse(403, "x", "got %d", 1), 403, openai.NewErrorBody(kindPermission, "got 1", "", "x")},
		{refuse(401, "x", "no"), 401, openai.NewErrorBody(kindAuth, "no", "", "x")},
		{&openai.Error{Param: "n", Code: "c", Message: "got 2, want 1"}, 400, openai.NewErrorBody(kindRequest, "n: got 2, want 1", "n", "c")},
		{fmt.Errorf("inference: %w", &chat.Error{Path: "messages[1]", Message: "got x"}), 400, openai.NewErrorBody(kindRequest, "messages[1]: got x", "messages[1]", openai.CodeInvalidValue)},
		{fmt.Errorf("inference: %w", &inference.ContextError{PromptTokens: 100, RequestedTokens: 20, LimitTokens: 100}), 400, openai.NewErrorBody(kindRequest,
			"the context holds 100 tokens and the prompt has 100, with 20 requested for the answer: shorten the prompt to leave room for an answer", "messages", "context_length_exceeded")},
		{&inference.ContextError{PromptTokens: 101, LimitTokens: 100}, 400, openai.NewErrorBody(kindRequest,
			"the context holds 100 tokens and the prompt has 101: shorten the prompt to leave room for an answer", "messages", "context_length_exceeded")},
		{fmt.Errorf("reading: %w", &http.MaxBytesError{Limit: 9}), 413, openai.NewErrorBody(kindRequest, "the body has more than 9 bytes, which is the limit", "", "body_too_large")},
		{errShutdown, 503, openai.NewErrorBody(kindServer, "the server is shutting down", "", "shutting_down")},
		{inference.ErrBusy, 429, openai.NewErrorBody(kindRate, "too many requests are waiting: try again later", "", "queue_full")},
		{os.ErrDeadlineExceeded, 408, openai.NewErrorBody(kindRequest, "the body did not arrive in time", "", "request_timeout")},
		{fmt.Errorf("%w: %w", errClientGone, os.ErrDeadlineExceeded), statusClientGone, openai.NewErrorBody(kindRequest, "the client left", "", "client_gone")},
		{context.Canceled, statusClientGone, openai.NewErrorBody(kindRequest, "the client left", "", "client_gone")},
		{echo.ErrNotFound, 404, openai.NewErrorBody(kindRequest, "path: got /chat/completions, want /v1/chat/completions (the base URL ends in /v1)", "", "unknown_path")},
		{&inference.DamagedError{Number: float32(math.NaN())}, 500, openai.NewErrorBody(kindServer,
			"the model's weights give NaN (logit of token 0), want numbers: its files are damaged: pond verify says which", "", "model_damaged")},
		{errors.New("device lost"), 500, openai.NewErrorBody(kindServer, "internal error: device lost", "", "internal_error")},
		{&panicError{value: "boom", stack: []byte("secret frames")}, 500, openai.NewErrorBody(kindServer, "internal error: panic: boom", "", "internal_error")},
	} {
		status, f := s.describe(c, test.err)
		if status != test.status {
			t.Errorf("%v: got status %d, want %d", test.err, status, test.status)
		}
		if diff := cmp.Diff(test.body, f.openai()); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.err, diff)
		}
	}
}

// The engine counts messages that the Responses API and Anthropic's do not have: their clients hear of the field as a whole.
func TestFaultOfAConversation(t *testing.T) {
	l := serve(t, Options{})
	for path, c := range map[string][2]string{
		"/v1/chat/completions":      {`{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{x"}}]}]}`, "messages[1].tool_calls[0].function.arguments: "},
		"/v1/responses":             {`{"instructions":"s","input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":"{x"}]}`, "input: "},
		"/v1/messages/count_tokens": {`{"system":"s","messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":[1]}]},{"role":"user","content":"y"}]}`, "messages: "},
	} {
		status, _, answer := l.post(path, c[0])
		if status != 400 || !strings.Contains(string(answer), `"message":"`+c[1]) {
			t.Errorf("%s: got status %d and %s, want 400 about %s", path, status, answer, c[1])
		}
	}
	if status, _, answer := l.post("/v1/responses", `{"input":[]}`); status != 400 || !strings.Contains(string(answer), `"param":"input"`) {
		t.Errorf("empty input: got status %d and %s, want 400 about input", status, answer)
	}
}

// Field names are the client's text: they must not break out of the header.
func TestIgnoredHeader(t *testing.T) {
	for want, paths := range map[string][]string{
		"":                            nil,
		"a, messages[1].b":            {"a", "messages[1].b"},
		`"x\r\nSet-Cookie: y", "a,b"`: {"x\r\nSet-Cookie: y", "a,b"},
	} {
		w := httptest.NewRecorder()
		noteIgnored(echo.New().NewContext(httptest.NewRequest("GET", "/", nil), w), paths)
		if got := w.Header().Get(headerIgnored); got != want {
			t.Errorf("%q: got header %q, want %q", paths, got, want)
		}
	}
}

// A base URL that the client lengthens once more, or that ends in a slash: the 404 says which path was meant.
func TestNearMissesOfPaths(t *testing.T) {
	l := serve(t, Options{})
	for path, want := range map[string]string{
		"/v1/v1/messages":       "want /v1/messages (the base URL of this client has no /v1)",
		"/v1/health":            "want /health (the base URL of this client has no /v1)",
		"//v1/chat/completions": "want /v1/chat/completions",
		"/v1/models/":           "want /v1/models",
		"/responses/":           "want /v1/responses (the base URL ends in /v1)",
		"/v1/audio/speech":      "which is not served",
	} {
		if status, body := l.call("GET", path); status != 404 || !strings.Contains(string(body), want) {
			t.Errorf("%s: got status %d and %s, want 404 and %q", path, status, body, want)
		}
	}
}
