package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"pond/inference"
	"pond/inference/chat"
	"pond/server/openai"
)

// Rules of errors: this file is the only place where an error becomes a status and words, and where advice is added. Bodies have the form of
// the API that the path belongs to. An error after the headers of a stream is its last event, and no [DONE] follows.

// Kinds of error on the wire (ErrorDetail.Type).
const (
	kindRequest    = "invalid_request_error"
	kindAuth       = "authentication_error"
	kindPermission = "permission_error"
	kindServer     = "server_error"
	kindRate       = "rate_limit_error"
)

const codeContext = "context_length_exceeded"

// statusClientGone is nginx's number for a request whose client left: nobody reads it, the log does.
const statusClientGone = 499

var (
	// errShutdown is the cause of an answer that the server's end cut off.
	errShutdown = errors.New("the server is shutting down")
	// errClientGone is a write to a client that does not take it.
	errClientGone = errors.New("the client left")
)

// refusal is a request that the server itself turns down.
type refusal struct {
	status  int
	code    string
	param   string
	message string
}

func (r *refusal) Error() string { return r.message }

func refuse(status int, code, format string, args ...any) error {
	return &refusal{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// failure is what an error says to the client, whichever API's words it is put in.
type failure struct {
	kind    string // one of the kinds above
	message string
	param   string // path of the field; "" when none is to blame
	code    string // "" when there is none
}

// openai gives the body of the OpenAI API.
func (f failure) openai() openai.ErrorBody {
	return openai.NewErrorBody(f.kind, f.message, f.param, f.code)
}

// anthropic gives the body of Anthropic's API, which has its own kinds.
func (f failure) anthropic(status int, requestID string) openai.MessageError {
	kind := "invalid_request_error"
	switch {
	case status == http.StatusUnauthorized:
		kind = "authentication_error"
	case status == http.StatusForbidden:
		kind = "permission_error"
	case status == http.StatusNotFound:
		kind = "not_found_error"
	case status == http.StatusRequestEntityTooLarge:
		kind = "request_too_large"
	case status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case status == http.StatusServiceUnavailable:
		kind = "overloaded_error"
	case status >= http.StatusInternalServerError:
		kind = "api_error"
	}
	return openai.NewMessageError(kind, f.message, requestID)
}

// describe gives the status and the words of an error.
func (s *Server) describe(c echo.Context, err error) (int, failure) {
	var (
		refused *refusal
		wire    *openai.Error
		talk    *chat.Error
		long    *inference.ContextError
		body    *http.MaxBytesError
		route   *echo.HTTPError
		broken  *inference.DamagedError
	)
	switch {
	case errors.As(err, &refused):
		return refused.status, failure{kindOfStatus(refused.status), refused.message, refused.param, refused.code}
	case errors.As(err, &wire):
		return http.StatusBadRequest, failure{kindRequest, wire.Error(), wire.Param, wire.Code}
	case errors.As(err, &talk):
		path := conversationPath(c, talk.Path)
		return http.StatusBadRequest, failure{kindRequest, path + ": " + talk.Message, path, openai.CodeInvalidValue}
	case errors.As(err, &long):
		return http.StatusBadRequest, failure{kindRequest, contextAdvice(long), promptField(c), codeContext}
	case errors.As(err, &body):
		return http.StatusRequestEntityTooLarge, failure{kindRequest, fmt.Sprintf("the body has more than %d bytes, which is the limit", body.Limit), "", "body_too_large"}
	case errors.Is(err, errShutdown), errors.Is(err, inference.ErrClosed):
		return http.StatusServiceUnavailable, failure{kindServer, err.Error(), "", "shutting_down"}
	case errors.Is(err, inference.ErrBusy):
		return http.StatusTooManyRequests, failure{kindRate, err.Error() + ": try again later", "", "queue_full"}
	case errors.Is(err, errClientGone), errors.Is(err, context.Canceled):
		return statusClientGone, failure{kindRequest, errClientGone.Error(), "", "client_gone"}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout, failure{kindRequest, "the body did not arrive in time", "", "request_timeout"}
	case errors.As(err, &broken):
		return http.StatusInternalServerError, failure{kindServer, broken.Error() + ": pond verify says which", "", "model_damaged"}
	case errors.As(err, &route):
		return route.Code, failure{kindOfStatus(route.Code), s.routeAdvice(c, route.Code), "", codeOfStatus(route.Code)}
	}
	return http.StatusInternalServerError, failure{kindServer, "internal error: " + err.Error(), "", "internal_error"}
}

// writeError answers with an error. After the headers of a stream it can only log: the stream has sent its own last event.
func (s *Server) writeError(c echo.Context, err error) {
	status, f := s.describe(c, err)
	if status >= http.StatusInternalServerError {
		var broken *panicError
		if errors.As(err, &broken) {
			s.log.Error("request failed", "path", c.Request().URL.Path, "error", err, "stack", string(broken.stack))
		} else {
			s.log.Error("request failed", "path", c.Request().URL.Path, "error", err)
		}
	}
	if c.Response().Committed {
		return
	}
	if status == statusClientGone || c.Request().Method == http.MethodHead {
		c.NoContent(status)
		return
	}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		c.Response().Header().Set(echo.HeaderRetryAfter, "5")
	}
	if isMessages(c) {
		writeJSON(c, status, f.anthropic(status, requestID(c)))
		return
	}
	writeJSON(c, status, f.openai())
}

func kindOfStatus(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return kindAuth
	case status == http.StatusForbidden:
		return kindPermission
	case status >= http.StatusInternalServerError:
		return kindServer
	}
	return kindRequest
}

func codeOfStatus(status int) string {
	switch status {
	case http.StatusNotFound:
		return "unknown_path"
	case http.StatusMethodNotAllowed:
		return "method_not_allowed"
	}
	return ""
}

// contextAdvice gives the numbers. Only the prompt can be too long: an answer is cut to the room that the prompt leaves.
func contextAdvice(e *inference.ContextError) string {
	text := fmt.Sprintf("the context holds %d tokens and the prompt has %d", e.LimitTokens, e.PromptTokens)
	if e.RequestedTokens > 0 {
		text += fmt.Sprintf(", with %d requested for the answer", e.RequestedTokens)
	}
	return text + ": shorten the prompt to leave room for an answer"
}

// promptField names the field that holds the prompt.
func promptField(c echo.Context) string {
	switch c.Path() {
	case pathCompletions:
		return "prompt"
	case pathResponses:
		return "input"
	}
	return "messages"
}

// conversationPath names the field that a fault of the conversation is in. Only the chat API's messages are those that the engine counts.
func conversationPath(c echo.Context, path string) string {
	if !strings.HasPrefix(path, "messages") || c.Path() != pathResponses && !isMessages(c) {
		return path
	}
	return promptField(c)
}

// isMessages says whether the request is for Anthropic's API. It is asked before routing too.
func isMessages(c echo.Context) bool {
	path := c.Request().URL.Path
	return path == pathMessages || strings.HasPrefix(path, pathMessages+"/")
}

func (s *Server) routeAdvice(c echo.Context, status int) string {
	method, path := c.Request().Method, c.Request().URL.Path
	switch status {
	case http.StatusMethodNotAllowed:
		return fmt.Sprintf("method: got %s for %s, want one of %s", method, path, c.Response().Header().Get(echo.HeaderAllow))
	case http.StatusNotFound:
		served := func(path string) bool {
			return slices.ContainsFunc(s.routes(), func(r route) bool { return r.path == path })
		}
		tidy := "/" + strings.Join(strings.FieldsFunc(path, func(r rune) bool { return r == '/' }), "/")
		once := strings.TrimPrefix(tidy, "/v1")
		switch {
		case served("/v1" + tidy):
			return fmt.Sprintf("path: got %s, want /v1%s (the base URL ends in /v1)", path, tidy)
		case once != tidy && served(once):
			return fmt.Sprintf("path: got %s, want %s (the base URL of this client has no /v1)", path, once)
		case tidy != path && served(tidy):
			return fmt.Sprintf("path: got %s, want %s", path, tidy)
		}
		return fmt.Sprintf("path: got %s %s, which is not served", method, path)
	}
	return http.StatusText(status)
}
