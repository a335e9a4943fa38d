package server

import (
	"bufio"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"pond/inference"
)

// pumped serves one stream whose answer is next; ended gets what pump returned.
func pumped(t *testing.T, every time.Duration, next func() (inference.Update, bool), cancel func(), write func(*eventStream, inference.Update) error) (url string, ended chan error) {
	t.Helper()
	ended = make(chan error, 1)
	e := echo.New()
	e.GET("/", func(c echo.Context) error {
		w, err := openStream(c, every)
		if err != nil {
			ended <- err
			return nil
		}
		err = pump(w, next, cancel, func() string { return "prompt 1/9 tokens" }, func(u inference.Update) error { return write(w, u) })
		if err == nil {
			err = w.done()
		}
		ended <- err
		return nil
	})
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	return s.URL, ended
}

// A client with a read timeout gave up on a long prompt because nothing came; and the heartbeat depended on the engine's progress.
func TestHeartbeatByTheClock(t *testing.T) {
	release := make(chan bool)
	calls := 0
	next := func() (inference.Update, bool) {
		calls++
		if calls == 1 {
			<-release // the engine is stuck in its prompt
			return inference.Update{}, true
		}
		return inference.Update{}, false
	}
	url, ended := pumped(t, 20*time.Millisecond, next, func() {}, func(w *eventStream, _ inference.Update) error {
		return w.event(map[string]string{"text": "a\nb <&> \u2028"})
	})
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("got content type %q, want text/event-stream", kind)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Scan()
	if first := lines.Text(); !strings.HasPrefix(first, ":") {
		t.Errorf("got first line %q, want a comment before the engine has said anything", first)
	}
	var beats int
	var rest []string
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == ": prompt 1/9 tokens":
			if beats++; beats == 3 {
				close(release)
			}
		case line != "":
			rest = append(rest, line)
		}
	}
	if beats < 3 {
		t.Errorf("got %d heartbeats while the engine was stuck, want at least 3", beats)
	}
	want := []string{`data: {"text":"a\nb <&> \u2028"}`, "data: [DONE]"}
	if strings.Join(rest, "|") != strings.Join(want, "|") {
		t.Errorf("got lines %q, want %q", rest, want)
	}
	if err := <-ended; err != nil {
		t.Errorf("got error %v, want none", err)
	}
}

// Heartbeats at the same rate as events: every block is one whole event or one whole comment.
func TestNoHeartbeatInsideAnEvent(t *testing.T) {
	n := 0
	next := func() (inference.Update, bool) {
		time.Sleep(time.Millisecond)
		n++
		return inference.Update{}, n <= 100
	}
	long := strings.Repeat("x", 9000)
	url, _ := pumped(t, time.Millisecond, next, func() {}, func(w *eventStream, _ inference.Update) error { return w.event(long) })
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := 0
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		blank, err := lines.ReadString('\n')
		if err != nil || blank != "\n" {
			t.Fatalf("after %.20q: got %q, want a blank line", line, blank)
		}
		switch {
		case line == "data: \""+long+"\"\n":
			events++
		case line == "data: [DONE]\n", strings.HasPrefix(line, ": "):
		default:
			t.Fatalf("got line %.60q", line)
		}
	}
	if events != 100 {
		t.Errorf("got %d events, want 100", events)
	}
}

// The device must not work for a client that left, also when the engine has nothing to write.
func TestWriteErrorEndsTheAnswer(t *testing.T) {
	for _, silent := range []bool{false, true} {
		var cancelled atomic.Bool
		var after atomic.Int64
		next := func() (inference.Update, bool) {
			time.Sleep(2 * time.Millisecond)
			if cancelled.Load() {
				return inference.Update{}, false
			}
			return inference.Update{}, true
		}
		write := func(w *eventStream, _ inference.Update) error {
			if cancelled.Load() {
				after.Add(1)
			}
			if silent {
				return nil
			}
			return w.event("token")
		}
		url, ended := pumped(t, 10*time.Millisecond, next, func() { cancelled.Store(true) }, write)
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("silent %v: got no error from pump, want the failed write", silent)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("silent %v: the stream goes on after the client left", silent)
		}
		if !cancelled.Load() || after.Load() > 0 {
			t.Errorf("silent %v: cancelled %v, %d updates written after it; want true and 0", silent, cancelled.Load(), after.Load())
		}
	}
}

// An answer that fails to encode ends like a failed write.
func TestUnencodableEvent(t *testing.T) {
	w := &eventStream{}
	if err := w.event(func() {}); err == nil {
		t.Error("got no error, want one")
	} else if errors.Is(err, http.ErrNotSupported) {
		t.Errorf("got %v, want an encoding error", err)
	}
}

// written returns the bytes of a stream without a server.
func written(do func(*eventStream) error) []byte {
	recorder := httptest.NewRecorder()
	c := echo.New().NewContext(httptest.NewRequest("GET", "/", nil), recorder)
	w, err := openStream(c, time.Hour)
	if err == nil {
		err = do(w)
	}
	if err != nil {
		panic(err) // nothing can fail here
	}
	return recorder.Body.Bytes()
}
