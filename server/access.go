package server

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	headerRequestID = "X-Request-Id"
	// headerIgnored names the fields of a request that had no effect: nobody knows them, or Pond cannot do what they ask for.
	headerIgnored = "X-Pond-Ignored"
)

// access is the outermost wrapper: it numbers the request, answers with its error or panic, and logs one line. Bodies are never
// logged: they are private.
func (s *Server) access(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start, id := time.Now(), "req_"+randomHex(12)
		c.Response().Header().Set(headerRequestID, id)
		if isMessages(c) {
			c.Response().Header().Set("Request-Id", id) // where Anthropic's clients look for it
		}
		err := protect(next, c)
		if err != nil {
			s.writeError(c, err)
		}
		status := c.Response().Status
		if err != nil && c.Response().Committed && status == http.StatusOK {
			status, _ = s.describe(c, err) // a stream that failed after its headers
		}
		s.metrics.request(c, status, time.Since(start))
		s.log.Info("request", "id", id, "method", c.Request().Method, "path", c.Request().URL.Path, "status", status,
			"bytes", c.Response().Size, "took", time.Since(start).Round(time.Millisecond))
		return nil
	}
}

// requestID is the number that access gave the request.
func requestID(c echo.Context) string { return c.Response().Header().Get(headerRequestID) }

// protect turns a panic into an error, so that the client gets an answer and the server lives on.
func protect(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: debug.Stack()}
		}
	}()
	return next(c)
}

// panicError is a broken invariant of ours; its stack is for the log only.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// readBody reads the body of a request within its limits of size and time.
func (s *Server) readBody(c echo.Context) ([]byte, error) {
	r := c.Request()
	if r.ContentLength > s.options.BodyLimit {
		return nil, &http.MaxBytesError{Limit: s.options.BodyLimit}
	}
	http.NewResponseController(c.Response().Writer).SetReadDeadline(time.Now().Add(s.bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(c.Response().Writer, r.Body, s.options.BodyLimit))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long), errors.Is(err, os.ErrDeadlineExceeded):
		return nil, err
	case err != nil: // cut off, or badly framed
		return nil, refuse(http.StatusBadRequest, "invalid_body", "the body: %v", err)
	}
	// At the body's end net/http takes the deadline back, before it begins to watch for a client that leaves.
	return body, nil
}

// noteIgnored tells the client which of its fields had no effect.
func noteIgnored(c echo.Context, paths []string) {
	const most = 20
	if len(paths) == 0 {
		return
	}
	shown := make([]string, 0, most)
	for _, p := range paths[:min(len(paths), most)] {
		// A name is the client's own text: anything that does not belong into a header is quoted.
		if quoted := strconv.QuoteToASCII(p); quoted != `"`+p+`"` || strings.ContainsAny(p, ", ") || len(p) > 100 {
			p = quoted[:min(len(quoted), 100)]
		}
		shown = append(shown, p)
	}
	if len(paths) > most {
		shown = append(shown, "...")
	}
	c.Response().Header().Set(headerIgnored, strings.Join(shown, ", "))
}

// writeJSON answers with a whole body; <, > and & stay as they are, as in a stream.
func writeJSON(c echo.Context, status int, value any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	return c.Blob(status, echo.MIMEApplicationJSON, b.Bytes())
}

// randomHex gives n random bytes as text; crypto/rand never fails.
func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}
