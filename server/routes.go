package server

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// pathCompletions is named because its errors speak of "prompt", all others of "messages".
const pathCompletions = "/v1/completions"

// route is one line of the table.
type route struct {
	method, path string
	handle       echo.HandlerFunc
	open         bool // needs no API key
}

// routes lists every path that the server answers. A GET answers HEAD too; the guard answers a browser's preflight.
func (s *Server) routes() []route {
	return []route{
		{http.MethodGet, "/health", s.health, true},
		{http.MethodGet, "/v1/models", s.models, false},
		{http.MethodGet, "/v1/models/:id", s.model, false},
		{http.MethodPost, "/v1/chat/completions", s.chat, false},
		{http.MethodPost, pathCompletions, s.completion, false},
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
