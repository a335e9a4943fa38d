package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
)

// questions are where a session reads from.
type questions interface {
	// next is the next message: io.EOF when there is none any more, errQuit when Ctrl-C asks to leave, ctx's error when it is done.
	next(ctx context.Context, interrupts <-chan os.Signal) (string, error)
}

var (
	_ questions = (*lines)(nil)
	_ questions = (*keyboard)(nil)
)

// lines reads a question a line, from a file, a pipe, or a terminal that edits its lines itself.
type lines struct {
	notes  io.Writer
	typed  bool // a person types them and wants a prompt
	lines  chan string
	ended  chan error
	warned bool
}

// newLines begins to read. A read cannot be cancelled: it is left behind when the session ends.
func newLines(r io.Reader, notes io.Writer, typed bool) *lines {
	l := &lines{notes: notes, typed: typed, lines: make(chan string), ended: make(chan error, 1)}
	go func() {
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				l.lines <- line
			}
			if err != nil {
				l.ended <- err
				return
			}
		}
	}()
	return l
}

func (l *lines) next(ctx context.Context, interrupts <-chan os.Signal) (string, error) {
	for {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if l.typed {
			fmt.Fprint(l.notes, prompt)
		}
		select {
		case line := <-l.lines:
			l.warned = false
			return line, nil
		case err := <-l.ended:
			return "", err
		case <-interrupts:
			if !l.typed {
				return "", context.Canceled
			}
			if l.warned {
				fmt.Fprintln(l.notes)
				return "", errQuit
			}
			l.warned = true
			fmt.Fprintf(l.notes, "\n%s\n", leaveHint)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}
