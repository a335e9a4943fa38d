package server

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// Paths whose errors are put in words of their own.
const (
	pathCompletions = "/v1/completions"
	pathResponses   = "/v1/responses"
	pathMessages    = "/v1/messages"
)

// route is one line of the table.
type route struct {
	method, path string
	handle       echo.HandlerFunc
	open         bool // needs no API key
}

// routes lists every path that the server answers. A GET answers HEAD too; the guard answers a browser's preflight.
func (s *Server) routes() []route {
	return []route{
		{http.MethodGet, "/", s.page, true},
		{http.MethodGet, "/openapi.json", s.openapi, true},
		{http.MethodGet, "/health", s.health, true},
		{http.MethodGet, "/metrics", s.serveMetrics, false},
		{http.MethodGet, "/v1/models", s.models, false},
		{http.MethodGet, "/v1/models/:id", s.model, false},
		{http.MethodPost, "/v1/chat/completions", s.chat, false},
		{http.MethodPost, pathCompletions, s.completion, false},
		{http.MethodPost, pathResponses, s.createResponse, false},
		{http.MethodGet, pathResponses + "/:id", s.getResponse, false},
		{http.MethodDelete, pathResponses + "/:id", s.deleteResponse, false},
		{http.MethodPost, pathResponses + "/:id/cancel", s.cancelResponse, false},
		{http.MethodGet, pathResponses + "/:id/input_items", s.inputItems, false},
		{http.MethodPost, pathMessages, s.messages, false},
		{http.MethodPost, pathMessages + "/count_tokens", s.countTokens, false},
		{http.MethodPost, "/v1/embeddings", s.embeddings, false},
		{http.MethodPost, "/tokenize", s.tokenize, false},
		{http.MethodPost, "/detokenize", s.detokenize, false},
		{http.MethodGet, "/v1/pond/status", s.status, false},
		{http.MethodPost, "/v1/pond/stop-thinking", s.stopThinking, false},
	}
}

func (s *Server) addRoutes() {
	open := map[string]bool{}
	for _, r := range s.routes() {
		open[r.path] = r.open
		s.echo.Add(r.method, r.path, r.handle)
		if r.method == http.MethodGet {
			s.echo.Add(http.MethodHead, r.path, r.handle)
		}
	}
	// After routing, and for paths and methods that do not exist too: what exists is not for strangers to find out.
	s.echo.Use(s.guard.needKey(func(c echo.Context) bool { return open[c.Path()] }))
}
