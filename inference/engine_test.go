package inference

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pond/inference/chat"
	"pond/inference/sample"
	"pond/inference/tinymodel"
)

// openTiny opens the golden tiny model: a byte tokenizer and nonsense for text, everything else real.
func openTiny(t testing.TB, o Options) *Engine {
	t.Helper()
	gen, err := tinymodel.Generate(tinymodel.Tiny)
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := gen.FS()
	if err != nil {
		t.Fatal(err)
	}
	o.Model, o.ID = FromFS(fsys), "tiny"
	if o.ContextTokens == 0 {
		o.ContextTokens = 2048
	}
	e, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func user(texts ...string) chat.Conversation {
	var c chat.Conversation
	for i, s := range texts {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		c.Messages = append(c.Messages, chat.Message{Role: role, Content: chat.TextContent(s)})
	}
	return c
}

func seeded(seed uint64) *sample.Params {
	return &sample.Params{Temperature: 1, TopP: 0.95, TopK: 20, Seed: seed}
}

func ask(t testing.TB, e *Engine, c chat.Conversation, g Generation) Result {
	t.Helper()
	a, err := e.Chat(context.Background(), ChatRequest{Conversation: c, Generation: g})
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// waitFor fails when something does not happen within a second.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a second for %s", what)
		}
	}
}

func TestSameSeedSameText(t *testing.T) {
	e := openTiny(t, Options{})
	g := Generation{MaxTokens: 40, Sampling: seeded(7)}
	first := ask(t, e, user("hello"), g)
	if again := ask(t, e, user("hello"), g); again.Answer.Content+again.Answer.Reasoning != first.Answer.Content+first.Answer.Reasoning {
		t.Errorf("same seed: got %q, want %q", again.Answer, first.Answer)
	}
	g.Sampling = seeded(8)
	if other := ask(t, e, user("hello"), g); other.Answer.Reasoning == first.Answer.Reasoning {
		t.Errorf("seeds 7 and 8 gave the same 40 tokens: %q", first.Answer.Reasoning)
	}
	if first.Finish != FinishLength || first.Usage.CompletionTokens != 40 {
		t.Errorf("got finish %s after %d tokens, want length after 40", first.Finish, first.Usage.CompletionTokens)
	}
}

func TestWarmAnswerEqualsCold(t *testing.T) {
	turns := []string{"What is a pond?", "Water.", "And a lake? Tell me more about it, please.", "More water.", "Thanks."}
	g := Generation{MaxTokens: 24, Sampling: seeded(3)}
	off := false
	warm := openTiny(t, Options{ChunkTokens: 16, Executor: HostExact})
	for n := 1; n <= len(turns); n += 2 {
		c := user(turns[:n]...)
		c.Thinking = &off
		got := ask(t, warm, c, g)
		cold := openTiny(t, Options{ChunkTokens: 64, Executor: HostExact})
		want := ask(t, cold, c, g)
		if got.Answer.Content != want.Answer.Content {
			t.Errorf("turn %d: warm answer %q, cold %q", n, got.Answer.Content, want.Answer.Content)
		}
		if n > 1 && got.Usage.CachedTokens == 0 {
			t.Errorf("turn %d: nothing of the prompt was reused", n)
		}
		if want.Usage.CachedTokens != 0 {
			t.Errorf("a fresh engine reports %d cached tokens", want.Usage.CachedTokens)
		}
	}
}

// With thinking off the generation prompt holds an empty think block that history does not: turn N+1 departs from turn N inside it.
func TestThinkingOffReusesThePreviousTurn(t *testing.T) {
	e := openTiny(t, Options{})
	off := false
	c := user("hi")
	c.Messages = append([]chat.Message{{Role: "system", Content: chat.TextContent("Be brief and kind to everyone who asks.")}}, c.Messages...)
	c.Thinking = &off
	first := ask(t, e, c, Generation{MaxTokens: 5, Sampling: seeded(1)})
	c.Messages = append(c.Messages, chat.Message{Role: "assistant", Content: chat.TextContent("Hello!")}, chat.Message{Role: "user", Content: chat.TextContent("again")})
	second := ask(t, e, c, Generation{MaxTokens: 5, Sampling: seeded(1)})
	if want := first.Usage.PromptTokens - 60; second.Usage.CachedTokens < want { // byte tokens: the generation prompt alone is some 20
		t.Errorf("got %d cached tokens of a first prompt of %d, want at least %d", second.Usage.CachedTokens, first.Usage.PromptTokens, want)
	}
}

func TestCancelStopsWithinAToken(t *testing.T) {
	e := openTiny(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	a, err := e.Chat(ctx, ChatRequest{Conversation: user("go on for ever"), Generation: Generation{Sampling: seeded(5)}})
	if err != nil {
		t.Fatal(err)
	}
	a.Next()
	cancel()
	if _, err := a.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	waitFor(t, "an idle worker", func() bool { return e.Stats().Active == 0 })
	want := ask(t, openTiny(t, Options{}), user("go on for ever"), Generation{MaxTokens: 10, Sampling: seeded(5)})
	if got := ask(t, e, user("go on for ever"), Generation{MaxTokens: 10, Sampling: seeded(5)}); got.Answer.Reasoning != want.Answer.Reasoning {
		t.Errorf("after a cancellation: got %q, want %q", got.Answer.Reasoning, want.Answer.Reasoning)
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	e := openTiny(t, Options{})
	hold, release := context.WithCancel(context.Background())
	defer release()
	if _, err := e.Chat(hold, ChatRequest{Conversation: user("hold the device"), Generation: Generation{Sampling: seeded(5)}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a, err := e.Chat(ctx, ChatRequest{Conversation: user("wait"), Generation: Generation{Sampling: seeded(5)}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := a.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	waitFor(t, "an empty queue", func() bool { return e.Stats().Queued == 0 })
}

func TestCloseEndsARunningAnswer(t *testing.T) {
	e := openTiny(t, Options{})
	a, err := e.Chat(context.Background(), ChatRequest{Conversation: user("go on"), Generation: Generation{Sampling: seeded(5)}})
	if err != nil {
		t.Fatal(err)
	}
	a.Next()
	e.Close()
	if _, err := a.Wait(); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want %v", err, ErrClosed)
	}
	if _, err := e.Chat(context.Background(), ChatRequest{Conversation: user("again")}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: got %v, want %v", err, ErrClosed)
	}
}

func TestPromptBeyondTheContext(t *testing.T) {
	e := openTiny(t, Options{ContextTokens: 64})
	_, err := e.Chat(context.Background(), ChatRequest{Conversation: user(strings.Repeat("x", 100)), Generation: Generation{MaxTokens: 50}})
	var ce *ContextError
	if !errors.As(err, &ce) || ce.LimitTokens != 64 || ce.PromptTokens < 100 || ce.RequestedTokens != 50 {
		t.Fatalf("got %v, want a ContextError with the numbers", err)
	}
	for _, n := range []int{62, 63} { // one and no token short of the limit
		a, err := e.Complete(context.Background(), CompletionRequest{Prompt: strings.Repeat("x", n), Generation: Generation{MaxTokens: 50}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.Wait()
		if err != nil || r.Usage.CompletionTokens > 64-n {
			t.Errorf("prompt of %d: got %d tokens, %v, want at most %d", n, r.Usage.CompletionTokens, err, 64-n)
		}
	}
	if _, err := e.Complete(context.Background(), CompletionRequest{Prompt: strings.Repeat("x", 64)}); !errors.As(err, &ce) {
		t.Errorf("a prompt that fills the context: got %v, want a ContextError", err)
	}
}

func TestLogitsDoNotDependOnTheSplit(t *testing.T) {
	e := openTiny(t, Options{})
	ids := make([]int32, 150)
	for i := range ids {
		ids[i] = int32(i * 37 % 289)
	}
	var sum float64
	n := 0
	if err := e.Logits(context.Background(), ids, func(pos int, logits []float32) error {
		if pos != n || len(logits) != 320 {
			t.Errorf("got position %d with %d logits, want %d with 320", pos, len(logits), n)
		}
		n++
		sum += float64(logits[0])
		return nil
	}); err != nil || n != len(ids) {
		t.Fatalf("got %d positions, %v, want %d", n, err, len(ids))
	}
}

// A stop of a line end once cut the thinking at its first line and left no answer. Only content is searched.
func TestStopTextsDoNotCutTheThinking(t *testing.T) {
	w := &writer{job: &job{answer: newAnswer(context.Background()), parser: chat.NewParser(chat.ParserOptions{Thinking: true})}, stopper: sample.NewStopper([]string{"\n", "END"})}
	var events []chat.Event
	for _, text := range []string{"two\nlines E", "ND", "</think>", "\n\n", "an E", "N", "D of it\nmore"} {
		events = append(events, w.until(w.parse(text))...)
	}
	var a chat.Answer
	a.Apply(events)
	if a.Reasoning != "two\nlines END" || a.Content != "an " || !w.stopped {
		t.Errorf("got thinking %q, content %q, stopped %v; want all of the thinking and the content up to the stop", a.Reasoning, a.Content, w.stopped)
	}
}

// What was held back as the start of a stop text is not lost when a call or the end follows.
func TestHeldContentIsNotLost(t *testing.T) {
	for _, tail := range []string{"", "<tool_call>\n<function=f>\n</function>\n</tool_call>"} {
		a := newAnswer(context.Background())
		w := &writer{job: &job{answer: a, parser: chat.NewParser(chat.ParserOptions{})}, stopper: sample.NewStopper([]string{"ENDING"}), decoder: openTiny(t, Options{}).Tokenizer().NewDecoder()}
		a.add(Update{Events: w.until(w.parse("the END" + tail))})
		w.close(chat.EndStop)
		if got := a.Result().Answer; got.Content != "the END" || (len(got.Calls) > 0) != (tail != "") {
			t.Errorf("tail %q: got %+v, want the content whole", tail, got)
		}
	}
}

func TestPrefillIsReportedFromItsStart(t *testing.T) {
	e := openTiny(t, Options{ChunkTokens: 8})
	var seen []int
	ask(t, e, user("a prompt of some tokens"), Generation{MaxTokens: 1, Sampling: seeded(1), OnPrefill: func(done, total int) { seen = append(seen, done) }})
	if len(seen) < 3 || seen[0] != 0 {
		t.Errorf("got reports %v, want the first at 0", seen)
	}
}
