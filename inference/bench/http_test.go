package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeServer speaks enough of the API: three texts an answer, counts in the last event. It fails every failEvery-th request.
type fakeServer struct {
	mu        sync.Mutex
	prompts   map[string]bool
	most, now int
	asked     int
	failEvery int
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/models") {
		fmt.Fprint(w, `{"data":[{"id":"first"},{"id":"second"}]}`)
		return
	}
	var body struct {
		Model, Prompt string
		Bias          map[string]int `json:"logit_bias"`
		Messages      []struct{ Content string }
	}
	text, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(text, &body); err != nil || body.Model != "first" || r.Header.Get("Authorization") != "Bearer key" || body.Bias["7"] != -100 {
		http.Error(w, "wrong request: "+string(text), http.StatusBadRequest)
		return
	}
	prompt := body.Prompt
	if len(body.Messages) > 0 {
		prompt = body.Messages[0].Content
	}
	f.mu.Lock()
	f.asked++
	fail := f.failEvery > 0 && f.asked > 1 && f.asked%f.failEvery == 0
	twice := f.prompts[prompt]
	f.prompts[prompt] = true
	f.now++
	f.most = max(f.most, f.now)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.now--
		f.mu.Unlock()
	}()
	if fail || twice {
		http.Error(w, fmt.Sprintf("busy (the same prompt again: %v)", twice), http.StatusTooManyRequests)
		return
	}
	fmt.Fprint(w, ": heartbeat\n\n")
	for _, word := range []string{"", "a", "b", "c"} {
		if len(body.Messages) > 0 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", word)
		} else {
			fmt.Fprintf(w, "data: {\"choices\":[{\"text\":%q}]}\n\n", word)
		}
		w.(http.Flusher).Flush()
	}
	fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n")
}

func httpOptions(t *testing.T, servers ...*fakeServer) HTTPOptions {
	o := HTTPOptions{Clients: []int{1, 4}, Requests: 2, Rounds: 2, Prompt: 20, MaxTokens: 5, Bias: map[string]int{"7": -100}, Tell: func(string) {}, Now: time.Now,
		Machine: func(context.Context) []Objection { return nil }}
	for i, f := range servers {
		f.prompts = map[string]bool{}
		s := httptest.NewServer(f)
		t.Cleanup(s.Close)
		o.Servers = append(o.Servers, Server{Name: fmt.Sprintf("server %d", i), URL: s.URL + "/v1/", Key: "key"})
	}
	return o
}

func TestTwoServers(t *testing.T) {
	for _, chat := range []bool{false, true} {
		one, two := &fakeServer{}, &fakeServer{}
		o := httpOptions(t, one, two)
		o.Chat = chat
		rows, _, err := RunHTTP(context.Background(), o)
		if err != nil || len(rows) != 4 {
			t.Fatalf("got %+v, %v, want two servers at two numbers of clients", rows, err)
		}
		for i, want := range []int{4, 4, 16, 16} { // clients x requests x rounds
			r := rows[i]
			if r.Requests != want || r.Failed != 0 || r.Tokens != 5*want || r.PromptTokens != 40 || r.Model != "first" {
				t.Errorf("got %+v, want %d requests of 5 tokens, none failed, by prompts of 40", r, want)
			}
			if r.Throughput <= 0 || r.TTFT.P50 <= 0 || r.Inter.P99 < r.Inter.P50 {
				t.Errorf("got %+v, want figures in order", r)
			}
		}
		var out strings.Builder
		if err := (Report{HTTP: rows, Model: "first"}).WriteMarkdown(&out); err != nil || !strings.Contains(out.String(), "| at once | figure | server 0 | server 1 | ratio |") {
			t.Errorf("got %v\n%s\nwant both columns", err, out.String())
		}
	}
}

func TestServersThatFail(t *testing.T) {
	o := httpOptions(t, &fakeServer{failEvery: 5})
	rows, _, err := RunHTTP(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, r := range rows {
		failed += r.Failed
	}
	if want := 21 / 5; failed != want || !strings.Contains(rows[1].FirstError, "status 429") {
		t.Errorf("got %d failures, %q, want %d that say their status", failed, rows[1].FirstError, want)
	}
	o = httpOptions(t, &fakeServer{})
	o.Servers[0].Key = "another"
	if _, _, err := RunHTTP(context.Background(), o); err == nil || !strings.Contains(err.Error(), "status 400") {
		t.Errorf("got %v, want the server's refusal", err)
	}
}

func TestQuantiles(t *testing.T) {
	v := make([]float64, 100)
	for i := range v {
		v[i] = float64(100 - i)
	}
	if got, want := quantiles(v), (Quantiles{50, 95, 99}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := quantiles([]float64{7}); got != (Quantiles{7, 7, 7}) {
		t.Errorf("got %v, want 7 thrice", got)
	}
}
