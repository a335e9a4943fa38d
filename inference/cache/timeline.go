package cache

// Timeline is the history of one State: the tokens it has taken in and the snapshots along them. Rules:
//   - tokens[:state.Pos()] are exactly what the state holds;
//   - snapshots are in order of position, all at or before state.Pos();
//   - at least one token of a prompt is always left to compute, since its logits are not kept.
type Timeline struct {
	State     *State
	tokens    []int32
	snapshots []*Snapshot
	keep      int // snapshots kept at most
}

// NewTimeline starts an empty history that keeps up to keep snapshots.
func NewTimeline(s *State, keep int) *Timeline { return &Timeline{State: s, keep: keep} }

// Tokens is the history; the caller must not change it.
func (t *Timeline) Tokens() []int32 { return t.tokens }

// Append records tokens that the state has taken in.
func (t *Timeline) Append(ids ...int32) { t.tokens = append(t.tokens, ids...) }

// Mark takes a snapshot here. Beyond the limit the oldest but the first goes: the first is the system and tools part, which
// every later turn shares.
func (t *Timeline) Mark() {
	if n := len(t.snapshots); n > 0 && t.snapshots[n-1].pos == t.State.pos {
		return
	}
	t.snapshots = append(t.snapshots, t.State.Snapshot())
	if len(t.snapshots) > t.keep {
		drop := min(1, len(t.snapshots)-2)
		t.snapshots = append(t.snapshots[:drop], t.snapshots[drop+1:]...)
	}
}

// Common is the length of the longest common prefix of two token lists.
func Common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// Usable is how many tokens of a prompt need not be computed again: all of the history when the prompt goes on from it, else up to the
// last snapshot inside the common part.
func (t *Timeline) Usable(prompt []int32) int {
	common := min(Common(t.tokens, prompt), len(prompt)-1)
	if common == len(t.tokens) {
		return common
	}
	for i := len(t.snapshots) - 1; i >= 0; i-- {
		if p := t.snapshots[i].pos; p <= common {
			return p
		}
	}
	return 0
}

// Rewind goes back to n tokens, which Usable returned; later snapshots are dropped.
func (t *Timeline) Rewind(n int) error {
	if n == len(t.tokens) {
		return nil
	}
	keep := 0
	for keep < len(t.snapshots) && t.snapshots[keep].pos <= n {
		keep++
	}
	t.snapshots = t.snapshots[:keep]
	t.tokens = t.tokens[:n]
	if n == 0 {
		t.State.Reset()
		return nil
	}
	return t.State.Restore(t.snapshots[keep-1])
}

// LenBytes is the memory that the snapshots hold.
func (t *Timeline) LenBytes() int64 {
	var n int64
	for _, s := range t.snapshots {
		n += s.LenBytes()
	}
	return n
}

// Drop forgets the snapshots, not the history.
func (t *Timeline) Drop() { t.snapshots = nil }

// Clear forgets the history, after a run that failed part way and left the state undefined.
func (t *Timeline) Clear() {
	t.tokens, t.snapshots = t.tokens[:0], nil
	t.State.Reset()
}
