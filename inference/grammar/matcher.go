package grammar

import (
	"fmt"
	"sync"
)

// Bound is a grammar over a vocabulary, with everything that answers have found out about its masks. It is safe for concurrent use.
type Bound struct {
	vocab *Vocabulary

	mu   sync.Mutex // protects what follows, and the network, which may grow
	m    *machine
	rule stateID
}

// What a Bound remembers at most: a situation takes about 1 KB, a mask of the full vocabulary 31 KB.
const (
	maxSituations = 20_000
	maxMasks      = 512
)

// Bind readies a grammar for a vocabulary.
func (g *Grammar) Bind(v *Vocabulary) *Bound {
	net, rule := g.build(v)
	return &Bound{vocab: v, rule: rule, m: newMachine(net, rule)}
}

// Matcher is one answer on its way. It belongs to one goroutine at a time.
type Matcher struct {
	b  *Bound
	m  *machine // the Bound's when at was taken: a Bound starts anew when it has grown too large
	at int32
}

// Start is an answer's beginning.
func (b *Bound) Start() *Matcher {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &Matcher{b: b, m: b.m, at: b.m.start}
}

// renew lets the Bound begin anew where it has grown too large, and moves the matcher along. The lock is held.
func (m *Matcher) renew() {
	b := m.b
	if b.m.size() > maxSituations || b.m.masks > maxMasks {
		b.m = newMachine(b.m.net, b.rule)
	}
	if m.m != b.m {
		m.at = m.m.copyPlaces(m.at, b.m)
		m.m = b.m
	}
}

// Mask returns the tokens that may come next: bit id%64 of word id/64. The caller must not change it.
func (m *Matcher) Mask() []uint64 {
	m.b.mu.Lock()
	defer m.b.mu.Unlock()
	m.renew()
	return m.m.mask(m.b.vocab, m.at)
}

// Known returns the mask if an answer was here before, and nil if it would have to be worked out.
func (m *Matcher) Known() []uint64 {
	m.b.mu.Lock()
	defer m.b.mu.Unlock()
	return m.m.situations[m.at].mask
}

// Accept goes on by one token, which the mask must have allowed. A token that ends the answer changes nothing.
func (m *Matcher) Accept(id int32) error {
	m.b.mu.Lock()
	defer m.b.mu.Unlock()
	v := m.b.vocab
	if id < 0 || int(id) >= v.size {
		return fmt.Errorf("grammar: got token %d, want one below %d", id, v.size)
	}
	at := m.at
	switch s, special := v.symbol[id]; {
	case special && s == symbols:
		if !m.m.situations[at].whole {
			return fmt.Errorf("grammar: got the end token %d, want more", id)
		}
		return nil
	case special:
		at = m.m.step(at, s)
	default:
		at = m.m.read(at, v.bytes[id])
	}
	if at == 0 {
		return fmt.Errorf("grammar: got token %d, %q, want one that the mask allows", id, v.bytes[id])
	}
	m.at = at
	return nil
}

// Whole reports whether the answer may end here.
func (m *Matcher) Whole() bool {
	m.b.mu.Lock()
	defer m.b.mu.Unlock()
	return m.m.situations[m.at].whole
}

// Ended reports whether the answer must end here: it is whole and nothing can follow.
func (m *Matcher) Ended() bool {
	m.b.mu.Lock()
	defer m.b.mu.Unlock()
	s := &m.m.situations[m.at]
	return s.whole && len(s.places) == 0
}
