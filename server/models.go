package server

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"pond/server/openai"
)

// models answers GET /v1/models: the one model that is loaded, in the form of the API that the client speaks.
func (s *Server) models(c echo.Context) error {
	if speaksAnthropic(c) {
		return writeJSON(c, http.StatusOK, s.anthropicModels())
	}
	return writeJSON(c, http.StatusOK, openai.ModelList{Object: openai.ObjectList, Data: []openai.Model{s.ownModel()}})
}

// model answers GET /v1/models/{id}.
func (s *Server) model(c echo.Context) error {
	if err := s.checkModel(c.Param("id")); err != nil {
		return err
	}
	if speaksAnthropic(c) {
		return writeJSON(c, http.StatusOK, s.anthropicModel())
	}
	return writeJSON(c, http.StatusOK, s.ownModel())
}

// speaksAnthropic tells by the header that every client of Anthropic's API sends.
func speaksAnthropic(c echo.Context) bool { return c.Request().Header.Get("Anthropic-Version") != "" }

func (s *Server) ownModel() openai.Model {
	info := s.engine.Info()
	return openai.Model{ID: info.ID, Object: openai.ObjectModel, Created: info.Created.Unix(), OwnedBy: "pond", ContextLength: info.ContextTokens}
}

// checkModel accepts the loaded model's id, and "" from a client that names none.
func (s *Server) checkModel(id string) error {
	own := s.engine.Info().ID
	if id == "" || id == own {
		return nil
	}
	return &refusal{status: http.StatusNotFound, code: "model_not_found", param: "model",
		message: fmt.Sprintf("model: got %q, want %q, which is the one that is loaded", id, own)}
}
