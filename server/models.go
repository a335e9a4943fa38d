package server

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"pond/server/openai"
)

// models answers GET /v1/models: the one model that is loaded.
func (s *Server) models(c echo.Context) error {
	return writeJSON(c, http.StatusOK, openai.ModelList{Object: openai.ObjectList, Data: []openai.Model{s.ownModel()}})
}

// model answers GET /v1/models/{id}.
func (s *Server) model(c echo.Context) error {
	if err := s.checkModel(c.Param("id")); err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, s.ownModel())
}

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
