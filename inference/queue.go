package inference

import (
	"context"
	"slices"
	"sync"
	"time"
)

// queue hands jobs to the worker: by priority, and of one priority first come, first served. A job whose context ends while it waits leaves at once.
type queue struct {
	mu      sync.Mutex // protects all
	cond    *sync.Cond
	waiting []*job
	away    int // taken out to be read from the disk, and to come back: they wait as the others
	limit   int
	running map[*job]progress
	tokens  int64
	steps   [MostTogether]int64 // by the answers that had a token in them, less one
	chosen  [2]int64            // tokens of answers, chosen by the host and by the device
	paused  bool
	closed  bool

	recent []stamp // tokens of answers in the last second, oldest first
}

// progress is how far a prompt has been taken in; zero when it is whole, or not begun.
type progress struct{ done, total int }

// stamp says how many tokens an answer grew by, and when.
type stamp struct {
	at     time.Time
	tokens int
}

// rateWindow is what the rate of tokens is counted over.
const rateWindow = time.Second

func newQueue(limit int) *queue {
	q := &queue{limit: limit, running: map[*job]progress{}}
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
	case len(q.waiting)+q.away >= q.limit:
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

// next takes out the job of the highest priority, at least the given one, and of those the first that came; nil where there is none. It waits
// for one when asked to. open is false when the queue was closed.
func (q *queue) next(least Priority, wait bool) (j *job, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.closed {
			return nil, false
		}
		best := -1
		for i, w := range q.waiting {
			if p := w.gen.Priority; p >= least && (best < 0 || p > q.waiting[best].gen.Priority) {
				best = i
			}
		}
		if best >= 0 && !q.paused {
			j = q.waiting[best]
			q.waiting = append(q.waiting[:best], q.waiting[best+1:]...)
			q.running[j] = progress{}
			return j, true
		}
		if !wait {
			return nil, true
		}
		q.cond.Wait()
	}
}

// leave says that a job that was taken out does not begin yet; back must follow.
func (q *queue) leave(j *job) {
	q.mu.Lock()
	delete(q.running, j)
	q.away++
	q.mu.Unlock()
}

// fetching is how many jobs wait for the disk.
func (q *queue) fetching() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.away
}

// back puts a job in again that was taken out before it could begin, ahead of the others.
func (q *queue) back(j *job) {
	q.mu.Lock()
	q.away--
	err := context.Cause(j.ctx) // also when it ends from now on: then drop finds it
	if q.closed {
		err = ErrClosed
	}
	if err == nil {
		q.waiting = slices.Insert(q.waiting, 0, j)
		q.cond.Signal()
	}
	q.mu.Unlock()
	if err != nil {
		j.end("", err)
	}
}

// done says that the worker has ended a job.
func (q *queue) done(j *job) {
	q.mu.Lock()
	delete(q.running, j)
	q.mu.Unlock()
}

func (q *queue) count(tokens int) {
	q.mu.Lock()
	q.tokens += int64(tokens)
	q.mu.Unlock()
}

// stepped counts a step of so many answers.
func (q *queue) stepped(answers int) {
	q.mu.Lock()
	q.steps[answers-1]++
	q.mu.Unlock()
}

// chose counts a token that the device chose, or the host.
func (q *queue) chose(device bool) {
	q.mu.Lock()
	if device {
		q.chosen[1]++
	} else {
		q.chosen[0]++
	}
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

// progress says how far a prompt has been taken in.
func (q *queue) progress(j *job, done, total int) {
	q.mu.Lock()
	q.running[j] = progress{done, total}
	q.mu.Unlock()
}

func (q *queue) stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{Queued: len(q.waiting) + q.away, Active: len(q.running), Paused: q.paused, Tokens: q.tokens, Steps: q.steps, ChosenOnHost: q.chosen[0], ChosenOnDevice: q.chosen[1],
		TokensPerSecond: q.rate()}
	for _, p := range q.running {
		s.PrefillDone += p.done
		s.PrefillTotal += p.total
	}
	return s
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
