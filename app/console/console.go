// Package console is the conversation in a terminal: it reads questions, shows answers as they come with the thinking dim, and
// draws progress. It knows no engine: answers come through Ask.
//
// The rules of its output:
//   - The answer goes to Out, everything else (prompt, progress, figures, notices) to Notes; so a pipe gets the answer alone.
//   - Colour, progress, thinking, prompts and broken lines are for people: they appear only on a terminal.
//   - What the model writes cannot steer the terminal: control characters other than newline and tab are left out.
//   - Ctrl-C stops the answer that is being written. At the prompt it clears the line; on an empty line the first one is a warning and
//     the second quits.
//   - A terminal is given back as it was found, however the session ends.
//
// Start with Session; keyboard.go is the prompt of a person, lines.go of everything else.
package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"pond/inference/chat"
)

// Ask gets one answer: emit takes its events as they come, progress the tokens of the prompt read so far. It returns when
// the answer has ended, with what ctx or the engine says; the figures are of what was done until then.
type Ask func(ctx context.Context, c chat.Conversation, emit func([]chat.Event), progress func(done, total int)) (Figures, error)

// Figures are the numbers of one answer.
type Figures struct {
	PromptTokens, CompletionTokens int
	Prefill, Decode                time.Duration
	Truncated                      bool // the answer reached its limit of tokens
}

// Session is one conversation. Its fields are set once.
type Session struct {
	In         io.Reader
	Out        io.Writer  // the answers
	Notes      io.Writer  // everything else
	Typed      bool       // In is a person's terminal: there is a prompt
	Keyboard   *os.File   // In, where its lines can be edited here: Notes is the same terminal and knows escape sequences; nil: it cannot
	Terminal   bool       // Out is a person's terminal
	Drawing    bool       // Out and Notes are, and know escape sequences: progress is drawn
	Color      bool       // Out may be coloured
	Columns    func() int // of the terminal that Out is, for breaking lines between words; nil or 0: they are left alone
	Greeting   string     // said to a person before the first prompt
	NoThinking bool
	Ask        Ask
	Interrupts <-chan os.Signal // Ctrl-C

	conversation chat.Conversation
	fd           int             // of In
	echoing      bool            // In is a file, and fd is known
	stop         <-chan struct{} // Ctrl-C as a key; nil where it is none
}

// errNoAnswer is wrapped by the error of a question that the model did not answer though nothing failed.
var errNoAnswer = errors.New("no answer")

// errQuit ends a session without a complaint.
var errQuit = errors.New("quit")

const (
	prompt    = "> "
	leaveHint = "(Ctrl-C again or Ctrl-D leaves)"
)

const help = `  /new   forget this conversation
  /help  this list
  /quit  leave; so do Ctrl-D, and Ctrl-C twice on an empty line
  Ctrl-C stops the answer that is being written
`

// Run talks until the input ends, the user quits or ctx is done. Where nobody types, its error says that a question got no answer.
func (s *Session) Run(ctx context.Context) error {
	var in questions
	if s.Keyboard != nil {
		k, err := openKeyboard(ctx, s.Keyboard, s.Notes)
		if err != nil {
			return err
		}
		defer k.close()
		s.stop = k.stop
		in = k
	} else {
		s.find()
		in = newLines(s.In, s.Notes, s.Typed)
	}
	if s.Typed && s.Greeting != "" {
		fmt.Fprintln(s.Notes, s.dim(s.Greeting))
	}
	var failures []error
	for asked := 0; ; {
		text, err := in.next(ctx, s.Interrupts)
		if err != nil {
			return s.ended(err, asked, failures)
		}
		slash := strings.HasPrefix(text, "/")
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		if known, quit := s.command(text); quit {
			return s.ended(errQuit, asked, failures)
		} else if known {
			continue
		}
		asked++
		if slash && commandLike(text) {
			err = fmt.Errorf("%s is no command: /help lists them; a blank before it makes it a question", strings.Fields(text)[0])
		} else {
			err = s.answer(ctx, text)
		}
		switch {
		case err == nil:
		case errors.Is(err, errNoAnswer):
			fmt.Fprintf(s.Notes, "(%v)\n", err)
		case errors.Is(err, context.Canceled) && ctx.Err() == nil:
			fmt.Fprintln(s.Notes, s.dim("(stopped)"))
		case errors.Is(err, context.Canceled):
		default:
			fmt.Fprintln(s.Notes, "pond:", err) // a question can fail and the conversation go on
		}
		if err != nil {
			failures = append(failures, err)
		}
	}
}

// ended is the end of a session for the reason err, after so many questions and failures.
func (s *Session) ended(err error, asked int, failures []error) error {
	quit := errors.Is(err, errQuit)
	if s.Typed {
		if !quit {
			fmt.Fprintln(s.Notes)
		}
		if quit || errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
			return nil
		}
	}
	switch {
	case !quit && !errors.Is(err, io.EOF) && errors.Is(err, context.Canceled):
		return err
	case !quit && !errors.Is(err, io.EOF):
		return fmt.Errorf("reading the question: %w", err)
	case len(failures) > 0:
		return fmt.Errorf("%d of %d questions got no whole answer: the last with: %w", len(failures), asked, failures[len(failures)-1])
	}
	return nil
}

// commandLike tells a mistyped command from a question that begins with a path or goes on for lines.
func commandLike(text string) bool {
	name := strings.Fields(text)[0][1:]
	return name != "" && !strings.Contains(text, "\n") && strings.IndexFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}

// command carries out a line that begins with a slash.
func (s *Session) command(text string) (known, quit bool) {
	switch text {
	case "/quit", "/exit":
		return true, true
	case "/new":
		s.conversation = chat.Conversation{}
		fmt.Fprintln(s.Notes, "(a new conversation)")
		return true, false
	case "/help":
		fmt.Fprint(s.Notes, help)
		return true, false
	}
	return false, false
}

// Once asks one question and returns the error of its answer.
func (s *Session) Once(ctx context.Context, question string) error {
	s.find()
	return s.answer(ctx, question)
}

// answer asks and shows. What was said before Ctrl-C stays part of the conversation; a question that failed does not.
func (s *Session) answer(ctx context.Context, question string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer s.hush()()
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		select {
		case <-s.Interrupts:
			cancel()
		case <-s.stop:
			cancel()
		case <-finished:
		}
	}()

	c := s.conversation
	c.Messages = append(c.Messages[:len(c.Messages):len(c.Messages)],
		chat.Message{Role: "user", Content: chat.TextContent(question)})
	if s.NoThinking {
		off := false
		c.Thinking = &off
	}
	bar := s.Progress("reading the prompt", "tokens")
	w := s.writer()
	var whole chat.Answer
	figures, err := s.Ask(ctx, c, func(events []chat.Event) {
		bar.Clear()
		whole.Apply(events)
		w.show(events)
		if w.out.err != nil {
			cancel() // nobody will read the rest
		}
	}, func(done, total int) { bar.Set(int64(done), int64(total)) })
	bar.Clear()
	w.end()
	if w.out.err != nil {
		return fmt.Errorf("writing the answer: %w", w.out.err)
	}
	if err == nil || (errors.Is(err, context.Canceled) && (whole.Content != "" || whole.Reasoning != "")) {
		s.conversation = c
		s.conversation.Messages = append(c.Messages, whole.Message())
	}
	if err != nil {
		return err
	}
	silent := strings.TrimSpace(whole.Content) == "" && len(whole.Calls) == 0
	if figures.Truncated && !silent {
		fmt.Fprintln(s.Notes, s.dim("(the answer reached the limit of tokens)"))
	}
	if s.Terminal {
		fmt.Fprintln(s.Notes, s.dim(figures.String()))
	}
	switch {
	case silent && figures.Truncated && whole.Reasoning != "":
		return fmt.Errorf("%w: it ended inside its thinking, at the limit of tokens", errNoAnswer)
	case silent:
		return fmt.Errorf("%w: the model said nothing", errNoAnswer)
	}
	return nil
}

// String is one line of figures: "34 tokens · 21.5 tok/s · first after 0.31 s".
func (f Figures) String() string {
	rate := "-"
	if f.CompletionTokens > 1 && f.Decode > 0 {
		rate = fmt.Sprintf("%.1f", float64(f.CompletionTokens-1)/f.Decode.Seconds())
	}
	return fmt.Sprintf("%d tokens · %s tok/s · prompt of %d tokens read in %.2f s", f.CompletionTokens, rate, f.PromptTokens, f.Prefill.Seconds())
}

func (s *Session) dim(text string) string {
	if !s.Color {
		return text
	}
	return dimOn + text + dimOff
}

// Progress makes a bar that is drawn only for a person.
func (s *Session) Progress(what, unit string) *Bar {
	return &Bar{out: s.Notes, on: s.Drawing, what: what, unit: unit, since: time.Now()}
}
