package main

import (
	"fmt"
	"io"
	"time"
)

// loading shows how far a model's weights have come. A model that is in memory already shows nothing: loading speaks after a second, and
// on a terminal then keeps one line up to date, which it clears at the end; elsewhere it writes a line now and then.
type loading struct {
	out      io.Writer
	terminal bool
	now      func() time.Time

	begun, told time.Time
}

const (
	loadingQuiet    = time.Second            // before the first word
	loadingTerminal = 200 * time.Millisecond // between changes of the line
	loadingLines    = 5 * time.Second        // between lines
)

func (l *loading) show(done, total int64) {
	now := l.now()
	if l.begun.IsZero() {
		l.begun = now
	}
	every := loadingLines
	if l.terminal {
		every = loadingTerminal
	}
	switch {
	case done == total && !l.told.IsZero() && l.terminal:
		fmt.Fprint(l.out, "\r\x1b[K")
	case done == total || now.Sub(l.begun) < loadingQuiet || now.Sub(l.told) < every:
		return
	default:
		text := fmt.Sprintf("reading the model: %.1f of %.1f GB", float64(done)/1e9, float64(total)/1e9)
		if l.terminal {
			fmt.Fprintf(l.out, "\r%s\x1b[K", text)
		} else {
			fmt.Fprintln(l.out, text)
		}
	}
	l.told = now
}
