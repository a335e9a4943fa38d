package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// Invariants of a stream:
//
//   - one goroutine writes, so that a heartbeat never lands inside an event;
//   - an event or a comment is one Write and one Flush;
//   - whenever nothing was written for the heartbeat's time a comment goes out, by the clock, whatever the engine does;
//   - the first failed write ends the stream and cancels the answer; each write has a deadline, so a client that stops reading
//     cannot hold the device;
//   - pump returns only after the engine has ended the answer.

// writeLimit bounds one write to a client that does not read.
const writeLimit = 30 * time.Second

// eventStream writes server-sent events.
type eventStream struct {
	response *echo.Response
	control  *http.ResponseController
	every    time.Duration // heartbeat
	buffer   bytes.Buffer
}

// openStream sends the headers and a first comment, so that the client knows at once that it was heard.
func openStream(c echo.Context, every time.Duration) (*eventStream, error) {
	// The controller of the writer below echo's: echo's Flush hides the error.
	w := &eventStream{response: c.Response(), control: http.NewResponseController(c.Response().Writer), every: every}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set(echo.HeaderCacheControl, "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	c.Response().WriteHeader(http.StatusOK)
	return w, w.comment("pond")
}

// event sends one value as JSON, without a name, as OpenAI's older endpoints do.
func (w *eventStream) event(value any) error { return w.named("", value) }

// named sends one value as JSON under the name of its event.
func (w *eventStream) named(name string, value any) error {
	w.buffer.Reset()
	if name != "" {
		w.buffer.WriteString("event: " + name + "\n")
	}
	w.buffer.WriteString("data: ")
	encoder := json.NewEncoder(&w.buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	w.buffer.WriteByte('\n') // the encoder wrote the first line end
	return w.flush()
}

// done sends the end mark of a complete stream.
func (w *eventStream) done() error {
	w.buffer.Reset()
	w.buffer.WriteString("data: [DONE]\n\n")
	return w.flush()
}

// comment sends a line that clients skip; text is one line.
func (w *eventStream) comment(text string) error {
	w.buffer.Reset()
	w.buffer.WriteString(": " + text + "\n\n")
	return w.flush()
}

func (w *eventStream) flush() error {
	// A recorder in a test has no deadline; a connection always has.
	w.control.SetWriteDeadline(time.Now().Add(writeLimit))
	_, err := w.response.Write(w.buffer.Bytes())
	if err == nil {
		err = w.control.Flush()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errClientGone, err)
	}
	return nil
}

// pump passes each part of an answer to write and sends heartbeats in between. next gives the parts, cancel ends the answer,
// progress gives the text of a heartbeat.
func pump[T any](w *eventStream, next func() (T, bool), cancel func(), progress func() string, write func(T) error) error {
	parts := make(chan T)
	go func() {
		defer close(parts)
		for {
			p, ok := next()
			if !ok {
				return
			}
			parts <- p
		}
	}()
	heartbeat := time.NewTimer(w.every)
	defer heartbeat.Stop()
	for {
		var err error
		select {
		case p, ok := <-parts:
			if !ok {
				return nil
			}
			before := w.response.Size
			if err = write(p); err == nil && w.response.Size == before {
				continue // nothing to say yet: the silence goes on
			}
		case <-heartbeat.C:
			err = w.comment(progress())
		}
		if err != nil {
			cancel()
			for range parts { // until the engine has ended it
			}
			return err
		}
		heartbeat.Reset(w.every)
	}
}
