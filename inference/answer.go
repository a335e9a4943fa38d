package inference

import (
	"context"
	"sync"
	"sync/atomic"

	"pond/inference/chat"
)

// Answer is a running answer. Next is called by one goroutine; the worker adds updates without ever waiting for it, so a slow
// reader holds up nobody. What waits is bounded by the answer's token limit.
type Answer struct {
	ctx  context.Context
	stop atomic.Bool // StopThinking was called and the worker has not seen it
	loop atomic.Bool // the text goes round in circles

	mu      sync.Mutex // protects what follows
	ready   chan struct{}
	updates []Update
	done    bool
	err     error
	events  []chat.Event // all of them: folded when the whole is asked for, since adding to a text token by token copies it each time
	result  Result
}

func newAnswer(ctx context.Context) *Answer {
	return &Answer{ctx: ctx, ready: make(chan struct{}, 1)}
}

func (a *Answer) signal() {
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

func (a *Answer) add(u Update) {
	if len(u.Events) == 0 && len(u.Logprobs) == 0 {
		return
	}
	a.mu.Lock()
	a.updates = append(a.updates, u)
	a.events = append(a.events, u.Events...)
	a.mu.Unlock()
	a.signal()
}

// usage lets the worker count; finish ends the answer, with an error or without. Only the first end counts.
func (a *Answer) finish(f Finish, u Usage, err error) {
	a.mu.Lock()
	if !a.done {
		a.done, a.err, a.result.Finish, a.result.Usage = true, err, f, u
	}
	a.mu.Unlock()
	a.signal()
}

// StopThinking closes the thinking block, so that the answer begins: "answer now". Called before the thinking has begun, it closes
// it at its start; outside of the thinking it does nothing.
func (a *Answer) StopThinking() { a.stop.Store(true) }

// matched notes the stop text that ended the content.
func (a *Answer) matched(stop string) {
	a.mu.Lock()
	a.result.StopText = stop
	a.mu.Unlock()
}

// Repeating reports whether the answer goes round in circles just now: the same passage four times over. Nothing is done about it; a
// user can be offered to stop, or to have the answer now.
func (a *Answer) Repeating() bool { return a.loop.Load() }

// Next waits for more of the answer and returns all there is, joined. It returns false when the answer has ended, with Err, and at once
// when the request's context has.
func (a *Answer) Next() (Update, bool) {
	for {
		a.mu.Lock()
		if len(a.updates) > 0 {
			var u Update
			for _, v := range a.updates {
				u.Events = append(u.Events, v.Events...)
				u.Logprobs = append(u.Logprobs, v.Logprobs...)
			}
			a.updates = a.updates[:0]
			a.mu.Unlock()
			return u, true
		}
		done := a.done
		a.mu.Unlock()
		if done {
			return Update{}, false
		}
		select {
		case <-a.ready:
		case <-a.ctx.Done():
			a.finish("", Usage{}, context.Cause(a.ctx))
		}
	}
}

// Err is nil after a whole answer; the context's cause, ErrClosed or the device's error after one that broke off.
func (a *Answer) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Result is the whole answer, after Next has returned false; after an error, what there was of it.
func (a *Answer) Result() Result {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.result
	r.Answer.Apply(a.events)
	return r
}

// Wait reads the answer to its end.
func (a *Answer) Wait() (Result, error) {
	for {
		if _, ok := a.Next(); !ok {
			return a.Result(), a.Err()
		}
	}
}
