package inference

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Reuse is the receipt of what was not computed twice.
type Reuse struct {
	ReusedTokens   int64         // of prompts, since the start
	DiskTokens     int64         // of those, read from the disk
	ComputedTokens int64         // of prompts, since the start
	StoredTokens   int           // that can be reused now
	SavedToday     time.Duration // what the reused ones would have taken, at the rate of the computed ones
	Miss           *Miss         // the last prompt that went another way than what was kept; nil: none did
}

// Miss says where a prompt departed from what was kept.
type Miss struct {
	At              time.Time
	PromptTokens    int
	CommonTokens    int    // up to where it departs
	ReusedTokens    int    // of those
	Text, WasBefore string // how the prompt goes on, and how what was kept does; shortened
}

// reuse counts. The worker counts, others read.
type reuse struct {
	mu       sync.Mutex // protects what follows
	total    Reuse
	computed int64         // tokens whose time was taken
	took     time.Duration // for them
	day      string        // of SavedToday
	miss     *Miss         // of the prompt that is about to begin
}

// missText is the length of the pieces of text in a Miss, in tokens and in bytes.
const (
	missTokens = 16
	missBytes  = 80
)

// begun looks at a prompt before it begins: where does it depart from what is kept?
func (r *reuse) begun(e *Engine, prompt []int32) {
	var common int
	var instead []int32
	e.kept.do(func() { common, instead = e.kept.store.Departs(prompt) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.miss = nil
	if common < len(prompt) && len(instead) > 0 {
		r.miss = &Miss{At: time.Now(), PromptTokens: len(prompt), CommonTokens: common, Text: e.piece(prompt[common:]), WasBefore: e.piece(instead)}
	}
}

// piece is the text of the first of some tokens.
func (e *Engine) piece(ids []int32) string {
	var b []byte
	for _, id := range ids[:min(missTokens, len(ids))] {
		b = append(b, e.tok.Bytes(id)...)
	}
	if len(b) > missBytes {
		b = b[:missBytes]
		for len(b) > 0 && !utf8.Valid(b) && len(b) > missBytes-utf8.UTFMax {
			b = b[:len(b)-1]
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// restored counts what a prompt reuses, and what that cost.
func (r *reuse) restored(l *live, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(l.tokens)
	r.total.ReusedTokens += int64(n)
	if l.job.fromDisk == n {
		r.total.DiskTokens += int64(n)
	}
	if r.miss != nil {
		r.miss.ReusedTokens = n
		r.total.Miss, r.miss = r.miss, nil
	}
	if day := time.Now().Format(time.DateOnly); day != r.day {
		r.day, r.total.SavedToday = day, 0
	}
	if r.computed > 0 {
		r.total.SavedToday += max(0, time.Duration(int64(n)*int64(r.took)/r.computed)-took)
	}
}

// ended counts what a prompt computed.
func (r *reuse) ended(l *live) {
	if l.job.task != nil || l.spent == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := int64(min(len(l.tokens), len(l.job.prompt)) - l.job.usage.CachedTokens)
	r.total.ComputedTokens += n
	r.computed += n
	r.took += l.spent
}

func (r *reuse) stats(e *Engine) Reuse {
	r.mu.Lock()
	s := r.total
	if time.Now().Format(time.DateOnly) != r.day {
		s.SavedToday = 0
	}
	r.mu.Unlock()
	e.kept.do(func() { s.StoredTokens = e.kept.store.Tokens() })
	return s
}
