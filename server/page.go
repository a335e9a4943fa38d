package server

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// The page at /: the state, lines to copy and a chat, for phones, browsers, and people whose input method the window cannot handle. It is one
// document without any other resource, and its policy lets it do nothing but run its own script and talk to this server.
//
//go:embed page
var pageFiles embed.FS

// page answers GET /. It needs no key: there is nothing in it that is not in every copy of Pond.
func (s *Server) page(c echo.Context) error {
	h := c.Response().Header()
	h.Set("Content-Security-Policy", s.pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set(echo.HeaderCacheControl, "no-cache")
	return c.HTML(http.StatusOK, s.pageText)
}

// buildPage puts the document together and writes the policy that fits it: script and style are named by their digests.
func buildPage() (text, policy string, err error) {
	parts := map[string]string{}
	for _, name := range []string{"page.html", "page.css", "page.js"} {
		data, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			return "", "", err
		}
		parts[name] = string(data)
	}
	text = strings.Replace(parts["page.html"], "STYLE", parts["page.css"], 1)
	text = strings.Replace(text, "SCRIPT", parts["page.js"], 1)
	policy = "default-src 'none'; script-src " + digest(parts["page.js"]) + "; style-src " + digest(parts["page.css"]) +
		"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return text, policy, nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
