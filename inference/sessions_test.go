package inference

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pond/inference/chat"
	"pond/inference/qwen36"
	"pond/inference/sample"
)

// Case 27: 60 prompts that have nothing in common. What is kept never grows past the ceiling, and all of it can be had back.
func TestSixtyPromptsKeepToTheCeiling(t *testing.T) {
	e := openTiny(t, Options{ContextTokens: 600})
	e.kept.do(func() { e.kept.ceiling = conversationBytes(qwen36.Options{}, e.model.Shape, 600) / 2 })
	var after []int64
	for i := range 60 {
		ask(t, e, user(fmt.Sprintf("%d%s", i, strings.Repeat(fmt.Sprint(" ", i), 20))), Generation{MaxTokens: 2, Sampling: seeded(1)})
		e.kept.do(func() {
			if n := e.kept.held + e.kept.store.LenBytes(); n > e.kept.ceiling {
				t.Fatalf("prompt %d: got %d bytes of conversations, want at most %d", i, n, e.kept.ceiling)
			}
		})
		if i%20 == 19 {
			after = append(after, e.Stats().SnapshotBytes+e.Stats().ContextBytes)
		}
	}
	if after[2] > after[1]+after[1]/4 {
		t.Errorf("got %v bytes after 20, 40 and 60 prompts, want no growth at the end", after)
	}
	if freed := e.DropSnapshots(); freed != after[2] || e.kept.held != 0 || e.Stats().SnapshotBytes != 0 {
		t.Errorf("got %d of %d bytes freed, %d held", freed, after[2], e.kept.held)
	}
}

// A prompt of many chunks stops nobody: each of its chunks is followed by a token of the other answer, whatever the chunks take.
func TestALongPromptStopsNoStream(t *testing.T) {
	e := openTiny(t, Options{ContextTokens: 8192, ChunkTokens: 32})
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	a, err := e.Complete(ctx, CompletionRequest{Prompt: "once", Generation: Generation{Sampling: endless(e, 2)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := a.Next(); !ok {
		t.Fatal(a.Err())
	}
	var mu sync.Mutex
	chunks, most := 0, 0
	e.watchTurns(func(k kind) { // of the worker: in the order of the device
		mu.Lock()
		defer mu.Unlock()
		if k == step {
			chunks = 0
		} else {
			chunks++
			most = max(most, chunks)
		}
	})
	b, err := e.Complete(context.Background(), CompletionRequest{Prompt: strings.Repeat("a long prompt ", 200), Generation: Generation{MaxTokens: 1, Sampling: seeded(1)}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Wait()
	mu.Lock()
	defer mu.Unlock()
	if err != nil || r.Usage.PromptTokens < 2000 || most != 1 {
		t.Errorf("got %d chunks in a row beside an answer, over a prompt of %d tokens, %v; want one", most, r.Usage.PromptTokens, err)
	}
}

// Two prompts that begin alike and come together: the second waits for what the first computes.
func TestPromptsThatBeginAlikeAreComputedOnce(t *testing.T) {
	e := openTiny(t, Options{ChunkTokens: 32})
	c := func(q string) chat.Conversation {
		c := user(q)
		c.Messages = append([]chat.Message{{Role: "system", Content: chat.TextContent(strings.Repeat("All about ponds. ", 40))}}, c.Messages...)
		return c
	}
	e.Pause()
	var answers []*Answer
	for i := range 4 {
		a, err := e.Chat(context.Background(), ChatRequest{Conversation: c(fmt.Sprint("question ", i)), Generation: Generation{MaxTokens: 2, Sampling: seeded(1)}})
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	e.Resume()
	cold := 0
	for _, a := range answers {
		r, err := a.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if r.Usage.CachedTokens < 640 {
			cold++
		}
	}
	if cold != 1 {
		t.Errorf("got %d of 4 prompts computed from the start, want 1", cold)
	}
}

// endless is sampling by which no answer ends by itself.
func endless(e *Engine, seed uint64) *sample.Params {
	p := seeded(seed)
	p.Bias = map[int32]float64{}
	for id := range e.stop {
		p.Bias[id] = -100
	}
	return p
}

// A GPU's keys and values take half: the ceiling of conversations is what the memory gate counts on each executor.
func TestTheCeilingIsWhatTheGateCounts(t *testing.T) {
	m := openTiny(t, Options{}).model
	for _, x := range []Executor{Host, Standin} {
		n, err := shapeNeed(m.Shape, placementOf(x), Options{Executor: x, ContextTokens: 600})
		if err != nil {
			t.Fatal(err)
		}
		want := int64(n.SequenceState)*int64(n.Sequences*(1+n.Snapshots)) + int64(n.SequenceAhead)*int64(n.Sequences) + int64(n.KVBytesPerToken)*int64(n.Sequences)*600
		if got := conversationBytes(PlanOptions(x, nil), m.Shape, 600); got != want {
			t.Errorf("%s: got %d bytes, want %d", x, got, want)
		}
	}
}

// When memory runs out the younger answer gives up its own and goes on later; both say what they would have said alone.
func TestMemoryGoesToTheOldest(t *testing.T) {
	o := Options{Executor: HostExact, ContextTokens: 3000, ChunkTokens: 128}
	e, alone := openTiny(t, o), openTiny(t, o)
	e.kept.do(func() { e.kept.ceiling = conversationBytes(qwen36.Options{}, e.model.Shape, 60) })
	gave := 0
	e.watchTurns(func(k kind) {
		if k == again {
			gave++
		}
	})
	ask1 := func(e *Engine, i int) *Answer {
		a, err := e.Complete(context.Background(), CompletionRequest{Prompt: strings.Repeat(fmt.Sprint("prompt ", i), 30), Generation: Generation{MaxTokens: 70, Sampling: endless(e, uint64(i))}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	var got, want []string
	together := []*Answer{ask1(e, 0), ask1(e, 1), ask1(e, 2)}
	for i, a := range together {
		r, err := a.Wait()
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		got = append(got, text(r))
		r, err = ask1(alone, i).Wait()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, text(r))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("answer %d: got %s, want %s", i, got[i], want[i])
		}
	}
	if gave == 0 {
		t.Error("no answer gave up its memory, want one at least")
	}
}

// The chat window does not wait behind clients of the endpoint.
func TestTheChatWindowComesFirst(t *testing.T) {
	e := openTiny(t, Options{Parallel: 1})
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	for range 3 {
		if _, err := e.Chat(ctx, ChatRequest{Conversation: user("go on"), Generation: Generation{Sampling: seeded(5)}}); err != nil {
			t.Fatal(err)
		}
	}
	if r := ask(t, e, user("hello"), Generation{MaxTokens: 3, Sampling: seeded(1), Priority: Interactive}); r.Usage.CompletionTokens != 3 {
		t.Errorf("got %d tokens", r.Usage.CompletionTokens)
	}
	if st := e.Stats(); st.Queued != 2 || st.Active != 1 {
		t.Errorf("got %d waiting and %d at work, want 2 and 1 still", st.Queued, st.Active)
	}
}

// The receipt says what was reused, and where a prompt went another way.
func TestReceipt(t *testing.T) {
	e := openTiny(t, Options{})
	g := Generation{MaxTokens: 2, Sampling: seeded(1)}
	c := user("What is a pond?")
	c.Messages = append([]chat.Message{{Role: "system", Content: chat.TextContent("It is 12:01 now. " + strings.Repeat("Be brief. ", 30))}}, c.Messages...)
	ask(t, e, c, g)
	if r := e.Stats().Reuse; r.ReusedTokens != 0 || r.ComputedTokens == 0 || r.StoredTokens == 0 || r.Miss != nil {
		t.Errorf("a first prompt: got %+v", r)
	}
	ask(t, e, c, g)
	if r := e.Stats().Reuse; r.ReusedTokens == 0 || r.SavedToday <= 0 {
		t.Errorf("the same again: got %+v, want tokens and time saved", r)
	}
	c.Messages = append([]chat.Message{{Role: "system", Content: chat.TextContent("It is 12:02 now. " + strings.Repeat("Be brief. ", 30))}}, c.Messages[1:]...)
	ask(t, e, c, g)
	m := e.Stats().Reuse.Miss
	if m == nil || !strings.HasPrefix(m.Text, "2 now.") || !strings.HasPrefix(m.WasBefore, "1 now.") || m.ReusedTokens >= m.CommonTokens {
		t.Errorf("another time of day: got %+v, want the place where the prompts part", m)
	}
}

// In quiet mode a turn is followed by a rest of its own length, half a second at most.
func TestQuietRestsAfterEachTurn(t *testing.T) {
	e := openTiny(t, Options{})
	e.Quiet(true)
	if !e.Stats().Quiet {
		t.Error("the status does not say so")
	}
	w := &worker{e: e}
	for _, took := range []time.Duration{30 * time.Millisecond, time.Hour} {
		began := time.Now()
		w.spend(step, began.Add(-took))
		if rest := time.Since(began); rest < min(took, longestQuiet) || rest > time.Minute {
			t.Errorf("a turn of %v: rested for %v", took, rest)
		}
	}
	if r := ask(t, e, user("hello"), Generation{MaxTokens: 3, Sampling: endless(e, 1)}); r.Usage.CompletionTokens != 3 {
		t.Errorf("got %+v", r.Usage)
	}
}

// Short memory takes snapshots first, and what conversations that rest hold after them; an answer that runs keeps its own.
func TestGiveBackInOrder(t *testing.T) {
	e := openTiny(t, Options{})
	ask(t, e, user(strings.Repeat("hello ", 20)), Generation{MaxTokens: 2, Sampling: seeded(1)})
	before := e.Stats()
	if before.SnapshotBytes == 0 || before.ContextBytes == 0 {
		t.Fatalf("got %+v, want something of both", before)
	}
	if freed, s := e.GiveBack(Snapshots), e.Stats(); freed != before.SnapshotBytes || s.SnapshotBytes != 0 || s.ContextBytes != before.ContextBytes {
		t.Errorf("snapshots: got %d bytes freed, %+v", freed, s)
	}
	if freed, s := e.GiveBack(Contexts), e.Stats(); freed != before.ContextBytes || s.ContextBytes != 0 || e.kept.held != 0 {
		t.Errorf("contexts: got %d bytes freed, %+v", freed, s)
	}
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	a, err := e.Complete(ctx, CompletionRequest{Prompt: "once", Generation: Generation{MaxTokens: 200, Sampling: endless(e, 2)}})
	if err != nil {
		t.Fatal(err)
	}
	a.Next()
	e.GiveBack(Snapshots)
	e.GiveBack(Contexts)
	if r, err := a.Wait(); err != nil || r.Usage.CompletionTokens != 200 {
		t.Errorf("an answer that runs: got %+v, %v", r.Usage, err)
	}
}

// A short question takes a block of keys and values, not the whole context.
func TestRowsGrowWithTheConversation(t *testing.T) {
	e := openTiny(t, Options{ContextTokens: 8192})
	ask(t, e, user("hello"), Generation{MaxTokens: 2, Sampling: seeded(1)})
	rows := func() (n int) {
		e.kept.do(func() { n = e.kept.idle[0].Rows() })
		return n
	}
	if n := rows(); n != 256 {
		t.Errorf("a short question: got %d rows, want 256", n)
	}
	ask(t, e, user(strings.Repeat("hello ", 100)), Generation{MaxTokens: 2, Sampling: seeded(1)})
	if n := rows(); n < 600 || n > 1024 {
		t.Errorf("a longer one: got %d rows, want what it needs", n)
	}
}
