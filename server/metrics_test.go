package server

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// The metrics add up to what was asked, and no label holds a client's own text.
func TestMetrics(t *testing.T) {
	l := serve(t, Options{})
	a := l.chat(user + `,"max_tokens":5,"seed":1`)
	l.events("/v1/chat/completions", "{"+user+`,"max_tokens":5,"seed":1,"stream":true}`)
	l.post("/v1/chat/completions", `{"messages":7}`)
	http.Get(l.url + "/client's-own-path")
	r, err := http.NewRequest("INVENTED", l.url+"/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.Do(r)
	resp, err := http.Get(l.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		t.Fatalf("got type %q, %v", resp.Header.Get("Content-Type"), err)
	}
	text := string(body)
	for _, want := range []string{
		`pond_requests_total{method="POST",path="/v1/chat/completions",status="200"} 2`,
		`pond_requests_total{method="POST",path="/v1/chat/completions",status="400"} 1`,
		`pond_tokens_total{kind="completion"} 10`,
		`pond_tokens_total{kind="reasoning"} 10`,
		`pond_answers_total{finish="length"} 2`,
		`pond_tokens_chosen_total{by="device"} 8`,
		`pond_tokens_chosen_total{by="host"} 2`,
		`pond_first_token_seconds_count 2`,
		`pond_in_flight 0`,
		`pond_queued 0`,
		`model="tiny",version="test"`,
		`pond_context_tokens 2048`,
		`go_goroutines `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %s in\n%s", want, regexp.MustCompile(`(?m)^(go_|process_|#).*\n`).ReplaceAllString(text, ""))
		}
	}
	for _, never := range []string{"client's-own-path", "INVENTED"} {
		if strings.Contains(text, never) {
			t.Errorf("the metrics hold %q, which a client invented", never)
		}
	}
	if a.Usage.CompletionTokens != 5 {
		t.Errorf("got %d tokens, want 5", a.Usage.CompletionTokens)
	}
}
