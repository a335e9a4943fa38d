package inference

import (
	"fmt"
	"runtime/debug"
	"time"

	"pond/inference/cache"
	"pond/inference/qwen36"
	"pond/inference/sample"
)

// live is a job that is worked on. Its own goroutine runs what the host has to do for it, and asks the worker for each run of the device;
// everything here but job, logits and the ends is touched by the worker alone, or by the job's goroutine between two asks.
type live struct {
	job     *job
	order   int64            // of beginning
	seq     *qwen36.Sequence // nil: not begun, or its memory went to an older one
	base    *cache.Rows      // what seq builds on, counted
	tokens  []int32          // taken in
	logits  []float32        // of the last run that was asked for them
	drawn   *sample.Choice   // behind the last step, where the device chose
	drawing *qwen36.Drawing  // how the device chooses; nil: not begun, or something was taken in that it did not count

	asked  turn
	reply  chan error
	worker *worker
	last   int64 // turn of the last run
	parked bool  // waits for memory
	broken bool  // a run failed part way: the state is undefined

	ended  bool
	finish Finish
	err    error
}

// turn is one use of the device.
type turn struct {
	kind   kind
	tokens int // that it takes in
	run    func() error
	id     int32 // of a step without run, which the worker may make together with others
	// sampler, where there is one, lets the device choose the token behind such a step, and ahead lets it go on with it.
	sampler *sample.Sampler
	ahead   bool
}

// kind says what an ask is for, which decides whose turn it is.
type kind uint8

const (
	begin kind = iota // finds and restores the kept beginning of a prompt
	chunk             // takes in part of a prompt
	step              // takes in one token of an answer
	again             // computes what was lost when memory went to an older job
)

// do has the worker run a function when it is this job's turn, and waits for it. A job that was cancelled meanwhile gets its turn no more.
func (l *live) do(k kind, tokens int, run func() error) error {
	return l.ask(turn{kind: k, tokens: tokens, run: run})
}

func (l *live) ask(t turn) error {
	l.asked = t
	l.worker.events <- l
	return <-l.reply
}

// token takes in one token and returns the logits after it, valid until the next run.
func (l *live) token(id int32) ([]float32, error) {
	err := l.ask(turn{kind: step, tokens: 1, id: id})
	return l.logits, err
}

// chunk takes in tokens and returns the logits after the last, or after each; valid until the next run. With mark a snapshot is kept behind
// them.
func (l *live) chunk(ids []int32, kind qwen36.Logits, mark bool) ([]float32, error) {
	err := l.do(chunk, len(ids), func() error {
		start := time.Now()
		logits, err := l.seq.Chunk(ids, kind)
		if err != nil {
			return err
		}
		if len(l.tokens) < len(l.job.prompt) {
			l.worker.e.reuse.computed(len(ids), time.Since(start), l.worker.e.chunk)
		}
		l.took(logits, ids...)
		if mark {
			l.worker.e.kept.keep(l)
		}
		return nil
	})
	return l.logits, err
}

// over starts again from nothing, with room for so many tokens.
func (l *live) over(tokens int) error {
	return l.do(begin, 0, func() error {
		l.worker.e.kept.rest(l)
		l.tokens = l.tokens[:0]
		return l.worker.e.place(l, nil, tokens)
	})
}

// took notes what a run has done. The device's copy of the logits is the next run's, which may be another job's.
func (l *live) took(logits []float32, ids ...int32) {
	l.logits = append(l.logits[:0], logits...)
	l.drawn, l.drawing = nil, nil // what the device knows of the answer ends before these tokens
	l.tokens = append(l.tokens, ids...)
}

// serve is the job's goroutine; a panic on the way is an error to this request and to no other.
func (l *live) serve() {
	defer func() {
		if r := recover(); r != nil {
			l.err = fmt.Errorf("internal error: %v", r)
			l.worker.e.log.Error("panic in a request", "panic", r, "stack", string(debug.Stack()))
		}
		l.ended = true
		l.worker.events <- l
	}()
	if l.job.task != nil {
		l.err = l.job.task(l)
		return
	}
	l.finish, l.err = l.worker.e.answer(l)
}
