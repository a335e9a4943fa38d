package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// runner is a job that runs. Its rules:
//
//   - A connection asks for half a chunk at a time, and asks for the next half but one only when the first is saved: so a crash costs
//     at most a chunk for each connection.
//   - Files are taken in the order of the job, at most Options.FilesAtOnce large ones at a time, which share the connections evenly.
//   - A source is asked in its order of preference as long as it delivers. The first fault with a file is forgiven; after a second one
//     in a row it rests, longer each time, and the next source is asked for the same bytes. A stall or a Retry-After makes
//     it rest for every file.
//   - A file whose digest is wrong is fetched anew, with the next source in front.
type runner struct {
	Job
	client  *client
	limiter *limiter
	base    context.Context
	cancel  context.CancelCauseFunc
	hashers sync.WaitGroup // hashLoop, reopen
	telling sync.Mutex     // one call of Done or Report at a time
	hurry   chan struct{}  // somebody waits for a save, or will

	mu       sync.Mutex // protects all below, and the files' fields as they say
	wake     chan struct{}
	files    []*file
	started  time.Time
	reached  bool        // somebody answered, or at least a connection was made
	down     []bool      // by source: the last try made no connection
	bodies   int         // requests whose answer is being read
	resting  []time.Time // by source: not asked before
	last     []error     // by source: its last fault
	failure  error
	received int64     // bytes of this run
	progress time.Time // when the last bytes came that count
	begun    uint64    // saves
	saved    uint64    // the last one that ended
	meter    meter
	rate     float64
}

func newRunner(ctx context.Context, job Job, cancel context.CancelCauseFunc) *runner {
	r := &runner{
		Job: job, client: newClient(job.Options), limiter: newLimiter(job.RateBytes), base: ctx, cancel: cancel,
		hurry: make(chan struct{}, 1), wake: make(chan struct{}), resting: make([]time.Time, len(job.Sources)), last: make([]error, len(job.Sources)),
		started: time.Now(), down: make([]bool, len(job.Sources)),
	}
	r.progress = r.started
	for _, m := range job.Files {
		r.files = append(r.files, &file{File: m, small: m.Bytes <= smallBytes, ahead: make(chan struct{}, 1), trouble: make([]trouble, len(job.Sources))})
	}
	return r
}

func (r *runner) ctx() context.Context { return r.base }

// wakeAll lets everyone look again. The caller holds mu.
func (r *runner) wakeAll() {
	close(r.wake)
	r.wake = make(chan struct{})
}

// fail ends the job; the first failure is the one that is told.
func (r *runner) fail(err error) {
	r.mu.Lock()
	if r.failure == nil && r.base.Err() == nil {
		r.failure = err
	}
	r.wakeAll()
	r.mu.Unlock()
	r.cancel(err)
}

// unfinished counts files. The caller holds mu.
func (r *runner) unfinished() int {
	n := 0
	for _, f := range r.files {
		if !f.done {
			n++
		}
	}
	return n
}

// task is bytes of a file that one request is to bring.
type task struct {
	f      *file
	source int
	extent
	whole bool
}

// work is one connection.
func (r *runner) work(ctx context.Context) {
	var older, newer uint64 // saves that hold the task before the last, and the last
	for {
		r.waitSaved(ctx, older)
		t := r.next(ctx)
		if t == nil {
			return
		}
		var err error
		if t.f.small {
			err = r.fetchSmall(t)
		} else {
			err = r.fetchRange(t)
		}
		r.mu.Lock()
		older, newer = newer, r.begun+1
		r.mu.Unlock()
		r.urge()
		r.release(t, err)
	}
}

// next waits for something to do; nil when there is nothing more.
func (r *runner) next(ctx context.Context) *task {
	for {
		r.mu.Lock()
		t, open, until, err := r.choose(time.Now())
		if open != nil {
			open.opening = true
		}
		wake, left := r.wake, r.unfinished()
		r.mu.Unlock()
		switch {
		case ctx.Err() != nil || left == 0:
			return nil
		case err != nil:
			r.fail(err)
			return nil
		case open != nil:
			r.start(ctx, open)
			continue
		case t != nil:
			return t
		}
		timer := time.NewTimer(time.Until(until))
		select {
		case <-wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// start opens a file's part and lets it be hashed.
func (r *runner) start(ctx context.Context, f *file) {
	if err := r.open(f); err != nil {
		r.fail(r.diskError(err))
		return
	}
	r.hashers.Go(func() { r.hashLoop(ctx, f) })
	f.nudge()
	r.mu.Lock()
	f.opening = false
	r.wakeAll()
	r.mu.Unlock()
}

// choose finds the next task, or a file to open first; where there is neither, when to look again at the latest. The caller holds mu.
func (r *runner) choose(now time.Time) (t *task, open *file, until time.Time, err error) {
	until = r.deadline()
	if now.After(until) {
		for _, f := range r.files {
			if !f.done {
				return nil, nil, until, r.gaveUp(f, now)
			}
		}
	}
	large := 0
	for _, f := range r.files {
		if !f.done && !f.small && (f.part != nil || f.opening) {
			large++
		}
	}
	share := r.Connections
	if large > 1 {
		share = (r.Connections + large - 1) / large
	}
	for _, f := range r.files {
		if f.done || f.opening || f.restart != nil {
			continue
		}
		if !f.small && f.part == nil {
			if large < r.FilesAtOnce {
				return nil, f, until, nil
			}
			continue
		}
		limit, most := max(r.ChunkBytes/2, 1), share
		if f.small || f.whole {
			limit, most = f.Bytes, 1
		}
		if f.active >= most {
			continue
		}
		gap := f.claimed.gap(0, f.Bytes, limit)
		if gap.from == gap.to {
			continue
		}
		source, at, out := r.pick(f, now)
		switch {
		case out:
			return nil, nil, until, r.gaveUp(f, time.Time{})
		case source < 0:
			if at.Before(until) {
				until = at
			}
			continue
		}
		if f.whole {
			gap.to = f.Bytes
		}
		f.claimed.add(gap.from, gap.to)
		f.active++
		return &task{f, source, gap, f.small || f.whole}, nil, until, nil
	}
	return nil, nil, until, nil
}

// pick chooses the source of a file; -1 and when to look again where all of them rest; out where none is left. The caller holds mu.
func (r *runner) pick(f *file, now time.Time) (source int, at time.Time, out bool) {
	source, out = -1, true
	for i := range r.Sources {
		s := (i + f.wrong) % len(r.Sources)
		t := f.trouble[s]
		if r.Sources[s].lacks(f.Name) || t.refusals >= maxRefusals {
			continue
		}
		out = false
		ready := t.until
		if r.resting[s].After(ready) {
			ready = r.resting[s]
		}
		if !ready.After(now) {
			return s, now, false
		}
		if at.IsZero() || ready.Before(at) {
			at = ready
		}
	}
	return source, at, out
}

// gaveUp is the error of a file that no source delivers; now is zero where all of them refused it. The caller holds mu.
func (r *runner) gaveUp(f *file, now time.Time) error {
	e := &SourceError{File: f.Name}
	if !now.IsZero() {
		e.Waited, e.Offline = now.Sub(r.progress), r.offline()
	}
	for i, t := range f.trouble {
		switch {
		case r.Sources[i].lacks(f.Name):
		case t.last != nil:
			e.Faults = append(e.Faults, t.last)
		case r.last[i] != nil: // a source that rests was not asked for this file
			e.Faults = append(e.Faults, r.last[i])
		}
	}
	return e
}

// request is what to ask for a task.
func (r *runner) request(t *task, anyStart bool) request {
	return request{
		source: t.source, of: r.Sources[t.source], file: t.f.Name, sha256: t.f.SHA256.String(), size: t.f.Bytes,
		from: t.from, to: t.to, whole: t.f.small, anyStart: anyStart,
	}
}

// fetchSmall fetches a whole file into memory. The error is a *fault or ends the job.
func (r *runner) fetchSmall(t *task) error {
	ctx, cancel := context.WithCancelCause(r.base)
	defer cancel(nil)
	q := r.request(t, false)
	w := newWatch(r.Stall, cancel)
	defer w.timer.Stop()
	a, err := r.client.ask(ctx, q)
	if err != nil {
		return err
	}
	defer a.body.Close()
	w.head()
	q.host = a.host
	defer r.reading(t.source)()
	data := make([]byte, t.f.Bytes+1)
	n := 0
	for n < len(data) && err == nil {
		var got int
		got, err = w.read(a.body, data[n:])
		r.limiter.wait(ctx, got)
		n += got
	}
	switch {
	case int64(n) > t.f.Bytes:
		return q.refusal("got more than %d bytes, want that many", t.f.Bytes).because(otherFile)
	case !errors.Is(err, io.EOF):
		return r.broken(ctx, q, err)
	case int64(n) < t.f.Bytes:
		return q.fault(errShort(int64(n), t.f.Bytes)).because(endsEarly)
	}
	if err := r.keepWhole(t.f, data[:n]); err != nil {
		var wrong *DigestError
		if errors.As(err, &wrong) {
			return q.refusal("it has another file: got SHA-256 %s, want %s", wrong.Got, wrong.Want).because(otherFile)
		}
		return err
	}
	r.mu.Lock()
	r.received += int64(n)
	r.progress = time.Now()
	r.mu.Unlock()
	return nil
}

// bufferBytes is what a connection holds in memory.
const bufferBytes = 256 << 10

// fetchRange fetches the bytes of a task and writes them to the part. The error is a *fault or ends the job.
func (r *runner) fetchRange(t *task) error {
	f := t.f
	ctx, cancel := context.WithCancelCause(f.ctx)
	defer cancel(nil)
	q := r.request(t, t.whole)
	w := newWatch(r.Stall, cancel)
	defer w.timer.Stop()
	a, err := r.client.ask(ctx, q)
	if err != nil {
		return err
	}
	defer a.body.Close()
	w.head()
	q.host = a.host
	defer r.reading(t.source)()
	if !r.sameValidator(t, a) {
		return nil
	}
	buf := make([]byte, min(bufferBytes, a.to-a.from))
	for at := a.from; at < a.to; {
		n, err := w.read(a.body, buf[:min(int64(len(buf)), a.to-at)])
		if b := buf[:n]; n > 0 {
			if skip := t.from - at; skip > 0 { // a server that sends the file from its start
				b = b[min(skip, int64(n)):]
			}
			if werr := r.put(f, at+int64(n-len(b)), b, t.whole); werr != nil {
				return r.diskError(werr)
			}
			at += int64(n)
			r.limiter.wait(ctx, n)
		}
		switch {
		case at >= a.to:
		case errors.Is(err, io.EOF):
			return q.fault(errShort(at-a.from, a.to-a.from)).because(endsEarly)
		case err != nil:
			return r.broken(ctx, q, err)
		}
	}
	return nil
}

// put writes bytes to the part: all of them, or, of a file that comes whole, those that are missing.
func (r *runner) put(f *file, at int64, b []byte, whole bool) error {
	if len(b) == 0 {
		return nil
	}
	if err := f.takeRoom(); err != nil {
		return err
	}
	for len(b) > 0 {
		n := int64(len(b))
		if whole {
			r.mu.Lock()
			end := at + n
			gap := f.have.gap(at, end, n)
			r.mu.Unlock()
			if gap.from >= end {
				return nil
			}
			b, at, n = b[gap.from-at:], gap.from, gap.to-gap.from
		}
		if _, err := f.part.WriteAt(b[:n], at); err != nil {
			return err
		}
		r.wrote(f, at, b[:n])
		b, at = b[n:], at+n
	}
	return nil
}

// broken is the fault of a body that ended with an error.
func (r *runner) broken(ctx context.Context, q request, err error) error {
	f := q.fault(err)
	if errors.Is(context.Cause(ctx), errStalled) {
		f.err, f.stalled = errStalled, true
	}
	return f
}

type errShortBody struct{ got, want int64 }

func errShort(got, want int64) error { return &errShortBody{got, want} }

func (e *errShortBody) Error() string {
	return fmt.Sprintf("the answer ended early: got %d bytes, want %d", e.got, e.want)
}

// sameValidator compares a strong ETag with the last one of the same host. Where it changed, what is there may be of another file and
// is thrown away, once; after that only the digest judges.
func (r *runner) sameValidator(t *task, a *answer) bool {
	if a.etag == "" {
		return true
	}
	key := r.Sources[t.source].Name + " " + a.host
	r.mu.Lock()
	old := t.f.validators[key]
	t.f.validators[key] = a.etag
	changed := old != "" && old != a.etag && !t.f.forgiven && t.f.have.bytes() > 0
	if changed {
		t.f.forgiven = true
	}
	r.mu.Unlock()
	if changed {
		r.discard(t.f, &changedError{r.Sources[t.source].Name, old, a.etag})
	}
	return !changed
}

// changedError says why a file begins anew.
type changedError struct{ source, old, new string }

func (e *changedError) Error() string {
	return e.source + ": the file changed between two requests: got ETag " + e.new + ", want " + e.old
}

// release gives back what a task did not bring and judges its source.
func (r *runner) release(t *task, err error) {
	var bad *fault
	if err != nil && !errors.As(err, &bad) {
		r.fail(err)
	}
	if r.judge(t, bad) {
		r.report(Event{Kind: Trouble, File: t.f.Name, Source: r.Sources[t.source].Name, Host: bad.host, Cause: bad.cause(), Err: bad})
	}
}

// judge is release under the lock; it reports whether the fault is worth telling.
func (r *runner) judge(t *task, bad *fault) (tell bool) {
	f := t.f
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.wakeAll()
	f.active--
	if !f.done {
		f.claimed.remove(t.from, t.to)
		for _, e := range f.have {
			f.claimed.add(e.from, e.to)
		}
	}
	if f.restart != nil {
		if f.active == 0 && !f.opening {
			f.opening = true
			r.hashers.Go(func() { r.reopen(f) })
		}
		return false // the requests were ended by us
	}
	if r.base.Err() != nil {
		return false
	}
	now := time.Now()
	mine := &f.trouble[t.source]
	r.down[t.source] = bad != nil && bad.offline
	r.reached = r.reached || !r.down[t.source] || bad.led
	if bad == nil {
		*mine = trouble{rangeless: mine.rangeless, last: mine.last}
		return false
	}
	if f.have.reach(t.from)-t.from >= stallBytes {
		mine.faults, mine.refusals = 0, 0 // it brought something
	}
	mine.last, r.last[t.source] = bad, bad
	if !mine.until.After(now) { // connections that fail together count once
		mine.faults++
		if bad.refusal {
			mine.refusals++
		}
		if mine.faults > 1 {
			longest := time.Minute
			if bad.offline {
				longest = 15 * time.Second // asking costs nobody anything, and the network may be back
			}
			mine.until = now.Add(min(r.Backoff<<min(mine.faults-2, 20), longest))
		}
	}
	if bad.rangeless {
		mine.rangeless = true
		r.noRanges(f)
	}
	rest := bad.pause
	if bad.stalled {
		rest = max(rest, r.Stall)
	}
	if until := now.Add(rest); rest > 0 && until.After(r.resting[t.source]) {
		r.resting[t.source] = until
	}
	return true
}

// noRanges makes a file come whole, in one request, when every source that has it answers so. The caller holds mu.
func (r *runner) noRanges(f *file) {
	for i, t := range f.trouble {
		if !t.rangeless && !r.Sources[i].lacks(f.Name) && t.refusals < maxRefusals {
			return
		}
	}
	f.whole = true
	for i := range f.trouble {
		if f.trouble[i].rangeless {
			f.trouble[i].refusals, f.trouble[i].faults, f.trouble[i].until = 0, 0, time.Time{}
		}
	}
}
