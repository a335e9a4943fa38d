package console

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Bar shows how far a long work is, on one line that it wipes again. Work that says that it begins (0 is done) is shown at once; without
// that word nothing is shown before barAfter has passed.
// It is used from one goroutine at a time.
type Bar struct {
	out   io.Writer
	on    bool
	what  string
	unit  string
	since time.Time
	drawn time.Time // zero: nothing stands on the line
}

const (
	barAfter = 300 * time.Millisecond
	barEvery = 100 * time.Millisecond
	barWidth = 24
)

// Set shows that done of total units are done.
func (b *Bar) Set(done, total int64) {
	now := time.Now()
	begins := done == 0 && b.drawn.IsZero()
	early := b.drawn.IsZero() && now.Sub(b.since) < barAfter
	if !b.on || total <= 0 || !begins && (early || now.Sub(b.drawn) < barEvery) {
		return
	}
	b.drawn = now
	fmt.Fprint(b.out, "\r"+line(b.what, b.unit, done, total)+"\x1b[K")
}

// Clear wipes the line.
func (b *Bar) Clear() {
	if b.drawn.IsZero() {
		return
	}
	b.drawn = time.Time{}
	fmt.Fprint(b.out, "\r\x1b[K")
}

func line(what, unit string, done, total int64) string {
	done = min(max(done, 0), total)
	full := int(done * barWidth / total)
	return fmt.Sprintf("%s [%s%s] %d of %d %s", what, strings.Repeat("#", full), strings.Repeat(".", barWidth-full), done, total, unit)
}
