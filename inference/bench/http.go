package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is an OpenAI-compatible endpoint to measure.
type Server struct {
	Name  string
	URL   string // base, such as http://127.0.0.1:11535/v1
	Model string // empty: the first that /models lists
	Key   string
}

// HTTPOptions of RunHTTP.
type HTTPOptions struct {
	Servers   []Server
	Clients   []int // how many ask at once: 1, 4, 16
	Requests  int   // of each client, one after the other
	Rounds    int
	Prompt    int              // words of the prompt, about as many tokens
	MaxTokens int              // of an answer
	Bias      map[string]int   // logit_bias: id -> -100 keeps a token that ends an answer away
	Chat      bool             // POST /chat/completions instead of /completions
	Allow     []Reason         // as in Options
	Dirty     string           // likewise
	Client    *http.Client     // nil: one of its own
	Tell      func(string)     // progress
	Now       func() time.Time // the clock
	Machine   func(context.Context) []Objection
}

// HTTPRow is one server asked by so many clients at once, all rounds together.
type HTTPRow struct {
	Server       string  `json:"server"`
	URL          string  `json:"url"`
	Model        string  `json:"model"`
	Clients      int     `json:"clients"`
	Requests     int     `json:"requests"`
	Failed       int     `json:"failed"`
	FirstError   string  `json:"first_error,omitempty"`
	PromptTokens float64 `json:"prompt_tokens"` // mean, as the server counts
	Tokens       int     `json:"tokens"`        // of all answers
	// TTFT and Inter are milliseconds: to the first text of an answer, and between two texts of it. A server may send several tokens at once.
	TTFT       Quantiles `json:"ttft_ms"`
	Inter      Quantiles `json:"inter_token_ms"`
	Throughput float64   `json:"tok_s"` // tokens of all clients over the wall time, prompts included
}

// Quantiles of some durations.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// quantiles by nearest rank.
func quantiles(v []float64) Quantiles {
	if len(v) == 0 {
		return Quantiles{}
	}
	slices.Sort(v)
	at := func(p float64) float64 { return v[max(0, int(math.Ceil(p*float64(len(v))))-1)] }
	return Quantiles{at(0.50), at(0.95), at(0.99)}
}

// tally gathers the answers of one server at one number of clients.
type tally struct {
	mu         sync.Mutex // protects all
	row        HTTPRow
	ttft, gaps []float64 // ms
	prompts    int
	wall       time.Duration
}

// RunHTTP measures servers, taking turns: every round asks each of them with each number of clients, in an order that reverses. A server that answers
// nothing at all is an error; single failures are counted.
func RunHTTP(ctx context.Context, o HTTPOptions) (rows []HTTPRow, overrides []Objection, err error) {
	if len(o.Servers) == 0 || len(o.Clients) == 0 || o.Requests < 1 || o.Rounds < 1 || o.Prompt < 1 || o.MaxTokens < 1 {
		return nil, nil, errors.New("bench: got no servers, clients, requests, rounds, prompt or answer, want at least one of each")
	}
	if o.Client == nil {
		transport := &http.Transport{MaxIdleConnsPerHost: slices.Max(o.Clients)}
		defer transport.CloseIdleConnections()
		o.Client = &http.Client{Transport: transport}
	}
	j := judge{allow: o.Allow}
	if o.Dirty != "" {
		if err := j.hear(Objection{Reason: Dirty, Detail: o.Dirty}); err != nil {
			return nil, nil, err
		}
	}
	o.Servers = slices.Clone(o.Servers)
	for i := range o.Servers {
		if o.Servers[i].Model == "" {
			if o.Servers[i].Model, err = firstModel(ctx, o.Client, o.Servers[i]); err != nil {
				return nil, j.overrides, err
			}
		}
		o.Tell(fmt.Sprintf("%s: warm-up", o.Servers[i].Name))
		warm := &tally{}
		o.ask(ctx, o.Servers[i], warm, "warm-up")
		if warm.row.Failed > 0 {
			return nil, j.overrides, fmt.Errorf("%s: %s", o.Servers[i].Name, warm.row.FirstError)
		}
	}
	tallies := make([]*tally, len(o.Servers)*len(o.Clients))
	for c, n := range o.Clients {
		for s, server := range o.Servers {
			tallies[c*len(o.Servers)+s] = &tally{row: HTTPRow{Server: server.Name, URL: server.URL, Model: server.Model, Clients: n}}
		}
	}
	for r := range o.Rounds {
		for k := range tallies {
			if r%2 == 1 {
				k = len(tallies) - 1 - k
			}
			t, server := tallies[k], o.Servers[k%len(o.Servers)]
			if err := j.hear(o.Machine(ctx)...); err != nil {
				return nil, j.overrides, err
			}
			o.Tell(fmt.Sprintf("round %d of %d: %s, %d at once", r+1, o.Rounds, server.Name, t.row.Clients))
			o.level(ctx, server, t, r)
			if err := ctx.Err(); err != nil {
				return nil, j.overrides, err
			}
		}
	}
	for _, t := range tallies {
		rows = append(rows, t.settle())
	}
	for _, row := range rows {
		if row.Failed == row.Requests {
			return rows, j.overrides, fmt.Errorf("%s: every request of %d clients failed: %s", row.Server, row.Clients, row.FirstError)
		}
	}
	return rows, j.overrides, nil
}

// level has so many clients ask at once.
func (o HTTPOptions) level(ctx context.Context, s Server, t *tally, round int) {
	begun := o.Now()
	var clients sync.WaitGroup
	for c := range t.row.Clients {
		clients.Go(func() {
			for q := range o.Requests {
				o.ask(ctx, s, t, fmt.Sprintf("round %d client %d question %d of %d", round, c, q, t.row.Clients))
			}
		})
	}
	clients.Wait()
	t.wall += o.Now().Sub(begun)
}

func (t *tally) settle() HTTPRow {
	t.row.TTFT, t.row.Inter = quantiles(t.ttft), quantiles(t.gaps)
	if n := t.row.Requests - t.row.Failed; n > 0 {
		t.row.PromptTokens = float64(t.prompts) / float64(n)
	}
	if t.wall > 0 {
		t.row.Throughput = float64(t.row.Tokens) / t.wall.Seconds()
	}
	return t.row
}

// text is a prompt that no other request begins with, so that no server can use what it kept of another.
func (o HTTPOptions) text(salt string) string {
	words := []string{"the", "pond", "is", "still", "and", "a", "frog", "sits", "on", "its", "green", "leaf", "while", "rain", "falls", "softly"}
	var b strings.Builder
	b.WriteString(salt)
	for i := range o.Prompt {
		b.WriteString(" " + words[int(uint32(i)*2654435761>>16)%len(words)])
	}
	return b.String()
}

// ask makes one request and adds what came of it.
func (o HTTPOptions) ask(ctx context.Context, s Server, t *tally, salt string) {
	body := map[string]any{"model": s.Model, "max_tokens": o.MaxTokens, "temperature": 0, "stream": true, "stream_options": map[string]bool{"include_usage": true}}
	path := "/completions"
	if o.Chat {
		path = "/chat/completions"
		body["messages"] = []map[string]string{{"role": "user", "content": o.text(salt)}}
	} else {
		body["prompt"] = o.text(salt)
	}
	if len(o.Bias) > 0 {
		body["logit_bias"] = o.Bias
	}
	a, err := o.stream(ctx, s, path, body)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Requests++
	if err != nil {
		t.row.Failed++
		if t.row.FirstError == "" {
			t.row.FirstError = err.Error()
		}
		return
	}
	t.ttft, t.gaps = append(t.ttft, a.ttft), append(t.gaps, a.gaps...)
	t.row.Tokens += a.tokens
	t.prompts += a.prompt
}

// answered is one answer: milliseconds and tokens.
type answered struct {
	ttft           float64
	gaps           []float64
	tokens, prompt int
}

// chunk is what is read of an event of either API.
type chunk struct {
	Choices []struct {
		Text  string
		Delta struct {
			Content          string
			ReasoningContent string `json:"reasoning_content"`
			Reasoning        string
		}
	}
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
	}
	Error *struct{ Message string }
}

func (c chunk) text() bool {
	for _, x := range c.Choices {
		if x.Text != "" || x.Delta.Content != "" || x.Delta.ReasoningContent != "" || x.Delta.Reasoning != "" {
			return true
		}
	}
	return false
}

func (o HTTPOptions) stream(ctx context.Context, s Server, path string, body any) (a answered, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return a, err
	}
	begun := o.Now()
	resp, err := request(ctx, o.Client, s, http.MethodPost, path, text)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	last, texts := begun, 0
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if data = strings.TrimSpace(data); !ok || data == "[DONE]" {
			continue // comments and other fields of the stream keep it alive
		}
		var c chunk
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			return a, fmt.Errorf("%s: got an event that is no JSON: %w", path, err)
		}
		if c.Error != nil {
			return a, fmt.Errorf("%s: %s", path, c.Error.Message)
		}
		if c.Usage != nil {
			a.tokens, a.prompt = c.Usage.CompletionTokens, c.Usage.PromptTokens
		}
		if !c.text() {
			continue
		}
		now := o.Now()
		ms := float64(now.Sub(last).Nanoseconds()) / 1e6
		if texts == 0 {
			a.ttft = ms
		} else {
			a.gaps = append(a.gaps, ms)
		}
		last = now
		texts++
	}
	if err := lines.Err(); err != nil {
		return a, err
	}
	if texts == 0 {
		return a, fmt.Errorf("%s: got no text in the answer, want some", path)
	}
	if a.tokens == 0 { // a server that counts nothing
		a.tokens = texts
	}
	return a, nil
}

func request(ctx context.Context, c *http.Client, s Server, method, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(s.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if s.Key != "" {
		r.Header.Set("Authorization", "Bearer "+s.Key)
	}
	resp, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return nil, fmt.Errorf("%s: got status %d, want 200: %s", path, resp.StatusCode, strings.TrimSpace(string(text)))
	}
	return resp, nil
}

// firstModel is what the server lists first.
func firstModel(ctx context.Context, c *http.Client, s Server) (string, error) {
	resp, err := request(ctx, c, s, http.MethodGet, "/models", nil)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.Name, err)
	}
	defer resp.Body.Close()
	var list struct{ Data []struct{ ID string } }
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&list); err != nil {
		return "", fmt.Errorf("%s: /models: %w", s.Name, err)
	}
	if len(list.Data) == 0 {
		return "", fmt.Errorf("%s: /models lists none, want one", s.Name)
	}
	return list.Data[0].ID, nil
}

// httpTable has a line for each number of clients, and a column a server for each figure.
func (r Report) httpTable(b *strings.Builder) {
	if len(r.HTTP) == 0 {
		return
	}
	var servers []string
	var clients []int
	for _, x := range r.HTTP {
		if !slices.Contains(servers, x.Server) {
			servers = append(servers, x.Server)
		}
		if !slices.Contains(clients, x.Clients) {
			clients = append(clients, x.Clients)
		}
	}
	b.WriteString("Through HTTP: milliseconds, and tokens a second of all clients together.\n\n| at once | figure |")
	for _, s := range servers {
		b.WriteString(" " + s + " |")
	}
	rule := "| ---: | --- |" + strings.Repeat(" ---: |", len(servers))
	if len(servers) == 2 {
		b.WriteString(" ratio |")
		rule += " ---: |"
	}
	b.WriteString("\n" + rule + "\n")
	for _, n := range clients {
		for _, f := range figures {
			fmt.Fprintf(b, "| %d | %s |", n, f.name)
			var v []float64
			for _, s := range servers {
				i := slices.IndexFunc(r.HTTP, func(x HTTPRow) bool { return x.Server == s && x.Clients == n })
				v = append(v, f.of(r.HTTP[i]))
				fmt.Fprintf(b, " %.*f |", f.digits, v[len(v)-1])
			}
			if len(v) == 2 {
				if v[1] > 0 {
					fmt.Fprintf(b, " %.3f |", v[0]/v[1])
				} else {
					b.WriteString(" - |")
				}
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
	for _, x := range r.HTTP {
		if x.Failed > 0 {
			fmt.Fprintf(b, "- %s, %d at once: %d of %d requests failed, the first with: %s\n", x.Server, x.Clients, x.Failed, x.Requests, x.FirstError)
		}
	}
}

// figures are the lines of the table.
var figures = []struct {
	name   string
	digits int
	of     func(HTTPRow) float64
}{
	{"to the first text, p50", 1, func(x HTTPRow) float64 { return x.TTFT.P50 }},
	{"to the first text, p95", 1, func(x HTTPRow) float64 { return x.TTFT.P95 }},
	{"between texts, p50", 2, func(x HTTPRow) float64 { return x.Inter.P50 }},
	{"between texts, p95", 2, func(x HTTPRow) float64 { return x.Inter.P95 }},
	{"between texts, p99", 2, func(x HTTPRow) float64 { return x.Inter.P99 }},
	{"tokens a second", 1, func(x HTTPRow) float64 { return x.Throughput }},
	{"prompt, tokens", 0, func(x HTTPRow) float64 { return x.PromptTokens }},
	{"answers, tokens", 0, func(x HTTPRow) float64 { return float64(x.Tokens) }},
}
