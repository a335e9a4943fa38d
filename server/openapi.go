package server

import (
	_ "embed"
	"net/http"

	"github.com/labstack/echo/v4"
)

// openapiDocument describes every route, in OpenAPI 3.1; a test holds it to the route table.
//
//go:embed openapi.json
var openapiDocument string

// openapi answers GET /openapi.json.
func (s *Server) openapi(c echo.Context) error {
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, []byte(openapiDocument))
}
