package cache

import (
	"bytes"
	"fmt"
	"slices"
	"weak"
)

// Snapshot is a copy of a state at one position. It can be restored into every State of the same specs, any number of times.
type Snapshot struct {
	pos    int
	states [][]byte // by spec; nil for rows
	rows   *Rows    // up to pos; nil where a sequence carries no rows
}

// Rows is what the positions from From to To added to the rows of every buffer, behind those of Prev. It never changes.
type Rows struct {
	Prev     *Rows
	From, To int
	data     [][]byte // by spec; nil for states
	runs     []int32  // how the positions were taken in, see State.Took
	uses     int      // by a Store: snapshots, later rows, sequences at work
}

// Pos is the position at which the snapshot was taken.
func (c *Snapshot) Pos() int { return c.pos }

// Runs is how the positions were taken in, from the first on: see State.Took.
func (c *Snapshot) Runs() (runs []int32) {
	for r := c.rows; r != nil; r = r.Prev {
		runs = append(slices.Clone(r.runs), runs...)
	}
	return runs
}

// Differs names the first buffer that differs, in any bit, from a state at the same position; empty: none does.
func (c *Snapshot) Differs(s *State) string {
	if s.pos != c.pos {
		return fmt.Sprintf("position: got %d, want %d", s.pos, c.pos)
	}
	for i, sp := range s.specs {
		b := s.buffers[sp.Name].Bytes()
		if sp.RowBytes == 0 && !bytes.Equal(b[:sp.LenBytes], c.states[i]) {
			return sp.Name
		}
		for r := c.rows; r != nil && sp.RowBytes > 0; r = r.Prev {
			if !bytes.Equal(b[sp.RowBytes*int64(r.From):sp.RowBytes*int64(r.To)], r.data[i]) {
				return fmt.Sprintf("%s, positions %d to %d", sp.Name, r.From, r.To)
			}
		}
	}
	return ""
}

// StateBytes is the memory of what is not rows.
func (c *Snapshot) StateBytes() int64 { return lenBytes(c.states) }

// LenBytes is the memory of these rows, without those before them.
func (r *Rows) LenBytes() int64 { return lenBytes(r.data) }

func lenBytes(data [][]byte) (n int64) {
	for _, d := range data {
		n += int64(len(d))
	}
	return n
}

// SnapshotBytes is what a snapshot at the position would add.
func (s *State) SnapshotBytes() int64 {
	from := 0
	if s.base != nil {
		from = s.base.To
	}
	n := s.LenBytes(s.pos - from)
	for _, sp := range s.specs {
		if sp.Apart {
			n -= sp.LenBytes
		}
	}
	return n
}

// Snapshot copies the state at its position: the states, and the rows since the last snapshot.
func (s *State) Snapshot() *Snapshot {
	c := &Snapshot{pos: s.pos, states: make([][]byte, len(s.specs))}
	from := 0
	if s.base != nil {
		from = s.base.To
	}
	r := &Rows{Prev: s.base, From: from, To: s.pos, data: make([][]byte, len(s.specs))}
	for i, sp := range s.specs {
		b := s.buffers[sp.Name]
		switch {
		case sp.RowBytes == 0:
			c.states[i] = append([]byte(nil), b.Bytes()...)
		case s.pos > from:
			r.data[i] = append([]byte(nil), b.Bytes()[sp.RowBytes*int64(from):sp.RowBytes*int64(s.pos)]...)
		}
	}
	if s.pos > from {
		r.runs, s.runs = s.runs, nil
		s.base = r
		s.lies = append(s.lies[:s.known(from)], lie{weak.Make(r), r.To})
	}
	c.rows = s.base
	return c
}

// known is how many entries of lies end at or before a position.
func (s *State) known(pos int) int {
	n := 0
	for n < len(s.lies) && s.lies[n].to <= pos {
		n++
	}
	return n
}

// Restore puts the state where the snapshot was taken. Rows that lie in the buffers already are not copied again. It fails, and changes
// nothing, where the snapshot is of another shape or there is no memory for its rows.
func (s *State) Restore(c *Snapshot) error {
	if err := s.accepts(c); err != nil {
		return err
	}
	if err := s.Grow(c.pos); err != nil {
		return err
	}
	chain, same := s.inPlace(c)
	s.lies = s.lies[:same]
	for i := len(chain) - 1 - same; i >= 0; i-- {
		r := chain[i]
		for k, sp := range s.specs {
			if sp.RowBytes > 0 {
				copy(s.buffers[sp.Name].Bytes()[sp.RowBytes*int64(r.From):], r.data[k])
			}
		}
		s.lies = append(s.lies, lie{weak.Make(r), r.To})
	}
	for k, sp := range s.specs {
		if sp.RowBytes == 0 {
			copy(s.buffers[sp.Name].Bytes(), c.states[k])
		}
	}
	s.pos, s.base, s.runs = c.pos, c.rows, nil
	return nil
}

// inPlace returns the snapshot's chain of rows, the last first, and how many from its far end on lie in the buffers.
func (s *State) inPlace(c *Snapshot) (chain []*Rows, same int) {
	for r := c.rows; r != nil; r = r.Prev {
		chain = append(chain, r)
	}
	for n := len(chain); same < n && same < len(s.lies) && s.lies[same].rows == weak.Make(chain[n-1-same]); {
		same++
	}
	return chain, same
}

// Shares is how many positions of a snapshot lie in the buffers already; 0 for nil.
func (s *State) Shares(c *Snapshot) int {
	if c == nil {
		return 0
	}
	if _, same := s.inPlace(c); same > 0 {
		return s.lies[same-1].to
	}
	return 0
}

// accepts checks that a snapshot has the shape of the state, whole.
func (s *State) accepts(c *Snapshot) error {
	if len(c.states) != len(s.specs) {
		return fmt.Errorf("cache: got a snapshot of %d buffers, want %d", len(c.states), len(s.specs))
	}
	to := c.pos
	for r := c.rows; r != nil; r = r.Prev {
		if r.To != to || r.From >= r.To || len(r.data) != len(s.specs) {
			return fmt.Errorf("cache: got rows of positions %d to %d, want them to end at %d", r.From, r.To, to)
		}
		to = r.From
	}
	for k, sp := range s.specs {
		if sp.RowBytes == 0 && int64(len(c.states[k])) != sp.LenBytes {
			return fmt.Errorf("cache: snapshot: %s: got %d bytes, want %d", sp.Name, len(c.states[k]), sp.LenBytes)
		}
		if sp.RowBytes == 0 {
			continue
		}
		if to != 0 {
			return fmt.Errorf("cache: got no rows for the first %d positions", to)
		}
		for r := c.rows; r != nil; r = r.Prev {
			if int64(len(r.data[k])) != sp.RowBytes*int64(r.To-r.From) {
				return fmt.Errorf("cache: snapshot: %s: got %d bytes for %d rows", sp.Name, len(r.data[k]), r.To-r.From)
			}
		}
	}
	return nil
}
