package cache

// Store keeps snapshots by the tokens that led to them, within a budget of bytes. Every byte is counted once, however many snapshots share
// it: states, rows, the tree's tokens, and the rows that sequences at work build on. It belongs to one goroutine.
type Store struct {
	budget int64
	states int64         // bytes
	rows   int64         // bytes
	freed  int64         // bytes let go of since TakeFreed
	work   map[*Rows]int // of sequences at work
	index  *Index[*Snapshot]
}

// NewStore is an empty store.
func NewStore(budgetBytes int64) *Store {
	return &Store{budget: budgetBytes, work: map[*Rows]int{}, index: NewIndex[*Snapshot]()}
}

// LenBytes is everything that is held.
func (s *Store) LenBytes() int64 { return s.states + s.rows + s.index.TokenBytes() }

// Tokens is how many tokens lead to snapshots, those that several share counted once.
func (s *Store) Tokens() int { return s.index.tokens }

// Snapshots is how many are kept.
func (s *Store) Snapshots() int { return len(s.index.All()) }

// SetBudget changes the budget and drops what is above it. It reports whether the store keeps to it: rows at work cannot be dropped.
func (s *Store) SetBudget(bytes int64) bool {
	s.budget = bytes
	return s.shrink(nil)
}

// Room reports whether so many bytes more can be had by dropping what is not at work.
func (s *Store) Room(bytes int64) bool { return s.AtWork()+bytes <= s.budget }

// AtWork is the bytes that stay when all snapshots go.
func (s *Store) AtWork() (n int64) {
	seen := map[*Rows]bool{}
	for r := range s.work {
		for ; r != nil && !seen[r]; r = r.Prev {
			seen[r] = true
			n += r.LenBytes()
		}
	}
	return n
}

// Keep keeps a snapshot for its tokens. It reports false where it does not fit, even with all else dropped.
func (s *Store) Keep(tokens []int32, c *Snapshot) bool {
	kept, old := s.index.Put(tokens, c)
	s.states += c.StateBytes()
	s.use(c.rows)
	if old != nil {
		s.states -= (*old).StateBytes()
		s.freed += (*old).StateBytes()
		s.unuse((*old).rows)
	}
	if s.shrink(kept) {
		return true
	}
	s.remove(kept)
	return false
}

// Find returns the snapshot of the longest beginning of the prompt, at most limit tokens of it; nil where there is none.
func (s *Store) Find(prompt []int32, limit int) *Snapshot {
	if k := s.index.Get(prompt, limit); k != nil {
		return k.Value
	}
	return nil
}

// Has reports whether a snapshot is kept for exactly these tokens.
func (s *Store) Has(tokens []int32) bool { return s.index.At(tokens) != nil }

// Departs is how many tokens of the prompt some kept sequence begins with, and how that one goes on; see Index.Departs.
func (s *Store) Departs(prompt []int32) (common int, instead []int32) { return s.index.Departs(prompt) }

// Hold counts rows, and those before them, as long as a sequence works on them, until Release. nil does nothing.
func (s *Store) Hold(r *Rows) {
	if r != nil {
		s.work[r]++
		s.use(r)
	}
}

// Release ends a Hold.
func (s *Store) Release(r *Rows) {
	if r == nil {
		return
	}
	if s.work[r]--; s.work[r] == 0 {
		delete(s.work, r)
	}
	s.unuse(r)
}

func (s *Store) use(r *Rows) {
	for ; r != nil; r = r.Prev {
		if r.uses++; r.uses > 1 {
			return // those before are counted
		}
		s.rows += r.LenBytes()
	}
}

func (s *Store) unuse(r *Rows) {
	for ; r != nil; r = r.Prev {
		if r.uses--; r.uses > 0 {
			return
		}
		s.rows -= r.LenBytes()
		s.freed += r.LenBytes()
	}
}

// Clear drops all snapshots and returns the bytes that were freed.
func (s *Store) Clear() (freedBytes int64) {
	before := s.LenBytes()
	for _, k := range s.index.All() {
		s.remove(k)
	}
	return before - s.LenBytes()
}

// TakeFreed is how many bytes were let go of since the last call: what the collector has to find.
func (s *Store) TakeFreed() int64 {
	n := s.freed
	s.freed = 0
	return n
}

// Each calls f with what is kept, the most recently used first, until it returns false.
func (s *Store) Each(f func(tokens []int32, c *Snapshot) bool) {
	for _, k := range s.index.All() {
		if !f(k.Sequence(), k.Value) {
			return
		}
	}
}

func (s *Store) remove(k *Kept[*Snapshot]) {
	s.index.Remove(k)
	s.states -= k.Value.StateBytes()
	s.freed += k.Value.StateBytes()
	s.unuse(k.Value.rows)
}

// shrink drops the least worth until the budget holds, what was just put last of all.
func (s *Store) shrink(put *Kept[*Snapshot]) bool {
	for s.LenBytes() > s.budget {
		least := s.index.Least(put, cost)
		if least == nil {
			return false
		}
		s.remove(least)
	}
	return true
}

// cost is what goes with a snapshot: its states, and the rows that nothing else uses.
func cost(c *Snapshot) int64 {
	n := c.StateBytes()
	for r := c.rows; r != nil && r.uses == 1; r = r.Prev {
		n += r.LenBytes()
	}
	return n
}
