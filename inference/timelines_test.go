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

	"pond/inference/chat"
	"pond/inference/qwen36"
)

// timelines plays conversations that go on, are answered anew, edited, branched, interleaved and broken off, while memory comes and goes, and
// compares every answer with one that was computed from nothing.
type timelines struct {
	*testing.T
	rnd   *rand.Rand
	open  func() *Engine
	warm  *Engine
	cold  *Engine
	talks []chat.Conversation
	steps int
	words func(n int) string

	reused, prompts int
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
	switch l.rnd.IntN(40) {
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
		l.warm = l.open()
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
		l.cold.DropSnapshots()
		want := ask(l.T, l.cold, p.sent, p.g)
		if want.Usage.CachedTokens != 0 {
			l.Fatalf("step %d: the cold run reused %d tokens", l.steps, want.Usage.CachedTokens)
		}
		if text(p.got) != text(want) {
			l.Fatalf("step %d: got %s with %d of %d tokens reused, want %s", l.steps, text(p.got), p.got.Usage.CachedTokens, p.got.Usage.PromptTokens, text(want))
		}
		told := text(p.got)
		for _, m := range p.sent.Messages {
			told += m.Content.String()
		}
		if strings.Contains(text(p.got), secret) && strings.Count(told, secret) == strings.Count(text(p.got), secret) {
			l.Fatalf("step %d: an answer tells a secret that it was not told: %s", l.steps, text(p.got))
		}
		l.reused, l.prompts = l.reused+p.got.Usage.CachedTokens, l.prompts+p.got.Usage.PromptTokens
		p.c.Messages = append(slices.Clone(p.sent.Messages), p.got.Answer.Message())
	}
}

func (l *timelines) play(steps int) {
	l.warm, l.cold = l.open(), l.open()
	for range 6 {
		l.talks = append(l.talks, l.begin())
	}
	l.talks[0].Messages = append(l.talks[0].Messages, l.say("assistant", "Tell me."), l.say("user", "The secret word is "+secret+". What is it?"))
	for l.steps < steps {
		l.step()
	}
	if l.reused == 0 {
		l.Error("nothing was reused")
	}
	l.Logf("%d answers; %d of %d prompt tokens reused", l.steps, l.reused, l.prompts)
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
	l := &timelines{T: t, rnd: rand.New(rand.NewPCG(9, 1))}
	l.open = func() *Engine {
		return openTiny(t, Options{Executor: HostExact, ChunkTokens: 32, ContextTokens: 1500, Parallel: 2})
	}
	l.words = func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(byte('a' + l.rnd.IntN(3)))
		}
		return b.String()
	}
	l.play(steps(t, 80))
}
