package inference

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pond/assets"
	"pond/inference/chat"
)

// What sessions are for, in figures, and what they must not do in half an hour. Run by make bench-sessions and make soak: a figure says
// nothing without a quiet machine.

// benchPrompt is a prompt of about n tokens of the demo model: nothing that it has seen, since only the time matters.
func benchPrompt(rnd *rand.Rand, e *Engine, n int) string {
	var b strings.Builder
	for i := 0; len(e.Tokenizer().Encode(b.String())) < n; {
		for range max(16, n/64) {
			fmt.Fprintf(&b, "word%d ", rnd.IntN(1000))
			i++
		}
	}
	return b.String()
}

func TestBenchSessions(t *testing.T) {
	if os.Getenv("POND_BENCH_SESSIONS") == "" {
		t.Skip("make bench-sessions measures; it takes a minute and a quiet machine")
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	var e *Engine
	at := Disk{Dir: t.TempDir(), LimitBytes: 8e9, Build: "bench"}
	open := func() {
		var err error
		if e, err = Open(context.Background(), Options{Model: FromFS(assets.Demo()), ID: "pond-demo", ContextTokens: 40_000, Disk: at}); err != nil {
			t.Fatal(err)
		}
	}
	open()
	t.Cleanup(func() { e.Close() })
	// wanted is the most that the time to the first token may be, in per cent of cold, and the least that is to be reused.
	first := func(what string, cold time.Duration, mostTime, leastReused float64, system, question string) time.Duration {
		c := user(question)
		c.Messages = append([]chat.Message{{Role: "system", Content: chat.TextContent(system)}}, c.Messages...)
		start := time.Now()
		r := ask(t, e, c, Generation{MaxTokens: 1, Sampling: seeded(1)})
		took := time.Since(start)
		reused := 100 * float64(r.Usage.CachedTokens) / float64(r.Usage.PromptTokens)
		line := fmt.Sprintf("%-42s %6d tokens, %5.1f %% reused (%d from the disk), first token after %7.1f ms", what, r.Usage.PromptTokens, reused, r.Usage.DiskTokens, 1000*took.Seconds())
		if cold > 0 {
			ratio := 100 * took.Seconds() / cold.Seconds()
			line += fmt.Sprintf(", %.1f %% of cold", ratio)
			if ratio > mostTime || reused < leastReused {
				line += fmt.Sprintf(": MISSED, want at most %.0f %% of the time and at least %.0f %% reused", mostTime, leastReused)
			}
		}
		t.Log(line)
		return took
	}
	system, question := benchPrompt(rnd, e, 6000), benchPrompt(rnd, e, 6000)
	first("warming up", 0, 0, 0, benchPrompt(rnd, e, 500), "hello")
	cold := first("cold", 0, 0, 0, system, question)
	first("the same again", cold, 5, 99, system, question)
	first("a sibling: system text in common", cold, 15, 95, system, benchPrompt(rnd, e, 100))
	start := time.Now()
	e.Save(context.Background())
	s := e.Stats()
	t.Logf("kept: %.1f MB in memory, %.1f MB on the disk, written in %.2f s", float64(s.SnapshotBytes+s.ContextBytes)/1e6, float64(s.Disk.LenBytes)/1e6, time.Since(start).Seconds())
	start = time.Now()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	closed := time.Since(start)
	open()
	t.Logf("closed after %.2f s", closed.Seconds())
	first("warming up after a restart", 0, 0, 0, benchPrompt(rnd, e, 500), "hello")
	first("the same after a restart", cold, 15, 99, system, question)
	first("a sibling after a restart", cold, 15, 95, system, benchPrompt(rnd, e, 100))
	e.DropSnapshots()

	// Two clients, one with a long prompt.
	gaps := func(beside string) {
		ctx, leave := context.WithCancel(context.Background())
		defer leave()
		a, err := e.Complete(ctx, CompletionRequest{Prompt: "Once", Generation: Generation{Sampling: endless(e, 1)}})
		if err != nil {
			t.Fatal(err)
		}
		a.Next()
		var mu sync.Mutex
		var chunks []time.Duration
		at := time.Now()
		e.watchTurns(func(k kind) {
			mu.Lock()
			defer mu.Unlock()
			if now := time.Now(); k == chunk {
				chunks = append(chunks, now.Sub(at))
				at = now
			} else {
				at = now
			}
		})
		defer e.turn.Store(nil)
		done := make(chan error, 1)
		b, err := e.Complete(ctx, CompletionRequest{Prompt: beside, Generation: Generation{MaxTokens: 1, Sampling: seeded(1)}})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, err := b.Wait(); done <- err }()
		var most time.Duration
		tokens, last := 0, time.Now()
		for running := true; running; {
			if _, ok := a.Next(); !ok {
				t.Fatal(a.Err())
			}
			now := time.Now()
			most, last = max(most, now.Sub(last)), now
			tokens++
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
			}
		}
		mu.Lock()
		defer mu.Unlock()
		var longest time.Duration
		for _, c := range chunks {
			longest = max(longest, c)
		}
		t.Logf("a stream beside a prompt of %d tokens: longest gap %.0f ms, longest chunk %.0f ms, ratio %.2f (at most 1.2); %d tokens of the stream meanwhile", len(e.Tokenizer().Encode(beside)), 1000*most.Seconds(), 1000*longest.Seconds(), most.Seconds()/longest.Seconds(), tokens)
	}
	gaps(benchPrompt(rnd, e, 32000))

	// Clients that are all answered.
	const rateTokens = 300
	rate := func(n int) float64 {
		var wait sync.WaitGroup
		start := time.Now()
		for i := range n {
			wait.Go(func() {
				a, err := e.Complete(context.Background(), CompletionRequest{Prompt: fmt.Sprint("Once ", i), Generation: Generation{MaxTokens: rateTokens, Sampling: endless(e, uint64(i))}})
				if err == nil {
					_, err = a.Wait()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		return float64(rateTokens*n) / time.Since(start).Seconds()
	}
	rate(1)
	const rounds = 9
	var one, four, ratio []float64
	for range rounds { // in turns: the machine's pace moves by a quarter from one second to the next
		a, b := rate(1), rate(4)
		one, four, ratio = append(one, a), append(four, b), append(ratio, b/a)
	}
	for _, v := range [][]float64{one, four, ratio} {
		slices.Sort(v)
	}
	t.Logf("decode, medians of %d: %.1f tokens/s for one client, %.1f for four together, ratio %.2f (%.2f to %.2f)", rounds, one[rounds/2], four[rounds/2], ratio[rounds/2], ratio[0], ratio[rounds-1])
}

// Eight clients at random for as long as POND_SOAK says: every request ends as it should, and memory at the end is what it was after the
// first third.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("POND_SOAK"))
	if err != nil {
		t.Skip("make soak runs for half an hour")
	}
	e, err := Open(context.Background(), Options{Model: FromFS(assets.Demo()), ID: "pond-demo", ContextTokens: 2048, Disk: Disk{Dir: t.TempDir(), LimitBytes: 256 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	end := time.Now().Add(length)
	var mu sync.Mutex
	answered, left := 0, 0
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			l := &timelines{T: t, rnd: rand.New(rand.NewPCG(uint64(i), 2))}
			l.words = func(n int) string { return strings.Repeat("pond water ", n) }
			l.talks = append(l.talks, l.begin(), l.begin())
			for time.Now().Before(end) {
				c := l.talk()
				l.change(c)
				ctx, leave := context.WithCancel(context.Background())
				if l.rnd.IntN(5) == 0 {
					time.AfterFunc(time.Duration(l.rnd.IntN(1000))*time.Millisecond, leave)
				}
				a, err := e.Chat(ctx, ChatRequest{Conversation: *c, Generation: Generation{MaxTokens: 1 + l.rnd.IntN(40), Sampling: seeded(l.rnd.Uint64())}})
				var r Result
				if err == nil {
					r, err = a.Wait()
				}
				leave()
				var full *ContextError
				mu.Lock()
				switch {
				case err == nil:
					answered++
					c.Messages = append(c.Messages[:len(c.Messages):len(c.Messages)], r.Answer.Message())
				case errors.Is(err, context.Canceled):
					left++
				case errors.As(err, &full):
					*c = l.begin()
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	resident := func() float64 {
		debug.FreeOSMemory()
		s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(s)
		return float64(s[0].Value.Uint64()-s[1].Value.Uint64()) / 1e6
	}
	time.Sleep(length / 3)
	third := resident()
	time.Sleep(length / 3)
	second := resident()
	clients.Wait()
	last := resident()
	e.DropSnapshots()
	st := e.Stats()
	t.Logf("%d answered, %d left; %.0f MB after a third, %.0f after two, %.0f at the end, %.0f when all was dropped; disk %+v; reuse %+v", answered, left, third, second, last, resident(), st.Disk, st.Reuse)
	if last > 1.25*third {
		t.Errorf("memory grew from %.0f to %.0f MB", third, last)
	}
	if st.Active+st.Queued != 0 || st.SnapshotBytes != 0 {
		t.Errorf("got %d at work, %d waiting and %d bytes kept at the end, want none", st.Active, st.Queued, st.SnapshotBytes)
	}
}
