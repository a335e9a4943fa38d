package console

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"pond/inference/chat"
)

// scripted answers with what it was told, and keeps the conversations it was asked.
type scripted struct {
	events  [][]chat.Event
	figures Figures
	err     error
	asked   []chat.Conversation
}

func (f *scripted) ask(_ context.Context, c chat.Conversation, emit func([]chat.Event), progress func(int, int)) (Figures, error) {
	f.asked = append(f.asked, c)
	progress(1, 2)
	for _, e := range f.events {
		emit(e)
	}
	return f.figures, f.err
}

func thoughtful() *scripted {
	return &scripted{events: [][]chat.Event{
		{{Kind: chat.Reasoning, Text: "Hmm."}},
		{{Kind: chat.Text, Text: "\n\nStill \x1b[31m"}, {Kind: chat.Text, Text: "water."}},
	}, figures: Figures{PromptTokens: 9, CompletionTokens: 5, Prefill: time.Second, Decode: 2 * time.Second}}
}

func TestOnceGivesAPipeTheAnswerAlone(t *testing.T) {
	var out, notes strings.Builder
	f := thoughtful()
	s := &Session{Out: &out, Notes: &notes, Ask: f.ask}
	if err := s.Once(context.Background(), "What is a pond?"); err != nil {
		t.Fatal(err)
	}
	if out.String() != "Still \x1b[31mwater.\n" || notes.String() != "" {
		t.Errorf("got answer %q, notes %q", out.String(), notes.String())
	}
}

func TestTerminalShowsThinkingDimAndNoControls(t *testing.T) {
	var out strings.Builder
	s := &Session{Out: &out, Notes: &out, Terminal: true, Color: true, Ask: thoughtful().ask}
	if err := s.Once(context.Background(), "What is a pond?"); err != nil {
		t.Fatal(err)
	}
	want := dimOn + "Hmm." + dimOff + "\nStill [31mwater.\n" + dimOn + "5 tokens · 2.0 tok/s · prompt of 9 tokens read in 1.00 s" + dimOff + "\n"
	if out.String() != want {
		t.Errorf("got\n%q, want\n%q", out.String(), want)
	}
}

func TestConversationGrows(t *testing.T) {
	var out, notes strings.Builder
	f := thoughtful()
	s := &Session{In: strings.NewReader("one\n\n/help\ntwo\n/new\nthree\n/quit\nnever\n"), Out: &out, Notes: &notes, NoThinking: true, Ask: f.ask}
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, c := range f.asked {
		sizes = append(sizes, len(c.Messages))
		if c.Thinking == nil || *c.Thinking {
			t.Error("thinking was not turned off")
		}
	}
	if len(sizes) != 3 || sizes[0] != 1 || sizes[1] != 3 || sizes[2] != 1 {
		t.Errorf("got %v messages, want [1 3 1]", sizes)
	}
	history := f.asked[1].Messages[1]
	if history.Role != "assistant" || !strings.Contains(history.Content.String(), "water.") || *history.Reasoning != "Hmm." {
		t.Errorf("history: got %+v", history)
	}
	if !strings.Contains(notes.String(), "/new   forget") {
		t.Errorf("no help in %q", notes.String())
	}
}

func TestAFailedQuestionIsNotHistory(t *testing.T) {
	var out, notes strings.Builder
	f := &scripted{err: errors.New("the prompt is too long")}
	s := &Session{In: strings.NewReader("one\ntwo\n"), Out: &out, Notes: &notes, Ask: f.ask}
	if err := s.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "2 of 2 questions got no whole answer") {
		t.Errorf("pond chat < file ended as if all was well: got %v", err)
	}
	if len(f.asked) != 2 || len(f.asked[1].Messages) != 1 {
		t.Errorf("got %d questions, the second with %d messages", len(f.asked), len(f.asked[1].Messages))
	}
	if strings.Count(notes.String(), "pond: the prompt is too long") != 2 {
		t.Errorf("got %q", notes.String())
	}
	if err := s.Once(context.Background(), "x"); err == nil {
		t.Error("once: got no error")
	}
}

// TestInterrupts: Ctrl-C during an answer stops it and keeps what was said; at the prompt the second one leaves.
func TestInterrupts(t *testing.T) {
	interrupts := make(chan os.Signal)
	in, typed := io.Pipe()
	var out, notes strings.Builder
	started := make(chan struct{})
	var asked []chat.Conversation
	s := &Session{In: in, Out: &out, Notes: &notes, Typed: true, Interrupts: interrupts,
		Ask: func(ctx context.Context, c chat.Conversation, emit func([]chat.Event), _ func(int, int)) (Figures, error) {
			asked = append(asked, c)
			emit([]chat.Event{{Kind: chat.Text, Text: "Once upon"}})
			close(started)
			<-ctx.Done()
			return Figures{}, ctx.Err()
		}}
	done := make(chan error)
	go func() { done <- s.Run(context.Background()) }()
	io.WriteString(typed, "a story\n")
	<-started
	interrupts <- os.Interrupt // stops the answer
	interrupts <- os.Interrupt // at the prompt: a warning
	interrupts <- os.Interrupt // leaves
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the second Ctrl-C at the prompt did not leave")
	}
	if out.String() != "Once upon\n" || !strings.Contains(notes.String(), "(stopped)") || !strings.Contains(notes.String(), "Ctrl-C again") {
		t.Errorf("got answer %q, notes %q", out.String(), notes.String())
	}
	if len(s.conversation.Messages) != 2 {
		t.Errorf("got %d messages, want the question and what was said", len(s.conversation.Messages))
	}
}

// TestNoAnswerIsAnError: a question whose answer ended inside its thinking left nothing on the output, and exit code 0.
func TestNoAnswerIsAnError(t *testing.T) {
	f := &scripted{events: [][]chat.Event{{{Kind: chat.Reasoning, Text: "Hmm"}}}, figures: Figures{Truncated: true}}
	for _, f := range []*scripted{f, {}} {
		var out, notes strings.Builder
		s := &Session{In: strings.NewReader("x\n"), Out: &out, Notes: &notes, Ask: f.ask}
		for what, err := range map[string]error{"once": s.Once(context.Background(), "x"), "a pipe": s.Run(context.Background())} {
			if !errors.Is(err, errNoAnswer) {
				t.Errorf("%s: got %v", what, err)
			}
		}
		if out.String() != "" || strings.Contains(notes.String(), "inside its thinking") != f.figures.Truncated {
			t.Errorf("got %q, %q", out.String(), notes.String())
		}
	}
}

// TestAPersonIsGreeted: the session began with a bare "> ". A pipe gets neither greeting nor prompts.
func TestAPersonIsGreeted(t *testing.T) {
	for typed, want := range map[bool]string{true: "tiny on host\n> > \n", false: ""} {
		var out, notes strings.Builder
		s := &Session{In: strings.NewReader("one\n"), Out: &out, Notes: &notes, Typed: typed, Greeting: "tiny on host", Ask: thoughtful().ask}
		if err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if notes.String() != want {
			t.Errorf("typed %v: got %q, want %q", typed, notes.String(), want)
		}
	}
}

// TestAnUnknownCommandIsNoQuestion: /foo was asked of the model.
func TestAnUnknownCommandIsNoQuestion(t *testing.T) {
	var notes strings.Builder
	f := thoughtful()
	s := &Session{In: strings.NewReader("/foo bar\n /foo\n/etc/hosts is what?\n/\n"), Out: io.Discard, Notes: &notes, Typed: true, Ask: f.ask}
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(f.asked) != 3 || strings.Count(notes.String(), "pond: /foo is no command: /help lists them") != 1 {
		t.Errorf("asked %d questions, said %q", len(f.asked), notes.String())
	}
}

func TestToolCallIsShown(t *testing.T) {
	var out strings.Builder
	f := &scripted{events: [][]chat.Event{{{Kind: chat.CallStart, Name: "lookup"}, {Kind: chat.CallArguments, Text: `{"city":`}},
		{{Kind: chat.CallArguments, Text: `"Oslo"}`}, {Kind: chat.CallEnd}}}}
	// Apply needs the call's start first, which the script gives.
	s := &Session{Out: &out, Notes: io.Discard, Ask: f.ask}
	if err := s.Once(context.Background(), "x"); err != nil {
		t.Fatal(err)
	}
	if out.String() != "[call lookup {\"city\":\"Oslo\"}]\n\n" {
		t.Errorf("got %q", out.String())
	}
}

func TestBarLine(t *testing.T) {
	for done, want := range map[int64]string{
		0:  "loading [........................] 0 of 48 MB",
		24: "loading [############............] 24 of 48 MB",
		99: "loading [########################] 48 of 48 MB",
	} {
		if got := line("loading", "MB", done, 48); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	var out strings.Builder
	b := &Bar{out: &out, on: true, what: "loading", unit: "MB"}
	b.Set(1, 2)
	b.Set(2, 2) // too soon after the first
	b.Clear()
	b.Clear()
	if got := out.String(); strings.Count(got, "\r") != 2 {
		t.Errorf("got %q, want one line and one wipe", got)
	}
	out.Reset()
	fresh := &Bar{out: &out, on: true, what: "reading the prompt", unit: "tokens", since: time.Now()}
	fresh.Set(0, 48) // at once: a long chunk says nothing more for a while
	if !strings.HasPrefix(out.String(), "\rreading the prompt [........................] 0 of 48 tokens") {
		t.Errorf("nothing was drawn before the first tokens were read: got %q", out.String())
	}
	fresh.Clear()
	off := &Bar{out: &out, on: false}
	off.Set(1, 2)
	if strings.Count(out.String(), "\r") != 2 {
		t.Error("a bar was drawn for nobody")
	}
}

// broken is a disk without room.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestAnAnswerThatCannotBeWrittenStops: the model went on for a disk that was full, and all seemed well.
func TestAnAnswerThatCannotBeWrittenStops(t *testing.T) {
	s := &Session{Out: broken{}, Notes: io.Discard, Ask: func(ctx context.Context, _ chat.Conversation, emit func([]chat.Event), _ func(int, int)) (Figures, error) {
		emit([]chat.Event{{Kind: chat.Text, Text: "Once upon"}})
		<-ctx.Done()
		return Figures{}, ctx.Err()
	}}
	if err := s.Once(context.Background(), "x"); err == nil || err.Error() != "writing the answer: no space left on device" {
		t.Errorf("got %v", err)
	}
}
