package inference

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pond/inference/chat"
	"pond/inference/qwen36"
	"pond/inference/sample"
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
	task     func(*live) error // instead of a generation
	fetched  bool              // it was looked for on the disk
	fromDisk int               // tokens of the prompt that were read from there
	readTime time.Duration     // for them
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

// answer is the life of an answer, on the job's own goroutine: the prompt, then token by token.
func (e *Engine) answer(l *live) (Finish, error) {
	j := l.job
	start := time.Now()
	logits, err := e.prefill(l)
	j.usage.PrefillTime = time.Since(start)
	e.queue.progress(j, 0, 0)
	if err != nil {
		return "", err
	}
	start = time.Now()
	f, err := e.decode(l, logits)
	j.usage.DecodeTime = time.Since(start)
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

// prefill takes in what is not kept of the prompt, in chunks that end at the marks, and returns the logits after it.
func (e *Engine) prefill(l *live) (logits []float32, err error) {
	j := l.job
	report := func(done int) {
		e.queue.progress(j, done, len(j.prompt))
		if j.gen.OnPrefill != nil {
			j.gen.OnPrefill(done, len(j.prompt))
		}
	}
	if err := l.do(begin, 0, func() error { return e.start(l) }); err != nil {
		return nil, err
	}
	j.usage.CachedTokens = len(l.tokens)
	if j.fromDisk == len(l.tokens) {
		j.usage.DiskTokens = j.fromDisk
	}
	report(len(l.tokens))
	for pos := len(l.tokens); pos < len(j.prompt); pos = len(l.tokens) {
		if err := e.cancelled(j); err != nil {
			return nil, err
		}
		end := min(pos+e.chunk, len(j.prompt))
		if i, _ := slices.BinarySearch(j.marks, pos+1); i < len(j.marks) {
			end = min(end, j.marks[i])
		}
		_, mark := slices.BinarySearch(j.marks, end)
		if logits, err = l.chunk(j.prompt[pos:end], qwen36.LastLogits, mark); err != nil {
			return nil, err
		}
		e.queue.count(end - pos)
		report(end)
	}
	return logits, nil
}

// decode answers, token by token.
func (e *Engine) decode(l *live, logits []float32) (Finish, error) {
	j := l.job
	sampler, err := sample.New(*j.gen.Sampling, e.info.VocabSize, j.prompt)
	if err != nil {
		return "", err
	}
	w := &writer{job: j, tok: e.tok, decoder: e.tok.NewDecoder(), stopper: sample.NewStopper(j.gen.Stop), reasoning: j.thinking}
	m := newMasker(j.form, w)
	c := e.newChooser(l, sampler, m, j.top())
	c.after(logits)
	for {
		if err := e.cancelled(j); err != nil {
			return "", err
		}
		choice, err := c.next()
		if err != nil {
			return "", err
		}
		if w.thinkingEnds(choice.ID) {
			if logits, err = e.closeThinking(l, sampler, w, c.logits); err != nil {
				return "", err
			}
			if w.full() {
				return w.close(chat.EndLength), nil
			}
			m.begin()
			c.after(logits)
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
		if err := c.take(choice.ID, w.goesOn()); err != nil {
			return "", err
		}
		e.queue.decoded(1)
		if answering { // what the model always writes behind the tag is no part of the form
			if logits, err = e.give(l, sampler, w, c.logits, e.tok.EncodeSpecial("\n\n")); err != nil {
				return "", err
			}
			if w.full() {
				return w.close(chat.EndLength), nil
			}
			m.begin()
			c.after(logits)
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
