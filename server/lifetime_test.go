package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"pond/inference"
	"pond/server/openai"
)

// endless asks for an answer that runs into the context's end.
const endless = user + `,"temperature":2,"top_k":0,"top_p":1,"logit_bias":{"288":-100,"257":-100,"256":-100,"258":-100},"seed":3`

// start posts and returns without reading the answer; leave closes the connection.
func (l *live) start(path, body string) (resp func() (*http.Response, error), leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	type outcome struct {
		resp *http.Response
		err  error
	}
	done := make(chan outcome, 1)
	transport := &http.Transport{DisableKeepAlives: true}
	go func() {
		r, err := http.NewRequestWithContext(ctx, "POST", l.url+path, strings.NewReader(body))
		if err != nil {
			done <- outcome{err: err}
			return
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := (&http.Client{Transport: transport}).Do(r)
		done <- outcome{resp, err}
	}()
	l.Cleanup(cancel)
	return func() (*http.Response, error) { o := <-done; return o.resp, o.err }, cancel
}

func (l *live) idle() {
	l.Helper()
	waitFor(l.T, "an idle server", func() bool {
		st := l.server.engine.Stats()
		return l.server.InFlight() == 0 && st.Active == 0 && st.Queued == 0
	})
}

// The device used to go on for a client that had left, and the next request waited behind a ghost.
func TestClientLeaves(t *testing.T) {
	l := serve(t, Options{Engine: tiny(t, inference.Options{ContextTokens: 32768, ChunkTokens: 32, Parallel: 1})})
	running := func() bool { return l.server.engine.Stats().Active == 1 }
	for _, c := range []struct{ name, body string }{
		{"streaming", `{` + endless + `,"stream":true}`},
		{"whole", `{` + endless + `}`},
		{"in prefill", `{"messages":[{"role":"user","content":"` + strings.Repeat("long ", 6000) + `"}],"stream":true}`},
	} {
		resp, leave := l.start("/v1/chat/completions", c.body)
		if strings.Contains(c.body, "stream") {
			r, err := resp()
			if err != nil {
				t.Fatal(err)
			}
			bufio.NewReader(r.Body).ReadString('\n')
		}
		waitFor(t, c.name+": the answer to run", running)
		if n := l.server.InFlight(); n != 1 {
			t.Errorf("%s: got %d in flight, want 1", c.name, n)
		}
		before := l.server.engine.Stats().Tokens
		leave()
		l.idle()
		if c.name == "in prefill" && l.server.engine.Stats().Tokens-before > 20000 {
			t.Errorf("%s: the whole prompt was computed after the client left", c.name)
		}
	}
	// While queued.
	_, leaveFirst := l.start("/v1/chat/completions", `{`+endless+`}`)
	waitFor(t, "the first to run", running)
	_, leaveSecond := l.start("/v1/chat/completions", `{`+endless+`}`)
	waitFor(t, "the second to wait", func() bool { return l.server.engine.Stats().Queued == 1 })
	leaveSecond()
	waitFor(t, "the queue to empty", func() bool { return l.server.engine.Stats().Queued == 0 && l.server.InFlight() == 1 })
	leaveFirst()
	l.idle()
	// Half-closed: the client has said all and still reads; to the server it looks like one that left. It must not hang.
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{` + endless + `,"stream":true}`
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	waitFor(t, "the half-closed answer to run", running)
	conn.(*net.TCPConn).CloseWrite()
	l.idle()
	// The next identical request is answered as if nothing had happened.
	short := user + `,"max_tokens":8,"seed":5`
	after := l.chat(short)
	fresh := serve(t, Options{Engine: tiny(t, inference.Options{ContextTokens: 32768, ChunkTokens: 32})}).chat(short)
	if got, want := after.Choices[0].Message.ReasoningContent, fresh.Choices[0].Message.ReasoningContent; got != want {
		t.Errorf("after cancelled requests: got %q, want %q", got, want)
	}
}

// Health and models answer while the device is busy.
func TestHealthNeverWaits(t *testing.T) {
	l := serve(t, Options{Engine: tiny(t, inference.Options{ContextTokens: 32768})})
	_, leave := l.start("/v1/chat/completions", `{`+endless+`}`)
	waitFor(t, "the answer to run", func() bool { return l.server.engine.Stats().Active == 1 })
	for _, path := range []string{"/health", "/v1/models"} {
		resp, err := (&http.Client{Timeout: time.Minute}).Get(l.url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("%s: got status %d", path, resp.StatusCode)
		}
		if path == "/health" {
			var h healthAnswer
			strictly(t, body, &h)
			if h.InFlight != 1 || h.Model != "tiny" || h.Status != "ok" || h.Version != "test" {
				t.Errorf("got health %s, want one in flight", body)
			}
		}
	}
	leave()
	l.idle()
}

// Many at once, some leaving: nobody gets another's answer.
func TestManyClients(t *testing.T) {
	l := serve(t, Options{})
	ask := func(i int) string {
		return fmt.Sprintf(`"messages":[{"role":"user","content":"number %d"}],"max_tokens":6,"seed":%d`, i, i)
	}
	want := make([]string, 4)
	for i := range want {
		want[i] = l.chat(ask(i)).Choices[0].Message.ReasoningContent
	}
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			i := n % len(want)
			if n%4 == 3 {
				_, leave := l.start("/v1/chat/completions", `{`+endless+`,"stream":true}`)
				time.Sleep(5 * time.Millisecond)
				leave()
				return
			}
			resp, err := http.Post(l.url+"/v1/chat/completions", "application/json", strings.NewReader("{"+ask(i)+"}"))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			var c openai.Chat
			if err := json.NewDecoder(resp.Body).Decode(&c); err != nil || len(c.Choices) != 1 || c.Choices[0].Message.ReasoningContent != want[i] {
				t.Errorf("client %d: got %+v, %v; want %q", n, c, err, want[i])
			}
		}()
	}
	wg.Wait()
	l.idle()
}

func TestFullQueue(t *testing.T) {
	l := serve(t, Options{Engine: tiny(t, inference.Options{ContextTokens: 32768, QueueLimit: 1, Parallel: 1})})
	l.start("/v1/chat/completions", `{`+endless+`}`)
	waitFor(t, "the first to run", func() bool { return l.server.engine.Stats().Active == 1 })
	l.start("/v1/chat/completions", `{`+endless+`}`)
	waitFor(t, "the second to wait", func() bool { return l.server.engine.Stats().Queued == 1 })
	status, header, answer := l.post("/v1/chat/completions", `{`+endless+`}`)
	if status != http.StatusTooManyRequests || header.Get("Retry-After") == "" || !strings.Contains(string(answer), "queue_full") {
		t.Errorf("got status %d, Retry-After %q and %s, want 429 queue_full", status, header.Get("Retry-After"), answer)
	}
}

// The end of the server ends what runs: a stream with an error event, a whole answer with an error body.
func TestShutdown(t *testing.T) {
	l := serve(t, Options{Engine: tiny(t, inference.Options{ContextTokens: 32768})})
	streamed, _ := l.start("/v1/chat/completions", `{`+endless+`,"stream":true}`)
	resp, err := streamed()
	if err != nil {
		t.Fatal(err)
	}
	waiting, _ := l.start("/v1/chat/completions", `{`+endless+`}`)
	waitFor(t, "both requests", func() bool { return l.server.InFlight() == 2 })
	l.stop()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("stream: got error %v, want a clean end", err)
	}
	if !strings.Contains(string(body), `data: {"error":{"message":"the server is shutting down"`) || strings.Contains(string(body), "[DONE]") {
		t.Errorf("got a stream that ends with %.300q, want an error event and no [DONE]", body[max(0, len(body)-300):])
	}
	if resp, err := waiting(); err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("waiting request: got %v, %v, want status 503", resp, err)
	}
	if err := <-l.served; err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://")); err == nil {
		t.Error("the port is still open")
	}
}

// In the other APIs an error event ends a stream too, in the words of each; one that has not begun yet is no exception.
func TestShutdownOfOtherStreams(t *testing.T) {
	l := serve(t, Options{Engine: tiny(t, inference.Options{ContextTokens: 32768})})
	const fields = `"stream":true,"temperature":2,"top_k":0,"top_p":1,"logit_bias":{"288":-100,"257":-100,"256":-100,"258":-100},"seed":3`
	var bodies []io.ReadCloser
	for path, body := range map[string]string{"/v1/responses": `{"input":"x",` + fields + `}`, "/v1/messages": `{"max_tokens":30000,` + user + `,` + fields + `}`} {
		resp, _ := l.start(path, body)
		r, err := resp()
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, r.Body)
	}
	waitFor(t, "both requests", func() bool { return l.server.InFlight() == 2 })
	l.stop()
	for _, b := range bodies {
		text, err := io.ReadAll(b)
		if err != nil {
			t.Errorf("got error %v, want a clean end", err)
		}
		events := namedEvents(t, text)
		last := events[len(events)-1]
		switch {
		case strings.Contains(string(text), "message_stop") || strings.Contains(string(text), "response.completed"):
			t.Errorf("got the end of a whole answer: %s", last.data)
		case last.name == "error" && string(last.data) == `{"type":"error","error":{"type":"overloaded_error","message":"the server is shutting down"},"request_id":"`+requestIn(last.data)+`"}`:
		case last.name == "response.failed" && events[len(events)-2].name == "error" && strings.Contains(string(last.data), `"status":"failed"`):
		default:
			t.Errorf("got the last event %s %s, want an error", last.name, last.data)
		}
	}
}

// requestIn is the request's id in an error of Anthropic's API.
func requestIn(data []byte) string {
	var e openai.MessageError
	json.Unmarshal(data, &e)
	return e.RequestID
}

func TestPortTaken(t *testing.T) {
	l := serve(t, Options{})
	taken := strings.TrimPrefix(l.url, "http://")
	s, err := New(Options{Engine: l.server.engine, Addr: taken})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Listen()
	var port *PortError
	if !errors.As(err, &port) || port.Addr != taken || port.Next == taken || !strings.HasPrefix(port.Next, "127.0.0.1:") {
		t.Fatalf("got error %v, want a PortError for %s with a free port", err, taken)
	}
	if s, err = New(Options{Engine: l.server.engine, Addr: port.Next}); err != nil {
		t.Fatal(err)
	}
	if url, err := s.Listen(); err != nil || url != "http://"+port.Next {
		t.Errorf("the port that was called free: got %q, %v", url, err)
	} else {
		s.listener.Close()
	}
}

// A client that trickles its body is cut off; the deadline for it does not reach into the answer.
func TestSlowBody(t *testing.T) {
	l := serve(t, Options{Engine: tiny(t, inference.Options{ContextTokens: 32768})})
	l.server.bodyTimeout = 200 * time.Millisecond
	send := func(length int, body string) net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, body)
		return conn
	}
	resp, err := http.ReadResponse(bufio.NewReader(send(100, `{"mess`)), nil)
	if err != nil || resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("body that does not come: got %v, %v, want status 408", resp, err)
	}
	body := `{` + endless + `,"stream":true}`
	start := time.Now()
	resp, err = http.ReadResponse(bufio.NewReader(send(len(body), body)), nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(resp.Body)
	for time.Since(start) < 2*l.server.bodyTimeout {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatalf("the answer ended after %v: %v", time.Since(start), err)
		}
	}
	// Cut off in the middle of the body.
	conn := send(100, `{"mess`)
	conn.(*net.TCPConn).CloseWrite()
	resp, err = http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("body cut off: got %v, %v, want status 400", resp, err)
	}
}
