package server

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"pond/server/openai"
)

// complete sends a completion request whole and streamed, checks that both say the same, and returns the answer.
func (l *live) complete(fields string) openai.Completion {
	l.Helper()
	status, _, answer := l.post("/v1/completions", "{"+fields+"}")
	if status != 200 {
		l.Fatalf("%s: got status %d: %s", fields, status, answer)
	}
	var whole openai.Completion
	strictly(l, answer, &whole)
	var folded openai.Completion
	for _, data := range l.events("/v1/completions", "{"+fields+`,"stream":true,"stream_options":{"include_usage":true}}`) {
		var chunk openai.Completion
		strictly(l, data, &chunk)
		if folded.ID == "" {
			folded = chunk
			folded.Choices = nil
		}
		if chunk.Usage != nil {
			folded.Usage = chunk.Usage
			continue
		}
		part := chunk.Choices[0]
		if part.Index == len(folded.Choices) {
			folded.Choices = append(folded.Choices, part)
			continue
		}
		into := &folded.Choices[part.Index]
		into.Text += part.Text
		into.FinishReason = part.FinishReason
		if p := part.Logprobs; p != nil {
			into.Logprobs.Tokens = append(into.Logprobs.Tokens, p.Tokens...)
			into.Logprobs.TokenLogprobs = append(into.Logprobs.TokenLogprobs, p.TokenLogprobs...)
			into.Logprobs.TopLogprobs = append(into.Logprobs.TopLogprobs, p.TopLogprobs...)
			into.Logprobs.TextOffset = append(into.Logprobs.TextOffset, p.TextOffset...)
		}
	}
	same := whole
	same.ID, same.Created = folded.ID, folded.Created
	for _, u := range []*openai.Usage{same.Usage, folded.Usage} {
		u.PromptTokensDetails, u.Timings = openai.PromptDetails{}, openai.Timings{}
	}
	if diff := cmp.Diff(same, folded); diff != "" {
		l.Errorf("%s (-whole +streamed):\n%s", fields, diff)
	}
	return whole
}

func TestCompletions(t *testing.T) {
	l := serve(t, Options{})
	for _, fields := range []string{
		`"prompt":"the pond","max_tokens":30,"seed":1`,
		`"prompt":"the pond","max_tokens":30,"seed":1,"logprobs":2,"stop":["a","q"]`,
		`"prompt":[[1,2,3]],"max_tokens":5,"temperature":0,"logprobs":0`,
	} {
		l.complete(fields)
	}
}

// Bytes of one emoji, in an order that chance gives: whole characters come out whole in both forms, however tokens split them.
func TestCharactersSplitAcrossTokens(t *testing.T) {
	l := serve(t, Options{})
	emoji := "🌍"
	bias := ""
	for i, b := range []byte(emoji) { // the tiny tokenizer has one token a byte
		if i > 0 {
			bias += ","
		}
		bias += fmt.Sprintf(`"%d":100`, b)
	}
	seen := false
	for seed := range 12 {
		fields := fmt.Sprintf(`"messages":[{"role":"user","content":"x"}],"enable_thinking":false,"max_tokens":%d,"seed":%d,"logprobs":true,"top_p":1,"logit_bias":{%s}`, 20+seed%4, seed, bias)
		whole := l.chat(fields)
		events := l.events("/v1/chat/completions", "{"+fields+`,"stream":true,"stream_options":{"include_usage":true}}`)
		sameAnswer(t, fields, whole, fold(t, events))
		text := *whole.Choices[0].Message.Content
		var raw []byte
		for _, token := range whole.Choices[0].Logprobs.Content {
			for _, b := range token.Bytes {
				raw = append(raw, byte(b))
			}
		}
		if got, want := strings.Count(text, emoji), bytes.Count(raw, []byte(emoji)); got != want {
			t.Errorf("seed %d: got %d whole characters in %q, want %d", seed, got, text, want)
		} else if want > 0 {
			seen = true
		}
		if !utf8.ValidString(text) {
			t.Errorf("seed %d: got text that is not UTF-8: %q", seed, text)
		}
		for _, data := range events {
			if !utf8.Valid(data) {
				t.Errorf("seed %d: got an event that is not UTF-8: %q", seed, data)
			}
		}
	}
	if !seen {
		t.Error("no whole character came in 12 answers: the test shows nothing")
	}
}
