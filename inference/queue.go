package inference

import (
	"context"
	"sync"
	"time"
)

// queue hands jobs to the worker, first come, first served. A job whose context ends while it waits leaves at once.
type queue struct {
	mu      sync.Mutex // protects all
	cond    *sync.Cond
	waiting []*job
	limit   int
	running int
	tokens  int64
	turns   int64
	paused  bool
	closed  bool

	prefillDone, prefillTotal int
	recent                    []stamp // tokens of answers in the last second, oldest first
}

// stamp says how many tokens an answer grew by, and when.
type stamp struct {
	at     time.Time
	tokens int
}

// rateWindow is what the rate of tokens is counted over.
const rateWindow = time.Second

func newQueue(limit int) *queue {
	q := &queue{limit: limit}
	q.cond = sync.NewCond(&q.mu)
	return q
}

// add takes a job in. It fails with ErrBusy or ErrClosed.
func (q *queue) add(j *job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ErrClosed
	case len(q.waiting) >= q.limit:
		return ErrBusy
	}
	q.waiting = append(q.waiting, j)
	j.unwatch = context.AfterFunc(j.ctx, func() { q.drop(j) })
	q.cond.Signal()
	return nil
}

// pause holds back what waits, or lets it go on.
func (q *queue) pause(paused bool) {
	q.mu.Lock()
	q.paused = paused
	q.cond.Broadcast()
	q.mu.Unlock()
}

// drop removes a job that still waits and ends it.
func (q *queue) drop(j *job) {
	q.mu.Lock()
	for i, w := range q.waiting {
		if w == j {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			q.mu.Unlock()
			j.end("", context.Cause(j.ctx))
			return
		}
	}
	q.mu.Unlock()
}

// next waits for a job; false means that the queue was closed.
func (q *queue) next() (*job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for (len(q.waiting) == 0 || q.paused) && !q.closed {
		q.cond.Wait()
	}
	if q.closed {
		return nil, false
	}
	j := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.running = 1
	return j, true
}

// idle says that the worker has ended its job.
func (q *queue) idle() {
	q.mu.Lock()
	q.running = 0
	q.mu.Unlock()
}

func (q *queue) count(tokens int) {
	q.mu.Lock()
	q.tokens += int64(tokens)
	q.mu.Unlock()
}

// decoded counts tokens of an answer.
func (q *queue) decoded(tokens int) {
	q.mu.Lock()
	q.tokens += int64(tokens)
	q.forget()
	q.recent = append(q.recent, stamp{time.Now(), tokens})
	q.mu.Unlock()
}

// forget drops what is older than the window. The lock is held.
func (q *queue) forget() {
	n := 0
	for n < len(q.recent) && time.Since(q.recent[n].at) > rateWindow {
		n++
	}
	q.recent = q.recent[:copy(q.recent, q.recent[n:])]
}

// rate is the tokens a second of the last second. An answer younger than that is measured over its age. The lock is held.
func (q *queue) rate() float64 {
	q.forget()
	if len(q.recent) < 2 {
		return 0
	}
	n := 0
	for _, r := range q.recent[1:] { // the first marks the start
		n += r.tokens
	}
	return float64(n) / max(time.Since(q.recent[0].at).Seconds(), 1e-3)
}

// progress says how far the prompt has been taken in.
func (q *queue) progress(done, total int) {
	q.mu.Lock()
	q.prefillDone, q.prefillTotal = done, total
	q.mu.Unlock()
}

// turn numbers the requests, for the order of last use.
func (q *queue) turn() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turns++
	return q.turns
}

func (q *queue) stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Stats{Queued: len(q.waiting), Active: q.running, Paused: q.paused, Tokens: q.tokens, TokensPerSecond: q.rate(),
		PrefillDone: q.prefillDone, PrefillTotal: q.prefillTotal}
}

// close ends all jobs that wait; the worker leaves after the one it has.
func (q *queue) close() {
	q.mu.Lock()
	jobs := q.waiting
	q.waiting, q.closed = nil, true
	q.cond.Broadcast()
	q.mu.Unlock()
	for _, j := range jobs {
		j.end("", ErrClosed)
	}
}
