package chats

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"pond/inference"
	chatproto "pond/inference/chat"
)

// Interval is the shortest time between two views of an answer that grows: 15 a second, which looks continuous and leaves the
// window's thread its time.
const Interval = time.Second / 15

// Work is what the running answer is at.
type Work int

// The stages of an answer, in their order.
const (
	Idle      Work = iota
	Waiting        // for other requests, or for the first token of a prompt that needs no work
	Prefill        // the prompt is taken in
	Thinking       // inside the think block
	Answering      // the content is written
)

// View is everything a window draws of a chat: an immutable snapshot.
type View struct {
	ID       string
	Title    string
	Params   Params
	Messages []Shown // the shown branch
	Work     Work
	Done     int           // Prefill: tokens of the prompt taken in,
	Total    int           // of how many
	Since    time.Time     // when this stage of work began
	Thought  time.Duration // what the running answer spent on thinking before it began to speak
	Circles  bool          // what is being written goes round in circles
	Notice   string        // a sentence about the chat itself, such as that it cannot be saved
	Changes  int           // grows with every view
}

// Shown is a message and its place among those that stand in for it.
type Shown struct {
	Message
	Version, Versions int // from 1
}

// Talk is one open chat. Its methods are safe for concurrent use and, but for Watch, do not wait for the model.
type Talk struct {
	ask Ask

	mu      sync.Mutex // protects all below
	c       chat
	journal journal
	notice  string
	changed chan struct{} // closed and replaced at every change
	changes int
	closed  bool

	work        Work
	since       time.Time
	thought     time.Duration
	done, total int
	running     int // id of the answer that is being written; 0: none
	cancel      context.CancelFunc
	finished    chan struct{}
	stopThought func()
	hurried     bool // "answer now" was asked for
	circles     bool // the answer repeats itself just now
}

func newTalk(s *Store, c chat) *Talk {
	return &Talk{ask: s.ask, c: c, journal: journal{path: filepath.Join(s.dir, c.id+extension)}, changed: make(chan struct{})}
}

// View is the present state.
func (t *Talk) View() View {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.view()
}

func (t *Talk) view() View {
	v := View{ID: t.c.id, Title: t.c.name(), Params: t.c.params, Work: t.work, Done: t.done, Total: t.total, Since: t.since, Thought: t.thought, Circles: t.circles, Notice: t.notice, Changes: t.changes}
	for _, m := range t.c.path() {
		ids, at := t.c.versions(m.ID)
		v.Messages = append(v.Messages, Shown{m, at + 1, len(ids)})
	}
	return v
}

// Watch calls draw with the present view and with later ones until ctx is done. Views that follow each other faster than draw
// returns are passed over, but never the last one.
func (t *Talk) Watch(ctx context.Context, draw func(View)) {
	for {
		t.mu.Lock()
		v, changed := t.view(), t.changed
		t.mu.Unlock()
		draw(v)
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// change tells the watchers. The caller holds mu.
func (t *Talk) change() {
	t.changes++
	close(t.changed)
	t.changed = make(chan struct{})
}

// save appends to the file; a chat that cannot be saved goes on and says so. The caller holds mu.
func (t *Talk) save(records ...record) {
	if err := t.journal.add(records...); err != nil {
		t.notice = notSaved(err)
	}
}

// begin makes the file of a chat that has none yet. The caller holds mu.
func (t *Talk) begin() {
	if t.journal.file != nil {
		return
	}
	lines, err := encode(t.c.records()...)
	if err == nil {
		err = t.journal.create(lines)
	}
	t.notice = ""
	if err != nil {
		t.notice = notSaved(err)
	}
}

// ErrAnswering is what asking gets while an answer is being written.
var ErrAnswering = errors.New("an answer is being written; stop it first")

// ErrNothing is what sending an empty question gets.
var ErrNothing = errors.New("there is nothing to send")

// Send adds a question behind what is shown and asks for its answer.
func (t *Talk) Send(text string, files []File) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sendBelow(t.c.head, text, files)
}

// Edit asks a question again with other words: a branch beside the old one. The files stay with it.
func (t *Talk) Edit(id int, text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.c.message(id)
	if m == nil || m.Role != User {
		return fmt.Errorf("message %d: want a question", id)
	}
	return t.sendBelow(m.Parent, text, m.Files)
}

// sendBelow adds a question under parent and starts its answer. The caller holds mu.
func (t *Talk) sendBelow(parent int, text string, files []File) error {
	text = strings.TrimSpace(text)
	switch {
	case t.running != 0:
		return ErrAnswering
	case text == "" && len(files) == 0:
		return ErrNothing
	case len(files) > MaxFiles:
		return fmt.Errorf("a question takes at most %d files", MaxFiles)
	}
	m := Message{Parent: parent, Role: User, Text: text, Files: slices.Clone(files), At: time.Now()}
	t.c.add(m)
	t.started()
	return nil
}

// Regenerate asks for another answer in the place of one.
func (t *Talk) Regenerate(id int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.c.message(id)
	switch {
	case m == nil || m.Role != Assistant:
		return fmt.Errorf("message %d: want an answer", id)
	case t.running != 0:
		return ErrAnswering
	}
	t.c.head = m.Parent
	t.started()
	return nil
}

// started begins the answer to the head. The caller holds mu and nothing runs.
func (t *Talk) started() {
	question := t.c.head
	path := t.c.path()
	id := t.c.add(Message{Parent: question, Role: Assistant, At: time.Now()})
	if t.journal.file == nil {
		t.begin()
	} else {
		var records []record
		if q := t.c.message(question); q.ID == id-1 { // a new question; asking again repeats none
			records = append(records, record{Message: q})
		}
		t.save(append(records, record{Message: t.c.message(id)})...)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.running, t.cancel, t.finished, t.hurried, t.circles, t.stopThought = id, cancel, make(chan struct{}), false, false, nil
	t.at(Waiting)
	t.done, t.total, t.thought = 0, 0, 0
	t.change()
	r := request(path, t.c.params)
	go t.answer(ctx, id, r, t.finished)
}

// at begins a stage of the work. The caller holds mu.
func (t *Talk) at(w Work) {
	if t.work == w {
		return
	}
	now := time.Now()
	if t.work == Thinking {
		t.thought = now.Sub(t.since)
	}
	t.work, t.since = w, now
}

// sync makes the disk keep what was written, without holding the chat: a disk can take its time.
func (t *Talk) sync() {
	t.mu.Lock()
	j := t.journal
	t.mu.Unlock()
	if err := j.sync(); err != nil && !errors.Is(err, os.ErrClosed) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.notice = notSaved(err)
		t.change()
	}
}

// meter hands the progress of the prompt from the engine's worker, which must not wait, to the chat. Only the newest counts.
func (t *Talk) meter(ctx context.Context, id int) (report func(done, total int), end func()) {
	type progress struct{ done, total int }
	newest := make(chan progress, 1)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case p := <-newest:
				t.prefilled(id, p.done, p.total)
				wait(ctx, Interval)
			case <-ctx.Done():
				return
			}
		}
	}()
	report = func(done, total int) {
		for {
			select {
			case newest <- progress{done, total}:
				return
			default:
			}
			select {
			case <-newest:
			default:
			}
		}
	}
	return report, func() { cancel(); <-ended }
}

func (t *Talk) prefilled(id, done, total int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running != id || t.work > Prefill {
		return
	}
	t.at(Prefill)
	t.done, t.total = done, total
	t.change()
}

// answer reads one answer to its end.
func (t *Talk) answer(ctx context.Context, id int, r inference.ChatRequest, finished chan struct{}) {
	defer close(finished)
	asked := time.Now()
	report, end := t.meter(ctx, id)
	defer end()
	r.Generation.OnPrefill = report
	a, err := t.ask(ctx, r)
	if err != nil {
		t.ended(id, asked, timing{}, inference.Result{}, err)
		t.sync()
		return
	}
	t.mu.Lock()
	t.stopThought = a.StopThinking
	if t.hurried {
		a.StopThinking()
	}
	t.mu.Unlock()
	t.sync() // the question, while the engine reads it
	var times timing
	for {
		u, more := a.Next()
		if !more {
			break
		}
		shown := time.Now()
		times.note(u.Events, shown)
		t.grow(id, u.Events, a.Repeating != nil && a.Repeating())
		if ctx.Err() == nil {
			wait(ctx, Interval-time.Since(shown))
		}
	}
	t.ended(id, asked, times, a.Result(), a.Err())
	t.sync()
}

// timing is when the parts of an answer came.
type timing struct{ first, thought, spoke, last time.Time }

func (w *timing) note(events []chatproto.Event, now time.Time) {
	for _, e := range events {
		if w.first.IsZero() {
			w.first = now
		}
		w.last = now
		switch {
		case e.Kind == chatproto.Reasoning && w.thought.IsZero():
			w.thought = now
		case e.Kind == chatproto.Text && w.spoke.IsZero() && e.Text != "":
			w.spoke = now
		}
	}
}

// thinking is how long the think block took.
func (w *timing) thinking() time.Duration {
	switch {
	case w.thought.IsZero():
		return 0
	case w.spoke.IsZero():
		return w.last.Sub(w.thought)
	}
	return w.spoke.Sub(w.thought)
}

func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// grow adds what came: to the file first, then to what watchers see. circles: the answer repeats itself.
func (t *Talk) grow(id int, events []chatproto.Event, circles bool) {
	var thinking, text strings.Builder
	for _, e := range events {
		switch e.Kind {
		case chatproto.Reasoning:
			thinking.WriteString(e.Text)
		case chatproto.Text:
			text.WriteString(e.Text)
		case chatproto.CallStart, chatproto.CallArguments: // the chat offers no tools; what the model writes as a call is shown, not lost
			text.WriteString(e.Name + e.Text)
		}
	}
	if thinking.Len() == 0 && text.Len() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.save(record{More: &more{ID: id, Thinking: thinking.String(), Text: text.String()}})
	m := t.c.message(id)
	m.Thinking += thinking.String()
	m.Text += text.String()
	t.circles = circles
	if text.Len() > 0 {
		t.at(Answering)
	} else {
		t.at(Thinking)
	}
	t.c.updated = time.Now()
	t.change()
}

// ended marks the answer.
func (t *Talk) ended(id int, asked time.Time, times timing, r inference.Result, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.c.message(id)
	switch {
	case err == nil && r.Finish == inference.FinishLength:
		m.End = Length
	case err == nil:
		m.End = Complete
	case t.closed:
		m.End = Interrupted
	case errors.Is(err, context.Canceled):
		m.End = Stopped
	default:
		m.End, m.Error = Broken, sentence(err)
	}
	f := Figures{
		PromptTokens: r.Usage.PromptTokens, CachedTokens: r.Usage.CachedTokens, DiskTokens: r.Usage.DiskTokens,
		Tokens: r.Usage.CompletionTokens, ThinkingTokens: r.Usage.ReasoningTokens, ThinkingMS: times.thinking().Milliseconds(),
	}
	if !times.first.IsZero() {
		f.FirstTokenMS = max(1, times.first.Sub(asked).Milliseconds())
	}
	if s := r.Usage.DecodeTime.Seconds(); s > 0 && f.Tokens > 1 {
		f.TokensASecond = float64(f.Tokens) / s
	}
	if f != (Figures{}) {
		m.Figures = &f
	}
	t.save(record{End: &ended{ID: id, End: m.End, Error: m.Error, Figures: m.Figures}})
	t.cancel()
	t.running, t.cancel, t.stopThought, t.circles = 0, nil, nil, false
	t.at(Idle)
	t.change()
}

// Stop ends the answer that is being written; what there is of it stays.
func (t *Talk) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
	}
}

// AnswerNow closes the think block: the model answers from what it has.
func (t *Talk) AnswerNow() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hurried = true
	if t.stopThought != nil {
		t.stopThought()
	}
}

// Show goes to another version of a message: by is -1 or 1.
func (t *Talk) Show(id, by int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running != 0 {
		return ErrAnswering
	}
	if t.c.message(id) == nil {
		return fmt.Errorf("message %d: there is none", id)
	}
	ids, at := t.c.versions(id)
	if at += by; at < 0 || at >= len(ids) {
		return nil
	}
	t.c.head = t.c.leaf(ids[at])
	head := t.c.head
	t.save(record{Head: &head})
	t.change()
	return nil
}

// SetParams changes the parameters for the answers to come.
func (t *Talk) SetParams(p Params) error {
	if err := p.Validate(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.c.params = p
	t.save(record{Params: &p})
	t.change()
	return nil
}

func (t *Talk) rename(title string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.journal.add(record{Title: &title}); err != nil {
		return fmt.Errorf("the chat cannot be renamed: %w", err)
	}
	t.c.title = title
	t.change()
	return nil
}

func (t *Talk) answering() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running != 0
}

// close stops the answer, waits for its end and closes the file.
func (t *Talk) close() {
	t.mu.Lock()
	finished := t.finished
	t.closed = true
	if t.cancel != nil {
		t.cancel()
	}
	t.mu.Unlock()
	if finished != nil {
		<-finished
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.journal.close(); err != nil {
		t.notice = notSaved(err)
		t.change()
	}
}

// count writes a number with its thousands apart.
func count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
