package console

import (
	"fmt"
	"strings"
	"unicode"

	"pond/inference/chat"
)

// The two terminal sequences (ECMA-48 SGR) that are used: faint, and off.
const (
	dimOn  = "\x1b[2m"
	dimOff = "\x1b[0m"
)

// writer shows the events of one answer.
type writer struct {
	s        *Session
	notes    *wrapper
	out      *wrapper
	thinking bool // the terminal is dim
	wrote    bool // something stands on the answer's line
	call     strings.Builder
	name     string
}

func (s *Session) writer() *writer {
	columns := 0
	if s.Terminal && s.Columns != nil {
		columns = s.Columns()
	}
	return &writer{s: s, notes: &wrapper{out: s.Notes, width: columns}, out: &wrapper{out: s.Out, width: columns}}
}

func (w *writer) show(events []chat.Event) {
	for _, e := range events {
		switch e.Kind {
		case chat.Reasoning:
			w.think(e.Text)
		case chat.Text:
			w.speak(e.Text)
		case chat.CallStart:
			w.call.Reset()
			w.name = e.Name
		case chat.CallArguments:
			w.call.WriteString(e.Text)
		case chat.CallEnd:
			w.speak(fmt.Sprintf("[call %s %s]\n", w.name, w.call.String()))
		}
	}
}

// think shows thinking to a person and nobody else.
func (w *writer) think(text string) {
	if !w.s.Terminal {
		return
	}
	if !w.thinking && strings.TrimSpace(text) == "" && !w.wrote {
		return // an empty think block is no thinking
	}
	if !w.thinking && w.s.Color {
		fmt.Fprint(w.s.Notes, dimOn)
	}
	w.thinking = true
	w.notes.write(clean(text))
}

func (w *writer) speak(text string) {
	w.stopThinking()
	if !w.wrote {
		text = strings.TrimLeft(text, "\n")
	}
	if text == "" {
		return
	}
	w.wrote = true
	if w.s.Terminal {
		text = clean(text)
	}
	w.out.write(text)
}

func (w *writer) stopThinking() {
	if !w.thinking {
		return
	}
	w.thinking = false
	w.notes.flush()
	w.notes.blanks, w.notes.column = "", 0
	if w.s.Color {
		fmt.Fprint(w.s.Notes, dimOff)
	}
	fmt.Fprintln(w.s.Notes)
}

// end finishes the line.
func (w *writer) end() {
	w.stopThinking()
	w.out.flush()
	if w.wrote {
		w.out.put("\n")
	}
}

// clean leaves out what could steer a terminal: control characters, and the marks that turn the direction of text.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, text)
}
