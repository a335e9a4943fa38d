package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"pond/inference/checkpoint/fetch"
)

// pulling shows how a download goes: on a terminal one line that is kept up to date, elsewhere a line every few seconds. Troubles are told
// as they come, each kind once in a while, because a source that fails does so often.
type pulling struct {
	out      io.Writer
	terminal bool
	now      func() time.Time
	total    int64 // bytes of the model, what was there before included

	mu    sync.Mutex // downloading and verifying tell from goroutines of their own
	drawn time.Time
	told  map[string]time.Time
}

const (
	pullingTerminal = 200 * time.Millisecond
	pullingLines    = 5 * time.Second
	pullingTroubles = time.Minute // between two of the same source and file
	pullingWidth    = 24
)

// event is the downloader's report.
func (p *pulling) event(e fetch.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case fetch.Trouble:
		p.tell(e.Source+" "+e.File, e.Err.Error()+"; trying on")
	case fetch.Restarted:
		p.tell(e.File+e.Err.Error(), fmt.Sprintf("%s begins anew: %v", e.File, e.Err))
	case fetch.Finished:
		p.line(fmt.Sprintf("verified %s", e.File))
	}
	if p.due() {
		p.draw(progressText(p.total-e.Progress.Total+e.Progress.Done, p.total, e.Progress))
	}
}

// verifying tells that files that are there are read.
func (p *pulling) verifying(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.due() {
		p.draw(fmt.Sprintf("%s verifying %s of %s", bar(done, total), gigabytes(done), gigabytes(total)))
	}
}

func (p *pulling) due() bool {
	every := pullingLines
	if p.terminal {
		every = pullingTerminal
	} else if p.drawn.IsZero() {
		p.drawn = p.now() // what is over at once needs no line
	}
	return p.now().Sub(p.drawn) >= every
}

func (p *pulling) draw(text string) {
	p.drawn = p.now()
	if p.terminal {
		fmt.Fprintf(p.out, "\r%s\x1b[K", text)
		return
	}
	fmt.Fprintln(p.out, text)
}

// tell writes a line of its own unless the same was told a moment ago.
func (p *pulling) tell(key, text string) {
	if last, ok := p.told[key]; ok && p.now().Sub(last) < pullingTroubles {
		return
	}
	if p.told == nil {
		p.told = map[string]time.Time{}
	}
	p.told[key] = p.now()
	p.line(text)
}

func (p *pulling) line(text string) {
	p.wipe()
	fmt.Fprintln(p.out, text)
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

// progressText is "[####....] 8.37 GB of 20.42 GB, 52.3 MB/s, 4 min left"; what is not known is not said.
func progressText(done, total int64, p fetch.Progress) string {
	text := fmt.Sprintf("%s %s of %s", bar(done, total), gigabytes(done), gigabytes(total))
	switch left, known := p.ETA(); {
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
