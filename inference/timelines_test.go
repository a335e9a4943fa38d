package inference

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pond/assets"
	"pond/inference/cache"
	"pond/inference/chat"
	"pond/inference/qwen36"
	"pond/inference/tinymodel"
)

// timelines plays conversations that go on, are answered anew, edited, branched, interleaved and broken off, while memory comes and goes, and
// compares every answer with one that was computed from nothing.
type timelines struct {
	*testing.T
	rnd   *rand.Rand
	open  func(Disk) *Engine
	disk  Disk // where the warm engine keeps conversations, when it does
	exact bool // an answer is compared with a cold one; else every place that can be gone back to with the same runs from nothing
	seen  map[*cache.Snapshot]bool
	warm  *Engine
	cold  *Engine
	talks []chat.Conversation
	steps int
	words func(n int) string

	reused, prompts, fromDisk, restarts, replayed int
}

// secret is said in one conversation and must be told in no other.
const secret = "Xyzzy-7391"

func (l *timelines) talk() *chat.Conversation { return &l.talks[l.rnd.IntN(len(l.talks))] }

func (l *timelines) say(role, text string) chat.Message {
	return chat.Message{Role: role, Content: chat.TextContent(text)}
}

// begin starts a conversation; some share their system text.
func (l *timelines) begin() chat.Conversation {
	var c chat.Conversation
	if l.rnd.IntN(4) > 0 {
		c.Messages = append(c.Messages, l.say("system", "Be brief. "+strings.Repeat("You know all about ponds. ", 1+l.rnd.IntN(3))))
	}
	c.Messages = append(c.Messages, l.say("user", l.words(1+l.rnd.IntN(20))))
	thinking := l.rnd.IntN(2) == 0
	c.Thinking, c.PreserveThinking = &thinking, l.rnd.IntN(2) == 0
	return c
}

// change makes the next request of a conversation.
func (l *timelines) change(c *chat.Conversation) {
	m := slices.Clone(c.Messages)
	switch l.rnd.IntN(9) {
	case 0, 1, 2: // go on
		m = append(m, l.say("user", l.words(1+l.rnd.IntN(12))))
	case 3: // edit in the middle
		i := l.rnd.IntN(len(m))
		m[i] = l.say(m[i].Role, l.words(1+l.rnd.IntN(12)))
	case 4: // go back and branch
		m = append(m[:1+l.rnd.IntN(len(m))], l.say("user", l.words(1+l.rnd.IntN(12))))
	case 5: // somebody else's
		m = slices.Clone(l.talk().Messages)
	case 6:
		*c = l.begin()
		return
	} // else the same again
	c.Messages = m
	if len(m) > 12 || m[len(m)-1].Role == "assistant" {
		*c = l.begin()
	}
}

// watchTurns calls f, on the worker, after each turn.
func (e *Engine) watchTurns(f func(kind)) { e.turn.Store(&f) }

func text(r Result) string {
	return fmt.Sprintf("%q %q %v %s", r.Answer.Reasoning, r.Answer.Content, r.Answer.Calls, r.Finish)
}

// step plays one to three conversations at once.
func (l *timelines) step() {
	switch l.rnd.IntN(20) {
	case 0:
		l.warm.DropSnapshots()
	case 1:
		l.warm.kept.do(func() {
			l.warm.kept.ceiling = conversationBytes(qwen36.Options{}, l.warm.model.Shape, 700+l.rnd.IntN(3000))
		})
	case 2:
		if err := l.warm.Close(); err != nil {
			l.Fatal(err)
		}
		l.restarts++
		if at := l.disk; l.rnd.IntN(4) > 0 {
			l.warm = l.open(at)
		} else {
			l.warm = l.open(Disk{}) // somebody switched it off
		}
	case 3:
		l.warm.Save(context.Background())
	}
	type play struct {
		c     *chat.Conversation
		sent  chat.Conversation
		g     Generation
		leave int // tokens after which the client leaves; 0: it stays
		got   Result
		err   error
	}
	var plays []*play
	for _, i := range l.rnd.Perm(len(l.talks))[:1+l.rnd.IntN(3)] {
		c := &l.talks[i]
		l.change(c)
		p := &play{c: c, sent: *c, g: Generation{MaxTokens: 1 + l.rnd.IntN(24), Sampling: seeded(l.rnd.Uint64()), Priority: Priority(l.rnd.IntN(2))}}
		if l.rnd.IntN(6) == 0 {
			p.leave = 1 + l.rnd.IntN(80)
		}
		plays = append(plays, p)
	}
	var wait sync.WaitGroup
	for _, p := range plays {
		wait.Go(func() {
			ctx, leave := context.WithCancel(context.Background())
			defer leave()
			g := p.g
			if p.leave > 0 {
				g.OnPrefill = func(done, _ int) {
					if done > p.leave {
						leave()
					}
				}
			}
			a, err := l.warm.Chat(ctx, ChatRequest{Conversation: p.sent, Generation: g})
			if err != nil {
				p.err = err
				return
			}
			if p.leave > 0 {
				go func() { a.Next(); leave() }()
			}
			p.got, p.err = a.Wait()
		})
	}
	wait.Wait()
	for _, p := range plays {
		l.steps++
		var full *ContextError
		switch {
		case errors.As(p.err, &full):
			*p.c = l.begin()
			continue
		case p.leave > 0 && errors.Is(p.err, context.Canceled):
			continue
		case p.err != nil:
			l.Fatalf("step %d: %v", l.steps, p.err)
		}
		if l.exact {
			l.compare(p.sent, p.g, p.got)
		}
		told := text(p.got)
		for _, m := range p.sent.Messages {
			told += m.Content.String()
		}
		if strings.Contains(text(p.got), secret) && strings.Count(told, secret) == strings.Count(text(p.got), secret) {
			l.Fatalf("step %d: an answer tells a secret that it was not told: %s", l.steps, text(p.got))
		}
		l.reused, l.prompts = l.reused+p.got.Usage.CachedTokens, l.prompts+p.got.Usage.PromptTokens
		l.fromDisk += p.got.Usage.DiskTokens
		p.c.Messages = append(slices.Clone(p.sent.Messages), p.got.Answer.Message())
	}
	if !l.exact {
		l.replay()
	}
}

// compare holds an answer to one that is computed from nothing.
func (l *timelines) compare(c chat.Conversation, g Generation, got Result) {
	l.cold.kept.do(func() { l.cold.kept.store.Clear() })
	want := ask(l.T, l.cold, c, g)
	if want.Usage.CachedTokens != 0 {
		l.Fatalf("step %d: the cold run reused %d tokens", l.steps, want.Usage.CachedTokens)
	}
	if text(got) != text(want) {
		l.Fatalf("step %d: got %s with %d of %d tokens reused, %d from the disk, want %s", l.steps, text(got), got.Usage.CachedTokens, got.Usage.PromptTokens, got.Usage.DiskTokens, text(want))
	}
}

// replay takes the runs of every new snapshot anew, on another engine's device, and compares the states, bit for bit.
func (l *timelines) replay() {
	type place struct {
		tokens []int32
		at     *cache.Snapshot
	}
	var fresh []place
	seen := map[*cache.Snapshot]bool{}
	l.warm.kept.do(func() {
		l.warm.kept.store.Each(func(tokens []int32, c *cache.Snapshot) bool {
			if seen[c] = true; !l.seen[c] {
				fresh = append(fresh, place{tokens, c})
			}
			return true
		})
	})
	l.seen = seen
	for _, p := range fresh {
		q, err := l.cold.model.NewSequence()
		if err != nil {
			l.Fatal(err)
		}
		for _, n := range p.at.Runs() {
			if n < 0 {
				_, err = q.Token(p.tokens[q.Pos()])
			} else {
				_, err = q.Chunk(p.tokens[q.Pos():q.Pos()+int(n)], qwen36.LastLogits)
			}
			if err != nil {
				l.Fatal(err)
			}
		}
		if d := p.at.Differs(q.State); d != "" {
			l.Fatalf("step %d: a place after %d tokens, runs %v, differs from the same from nothing in %s", l.steps, len(p.tokens), p.at.Runs(), d)
		}
		l.replayed++
	}
}

func (l *timelines) opened(o Options) *Engine {
	e, err := Open(context.Background(), o)
	if err != nil {
		l.Fatal(err)
	}
	return e
}

func (l *timelines) play(steps int) {
	l.disk = Disk{Dir: l.TempDir(), LimitBytes: 64 << 20, Build: "test", lull: 50 * time.Millisecond}
	l.warm, l.cold = l.open(l.disk), l.open(Disk{})
	for range 6 {
		l.talks = append(l.talks, l.begin())
	}
	l.talks[0].Messages = append(l.talks[0].Messages, l.say("assistant", "Tell me."), l.say("user", "The secret word is "+secret+". What is it?"))
	defer func() { // a restarted engine must not be kept by a cleanup of the test
		l.warm.Close()
		l.cold.Close()
	}()
	for told := 0; l.steps < steps; {
		l.step()
		if l.steps >= told+250 {
			told = l.steps
			l.Logf("%d answers so far", told)
		}
	}
	if l.reused == 0 {
		l.Error("nothing was reused")
	}
	if l.restarts > 3 && l.fromDisk == 0 {
		l.Error("nothing was read from the disk")
	}
	l.Logf("%d answers; %d of %d prompt tokens reused, %d from the disk; %d restarts, %d places computed anew", l.steps, l.reused, l.prompts, l.fromDisk, l.restarts, l.replayed)
}

// steps is how many answers the timelines of a test have: POND_TIMELINES, else what an ordinary test run can afford.
func steps(t *testing.T, short int) int {
	if s := os.Getenv("POND_TIMELINES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return short
}

// Cases 24 and 25: whatever was kept, an answer is what it would be without, to the bit. make timelines plays 10,000 steps.
func TestTimelinesOfTiny(t *testing.T) {
	l := &timelines{T: t, rnd: rand.New(rand.NewPCG(9, 1)), exact: true}
	gen, err := tinymodel.Generate(tinymodel.Tiny)
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := gen.FS()
	if err != nil {
		t.Fatal(err)
	}
	l.open = func(at Disk) *Engine {
		return l.opened(Options{Model: FromFS(fsys), ID: "tiny", Executor: HostExact, ChunkTokens: 32, ContextTokens: 1500, Parallel: 2, Disk: at})
	}
	l.words = func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(byte('a' + l.rnd.IntN(3)))
		}
		return b.String()
	}
	l.play(steps(t, 60))
}

// The same with the demo model in 16 bits, where the last bits depend on how a prompt was cut: every place that can be gone back to, in memory or
// from the disk, holds what the same runs give from nothing.
func TestTimelinesOfTheDemo(t *testing.T) {
	l := &timelines{T: t, rnd: rand.New(rand.NewPCG(9, 2))}
	l.open = func(at Disk) *Engine {
		return l.opened(Options{Model: FromFS(assets.Demo()), ID: "pond-demo", Executor: Host, ChunkTokens: 64, ContextTokens: 1500, Parallel: 3, Disk: at})
	}
	words := []string{"pond", "water", "frog", "lily", "the", "a", "and", "clear", "deep", "what is", "tell me of"}
	l.words = func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(words[l.rnd.IntN(len(words))] + " ")
		}
		return b.String()
	}
	l.play(steps(t, 40))
}
