package inference

import (
	"context"
	"fmt"
	"testing"

	"pond/inference/chat"
	"pond/inference/grammar"
	"pond/inference/sample"
)

// everything is a request of each kind that a step of several can hold.
func everything(t *testing.T, e *Engine) []ChatRequest {
	t.Helper()
	off := false
	var all []ChatRequest
	add := func(change func(r *ChatRequest)) {
		i := len(all)
		r := ChatRequest{Conversation: user(fmt.Sprintf("%d tell me of ponds", i)), Generation: Generation{MaxTokens: 30, Sampling: endless(e, uint64(i))}}
		change(&r)
		all = append(all, r)
	}
	add(func(r *ChatRequest) { *r.Sampling = sample.Params{Seed: 1, Bias: r.Sampling.Bias} }) // greedy
	add(func(r *ChatRequest) {
		r.Sampling.Temperature, r.Sampling.TopK, r.Sampling.TopP, r.Sampling.MinP = 1.7, 0, 1, 0.05
	})
	add(func(r *ChatRequest) { r.Sampling.Presence, r.Sampling.Frequency = 1.5, 0.7 })
	add(func(r *ChatRequest) { r.Sampling.Repetition = 1.3 })
	add(func(r *ChatRequest) { r.Sampling.Bias[101], r.Sampling.Bias[116] = 8, -100 })
	add(func(r *ChatRequest) { r.Logprobs, r.TopLogprobs = true, 5 })
	add(func(r *ChatRequest) { r.ThinkingBudget, r.MaxTokens = 6, 120 })
	add(func(r *ChatRequest) {
		r.Conversation.Thinking = &off
		r.Stop = []string{"e", "a", "o", "t", "1"}
	})
	add(func(r *ChatRequest) {
		r.Conversation.Thinking = &off
		r.Format, r.MaxTokens = schema(t, `{"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x","y"]}},"required":["a","b"],"additionalProperties":false}`), 60
	})
	add(func(r *ChatRequest) {
		r.Format, r.ThinkingBudget, r.MaxTokens = grammar.JSONObject(), 5, 150
	})
	add(func(r *ChatRequest) { r.MaxTokens = 1 })
	return all
}

// told is an answer as its client sees it, log probabilities included.
func told(a *Answer) (string, error) {
	var logprobs []TokenLogprob
	for u, ok := a.Next(); ok; u, ok = a.Next() {
		logprobs = append(logprobs, u.Logprobs...)
	}
	r := a.Result()
	return fmt.Sprintf("%s %q %d %v", text(r), r.StopText, r.Usage.CompletionTokens, logprobs), a.Err()
}

// Samplers, penalties, biases, forms, stop texts, budgets and log probabilities of one answer stay out of those that share its steps.
func TestAnswersOfAllKindsTogetherAreAsAlone(t *testing.T) {
	o := Options{Executor: HostExact, ChunkTokens: 64, ContextTokens: 1024}
	e, alone := openTiny(t, o), openTiny(t, o)
	requests := everything(t, e)
	var want []string
	for i, r := range requests {
		a, err := alone.Chat(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := told(a)
		if err != nil {
			t.Fatalf("request %d alone: %v", i, err)
		}
		want = append(want, text)
	}
	for shift := range 3 { // other neighbours each time
		e.DropSnapshots()
		e.Pause()
		answers := make([]*Answer, len(requests))
		for n := range requests {
			i := (n*(shift+3) + shift) % len(requests)
			a, err := e.Chat(context.Background(), requests[i])
			if err != nil {
				t.Fatal(err)
			}
			answers[i] = a
		}
		e.Resume()
		for i, a := range answers {
			if got, err := told(a); err != nil || got != want[i] {
				t.Errorf("order %d, request %d: got %s, %v, want what it is alone, %s", shift, i, got, err, want[i])
			}
		}
	}
	if steps := e.Stats().Steps; steps[1]+steps[2]+steps[3] == 0 {
		t.Errorf("got steps by answers %v, want some of several", steps)
	}
}

// Case 32: an answer that would go on for ever, asked for without a limit, ends at the default one or where the context does; the same results of
// tools three times are taken as they are.
func TestAnEndlessAnswerEndsByItself(t *testing.T) {
	e := openTiny(t, Options{ContextTokens: 400})
	c := user("Write a history of bread in 500 lines")
	for range 3 {
		c.Messages = append(c.Messages, chat.Message{Role: "assistant", ToolCalls: []chat.ToolCall{{Name: "look"}}}, chat.Message{Role: "tool", Content: chat.TextContent("none")})
	}
	r := ask(t, e, c, Generation{Sampling: &sample.Params{Bias: endless(e, 1).Bias}})
	if r.Finish != FinishLength || r.Usage.PromptTokens+r.Usage.CompletionTokens != 400 {
		t.Errorf("got %s after %d and %d tokens, want length at the end of the context, 400", r.Finish, r.Usage.PromptTokens, r.Usage.CompletionTokens)
	}
	e = openTiny(t, Options{ContextTokens: 40_000})
	e.Pause()
	j := e.newJob(context.Background(), make([]int32, 10), nil, Generation{}, true)
	if _, err := e.submit(j); err != nil || j.gen.MaxTokens != MaxAnswerTokens {
		t.Errorf("no limit in a long context: got %d, %v, want %d", j.gen.MaxTokens, err, MaxAnswerTokens)
	}
}
