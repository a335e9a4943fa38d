package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"pond/inference"
	"pond/inference/chat"
	"pond/server/openai"
)

var update = flag.Bool("update", false, "write the answers of testdata/*.txtar anew")

// shownHeaders are part of a transcript; the others (date, length, request id) say nothing about the protocol.
var shownHeaders = []string{"Content-Type", "Cache-Control", "Allow", "Retry-After", "WWW-Authenticate", "Vary", "X-Pond-Ignored",
	"Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Expose-Headers"}

// changing parts of an answer and what stands for them.
var changing = []struct {
	pattern *regexp.Regexp
	fixed   string
}{
	{regexp.MustCompile(`"(chatcmpl|cmpl|call|msg|resp|rs|fc|item|req)[-_][0-9a-f]{24}"`), `"$1-ID"`},
	{regexp.MustCompile(`"(created|created_at|completed_at)":\d+`), `"$1":0`},
	{regexp.MustCompile(`"created_at":"[^"]*"`), `"created_at":"T"`},
	// What the cache holds depends on what ran before, and on how the engine keeps it.
	{regexp.MustCompile(`"cached_tokens":\d+`), `"cached_tokens":0`},
	{regexp.MustCompile(`"input_tokens":\d+,"cache_creation_input_tokens":0,"cache_read_input_tokens":\d+`), `"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0`},
	{regexp.MustCompile(`"timings":\{[^}]*\}`), `"timings":{}`},
	{regexp.MustCompile(`"(uptime_seconds|tokens_per_second|age_ms|saved_seconds_today|snapshot_bytes|stored_response_bytes)":[0-9.e+-]+`), `"$1":0`},
	{regexp.MustCompile(`"fp_[0-9a-f]+"`), `"fp_X"`},
	{regexp.MustCompile(`"executor":"[^"]*"`), `"executor":"E"`},
	{regexp.MustCompile(`"logprob":-?[0-9.e-]+`), `"logprob":-1`},
	{regexp.MustCompile(`(?m)^: (prompt|waiting|generating).*\n\n`), ``}, // heartbeats come by the clock
}

func normalised(s string) string {
	for _, c := range changing {
		s = c.pattern.ReplaceAllString(s, c.fixed)
	}
	return s
}

// TestTranscripts replays testdata/*.txtar. A file has pairs "NAME request", "NAME response". A request is a line with method and
// path, headers, a blank line and the body. The model's text is forced by logit_bias, so that it is the same on every machine.
func TestTranscripts(t *testing.T) {
	engine := tiny(t, inference.Options{ContextTokens: 256})
	open := serve(t, Options{Engine: engine, BodyLimit: 4096})
	keyed := serve(t, Options{Engine: engine, APIKey: "secret"})
	roomy := serve(t, Options{}) // what the template says of tools has about a thousand bytes
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d transcripts, %v", len(files), err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		l := open
		switch {
		case strings.Contains(file, "key"):
			l = keyed
		case strings.Contains(file, "tools"):
			l = roomy
		}
		var out []txtar.File
		for _, f := range archive.Files {
			name, ok := strings.CutSuffix(f.Name, " request")
			if !ok {
				continue
			}
			got := exchange(t, l.url, string(f.Data))
			out = append(out, f, txtar.File{Name: name + " response", Data: []byte(got)})
			if *update {
				continue
			}
			i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name+" response" })
			if i < 0 {
				t.Errorf("%s: %s has no response: run with -update", file, name)
			} else if want := string(archive.Files[i].Data); got != want {
				t.Errorf("%s: %s\ngot:\n%s\nwant:\n%s", file, name, got, want)
			}
		}
		if *update {
			archive.Files = out
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// exchange sends one request of a transcript and formats the answer.
func exchange(t *testing.T, url, text string) string {
	t.Helper()
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
	method, path, _ := strings.Cut(lines[0], " ")
	body = strings.TrimSuffix(body, "\n")
	if n := 0; strings.HasPrefix(body, "BYTES ") {
		fmt.Sscanf(body, "BYTES %d", &n)
		body = strings.Repeat("x", n)
	}
	r, err := http.NewRequest(method, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintln(&b, resp.Status)
	for _, name := range shownHeaders {
		for _, value := range resp.Header.Values(name) {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	fmt.Fprintln(&b)
	b.Write(indented([]byte(normalised(string(answer)))))
	return b.String()
}

// indented makes a JSON body readable; a stream stays as it is.
func indented(body []byte) []byte {
	var b bytes.Buffer
	if len(body) == 0 {
		return nil
	}
	if json.Indent(&b, bytes.TrimSpace(body), "", "  ") != nil {
		return body // a stream
	}
	return append(b.Bytes(), '\n')
}

// TestStreamTranscript writes one stream with everything in it, from fixed updates, in each API.
func TestStreamTranscript(t *testing.T) {
	event := func(kind chat.EventKind, text string) chat.Event { return chat.Event{Kind: kind, Text: text} }
	prob := func(id int32, text string, top ...inference.TokenLogprob) inference.TokenLogprob {
		return inference.TokenLogprob{ID: id, Bytes: []byte(text), Logprob: -0.5, Top: top}
	}
	updates := []inference.Update{
		{Events: []chat.Event{event(chat.Reasoning, "h"), event(chat.Reasoning, "m")}, Logprobs: []inference.TokenLogprob{prob(1, "hm")}},
		{Logprobs: []inference.TokenLogprob{prob(2, "</think>", prob(3, "\xf0\x9f"))}},
		{Events: []chat.Event{event(chat.Text, "a <b> & \u2028 🌍")}, Logprobs: []inference.TokenLogprob{prob(4, "\xf0\x9f\x8c")}},
		{Events: []chat.Event{{Kind: chat.CallStart, ID: "call_1", Name: "note"}, {Kind: chat.CallArguments, Text: `{"title":`}, {Kind: chat.CallArguments, Text: `"x"`}}},
		{Events: []chat.Event{{Kind: chat.CallArguments, Text: `}`}, {Kind: chat.CallEnd},
			{Kind: chat.CallStart, Index: 1, ID: "call_2", Name: "now"}, {Kind: chat.CallArguments, Index: 1, Text: `{}`}, {Kind: chat.CallEnd, Index: 1}}},
	}
	result := inference.Result{Finish: inference.FinishToolCalls, Usage: inference.Usage{PromptTokens: 9, CachedTokens: 4, CompletionTokens: 7, ReasoningTokens: 2}}
	head := envelope{id: "id_0", model: "tiny", fingerprint: "fp_0"}
	known := &progress{}
	known.set(4, 9)
	for file, with := range map[string]func(*eventStream) encoder{
		"stream.txt": func(w *eventStream) encoder { return &chatStream{eventStream: w, head: head, usage: true} },
		"stream_responses.txt": func(w *eventStream) encoder {
			r := newResponse(&openai.ResponseRequest{}, head, nil, inference.Generation{Sampling: ptr(inference.DefaultSampling(true))})
			return &responseStream{eventStream: w, response: r, keep: func(*response, chat.Answer) {}}
		},
		"stream_messages.txt": func(w *eventStream) encoder { return &messageStream{eventStream: w, head: head, progress: known} },
	} {
		got := normalised(string(written(func(w *eventStream) error { return encode(with(w), updates, result) })))
		file = filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", file, got, want)
		}
	}
}
