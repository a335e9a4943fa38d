package inference

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"pond/inference/ablate"
)

// clients plays rounds of two to six clients that come together, of whom some leave at random, and wants of those that stay the answers that they
// get alone from another engine.
func clients(t *testing.T, o Options, rounds int) {
	t.Helper()
	e, alone := openTiny(t, o), openTiny(t, o)
	rnd := rand.New(rand.NewPCG(11, uint64(rounds)))
	for round := range rounds {
		type client struct {
			r     CompletionRequest
			leave int // tokens after which the client leaves; 0: it stays
			got   Result
			err   error
		}
		var all []*client
		for i := range 2 + rnd.IntN(5) {
			c := &client{r: CompletionRequest{Prompt: strings.Repeat(fmt.Sprintf("%d.%d ", round, i), 1+rnd.IntN(40)),
				Generation: Generation{MaxTokens: 1 + rnd.IntN(40), Sampling: endless(e, rnd.Uint64()), Priority: Priority(rnd.IntN(2))}}}
			if rnd.IntN(5) == 0 {
				c.leave = 1 + rnd.IntN(10)
			}
			all = append(all, c)
		}
		e.Pause() // so that they come together
		var wait sync.WaitGroup
		for _, c := range all {
			ctx, leave := context.WithCancel(context.Background())
			a, err := e.Complete(ctx, c.r)
			if err != nil {
				t.Fatal(err)
			}
			wait.Go(func() {
				defer leave()
				for range c.leave {
					a.Next()
				}
				if c.leave > 0 {
					leave()
				}
				c.got, c.err = a.Wait()
			})
		}
		e.Resume()
		wait.Wait()
		for i, c := range all {
			if c.leave > 0 && errors.Is(c.err, context.Canceled) {
				continue
			}
			if c.err != nil {
				t.Fatalf("round %d, client %d: %v", round, i, c.err)
			}
			alone.DropSnapshots()
			a, err := alone.Complete(context.Background(), c.r)
			if err != nil {
				t.Fatal(err)
			}
			want, err := a.Wait()
			if err != nil {
				t.Fatal(err)
			}
			if text(c.got) != text(want) {
				t.Fatalf("round %d, client %d of %d: got %s, want what it is alone, %s", round, i, len(all), text(c.got), text(want))
			}
		}
	}
	var several int64
	for n, steps := range e.Stats().Steps {
		if n > 0 {
			several += steps
		}
	}
	if off := len(o.Ablate.Asked()) > 0; off == (several > 0) {
		t.Errorf("got steps by answers %v with %v switched off", e.Stats().Steps, o.Ablate.Asked())
	}
	if steps := alone.Stats().Steps; steps[0] == 0 || steps[1]+steps[2]+steps[3] != 0 {
		t.Errorf("got steps by answers %v of one client at a time, want steps of one", steps)
	}
}

// Whoever else is served, an answer is what it is alone.
func TestAnswersTogetherAreAsAlone(t *testing.T) {
	for _, x := range []Executor{HostExact, Host, HostInt8} {
		t.Run(string(x), func(t *testing.T) {
			clients(t, Options{Executor: x, ChunkTokens: 64, ContextTokens: 1024}, 10)
		})
	}
}

func TestBatchedDecodeSwitchedOff(t *testing.T) {
	off, err := ablate.Parse("batched-decode")
	if err != nil {
		t.Fatal(err)
	}
	clients(t, Options{Executor: HostExact, ContextTokens: 1024, Ablate: off}, 3)
	if fmt.Sprint(off.Acted()) != "[batched-decode]" {
		t.Errorf("got %v that acted, want batched-decode", off.Acted())
	}
}
