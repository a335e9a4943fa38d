package server

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pond/inference"
	"pond/inference/sample"
	"pond/server/openai"
)

// What the client leaves out comes from the row of the thinking mode; what it sets, zero too, is what the sampler gets.
func TestSamplingDefaults(t *testing.T) {
	s := &Server{engine: &inference.Engine{}}
	for _, c := range []struct {
		fields   string
		thinking bool
		want     sample.Params
	}{
		{``, true, sample.Params{Temperature: 1, TopP: 0.95, TopK: 20}},
		{``, false, sample.Params{Temperature: 0.7, TopP: 0.8, TopK: 20}},
		{`,"temperature":0,"seed":-1`, true, sample.Params{Temperature: 0, TopP: 0.95, TopK: 20, Seed: 1<<64 - 1}},
		{`,"top_p":0,"top_k":0`, false, sample.Params{Temperature: 0.7, TopP: 1e-9}},
		{`,"top_p":1,"top_k":-1,"min_p":0.1,"presence_penalty":-1,"frequency_penalty":0.5,"repetition_penalty":1.1`, false,
			sample.Params{Temperature: 0.7, TopP: 1, MinP: 0.1, Presence: -1, Frequency: 0.5, Repetition: 1.1}},
	} {
		req, err := openai.DecodeChat([]byte("{" + user + c.fields + "}"))
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.generation(req.Generation, c.thinking)
		if err != nil {
			t.Fatal(err)
		}
		if req.Sampling.Seed == nil {
			again, _ := s.generation(req.Generation, c.thinking)
			if again.Sampling.Seed == g.Sampling.Seed {
				t.Errorf("%s: got the same seed twice without asking for one", c.fields)
			}
			g.Sampling.Seed = 0
		}
		if diff := cmp.Diff(c.want, *g.Sampling); diff != "" {
			t.Errorf("%q, thinking %v (-want +got):\n%s", c.fields, c.thinking, diff)
		}
		if err := g.Sampling.Validate(); err != nil {
			t.Errorf("%s: the sampler refuses what the decoder let through: %v", c.fields, err)
		}
	}
}

// A client that streams an echoed prompt with its log probabilities heard nothing until all of them were computed, and proxies cut it off. The answer is the same
// as without the wait; a client that leaves meanwhile ends the work.
func TestHeartbeatWhileThePromptsLogprobsAreComputed(t *testing.T) {
	const fields = `"max_tokens":3,"temperature":0,"echo":true,"logprobs":2,"stream":true,"surprise":1}`
	body := fmt.Sprintf(`{"prompt":%q,`, strings.Repeat("a long prompt ", 140)) + fields
	patient := serve(t, Options{Heartbeat: time.Hour})
	want := patient.events("/v1/completions", body)

	l := serve(t, Options{Heartbeat: time.Millisecond})
	status, header, answer := l.post("/v1/completions", body)
	if status != http.StatusOK || header.Get("X-Pond-Ignored") != "surprise" {
		t.Fatalf("got status %d, ignored %q: %s", status, header.Get("X-Pond-Ignored"), answer)
	}
	before, _, _ := bytes.Cut(answer, []byte("data: "))
	if n := bytes.Count(before, []byte(": log probabilities of the prompt\n\n")); n == 0 {
		t.Errorf("got no heartbeat before the first event:\n%s", before)
	}
	without := regexp.MustCompile(`"(id|created|system_fingerprint)":("[^"]*"|\d+),`)
	plain := func(events [][]byte) string { return string(without.ReplaceAll(bytes.Join(events, []byte("\n")), nil)) }
	if got := plain(dataOf(t, answer)); got != plain(want) {
		t.Errorf("got another answer with heartbeats:\n%.500s\nwant\n%.500s", got, plain(want))
	}

	resp, leave := l.start("/v1/completions", body)
	r, err := resp()
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(r.Body); lines.Scan() && !strings.HasPrefix(lines.Text(), ": log"); {
	}
	leave()
	r.Body.Close()
	if status, _, answer := l.post("/v1/completions", `{"prompt":"x","max_tokens":1}`); status != http.StatusOK {
		t.Errorf("after a client that left: got status %d: %s", status, answer)
	}
}

// During a long prompt the comments say how far it is.
func TestHeartbeatShowsProgress(t *testing.T) {
	l := serve(t, Options{Heartbeat: time.Millisecond, Engine: tiny(t, inference.Options{ContextTokens: 32768, ChunkTokens: 64})})
	resp, leave := l.start("/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":1,"stream":true}`, strings.Repeat("a long prompt ", 1500)))
	r, err := resp()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	shown, last := 0, 0
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		var done, total int
		if n, _ := fmt.Sscanf(lines.Text(), ": prompt %d/%d tokens", &done, &total); n == 2 {
			if done < last || total != 21000 {
				t.Errorf("got %q after %d", lines.Text(), last)
			}
			if shown, last = shown+1, done; shown == 3 {
				leave()
			}
		}
	}
	if shown == 0 {
		t.Error("got no comment with progress")
	}
}
