package chats

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pond/inference"
	chatproto "pond/inference/chat"
)

// script is an engine that says what a test wants.
type script struct {
	mu       sync.Mutex
	requests []inference.ChatRequest
	thinking []string
	text     []string
	hold     chan struct{} // nil: no waiting; else the answer waits after its texts until it is closed, or stopped
	hurried  chan struct{}
	fail     error
}

func (s *script) ask(ctx context.Context, r inference.ChatRequest) (Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if s.fail != nil {
		return Stream{}, s.fail
	}
	var events []chatproto.Event
	for _, x := range s.thinking {
		events = append(events, chatproto.Event{Kind: chatproto.Reasoning, Text: x})
	}
	for _, x := range s.text {
		events = append(events, chatproto.Event{Kind: chatproto.Text, Text: x})
	}
	at, hold, hurried := 0, s.hold, s.hurried
	var err error
	return Stream{
		Next: func() (inference.Update, bool) {
			if at < len(events) && ctx.Err() == nil {
				at++
				return inference.Update{Events: events[at-1 : at]}, true
			}
			if hold != nil {
				select {
				case <-hold:
				case <-ctx.Done():
				}
			}
			err = ctx.Err()
			return inference.Update{}, false
		},
		Err: func() error { return err },
		Result: func() inference.Result {
			return inference.Result{Finish: inference.FinishStop, Usage: inference.Usage{PromptTokens: 10, CompletionTokens: at, DecodeTime: time.Second}}
		},
		StopThinking: func() {
			if hurried != nil {
				close(hurried)
			}
		},
	}, nil
}

// until waits for a view that a test wants, for as long as a slow machine may need.
func until(t *testing.T, talk *Talk, what string, ok func(View) bool) View {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var last View
	found := false
	talk.Watch(ctx, func(v View) {
		if last = v; ok(v) {
			found = true
			cancel()
		}
	})
	if !found {
		t.Fatalf("waiting for %s: got %+v", what, last)
	}
	return last
}

func idle(v View) bool { return v.Work == Idle && len(v.Messages) > 0 }

func send(t *testing.T, talk *Talk, text string) View {
	t.Helper()
	if err := talk.Send(text, nil); err != nil {
		t.Fatal(err)
	}
	return until(t, talk, "an answer", idle)
}

func TestAChatIsThereAgain(t *testing.T) {
	dir := t.TempDir()
	s := &script{thinking: []string{"hm, ", "water"}, text: []string{"Still ", "water."}}
	store := New(dir, s.ask)
	cold, few := 0.25, 7
	talk := store.Begin(Params{Temperature: &cold, TopK: &few, System: "Be brief."})
	if list, err := store.List(""); err != nil || len(list.Chats) != 0 {
		t.Errorf("a chat without a word has a file: %+v, %v", list, err)
	}
	v := send(t, talk, "What is a pond?\nIn a word.")
	if v.Title != "What is a pond?" {
		t.Errorf("title: got %q", v.Title)
	}
	a := v.Messages[1]
	if a.Text != "Still water." || a.Thinking != "hm, water" || a.End != Complete || a.Figures.TokensASecond != 4 || a.Figures.FirstTokenMS == 0 {
		t.Errorf("answer: got %+v %+v", a, a.Figures)
	}
	r := s.requests[0]
	if got := r.Conversation.Messages; len(got) != 2 || got[0].Role != "system" || got[1].Content.String() != "What is a pond?\nIn a word." {
		t.Errorf("conversation: got %+v", got)
	}
	if r.Sampling == nil || r.Sampling.Temperature != 0.25 || r.Sampling.TopP != 0.95 || r.Sampling.TopK != 7 {
		t.Errorf("sampling: got %+v", r.Sampling)
	}
	store.Close()

	store = New(dir, s.ask)
	defer store.Close()
	list, err := store.List("")
	if err != nil || len(list.Chats) != 1 || list.Chats[0].Title != "What is a pond?" || list.Chats[0].Messages != 2 {
		t.Fatalf("list: got %+v, %v", list, err)
	}
	talk, err = store.Open(list.Chats[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	again := talk.View()
	if len(again.Messages) != 2 || again.Messages[1].Text != a.Text || again.Messages[1].End != Complete || *again.Params.Temperature != 0.25 {
		t.Errorf("got %+v", again)
	}
	send(t, talk, "And a lake?")
	if got := s.requests[1].Conversation.Messages; len(got) != 4 || got[2].Content.String() != "Still water." || *got[2].Reasoning != "hm, water" {
		t.Errorf("history: got %+v", got)
	}
}

func TestBranches(t *testing.T) {
	s := &script{text: []string{"one"}}
	store := New(t.TempDir(), s.ask)
	defer store.Close()
	talk := store.Begin(Params{})
	send(t, talk, "first")
	s.text = []string{"two"}
	send(t, talk, "second")
	s.text = []string{"other"}
	if err := talk.Regenerate(2); err != nil {
		t.Fatal(err)
	}
	v := until(t, talk, "another answer", idle)
	if len(v.Messages) != 2 || v.Messages[1].Text != "other" || v.Messages[1].Version != 2 || v.Messages[1].Versions != 2 {
		t.Errorf("regenerated: got %+v", v.Messages)
	}
	if err := talk.Show(v.Messages[1].ID, -1); err != nil {
		t.Fatal(err)
	}
	if v = talk.View(); len(v.Messages) != 4 || v.Messages[3].Text != "two" {
		t.Errorf("the first branch: got %+v", v.Messages)
	}
	if err := talk.Edit(3, "second, but better"); err != nil {
		t.Fatal(err)
	}
	v = until(t, talk, "the edited question", idle)
	if len(v.Messages) != 4 || v.Messages[2].Text != "second, but better" || v.Messages[2].Versions != 2 {
		t.Errorf("edited: got %+v", v.Messages)
	}
	if got := s.requests[len(s.requests)-1].Conversation.Messages; len(got) != 3 || got[1].Content.String() != "one" {
		t.Errorf("the edited question was asked after %+v", got)
	}
	store.Close()
	again, err := store.Open(v.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.View().Messages; len(got) != 4 || got[2].Text != "second, but better" {
		t.Errorf("after a restart: got %+v", got)
	}
}

func TestStopKeepsWhatThereIs(t *testing.T) {
	s := &script{thinking: []string{"let me see"}, text: []string{"Once"}, hold: make(chan struct{}), hurried: make(chan struct{})}
	store := New(t.TempDir(), s.ask)
	defer store.Close()
	talk := store.Begin(Params{})
	if err := talk.Send("a story", nil); err != nil {
		t.Fatal(err)
	}
	until(t, talk, "text", func(v View) bool { return v.Work == Answering })
	if err := talk.Send("more", nil); !errors.Is(err, ErrAnswering) {
		t.Errorf("two answers at once: got %v", err)
	}
	talk.AnswerNow()
	<-s.hurried
	talk.Stop()
	v := until(t, talk, "the end", idle)
	if a := v.Messages[1]; a.Text != "Once" || a.End != Stopped {
		t.Errorf("got %+v", a)
	}
}

func TestErrorsAreSentences(t *testing.T) {
	for err, want := range map[error]string{
		ErrNotRunning:      "The model is not running. Start it and ask again.",
		inference.ErrBusy:  "Too many questions are waiting",
		errors.New("boom"): "The answer failed: boom.",
		error(&inference.ContextError{PromptTokens: 70123, LimitTokens: 49152}): "70,123 tokens, and 49,152 fit",
	} {
		s := &script{fail: err}
		store := New(t.TempDir(), s.ask)
		v := send(t, store.Begin(Params{}), "hello")
		if a := v.Messages[1]; a.End != Broken || !strings.Contains(a.Error, want) {
			t.Errorf("%v: got %+v", err, a)
		}
		store.Close()
	}
}

func TestListSearchRenameDelete(t *testing.T) {
	s := &script{text: []string{"The Amazon flows through Brazil."}}
	store := New(t.TempDir(), s.ask)
	defer store.Close()
	a, b := store.Begin(Params{}), store.Begin(Params{})
	send(t, a, "Rivers?")
	s.mu.Lock()
	s.text = []string{"Eider and teal."}
	s.mu.Unlock()
	send(t, b, "Ducks?")
	titles := func(query string) string {
		list, err := store.List(query)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, c := range list.Chats {
			out = append(out, c.Title)
		}
		return strings.Join(out, " ")
	}
	if got := titles(""); got != "Ducks? Rivers?" {
		t.Errorf("youngest first: got %q", got)
	}
	if got := titles("BRAZIL amazon"); got != "Rivers?" {
		t.Errorf("search: got %q", got)
	}
	if list, _ := store.List("brazil"); !strings.Contains(list.Chats[0].Found, "flows through Brazil.") {
		t.Errorf("quote: got %q", list.Chats[0].Found)
	}
	if err := store.Rename(a.View().ID, "  Big\n rivers "); err != nil {
		t.Fatal(err)
	}
	if got := titles("big riv"); got != "Big rivers" {
		t.Errorf("renamed: got %q", got)
	}
	if err := store.Delete(b.View().ID); err != nil {
		t.Fatal(err)
	}
	if got := titles(""); got != "Big rivers" {
		t.Errorf("deleted: got %q", got)
	}
}

// TestAChatThatIsLeft is closed when it is idle, and answered to its end when it is not.
func TestAChatThatIsLeft(t *testing.T) {
	s := &script{text: []string{"one"}}
	store := New(t.TempDir(), s.ask)
	defer store.Close()
	first := store.Begin(Params{})
	id := send(t, first, "first").ID
	store.Leave(id)
	again, err := store.Open(id)
	if err != nil || again == first || len(again.View().Messages) != 2 {
		t.Errorf("got %v, the same: %v", err, again == first)
	}
	s.mu.Lock()
	s.hold = make(chan struct{})
	s.mu.Unlock()
	if err := again.Send("second", nil); err != nil {
		t.Fatal(err)
	}
	until(t, again, "text", func(v View) bool { return v.Work == Answering })
	store.Leave(id)
	if same, err := store.Open(id); err != nil || same != again {
		t.Errorf("a chat that is being answered was closed: %v", err)
	}
	close(s.hold)
	if v := until(t, again, "the end", func(v View) bool { return v.Work == Idle }); v.Messages[3].End != Complete {
		t.Errorf("got %+v", v.Messages[3])
	}
}

// TestOneBadFileCostsNoOther is what users of other apps saw: one unreadable chat and the history was empty.
func TestOneBadFileCostsNoOther(t *testing.T) {
	dir := t.TempDir()
	s := &script{text: []string{"fine"}}
	store := New(dir, s.ask)
	v := send(t, store.Begin(Params{}), "good one")
	store.Close()
	good, err := os.ReadFile(filepath.Join(dir, v.ID+extension))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty.jsonl": "", "newer.jsonl": `{"pond_chat":99,"id":"x"}` + "\n", "noise.jsonl": "\x00\x01\x02", "html.jsonl": "<html>\n",
		"folder.txt": "", "torn.jsonl": string(good[:len(good)-9]),
		"hole.jsonl": strings.Replace(string(good), `"role":"user"`, `"role":17`, 1),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store = New(dir, s.ask)
	defer store.Close()
	list, err := store.List("")
	if err != nil || len(list.Chats) != 3 || len(list.Bad) != 4 {
		t.Fatalf("got %d chats and %d bad ones (%v), want 3 and 4", len(list.Chats), len(list.Bad), err)
	}
	for _, b := range list.Bad {
		if b.File == "newer.jsonl" && !strings.Contains(b.Err.Error(), "newer Pond") {
			t.Errorf("%s: got %v", b.File, b.Err)
		}
	}
	torn, err := store.Open("torn")
	if err != nil {
		t.Fatal(err)
	}
	if a := torn.View().Messages[1]; a.Text != "fine" || a.End != Interrupted {
		t.Errorf("torn: got %+v", a)
	}
	hole, err := store.Open("hole")
	if err != nil {
		t.Fatal(err)
	}
	send(t, hole, "go on")
	if copies, _ := filepath.Glob(filepath.Join(dir, "hole.jsonl.damaged-*")); len(copies) != 1 {
		t.Errorf("got copies %v, want one of the damaged file", copies)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "newer.jsonl")); err != nil || !strings.Contains(string(text), "99") {
		t.Errorf("the newer file was touched: %q %v", text, err)
	}
}

// TestAChatThatCannotBeSavedGoesOn: the folder is a file, as read-only folders do not stop root.
func TestAChatThatCannotBeSavedGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "chats")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	store := New(dir, (&script{text: []string{"yes"}}).ask)
	defer store.Close()
	v := send(t, store.Begin(Params{}), "do you hear me?")
	if v.Messages[1].Text != "yes" || !strings.HasPrefix(v.Notice, "This chat is not being saved: ") {
		t.Errorf("got %+v", v)
	}
}

func TestLongAnswersAreWrittenAnewOnce(t *testing.T) {
	dir := t.TempDir()
	var lines strings.Builder
	lines.WriteString(`{"pond_chat":1,"id":"long","at":"2026-01-02T03:04:05Z"}` + "\n")
	lines.WriteString(`{"message":{"id":1,"role":"user","text":"go","at":"2026-01-02T03:04:05Z"}}` + "\n")
	lines.WriteString(`{"message":{"id":2,"parent":1,"role":"assistant","at":"2026-01-02T03:04:06Z"}}` + "\n")
	var want strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&lines, `{"more":{"id":2,"text":"word %d "}}`+"\n", i)
		fmt.Fprintf(&want, "word %d ", i)
	}
	file := filepath.Join(dir, "long.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	store := New(dir, (&script{}).ask)
	talk, err := store.Open("long")
	if err != nil {
		t.Fatal(err)
	}
	if got := talk.View().Messages[1]; got.Text != want.String() || got.End != Interrupted {
		t.Errorf("got %d bytes, %s", len(got.Text), got.End)
	}
	store.Close()
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") > 5 {
		t.Errorf("got %d lines (%v), want few", strings.Count(string(text), "\n"), err)
	}
	again, err := store.Open("long")
	if err != nil || again.View().Messages[1].Text != want.String() {
		t.Errorf("written anew: %v", err)
	}
	store.Close()
}

func TestAttachments(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a.txt": {"\xef\xbb\xbfHello", ""},
		"b.bin": {"ab\x00c", "not a text file"},
		"l.txt": {"caf\xe9", "not a text file"},
		"e.txt": {"", "empty"},
		"big":   {strings.Repeat("x", MaxFileBytes+1), "larger than 256 KB"},
	} {
		f, err := ReadFile("/tmp/"+name, strings.NewReader(c.text))
		if c.want == "" {
			if err != nil || f.Name != name || f.Text != "Hello" {
				t.Errorf("%s: got %+v, %v", name, f, err)
			}
			continue
		}
		var attach *AttachError
		if !errors.As(err, &attach) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	got := prompt(Message{Text: "What is this?", Files: []File{{"m.md", "a\n```\nb"}}})
	if want := "m.md\n````\na\n```\nb\n````\n\nWhat is this?"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWords(t *testing.T) {
	f := Figures{TokensASecond: 61.234, FirstTokenMS: 420, Tokens: 812}
	if got := f.Line(); got != "61.2 tok/s · first token after 0.4 s · 812 tokens" {
		t.Errorf("got %q", got)
	}
	for d, want := range map[time.Duration]string{400 * time.Millisecond: "0.4 s", 12 * time.Second: "12 s", 125 * time.Second: "2 min 5 s", 120 * time.Second: "2 min"} {
		if got := Seconds(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
	bad := 3.0
	if err := (Params{Temperature: &bad}).Validate(); err == nil {
		t.Error("a temperature of 3 passed")
	}
}
