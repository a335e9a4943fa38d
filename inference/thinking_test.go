package inference

import (
	"context"
	"math"
	"strings"
	"testing"

	"pond/inference/sample"
)

// budgeted never ends by itself, neither the thinking nor the answer: the tiny model's nonsense is held from it by a bias.
func budgeted(seed uint64, budget, most int) Generation {
	p := seeded(seed)
	p.Bias = map[int32]float64{}
	for id := int32(256); id < 289; id++ {
		p.Bias[id] = -100
	}
	return Generation{MaxTokens: most, ThinkingBudget: budget, Sampling: p}
}

// Reasoning that never closes (case 32): the budget closes it and the answer follows.
func TestThinkingBudgetClosesTheBlockAndAnswers(t *testing.T) {
	e := openTiny(t, Options{ChunkTokens: 16})
	free := ask(t, e, user("think"), budgeted(7, 0, 400))
	if free.Usage.ReasoningTokens != 400 || free.Answer.Content != "" {
		t.Fatalf("got %d tokens of thinking and content %q, want a seed that thinks for ever", free.Usage.ReasoningTokens, free.Answer.Content)
	}
	for _, budget := range []int{1, 2, 40, 399} {
		r := ask(t, e, user("think"), budgeted(7, budget, 400))
		own := strings.TrimSuffix(r.Answer.Reasoning, strings.TrimPrefix(closingSentence, "\n\n"))
		own = strings.TrimRight(own, "\n")
		if !strings.HasPrefix(free.Answer.Reasoning, own) {
			t.Errorf("budget %d: got thinking %q, want the start of %q", budget, r.Answer.Reasoning, free.Answer.Reasoning)
		}
		if closed := budget < 300; closed != (r.Usage.ReasoningTokens < 300) || closed != (r.Answer.Content != "") {
			t.Errorf("budget %d: got %d tokens of thinking, content %q", budget, r.Usage.ReasoningTokens, r.Answer.Content)
		}
		if r.Usage.CompletionTokens > 400 || r.Finish == FinishLength && r.Usage.CompletionTokens != 400 {
			t.Errorf("budget %d: got %d tokens and finish %s, want at most 400", budget, r.Usage.CompletionTokens, r.Finish)
		}
	}
}

// The limit of the whole answer is met first, or in the midst of the closing sequence: nothing of the thinking becomes content.
func TestMaxTokensBelowTheThinkingBudget(t *testing.T) {
	e := openTiny(t, Options{})
	for _, c := range []struct{ budget, most int }{{50, 20}, {20, 20}, {18, 20}, {19, 21}} {
		r := ask(t, e, user("think"), budgeted(7, c.budget, c.most))
		if r.Finish != FinishLength || r.Usage.CompletionTokens != c.most || r.Answer.Content != "" {
			t.Errorf("budget %d of %d: got finish %s, %d tokens, content %q", c.budget, c.most, r.Finish, r.Usage.CompletionTokens, r.Answer.Content)
		}
	}
}

func TestThinkingIsClosedWithLogprobs(t *testing.T) {
	e := openTiny(t, Options{ChunkTokens: 16})
	plain := ask(t, e, user("think"), budgeted(7, 30, 300))
	g := budgeted(7, 30, 300)
	g.Logprobs, g.TopLogprobs = true, 2
	a, err := e.Chat(context.Background(), ChatRequest{Conversation: user("think"), Generation: g})
	if err != nil {
		t.Fatal(err)
	}
	var all []TokenLogprob
	var text []byte
	for {
		u, ok := a.Next()
		if !ok {
			break
		}
		all = append(all, u.Logprobs...)
	}
	for i, l := range all {
		text = append(text, l.Bytes...)
		if !(l.Logprob <= 0) || math.IsInf(l.Logprob, -1) || len(l.Top) != 2 || l.Top[0].Logprob < l.Logprob && l.Top[0].Logprob < l.Top[1].Logprob {
			t.Errorf("token %d: got %+v, want a log-probability and two alternatives", i, l)
		}
	}
	r := a.Result()
	if r.Answer.Content != plain.Answer.Content || r.Answer.Reasoning != plain.Answer.Reasoning {
		t.Errorf("with logprobs: got %q, want %q", r.Answer, plain.Answer)
	}
	if n := r.Usage.CompletionTokens; len(all) != n && len(all) != n-1 { // the end token has none
		t.Errorf("got %d logprobs for %d tokens", len(all), n)
	}
	if !strings.Contains(string(text), closingSentence+closingTag) {
		t.Errorf("got tokens %q, want the closing sequence among them", text)
	}
}

// "Answer now": at any moment, also before the request is begun.
func TestStopThinking(t *testing.T) {
	e := openTiny(t, Options{})
	for _, early := range []bool{true, false} {
		e.Pause()
		a, err := e.Chat(context.Background(), ChatRequest{Conversation: user("think"), Generation: budgeted(7, 0, 500)})
		if err != nil {
			t.Fatal(err)
		}
		if s := e.Stats(); s.Queued != 1 || s.Active != 0 || !s.Paused {
			t.Errorf("paused: got %+v, want one request waiting", s)
		}
		if early {
			a.StopThinking()
		}
		e.Resume()
		a.Next()
		a.StopThinking()
		r, err := a.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if early != (r.Answer.Reasoning == "") || r.Answer.Content == "" {
			t.Errorf("stopped early %v: got thinking %q, content %q", early, r.Answer.Reasoning, r.Answer.Content)
		}
	}
	off := false
	c := user("do not think")
	c.Thinking = &off
	want := ask(t, e, c, budgeted(3, 0, 30))
	a, err := e.Chat(context.Background(), ChatRequest{Conversation: c, Generation: budgeted(3, 0, 30)})
	if err != nil {
		t.Fatal(err)
	}
	a.StopThinking()
	if r, err := a.Wait(); err != nil || r.Answer.Content != want.Answer.Content {
		t.Errorf("outside of the thinking: got %q, %v, want %q", r.Answer.Content, err, want.Answer.Content)
	}
}

// What was given is in the state as if it had been a prompt: the next turn goes on from it and equals a cold run.
func TestNextTurnAfterClosedThinking(t *testing.T) {
	warm, cold := openTiny(t, Options{ChunkTokens: 16}), openTiny(t, Options{ChunkTokens: 16})
	c := user("think")
	c.PreserveThinking = true
	first := ask(t, warm, c, budgeted(7, 10, 300))
	c.Messages = append(c.Messages, first.Answer.Message())
	c.Messages = append(c.Messages, user("and again").Messages...)
	g := Generation{MaxTokens: 20, Sampling: &sample.Params{}}
	got, want := ask(t, warm, c, g), ask(t, cold, c, g)
	if got.Answer.Reasoning != want.Answer.Reasoning {
		t.Errorf("got %q, want %q as from a cold start", got.Answer.Reasoning, want.Answer.Reasoning)
	}
}

// Case 32: a loop is noticed, and nothing but noticed.
func TestRepeatingIsOfferedNotEdited(t *testing.T) {
	e := openTiny(t, Options{})
	p := &sample.Params{Bias: map[int32]float64{'a': 100}}
	a, err := e.Chat(context.Background(), ChatRequest{Conversation: user("say a"), Generation: Generation{MaxTokens: 200, Sampling: p}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Wait()
	if err != nil || !a.Repeating() || r.Usage.CompletionTokens != 200 || strings.Count(r.Answer.Reasoning, "a") != 200 {
		t.Errorf("got repeating %v, %d tokens, %q, %v; want 200 of a, told of", a.Repeating(), r.Usage.CompletionTokens, r.Answer.Reasoning, err)
	}
	if p.Bias = nil; ask(t, e, user("say more"), Generation{MaxTokens: 5, Sampling: seeded(1)}).Answer.Reasoning == "" {
		t.Error("got nothing from another answer")
	}
}

func TestDropSnapshots(t *testing.T) {
	e := openTiny(t, Options{})
	c := user("a question about ponds")
	ask(t, e, c, budgeted(1, 0, 5))
	held := e.Stats().SnapshotBytes + e.Stats().ContextBytes
	if held == 0 {
		t.Fatal("got no snapshots after a request, want some")
	}
	if freed := e.DropSnapshots(); freed != held || e.Stats().SnapshotBytes != 0 {
		t.Errorf("got %d bytes freed and %d left, want %d and none", freed, e.Stats().SnapshotBytes, held)
	}
	want := ask(t, openTiny(t, Options{}), c, budgeted(2, 0, 5))
	if got := ask(t, e, c, budgeted(2, 0, 5)); got.Answer.Reasoning != want.Answer.Reasoning {
		t.Errorf("after that: got %q, want %q", got.Answer.Reasoning, want.Answer.Reasoning)
	}
}

func TestStatsTellTheRate(t *testing.T) {
	q := newQueue(1)
	if r := q.stats().TokensPerSecond; r != 0 {
		t.Errorf("idle: got %v tokens a second, want 0", r)
	}
	for range 3 {
		q.decoded(10)
	}
	if r := q.stats().TokensPerSecond; r <= 0 {
		t.Errorf("after 30 tokens: got %v tokens a second, want more than 0", r)
	}
	for i := range q.recent {
		q.recent[i].at = q.recent[i].at.Add(-2 * rateWindow)
	}
	if r := q.stats().TokensPerSecond; r != 0 {
		t.Errorf("two windows later: got %v tokens a second, want 0", r)
	}
}
