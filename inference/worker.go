package inference

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"pond/inference/cache"
	"pond/inference/chat"
	"pond/inference/qwen36"
	"pond/inference/sample"
	"pond/inference/tokenizer"
)

// job is a request on its way through the worker.
type job struct {
	ctx      context.Context
	prompt   []int32
	marks    []int // token indexes at which to take a snapshot, ascending
	gen      Generation
	parser   *chat.Parser // nil: the answer is plain text
	form     *form        // nil: free
	thinking bool
	answer   *Answer
	usage    Usage
	unwatch  func() bool
	task     func() error // instead of a generation: run on the worker
}

func (e *Engine) newJob(ctx context.Context, prompt []int32, marks []int, g Generation, thinking bool) *job {
	if g.Sampling == nil {
		p := DefaultSampling(thinking)
		g.Sampling = &p
	}
	return &job{ctx: ctx, prompt: prompt, marks: marks, gen: g, thinking: thinking, answer: newAnswer(ctx), usage: Usage{PromptTokens: len(prompt)}}
}

// submit checks what can be checked before any work and queues the job.
func (e *Engine) submit(j *job) (*Answer, error) {
	left := e.info.ContextTokens - len(j.prompt)
	if left < 1 {
		return nil, &ContextError{PromptTokens: len(j.prompt), RequestedTokens: j.gen.MaxTokens, LimitTokens: e.info.ContextTokens}
	}
	if j.gen.MaxTokens < 0 {
		return nil, fmt.Errorf("max tokens: got %d, want at least 1, or 0 for the default", j.gen.MaxTokens)
	}
	if j.gen.ThinkingBudget < 0 {
		return nil, fmt.Errorf("thinking budget: got %d, want at least 1, or 0 for none", j.gen.ThinkingBudget)
	}
	if j.gen.MaxTokens == 0 {
		j.gen.MaxTokens = MaxAnswerTokens
	}
	j.gen.MaxTokens = min(j.gen.MaxTokens, left)
	if err := j.gen.Sampling.Validate(); err != nil {
		return nil, err
	}
	if err := e.queue.add(j); err != nil {
		return nil, err
	}
	return j.answer, nil
}

func (j *job) end(f Finish, err error) { j.answer.finish(f, j.usage, err) }

// work is the goroutine that owns the device. It stays on one OS thread, which Apple's autorelease pools want.
func (e *Engine) work() {
	defer e.worker.Done()
	runtime.LockOSThread()
	for {
		j, ok := e.queue.next()
		if !ok {
			return
		}
		j.unwatch()
		finish, err := e.serve(j)
		e.queue.idle()
		j.end(finish, err)
	}
}

// serve runs a job; a panic on the way is an error to this request and to no other.
func (e *Engine) serve(j *job) (f Finish, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v", r)
			e.log.Error("worker panic", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	if j.task != nil {
		return "", j.task()
	}
	s, cached, err := e.slotFor(j.prompt)
	if err != nil {
		return "", err
	}
	whole := false
	defer func() {
		if !whole { // the state may stand between two tokens of the history
			e.snapshots.do(s.line.Clear)
		}
		e.queue.progress(0, 0)
	}()
	j.usage.CachedTokens = cached
	start := time.Now()
	logits, err := e.prefill(j, s)
	j.usage.PrefillTime = time.Since(start)
	if err == nil {
		start = time.Now()
		f, err = e.decode(j, s, logits)
		j.usage.DecodeTime = time.Since(start)
	}
	// A cancellation stops between two runs, where the state is whole; a run that failed leaves it undefined, cancelled or not.
	why := e.cancelled(j)
	whole = err == nil || why != nil && errors.Is(err, why)
	return f, err
}

// cancelled returns why the job must stop, or nil.
func (e *Engine) cancelled(j *job) error {
	if j.ctx.Err() != nil {
		return context.Cause(j.ctx)
	}
	if e.life.Err() != nil {
		return ErrClosed
	}
	return nil
}

// slotFor picks the conversation that shares most with the prompt and takes it back to the shared part; when none shares anything, an
// unused one or the one unused longest.
func (e *Engine) slotFor(prompt []int32) (*slot, int, error) {
	var best *slot
	usable := 0
	var err error
	e.snapshots.do(func() { // none is dropped between the choice and the return to it
		for _, s := range e.slots {
			if n := s.line.Usable(prompt); n > usable {
				best, usable = s, n
			}
		}
		if best != nil {
			err = best.line.Rewind(usable)
		}
	})
	if best == nil {
		if best, err = e.freeSlot(); err == nil {
			e.snapshots.do(func() { err = best.line.Rewind(0) })
		}
	}
	if err != nil {
		return nil, 0, err
	}
	best.used = e.queue.turn()
	return best, usable, nil
}

func (e *Engine) freeSlot() (*slot, error) {
	if len(e.slots) < sessions {
		seq, err := e.model.NewSequence()
		if err != nil {
			return nil, err
		}
		s := &slot{seq: seq, line: cache.NewTimeline(seq.State, snapshotsEach)}
		e.slots = append(e.slots, s)
		e.snapshots.add(s.line)
		return s, nil
	}
	oldest := e.slots[0]
	for _, s := range e.slots[1:] {
		if s.used < oldest.used {
			oldest = s
		}
	}
	return oldest, nil
}

// prefill takes in what the slot does not hold of the prompt, in chunks that end at the marks, and returns the logits after it.
func (e *Engine) prefill(j *job, s *slot) (logits []float32, err error) {
	report := func(done int) {
		e.queue.progress(done, len(j.prompt))
		if j.gen.OnPrefill != nil {
			j.gen.OnPrefill(done, len(j.prompt))
		}
	}
	report(s.seq.Pos())
	for pos := s.seq.Pos(); pos < len(j.prompt); pos = s.seq.Pos() {
		if err := e.cancelled(j); err != nil {
			return nil, err
		}
		end := min(pos+e.chunk, len(j.prompt))
		for _, m := range j.marks {
			if m > pos {
				end = min(end, m)
				break
			}
		}
		ids := j.prompt[pos:end]
		if logits, err = s.seq.Chunk(ids, qwen36.LastLogits); err != nil {
			return nil, err
		}
		s.line.Append(ids...)
		e.queue.count(len(ids))
		for _, m := range j.marks {
			if m == end {
				e.snapshots.do(s.line.Mark)
			}
		}
		report(end)
	}
	e.queue.progress(0, 0)
	return logits, nil
}

// decode answers, token by token.
func (e *Engine) decode(j *job, s *slot, logits []float32) (Finish, error) {
	sampler, err := sample.New(*j.gen.Sampling, e.info.VocabSize, j.prompt)
	if err != nil {
		return "", err
	}
	w := &writer{job: j, tok: e.tok, decoder: e.tok.NewDecoder(), stopper: sample.NewStopper(j.gen.Stop), reasoning: j.thinking}
	m := newMasker(j.form, w)
	for {
		if err := e.cancelled(j); err != nil {
			return "", err
		}
		allowed, err := m.next()
		if err != nil {
			return "", err
		}
		choice, err := sampler.NextAmong(logits, allowed, s.seq.Pos(), j.top())
		if err != nil {
			return "", damaged(logits[:e.info.VocabSize], err)
		}
		if w.thinkingEnds(choice.ID) {
			if logits, err = e.closeThinking(j, s, sampler, w, logits); err != nil {
				return "", err
			}
			if w.full() {
				return w.close(chat.EndLength), nil
			}
			m.begin()
			continue
		}
		sampler.Accept(choice.ID)
		if e.stop[choice.ID] {
			j.usage.CompletionTokens++
			return w.close(chat.EndStop), nil
		}
		thinking := w.reasoning
		if w.token(choice) {
			return w.close(chat.EndStop), nil
		}
		ended, err := m.took(choice.ID)
		if err != nil {
			return "", err
		}
		switch {
		case ended:
			return w.close(chat.EndStop), nil
		case w.full():
			return w.close(chat.EndLength), nil
		}
		answering := m.formed() && thinking && !w.reasoning
		if !answering {
			m.ahead()
		}
		if logits, err = s.seq.Token(choice.ID); err != nil {
			return "", err
		}
		s.line.Append(choice.ID)
		e.queue.decoded(1)
		if answering { // what the model always writes behind the tag is no part of the form
			if logits, err = e.give(j, s, sampler, w, logits, e.tok.EncodeSpecial("\n\n")); err != nil {
				return "", err
			}
			if w.full() {
				return w.close(chat.EndLength), nil
			}
			m.begin()
		}
	}
}

// top is how many alternatives the sampler is to report; below 0 none, not the chosen token's either.
func (j *job) top() int {
	if !j.gen.Logprobs {
		return -1
	}
	return j.gen.TopLogprobs
}

// writer turns tokens into updates: whole characters, up to a stop text, parsed.
type writer struct {
	job       *job
	tok       *tokenizer.Tokenizer
	decoder   *tokenizer.Decoder
	stopper   *sample.Stopper
	reasoning bool
	calls     bool
	stopped   bool
	repeats   sample.Repeats
}

// token adds one token; it reports that a stop text was reached.
func (w *writer) token(c sample.Choice) (stopped bool) {
	var u Update
	w.job.usage.CompletionTokens++
	if w.job.gen.Logprobs {
		u.Logprobs = []TokenLogprob{w.logprob(c)}
	}
	u.Events = w.until(w.parse(w.decoder.Push(c.ID)))
	if w.reasoning {
		w.job.usage.ReasoningTokens++
	}
	w.job.answer.loop.Store(w.repeats.Accept(c.ID))
	w.job.answer.add(u)
	return w.stopped
}

// full reports whether the answer has all the tokens that it may have.
func (w *writer) full() bool { return w.job.usage.CompletionTokens >= w.job.gen.MaxTokens }

func (w *writer) parse(text string) []chat.Event {
	if w.job.parser == nil {
		if text == "" {
			return nil
		}
		return []chat.Event{{Kind: chat.Text, Text: text}}
	}
	ev := w.job.parser.Push(text)
	w.reasoning = w.job.parser.InReasoning()
	return ev
}

// until cuts events at a stop text. Only content is searched: a line end in the thinking, or in a tool's argument, is not the end
// that a client asked for. What may be the start of a stop text is held back until it is known not to be.
func (w *writer) until(events []chat.Event) []chat.Event {
	var out []chat.Event
	for _, e := range events {
		if w.stopped {
			break
		}
		if e.Kind == chat.CallStart && e.Index > 0 && w.job.gen.OneCall {
			w.stopped = true
			break
		}
		if e.Kind != chat.Text {
			out = append(out, w.held()...)
			w.calls = w.calls || e.Kind == chat.CallStart
			out = append(out, e)
			continue
		}
		if e.Text, w.stopped = w.stopper.Push(e.Text); e.Text != "" {
			out = append(out, e)
		}
	}
	return out
}

// held is the content that was held back.
func (w *writer) held() []chat.Event {
	if text := w.stopper.Flush(); text != "" {
		return []chat.Event{{Kind: chat.Text, Text: text}}
	}
	return nil
}

// close emits what was held back and says how the answer ended.
func (w *writer) close(end chat.End) Finish {
	var u Update
	events := w.parse(w.decoder.Flush())
	if p := w.job.parser; p != nil {
		events = append(events, p.Close(end)...)
	}
	u.Events = w.until(events)
	if !w.stopped {
		u.Events = append(u.Events, w.held()...)
	}
	w.job.answer.add(u)
	w.job.answer.matched(w.stopper.Matched())
	switch {
	case end == chat.EndLength && !w.stopped:
		return FinishLength
	case w.calls:
		return FinishToolCalls
	}
	return FinishStop
}

func (w *writer) logprob(c sample.Choice) TokenLogprob {
	out := TokenLogprob{ID: c.ID, Bytes: w.tok.Bytes(c.ID), Logprob: c.Logprob}
	for _, t := range c.Top {
		out.Top = append(out.Top, TokenLogprob{ID: t.ID, Bytes: w.tok.Bytes(t.ID), Logprob: t.Logprob})
	}
	return out
}
