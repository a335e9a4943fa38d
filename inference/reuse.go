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
	SavedToday     time.Duration // what those reused today would have taken, at the rate of the computed ones, less what reusing them took
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
	now func() time.Time // nil: time.Now; tests have other days

	mu      sync.Mutex // protects what follows
	total   Reuse
	savings savings
	written savings // as they are on the disk
	miss    *Miss   // of the prompt that is about to begin
}

func (r *reuse) today() string {
	if r.now != nil {
		return r.now().Format(time.DateOnly)
	}
	return time.Now().Format(time.DateOnly)
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
	r.savings.reused(r.today(), n, took)
}

// computed counts a chunk of a prompt.
func (r *reuse) computed(tokens int, took time.Duration, chunk int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.ComputedTokens += int64(tokens)
	r.savings.computed(tokens, took, chunk)
}

// load goes on with the savings of a file.
func (r *reuse) load(file string) error {
	s, err := readSavings(file)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.savings, r.written = s, s
	return err
}

// save writes the savings to a file, where they are others than those there.
func (r *reuse) save(file string) error {
	r.mu.Lock()
	s, same := r.savings, r.savings == r.written
	r.mu.Unlock()
	if same {
		return nil
	}
	err := writeSavings(file, s)
	if err == nil {
		r.mu.Lock()
		r.written = s
		r.mu.Unlock()
	}
	return err
}

func (r *reuse) stats(e *Engine) Reuse {
	r.mu.Lock()
	s := r.total
	s.SavedToday = r.savings.on(r.today())
	r.mu.Unlock()
	e.kept.do(func() { s.StoredTokens = e.kept.store.Tokens() })
	return s
}
