package server

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// healthAnswer is the body of GET /health.
type healthAnswer struct {
	Status   string `json:"status"` // "ok"
	Model    string `json:"model"`
	Executor string `json:"executor"`
	Version  string `json:"version"`
	InFlight int    `json:"in_flight"` // answers that run or wait
}

// health never waits for the device: it reads what was fixed at load and one counter.
func (s *Server) health(c echo.Context) error {
	info := s.engine.Info()
	return writeJSON(c, http.StatusOK, healthAnswer{Status: "ok", Model: info.ID, Executor: info.Executor, Version: s.options.Version, InFlight: s.InFlight()})
}
