package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"pond/inference/checkpoint/fetch"
)

// pulling shows how a download goes: on a terminal one line that is kept up to date, elsewhere a line every few seconds while something
// moves. A trouble is told once for its host and cause, and again only after ever longer times: a source that fails does so for every file
// and every connection.
type pulling struct {
	out      io.Writer
	terminal bool
	now      func() time.Time
	total    int64 // bytes of the model, what was there before included

	mu    sync.Mutex // downloading and verifying tell from goroutines of their own
	drawn time.Time
	done  int64 // as drawn last
	told  map[string]telling
	alone bool // it was told that there is no network
}

// telling is when a trouble was told, and for how long it is not told again.
type telling struct {
	at    time.Time
	quiet time.Duration
}

const (
	pullingTerminal = 200 * time.Millisecond
	pullingLines    = 5 * time.Second
	pullingResting  = 30 * time.Second // between two lines that say the same
	pullingTroubles = time.Minute      // between the first two of the same host and cause; doubled each time
	pullingQuiet    = time.Hour        // and no longer than this
	pullingWidth    = 24
)

// event is the downloader's report.
func (p *pulling) event(e fetch.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case fetch.Trouble:
		p.tell(e.Host+" "+e.Cause, e.Host+": "+e.Cause+"; trying on")
	case fetch.Restarted:
		p.tell(e.File+e.Err.Error(), fmt.Sprintf("%s begins anew: %v", e.File, e.Err))
	case fetch.Finished:
		p.line(fmt.Sprintf("verified %s", e.File))
	}
	switch offline := e.Progress.Offline; {
	case offline && !p.alone:
		p.alone = p.tell("no network", "no network: waiting; Ctrl-C pauses, pond pull goes on from here")
	case !offline && p.alone:
		p.alone = false
		p.line("the network is back")
	}
	if done := p.total - e.Progress.Total + e.Progress.Done; p.due(done) {
		p.draw(done, progressText(done, p.total, e.Progress))
	}
}

// verifying tells that files that are there are read.
func (p *pulling) verifying(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.due(done) {
		p.draw(done, fmt.Sprintf("%s verifying %s of %s", bar(done, total), gigabytes(done), gigabytes(total)))
	}
}

// due reports whether the progress is to be drawn, when so many bytes are there.
func (p *pulling) due(done int64) bool {
	every := pullingLines
	switch {
	case p.terminal:
		every = pullingTerminal
	case p.drawn.IsZero():
		p.drawn, p.done = p.now(), done // what is over at once needs no line
	case done == p.done:
		every = pullingResting
	}
	return p.now().Sub(p.drawn) >= every
}

func (p *pulling) draw(done int64, text string) {
	p.drawn, p.done = p.now(), done
	if p.terminal {
		fmt.Fprintf(p.out, "\r%s\x1b[K", clip(text, columns(p.out)-1))
		return
	}
	fmt.Fprintln(p.out, text)
}

// tell writes a line of its own unless the same was told not long ago.
func (p *pulling) tell(key, text string) bool {
	last, ok := p.told[key]
	if ok && p.now().Sub(last.at) < last.quiet {
		return false
	}
	if p.told == nil {
		p.told = map[string]telling{}
	}
	quiet := pullingTroubles
	if ok {
		quiet = min(2*last.quiet, pullingQuiet)
	}
	p.told[key] = telling{p.now(), quiet}
	p.line(text)
	return true
}

func (p *pulling) line(text string) {
	p.wipe()
	fmt.Fprintln(p.out, fold(text, columns(p.out)))
}

// clear leaves the terminal as it was.
func (p *pulling) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}

func (p *pulling) wipe() {
	if p.terminal && !p.drawn.IsZero() {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = time.Time{}
	}
}

// fold breaks a text into lines of at most width characters, between words; a longer word has a line to itself. No width, no breaks.
func fold(text string, width int) string {
	if width <= 0 {
		return text
	}
	var b strings.Builder
	used := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > width:
			b.WriteByte('\n')
			used = 0
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String()
}

// clip is what of a text fits into width characters, as one line that is drawn over must; no width, all of it.
func clip(text string, width int) string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width])
}

// progressText is "[####....] 8.37 GB of 20.42 GB, 52.3 MB/s, 4 min left"; what is not known is not said.
func progressText(done, total int64, p fetch.Progress) string {
	text := fmt.Sprintf("%s %s of %s", bar(done, total), gigabytes(done), gigabytes(total))
	switch left, known := p.ETA(); {
	case p.Offline:
		text += ", no network"
	case p.Active == 0 && p.Done < p.Total:
		text += ", waiting for a source"
	case known:
		text += fmt.Sprintf(", %.1f MB/s, %s left", p.Rate/1e6, about(left))
	}
	return text
}

func bar(done, total int64) string {
	total = max(total, 1)
	done = min(max(done, 0), total)
	full := int(done * pullingWidth / total)
	return fmt.Sprintf("[%s%s] %3d %%", strings.Repeat("#", full), strings.Repeat(".", pullingWidth-full), done*100/total)
}

// about is a duration as a person would say it.
func about(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}
