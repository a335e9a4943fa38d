package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"pond/inference"
	"pond/inference/chat"
)

// progress is written by the engine's worker and read by the heartbeat.
type progress struct{ done, total, cached atomic.Int64 }

// set hears first of what the cache spared.
func (p *progress) set(done, total int) {
	if p.total.Load() == 0 {
		p.cached.Store(int64(done))
	}
	p.done.Store(int64(done))
	p.total.Store(int64(total))
}

// String is the text of a heartbeat.
func (p *progress) String() string {
	done, total := p.done.Load(), p.total.Load()
	if total == 0 {
		return "waiting"
	}
	if done < total {
		return fmt.Sprintf("prompt %d/%d tokens", done, total)
	}
	return "generating"
}

// work is what one request has the engine do: one answer for each choice. They are asked for at once, so that a full queue is an
// error before the first byte, and read one after the other, in the order in which the engine serves them.
type work struct {
	server   *Server
	request  string // id of the request
	answerID string // id of what it makes
	ctx      context.Context
	cancel   context.CancelFunc
	progress progress
	began    time.Time
	first    atomic.Int64 // nanoseconds from the beginning to the first update; 0 before it
	answers  []*inference.Answer
	reading  int // index in answers
	results  []inference.Result
	err      error
}

// part is a piece of a work: an update of one choice, or its end.
type part struct {
	choice int
	update inference.Update
	ended  bool
	result inference.Result // of the choice that has ended
}

// begin asks the engine for n answers. end must be called on what it returns.
func (s *Server) begin(ctx context.Context, requestID, answerID string, n int, ask func(ctx context.Context, w *work, choice int) (*inference.Answer, error)) (*work, error) {
	w := &work{server: s, request: requestID, answerID: answerID, began: time.Now()}
	w.ctx, w.cancel = context.WithCancel(ctx)
	s.inFlight.Add(1)
	for i := range n {
		a, err := ask(w.ctx, w, i)
		if err != nil {
			err = endOf(w.ctx, err)
			w.cancel()
			w.drain()
			s.inFlight.Add(-1)
			return nil, err
		}
		w.answers = append(w.answers, a)
	}
	s.running.add(w)
	return w, nil
}

// end gives back what the work holds. The engine stops if it has not yet.
func (w *work) end() {
	w.cancel()
	w.drain()
	w.server.running.remove(w)
	w.server.inFlight.Add(-1)
	w.server.metrics.ended(w)
}

// drain waits for the end of answers that were cancelled.
func (w *work) drain() {
	for _, a := range w.answers {
		for _, ok := a.Next(); ok; _, ok = a.Next() {
		}
	}
}

// next is the next piece; false after the last, or after an error, which err then holds.
func (w *work) next() (part, bool) {
	if w.err != nil || w.reading == len(w.answers) {
		return part{}, false
	}
	p := part{choice: w.reading}
	a := w.answers[w.reading]
	var ok bool
	if p.update, ok = a.Next(); ok {
		w.first.CompareAndSwap(0, int64(max(time.Since(w.began), 1)))
		return p, true
	}
	if w.err = endOf(w.ctx, a.Err()); w.err != nil {
		return part{}, false
	}
	p.ended, p.result = true, a.Result()
	w.results = append(w.results, p.result)
	w.reading++
	return p, true
}

// choice is one answer that was read to its end.
type choice struct {
	inference.Result
	events   []chat.Event
	logprobs []inference.TokenLogprob
}

// wait reads all choices.
func (w *work) wait() ([]choice, error) {
	choices := make([]choice, len(w.answers))
	for p, ok := w.next(); ok; p, ok = w.next() {
		c := &choices[p.choice]
		c.events = append(c.events, p.update.Events...)
		if c.logprobs = append(c.logprobs, p.update.Logprobs...); p.ended {
			c.Result = p.result
		}
	}
	return choices, w.err
}

// encoder writes one endpoint's events. begin comes before all, end after all choices have ended, fail instead of what is missing.
type encoder interface {
	begin() error
	update(choice int, u inference.Update) error
	ended(choice int, r inference.Result) error
	end(results []inference.Result) error
	fail(status int, f failure) error
}

// stream sends a work as events.
func (s *Server) stream(c echo.Context, w *work, newEncoder func(*eventStream) encoder) error {
	return s.streamInto(nil, c, w, newEncoder)
}

// streamInto is stream into one that was opened already; nil: it is opened here.
func (s *Server) streamInto(out *eventStream, c echo.Context, w *work, newEncoder func(*eventStream) encoder) error {
	if out == nil {
		var err error
		if out, err = openStream(c, s.options.Heartbeat); err != nil {
			return err
		}
	}
	e := newEncoder(out)
	if err := e.begin(); err != nil {
		return err
	}
	err := pump(out, w.next, w.cancel, w.progress.String, func(p part) error {
		if p.ended {
			return e.ended(p.choice, p.result)
		}
		return e.update(p.choice, p.update)
	})
	if err != nil {
		return err
	}
	if w.err != nil {
		status, f := s.describe(c, w.err)
		e.fail(status, f) // a client that does not take it has left: the error is told to the log
		return w.err
	}
	return e.end(w.results)
}

// register knows the works that run or wait.
type register struct {
	mu    sync.Mutex // protects works
	works map[*work]bool
}

func (r *register) add(w *work) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.works == nil {
		r.works = map[*work]bool{}
	}
	r.works[w] = true
}

func (r *register) remove(w *work) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.works, w)
}

// find gives the work with the id of its request or of its answer; "" means the only one there is.
func (r *register) find(id string) (*work, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.works {
		if id == w.request || id == w.answerID || id == "" && len(r.works) == 1 {
			return w, nil
		}
	}
	switch {
	case id != "":
		return nil, &refusal{status: http.StatusNotFound, code: "request_not_found", param: "id",
			message: fmt.Sprintf("id: got %q, want the id of a request that runs (X-Request-Id of its answer) or of the answer itself", id)}
	case len(r.works) == 0:
		return nil, refuse(http.StatusNotFound, "request_not_found", "no request runs")
	}
	return nil, &refusal{status: http.StatusConflict, code: "several_requests", param: "id",
		message: fmt.Sprintf("id: missing while %d requests run: want the id of one", len(r.works))}
}

// list gives the works in no order.
func (r *register) list() []*work {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*work, 0, len(r.works))
	for w := range r.works {
		list = append(list, w)
	}
	return list
}
