package console

import (
	"io"
	"strings"
	"unicode"
)

// wrapper breaks lines between words, for text that comes in pieces. A word is held back until the blank after it has come, because
// only then is it known whether it fits.
type wrapper struct {
	out   io.Writer
	width int // columns; 0 passes everything on as it comes

	column int    // where the next character goes
	blanks string // since the last word, not written yet
	word   strings.Builder
	cells  int // of word

	err error // the first of writing
}

func (w *wrapper) put(text string) {
	if w.err == nil && text != "" {
		_, w.err = io.WriteString(w.out, text)
	}
}

const tabCells = 8

func (w *wrapper) write(text string) {
	if w.width <= 1 {
		w.put(text)
		return
	}
	for _, r := range text {
		switch cells := cellsOf(r); {
		case r == '\n':
			w.flush()
			w.blanks, w.column = "", 0
			w.put("\n")
		case r == ' ' || r == '\t':
			w.flush()
			w.blanks += string(r)
		case cells == 2: // scripts that are written wide break between any two characters
			w.flush()
			w.add(r, cells)
			w.flush()
		case w.cells+cells >= w.width: // longer than a line: it is broken anywhere
			w.flush()
			w.add(r, cells)
		default:
			w.add(r, cells)
		}
	}
}

func (w *wrapper) add(r rune, cells int) {
	w.word.WriteRune(r)
	w.cells += cells
}

// flush writes the word that is held back, on a new line where it does not fit. The last column stays free: terminals differ in what
// they do after a character there.
func (w *wrapper) flush() {
	if w.word.Len() == 0 {
		return
	}
	after := w.column
	for _, r := range w.blanks {
		after++
		if r == '\t' {
			after = (after + tabCells - 1) / tabCells * tabCells
		}
	}
	if w.column > 0 && after+w.cells >= w.width {
		w.put("\n")
		after = 0
	} else {
		w.put(w.blanks)
	}
	w.put(w.word.String())
	w.column = after + w.cells
	w.blanks, w.cells = "", 0
	w.word.Reset()
}

// cellsOf is how many columns a terminal gives a character (Unicode's East Asian Width, in blocks).
func cellsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
