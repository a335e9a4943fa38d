package inference

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"pond/inference/cache"
	"pond/inference/qwen36"
)

// worker is the goroutine that owns the device. Jobs ask for runs; it takes them in turn. Rules:
//   - each answer gets a token between two chunks of prompts, so that a long prompt holds up nobody for longer than a chunk;
//   - while prompts are taken in, answers have a third of the device's time, where they have a use for it;
//   - prompts take turns, the chat window's first; one that begins like another which is being taken in waits to reuse it;
//   - memory goes to the oldest: a younger job gives up its own where there is too little, and computes again what it cannot find.
type worker struct {
	e      *Engine
	live   []*live
	busy   int // jobs whose goroutine runs, so that what it asks for is not known
	events chan *live
	turns  int64
	begun  int64
	chunk  int64         // turn of the last chunk
	credit time.Duration // of answers, until the next chunk
}

// answerShare is the time of answers for each time of a chunk.
const answerShare = 0.5

// work stays on one OS thread, which Apple's autorelease pools want.
func (e *Engine) work() {
	defer e.worker.Done()
	runtime.LockOSThread()
	w := &worker{e: e, events: make(chan *live)}
	for w.admit() {
		for w.busy > 0 {
			l := <-w.events
			w.busy--
			if l.ended {
				w.end(l)
			}
		}
		if l := w.pick(); l != nil {
			w.serve(l)
		}
	}
}

// admit begins jobs while there is room; a job of the chat window finds one place more. It waits when nothing else is to be done, and reports
// false when the engine is closed and the last job has ended.
func (w *worker) admit() bool {
	for len(w.live) == 0 || len(w.live)+w.e.queue.fetching() <= w.e.parallel {
		least := Background
		if len(w.live) == w.e.parallel {
			least = Interactive
		}
		j, open := w.e.queue.next(least, len(w.live) == 0)
		if j == nil {
			return open || len(w.live) > 0
		}
		if w.e.fetch(j) { // it comes back
			continue
		}
		j.unwatch()
		w.begun++
		l := &live{job: j, order: w.begun, reply: make(chan error), worker: w}
		w.live = append(w.live, l)
		w.busy++
		go l.serve()
	}
	return true
}

// end takes a job out. What it computed stays for those who go on from it.
func (w *worker) end(l *live) {
	w.live = slices.DeleteFunc(w.live, func(o *live) bool { return o == l })
	for _, o := range w.live {
		o.parked = false
	}
	e := w.e
	if l.seq != nil && !l.broken && l.job.task == nil && l.seq.Pos() == len(l.tokens) {
		if err := guard(func() error { e.kept.keep(l); return nil }); err != nil {
			e.log.Error("a conversation was not kept", "error", err)
		}
	}
	e.kept.rest(l)
	if e.disk != nil {
		e.disk.ended()
	}
	e.queue.done(l.job)
	l.job.end(l.finish, l.err)
}

// pick says whose turn it is; nil where nobody is left.
func (w *worker) pick() *live {
	var answer, prompt *live
	for _, l := range w.live {
		switch {
		case w.e.cancelled(l.job) != nil:
			return l
		case l.parked:
		case l.asked.kind == step && l.seq != nil:
			if answer == nil || l.last < answer.last {
				answer = l
			}
		case l.asked.kind == begin && w.waits(l):
		case prompt == nil || l.job.gen.Priority > prompt.job.gen.Priority ||
			l.job.gen.Priority == prompt.job.gen.Priority && l.last < prompt.last:
			prompt = l
		}
	}
	switch {
	case prompt == nil && answer == nil && len(w.live) > 0:
		return w.live[0] // all wait for memory: the oldest gets it
	case prompt == nil, answer != nil && (answer.last < w.chunk || w.credit > 0):
		return answer
	}
	return prompt
}

// waits reports whether a prompt that has not begun shares more with one that is being taken in than is kept of it, up to a mark that is
// still to come.
func (w *worker) waits(l *live) bool {
	for _, o := range w.live {
		if o.order >= l.order || o.job.task != nil || l.job.task != nil || len(o.tokens) >= len(o.job.prompt) {
			continue
		}
		common := min(cache.Common(o.job.prompt, l.job.prompt), len(l.job.prompt)-1)
		i, found := slices.BinarySearch(o.job.marks, common)
		if found {
			i++
		}
		if i == 0 || o.job.marks[i-1] <= len(o.tokens) {
			continue
		}
		have := 0
		w.e.kept.do(func() {
			if c := w.e.kept.store.Find(l.job.prompt, common); c != nil {
				have = c.Pos()
			}
		})
		if o.job.marks[i-1]-have >= w.e.chunk {
			return true
		}
	}
	return false
}

// serve gives a job its turn.
func (w *worker) serve(l *live) {
	w.turns++
	l.last = w.turns
	if err := w.e.cancelled(l.job); err != nil {
		w.answer(l, err)
		return
	}
	start := time.Now()
	kind := l.asked.kind
	ready, err := w.prepare(l)
	if !ready && err == nil { // it gets another turn
		w.spend(again, start)
		return
	}
	all := []*live{l}
	switch {
	case err != nil:
	case l.asked.run == nil:
		all, err = w.together(l)
	default:
		err = guard(l.asked.run)
	}
	if errors.Is(err, errNoRoom) {
		l.parked = true
		return
	}
	w.spend(kind, start)
	for _, o := range all {
		o.broken = o.broken || err != nil
		w.answer(o, err)
	}
}

// spend counts the time of a turn, and leaves some to the rest of the machine when asked to be quiet.
func (w *worker) spend(k kind, start time.Time) {
	took := time.Since(start)
	if k == step {
		w.credit -= took
	} else {
		w.chunk, w.credit = w.turns, time.Duration(answerShare*float64(took))
	}
	if f := w.e.turn.Load(); f != nil {
		(*f)(k)
	}
	w.e.kept.collect()
	if w.e.quiet.Load() {
		select {
		case <-time.After(min(took, longestQuiet)):
		case <-w.e.life.Done():
		}
	}
}

// longestQuiet bounds the wait behind a turn in quiet mode.
const longestQuiet = 500 * time.Millisecond

func (w *worker) answer(l *live, err error) {
	w.busy++
	l.reply <- err
}

// guard runs f; a panic is an error.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v\n%s", r, debug.Stack())
		}
	}()
	return f()
}

// errNoRoom says that memory is short until a job ends.
var errNoRoom = errors.New("no memory until another answer ends")

// prepare sees to it that a job's sequence stands where its tokens end and has room for what it asks for. It reports false where that takes
// more turns.
func (w *worker) prepare(l *live) (ready bool, err error) {
	if l.asked.kind == begin {
		return true, nil
	}
	if l.seq == nil { // its memory went to another
		if err := w.e.place(l, l.tokens, len(l.tokens)); err != nil {
			return false, err
		}
	}
	if pos := l.seq.Pos(); pos < len(l.tokens) {
		return false, w.redo(l, pos)
	}
	return true, w.room(l, len(l.tokens)+l.asked.tokens)
}

// redo computes some of the tokens that a job had taken in before its memory went: the prompt in chunks, the answer as it was made.
func (w *worker) redo(l *live, pos int) error {
	if prompt := len(l.job.prompt); pos < prompt {
		_, err := l.seq.Chunk(l.tokens[pos:min(pos+w.e.chunk, prompt, len(l.tokens))], qwen36.LastLogits)
		return err
	}
	_, err := l.seq.Token(l.tokens[pos])
	return err
}

// room makes a job's sequence large enough for so many tokens.
func (w *worker) room(l *live, tokens int) error {
	rows := l.seq.Capacity(tokens)
	if rows <= l.seq.Rows() {
		return nil
	}
	if err := w.reserve(l, l.seq.LenBytes(rows)-l.seq.LenBytes(l.seq.Rows())); err != nil {
		return err
	}
	return l.seq.Grow(rows)
}

// reserve takes memory for a job, from younger ones if it must.
func (w *worker) reserve(l *live, bytes int64) error {
	for {
		ok := false
		w.e.kept.do(func() { ok = w.e.kept.reserve(bytes) })
		if ok {
			return nil
		}
		var youngest *live
		for _, o := range w.live {
			if o.seq != nil && o.order > l.order && (youngest == nil || o.order > youngest.order) {
				youngest = o
			}
		}
		if youngest == nil {
			if l == w.live[0] {
				return fmt.Errorf("internal error: no memory for %d bytes beside %d", bytes, w.e.kept.held)
			}
			return errNoRoom
		}
		w.e.kept.rest(youngest)
	}
}

// place gives a job a sequence, restored to the longest kept beginning of tokens, at most limit of them, and with room for all.
func (e *Engine) place(l *live, tokens []int32, limit int) error {
	var c *cache.Snapshot
	e.kept.do(func() { c = e.kept.store.Find(tokens, limit) })
	if l.seq = e.kept.take(c); l.seq == nil {
		seq, err := e.model.NewSequence()
		if err != nil {
			return err
		}
		if err := l.worker.reserve(l, seq.LenBytes(0)); err != nil {
			return err
		}
		l.seq = seq
	}
	err := l.worker.room(l, max(len(tokens), limit, 1))
	switch {
	case err != nil:
	case c == nil:
		l.seq.Reset()
	default:
		err = l.seq.Restore(c)
	}
	if err != nil {
		e.kept.rest(l)
		return err
	}
	e.kept.do(func() { e.kept.rebase(l) })
	return nil
}

// start is the first turn of a prompt.
func (e *Engine) start(l *live) error {
	start := time.Now()
	prompt := l.job.prompt
	e.reuse.begun(e, prompt)
	if err := e.place(l, prompt, len(prompt)-1); err != nil {
		return err
	}
	l.tokens = append(l.tokens[:0], prompt[:l.seq.Pos()]...)
	e.reuse.restored(l, time.Since(start)+l.job.readTime)
	return nil
}
