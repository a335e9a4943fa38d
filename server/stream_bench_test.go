package server

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"pond/inference"
	"pond/inference/chat"
)

// BenchmarkStream is what a streamed token costs beyond the engine: joining, JSON, one write and one flush on loopback, and the client that
// reads it. Each operation is one token. Against a step of the demo model it should stay under 2 %.
func BenchmarkStream(b *testing.B) {
	e := echo.New()
	e.GET("/", func(c echo.Context) error {
		out, err := openStream(c, time.Minute)
		if err != nil {
			return err
		}
		w := &chatStream{eventStream: out, head: envelope{id: "chatcmpl-0", model: "pond-demo", fingerprint: "fp_0"}}
		n := 0
		next := func() (inference.Update, bool) {
			n++
			return inference.Update{Events: []chat.Event{{Kind: chat.Text, Text: " pond"}}}, n <= b.N
		}
		return pump(out, next, func() {}, func() string { return "" }, func(u inference.Update) error { return w.update(0, u) })
	})
	s := httptest.NewServer(e)
	defer s.Close()
	b.ReportAllocs()
	resp, err := http.Get(s.URL)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
	}
}
