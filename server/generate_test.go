package server

import (
	"bufio"
	"fmt"
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
