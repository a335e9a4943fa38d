// Package console is the conversation in a terminal: it reads questions, shows answers as they come with the thinking dim, and
// draws progress. It knows no engine: answers come through Ask.
//
// The rules of its output:
//   - The answer goes to Out, everything else (prompt, progress, figures, notices) to Notes; so a pipe gets the answer alone.
//   - Colour, progress and thinking are for people: they appear only where Terminal is true.
//   - What the model writes cannot steer the terminal: control characters other than newline and tab are left out.
//   - Ctrl-C stops the answer that is being written. At the prompt the first one is a warning and the second quits.
//
// Start with Session.
package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

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
	Out        io.Writer // the answers
	Notes      io.Writer // everything else
	Terminal   bool      // Out is a person's terminal
	Color      bool      // it may be coloured
	NoThinking bool
	Ask        Ask
	Interrupts <-chan os.Signal // Ctrl-C

	conversation chat.Conversation
}

// errQuit ends a session without a complaint.
var errQuit = errors.New("quit")

const help = `  /new   forget this conversation
  /help  this list
  /quit  leave; so do Ctrl-D and Ctrl-C twice
  Ctrl-C stops the answer that is being written
`

// Run talks until the input ends, the user quits or ctx is done.
func (s *Session) Run(ctx context.Context) error {
	lines, ended := make(chan string), make(chan error, 1)
	go func() { // a read from a terminal cannot be cancelled: it is left behind when the session ends
		in := bufio.NewReader(s.In)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	warned := false
	for {
		fmt.Fprint(s.Notes, "> ")
		select {
		case line := <-lines:
			warned = false
			if err := s.take(ctx, strings.TrimSpace(line)); errors.Is(err, errQuit) {
				return nil
			} else if err != nil {
				return err
			}
		case err := <-ended:
			fmt.Fprintln(s.Notes)
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("reading the question: %w", err)
		case <-s.Interrupts:
			fmt.Fprintln(s.Notes)
			if warned {
				return nil
			}
			warned = true
			fmt.Fprintln(s.Notes, "(Ctrl-C again or Ctrl-D leaves)")
		case <-ctx.Done():
			fmt.Fprintln(s.Notes)
			return nil
		}
	}
}

// take handles one line of input.
func (s *Session) take(ctx context.Context, line string) error {
	switch line {
	case "":
		return nil
	case "/quit", "/exit":
		return errQuit
	case "/new":
		s.conversation = chat.Conversation{}
		fmt.Fprintln(s.Notes, "(a new conversation)")
		return nil
	case "/help":
		fmt.Fprint(s.Notes, help)
		return nil
	}
	err := s.answer(ctx, line)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		fmt.Fprintln(s.Notes, s.dim("(stopped)"))
		return nil
	}
	if err != nil {
		fmt.Fprintln(s.Notes, "pond:", err) // a question can fail and the conversation go on
	}
	return nil
}

// Once asks one question and returns the error of its answer.
func (s *Session) Once(ctx context.Context, question string) error { return s.answer(ctx, question) }

// answer asks and shows. What was said before Ctrl-C stays part of the conversation; a question that failed does not.
func (s *Session) answer(ctx context.Context, question string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		select {
		case <-s.Interrupts:
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
	w := &writer{s: s}
	var whole chat.Answer
	figures, err := s.Ask(ctx, c, func(events []chat.Event) {
		bar.Clear()
		whole.Apply(events)
		w.show(events)
	}, func(done, total int) { bar.Set(int64(done), int64(total)) })
	bar.Clear()
	w.end()
	if err == nil || (errors.Is(err, context.Canceled) && (whole.Content != "" || whole.Reasoning != "")) {
		s.conversation = c
		s.conversation.Messages = append(c.Messages, whole.Message())
	}
	if err != nil {
		return err
	}
	switch {
	case figures.Truncated && whole.Content == "" && len(whole.Calls) == 0:
		fmt.Fprintln(s.Notes, "(the answer ended inside its thinking: it reached the limit of tokens)")
	case figures.Truncated:
		fmt.Fprintln(s.Notes, s.dim("(the answer reached the limit of tokens)"))
	}
	if s.Terminal {
		fmt.Fprintln(s.Notes, s.dim(figures.String()))
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
	return &Bar{out: s.Notes, on: s.Terminal, what: what, unit: unit, since: time.Now()}
}
