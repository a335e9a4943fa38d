package inference

import (
	"fmt"
	"sync"
	"time"

	"pond/inference/chat"
	"pond/inference/grammar"
)

// forms keeps what is known of the forms of earlier answers: agents send the same schema with every request.
type forms struct {
	once  sync.Once
	vocab *grammar.Vocabulary

	mu    sync.Mutex  // protects what follows
	bound []boundForm // the latest used last
}

type boundForm struct {
	key   string
	bound *grammar.Bound
}

// maxForms is how many are kept; each may come to 40 MB with the full vocabulary, and takes a few in practice.
const maxForms = 4

func (f *forms) vocabulary(e *Engine) *grammar.Vocabulary {
	f.once.Do(func() {
		var stops []int32
		for id := range e.stop {
			stops = append(stops, id)
		}
		f.vocab = grammar.NewVocabulary(e.info.VocabSize, e.tok.Bytes, e.tok.Added, stops)
	})
	return f.vocab
}

func (f *forms) bind(e *Engine, g *grammar.Grammar) *grammar.Bound {
	v := f.vocabulary(e)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, b := range f.bound {
		if b.key == g.Key() {
			f.bound = append(append(f.bound[:i], f.bound[i+1:]...), b)
			return b.bound
		}
	}
	if len(f.bound) == maxForms {
		f.bound = append(f.bound[:0], f.bound[1:]...)
	}
	b := boundForm{g.Key(), g.Bind(v)}
	f.bound = append(f.bound, b)
	return b.bound
}

// form is what an answer is held to.
type form struct {
	vocab   *grammar.Vocabulary
	bound   *grammar.Bound // nil: the content is free
	noCalls bool
	literal bool
}

// formOf puts format and tool choice together. It is nil where nothing is asked for.
func (e *Engine) formOf(r ChatRequest) (*form, error) {
	tools, choice := r.Conversation.Tools, r.ToolChoice
	switch choice.Mode {
	case "", ToolsAuto, ToolsNone, ToolsRequired:
	default:
		return nil, &chat.Error{Path: "tool_choice", Message: fmt.Sprintf("got %q, want auto, none, required or a tool's name", choice.Mode)}
	}
	if choice.forced() && len(tools) == 0 {
		return nil, &chat.Error{Path: "tool_choice", Message: "got a call to be made and no tools, want tools"}
	}
	schema := r.Format.Grammar()
	f := &form{}
	g := schema
	var err error
	switch {
	case choice.forced():
		if g, err = grammar.Calls(tools, choice.Name, r.OneCall); err != nil {
			return nil, &chat.Error{Path: "tool_choice", Message: fmt.Sprintf("got the name %q, want that of one of the tools", choice.Name)}
		}
	case choice.Mode == ToolsNone || len(tools) == 0:
		f.noCalls = choice.Mode == ToolsNone || schema != nil
	case schema != nil:
		if g, err = grammar.OrCalls(schema, tools, r.OneCall); err != nil {
			return nil, err
		}
	case r.StrictTools:
		if g, err = grammar.TextOrCalls(tools, r.OneCall); err != nil {
			return nil, err
		}
	}
	f.literal = schema != nil && !choice.forced()
	if g == nil && !(f.noCalls && len(tools) > 0) {
		return nil, nil
	}
	f.vocab = e.forms.vocabulary(e)
	if g != nil {
		f.bound = e.forms.bind(e, g)
	}
	return f, nil
}

// masker says which tokens may come next in one answer. Rules:
//   - a form holds from the end of the thinking on;
//   - the thinking of an answer that has a form ends only with the token </think>: neither with the answer's end, nor with a call, nor with
//     the tag spelled out, behind which the form could not be held to any more;
//   - the mask for the next token is worked out while the device computes its logits.
type masker struct {
	form    *form
	w       *writer
	matcher *grammar.Matcher // nil: free, or still thinking
	ready   chan mask        // of the next token; nil: not asked for
	think   *grammar.Thinking
}

type mask struct {
	bits []uint64
	err  error
}

func newMasker(f *form, w *writer) *masker {
	if f == nil {
		return nil
	}
	m := &masker{form: f, w: w, think: f.vocab.NewThinking(f.bound != nil)}
	if !w.reasoning {
		m.begin()
	}
	return m
}

// begin is the end of the thinking.
func (m *masker) begin() {
	if m != nil && m.form.bound != nil && m.matcher == nil {
		m.matcher = m.form.bound.Start()
	}
}

// formed reports whether the answer has a form that its content is held to.
func (m *masker) formed() bool { return m != nil && m.form.bound != nil }

// next returns the mask of the next token; nil allows all.
func (m *masker) next() ([]uint64, error) {
	if m == nil {
		return nil, nil
	}
	start := time.Now()
	if m.ready == nil {
		m.ahead()
	}
	got := <-m.ready
	m.ready = nil
	m.w.job.usage.MaskTime += time.Since(start)
	m.w.job.usage.MaskSteps++
	return got.bits, got.err
}

// ahead has the next mask worked out.
func (m *masker) ahead() {
	if m == nil {
		return
	}
	m.ready = make(chan mask, 1)
	if m.matcher == nil {
		m.ready <- mask{bits: m.think.Mask()}
		return
	}
	if bits := m.matcher.Known(); bits != nil {
		m.ready <- mask{bits: bits}
		return
	}
	go func(ready chan<- mask, matcher *grammar.Matcher) {
		defer func() {
			if r := recover(); r != nil {
				ready <- mask{err: fmt.Errorf("internal error: mask: %v", r)}
			}
		}()
		ready <- mask{bits: matcher.Mask()}
	}(m.ready, m.matcher)
}

// took goes on by a token that was drawn. It reports that the answer is whole and nothing can follow.
func (m *masker) took(id int32) (ended bool, err error) {
	switch {
	case m == nil:
		return false, nil
	case m.matcher == nil:
		m.think.Accept(id)
		return false, nil
	}
	if err := m.matcher.Accept(id); err != nil {
		return false, fmt.Errorf("internal error: %w", err)
	}
	return m.matcher.Ended(), nil
}
