package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"pond/inference"
	"pond/server/openai"
)

// With thinking off the whole conversation used to be computed again each turn, because the empty think block vanishes from history.
func TestNextTurnIsCached(t *testing.T) {
	l := serve(t, Options{})
	first := l.chat(`"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}],"enable_thinking":false,"max_tokens":6,"logit_bias":{"104":100}`)
	said, _ := json.Marshal(*first.Choices[0].Message.Content)
	next := l.chat(`"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"},{"role":"assistant","content":` + string(said) + `},{"role":"user","content":"again"}],"enable_thinking":false,"max_tokens":1`)
	if got, want := next.Usage.PromptTokensDetails.CachedTokens, first.Usage.PromptTokens-20; got < want {
		t.Errorf("got %d cached tokens of the first prompt's %d, want at least %d", got, first.Usage.PromptTokens, want)
	}
}

// Three rounds with a tool: what was computed grows with the history, whichever way the client sends the thinking back.
func TestToolRoundsAreCached(t *testing.T) {
	l := serve(t, Options{})
	for name, c := range map[string]struct{ fields, thinking string }{
		"as reasoning_content":    {``, `"reasoning_content":"I note it.",`},
		"as reasoning":            {``, `"reasoning":"I note it.",`},
		"not at all":              {``, ``},
		"kept":                    {`,"chat_template_kwargs":{"preserve_thinking":true}`, `"reasoning_content":"I note it.",`},
		"explicitly not kept":     {`,"chat_template_kwargs":{"preserve_thinking":false}`, `"reasoning_content":"I note it.",`},
		"kept, and not sent":      {`,"preserve_thinking":true`, ``},
		"without thinking at all": {`,"enable_thinking":false`, ``},
	} {
		history, before := `{"role":"user","content":"note three things"}`, 0
		for round := range 3 {
			a := l.chat(`"messages":[` + history + `],"tools":[{"type":"function","function":{"name":"add_note","parameters":{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}}}],"max_tokens":1` + c.fields)
			if cached := a.Usage.PromptTokensDetails.CachedTokens; round > 0 && cached <= before {
				t.Errorf("%s, round %d: got %d cached tokens of %d, want more than the %d of the round before", name, round, cached, a.Usage.PromptTokens, before)
			} else {
				before = cached
			}
			history += fmt.Sprintf(`,{"role":"assistant","content":null,%s"tool_calls":[{"id":"c%d","type":"function","function":{"name":"add_note","arguments":"{\"title\":\"t%d\"}"}}]},{"role":"tool","tool_call_id":"c%d","content":"ok"}`, c.thinking, round, round, round)
		}
	}
}

// A schema used to be dropped without a word, or to put the object into the thinking. The limit cuts it off as "length", never as "stop".
func TestSchemaWithThinking(t *testing.T) {
	l := serve(t, Options{})
	const format = `,"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":{"type":"object","properties":{"answer":{"enum":["yes","no"]},"n":{"type":"integer","minimum":0,"maximum":9}},"required":["answer","n"],"additionalProperties":false}}}`
	for _, fields := range []string{`,"enable_thinking":false`, `,"thinking_budget":5`} {
		// The thinking is the letter h, which the schema has no place for.
		fields += `,"logit_bias":{"104":100}`
		body := user + fields + format + `,"max_tokens":400,"seed":1`
		whole := l.chat(body)
		m := whole.Choices[0].Message
		var value struct {
			Answer string
			N      int
		}
		if m.Content == nil || json.Unmarshal([]byte(*m.Content), &value) != nil || value.Answer != "yes" && value.Answer != "no" || whole.Choices[0].FinishReason != "stop" {
			t.Errorf("%s: got content %v and finish %s, want the object and stop", fields, m.Content, whole.Choices[0].FinishReason)
		}
		if strings.Contains(fields, "budget") == (m.ReasoningContent == "") {
			t.Errorf("%s: got thinking %q", fields, m.ReasoningContent)
		}
		sameAnswer(t, fields, whole, fold(t, l.events("/v1/chat/completions", "{"+body+`,"stream":true,"stream_options":{"include_usage":true}}`)))
		cut := l.chat(user + fields + format + `,"max_tokens":4`)
		if cut.Choices[0].FinishReason != "length" {
			t.Errorf("%s, cut off: got finish %s, want length", fields, cut.Choices[0].FinishReason)
		}
	}
	for keyword, schema := range map[string]string{
		"not": `{"type":"object","properties":{"a":{"not":{"type":"string"}}}}`,
		"if":  `{"type":"object","if":{"required":["a"]},"then":{"required":["b"]}}`,
	} {
		status, _, answer := l.post("/v1/chat/completions", "{"+user+`,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":`+schema+`}}}`)
		var e openai.ErrorBody
		strictly(t, answer, &e)
		if status != 400 || e.Error.Param == nil || *e.Error.Param != "response_format.json_schema.schema" || !strings.Contains(e.Error.Message, `"`+keyword+`"`) {
			t.Errorf("%s: got status %d and %s, want 400 that names the keyword", keyword, status, answer)
		}
	}
}

// tool_choice is kept: required and named give calls, one where only one is allowed, none gives none.
func TestToolChoiceIsKept(t *testing.T) {
	l := serve(t, Options{})
	const tools = `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}}},{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}}}]`
	for _, choice := range []string{`"required"`, `{"type":"function","function":{"name":"g"}}`, `"none"`} {
		body := user + tools + `,"tool_choice":` + choice + `,"parallel_tool_calls":false,"enable_thinking":false,"max_tokens":200,"seed":4`
		a := l.chat(body)
		calls, finish := a.Choices[0].Message.ToolCalls, a.Choices[0].FinishReason
		switch {
		case choice == `"none"` && len(calls) > 0:
			t.Errorf("none: got %+v", calls)
		case choice != `"none"` && (len(calls) != 1 || finish != "tool_calls" || !json.Valid([]byte(calls[0].Function.Arguments))):
			t.Errorf("%s: got %+v and finish %s, want one call", choice, calls, finish)
		case strings.Contains(choice, "name") && calls[0].Function.Name != "g":
			t.Errorf("%s: got a call of %s", choice, calls[0].Function.Name)
		}
		sameAnswer(t, choice, a, fold(t, l.events("/v1/chat/completions", "{"+body+`,"stream":true,"stream_options":{"include_usage":true}}`)))
	}
}

// "Answer now": the thinking of a running answer ends, by the id of its request or of its answer, or without one.
func TestStopThinking(t *testing.T) {
	l := serve(t, Options{Engine: tiny(t, inference.Options{ContextTokens: 32768})})
	for _, by := range []string{"request", "answer", "nothing"} {
		// The bias keeps the model from ending its thinking, or the answer, by itself.
		resp, leave := l.start("/v1/chat/completions", `{`+user+`,"stream":true,"temperature":2,"top_k":0,"top_p":1,"seed":3,"logit_bias":{"288":-100,"281":-100,"257":-100,"256":-100,"258":-100}}`)
		r, err := resp()
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(r.Body)
		told, answered := false, false
		for !answered {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("by %s: the stream ended before an answer came: %v", by, err)
			}
			var c openai.ChatChunk
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok || json.Unmarshal([]byte(data), &c) != nil || len(c.Choices) == 0 {
				continue
			}
			if d := c.Choices[0].Delta; d.Content != nil && *d.Content != "" {
				answered = true
			}
			if answered && !told {
				t.Fatalf("by %s: an answer came before it was asked for", by)
			}
			if !told && c.Choices[0].Delta.Reasoning != "" {
				told = true
				body := map[string]string{"request": `{"id":"` + r.Header.Get("X-Request-Id") + `"}`, "answer": `{"id":"` + c.ID + `"}`, "nothing": `{}`}[by]
				if status, _, answer := l.post("/v1/pond/stop-thinking", body); status != 200 || !strings.Contains(string(answer), c.ID) {
					t.Errorf("by %s: got status %d and %s", by, status, answer)
				}
			}
		}
		leave()
		l.idle()
	}
}

// Several at once, one that leaves and comes back at once, the list of models all the while, and the server's end: no crash, and whole answers.
func TestStorm(t *testing.T) {
	engine := tiny(t, inference.Options{ContextTokens: 32768, ChunkTokens: 32})
	l := serve(t, Options{Engine: engine})
	long := strings.Repeat("long ", 500)
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
			resp, err := http.Get(l.url + "/v1/models")
			if err != nil {
				return // the server has ended
			}
			resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Errorf("models: got status %d", resp.StatusCode)
			}
		}
	})
	var asked sync.WaitGroup
	for i := range 4 {
		asked.Go(func() {
			_, leave := l.start("/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"user","content":"%s %d"}],"stream":true}`, long, i))
			time.Sleep(time.Duration(i*5) * time.Millisecond)
			leave()
			resp, err := http.Post(l.url+"/v1/chat/completions", "application/json", strings.NewReader(fmt.Sprintf(`{"messages":[{"role":"user","content":"again %d"}],"max_tokens":3}`, i)))
			if err != nil || resp.StatusCode != 200 {
				t.Errorf("retry %d: got %v, %v", i, resp, err)
				return
			}
			resp.Body.Close()
		})
	}
	asked.Wait()
	l.start("/v1/chat/completions", `{`+endless+`,"stream":true}`)
	waitFor(t, "one that runs at the end", func() bool { return engine.Stats().Active == 1 })
	l.stop()
	if err := <-l.served; err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
	close(done)
	wg.Wait()
}

// Clients that trickle their headers are cut off, and those with too many are refused.
func TestSlowAndHugeHeaders(t *testing.T) {
	l := serve(t, Options{})
	hasty := serve(t, Options{Engine: l.server.engine, headerTimeout: 200 * time.Millisecond})
	conn, err := net.Dial("tcp", strings.TrimPrefix(hasty.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(90 * time.Second))
	go func() { // one byte now and then keeps nobody alive
		for _, b := range []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + strings.Repeat("x", 5000)) {
			if _, err := conn.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	// net/http may say 408 before it closes.
	if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is still open")
	}
	r, err := http.NewRequest("GET", l.url+"/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Huge", strings.Repeat("x", 1<<20))
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("huge header: got status %d, want 431", resp.StatusCode)
		}
	}
	if status, _, _ := l.post("/v1/chat/completions", `{`+user+`,"max_tokens":1}`); status != 200 {
		t.Errorf("after both: got status %d, want 200", status)
	}
}
