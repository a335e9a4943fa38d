package inference

import (
	"context"
	"sync"
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
	closed  bool
}

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
	for len(q.waiting) == 0 && !q.closed {
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
	return Stats{Waiting: len(q.waiting), Running: q.running, Tokens: q.tokens}
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
