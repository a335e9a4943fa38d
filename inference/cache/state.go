// Package cache holds what a sequence of tokens carries from step to step (KV rows, gdn states and conv windows, always at one
// common token index) and the snapshots by which a later sequence starts where an earlier one stood.
//
// It knows sizes and names, not the model. Invariants:
//   - all buffers of a State stand at the same position;
//   - a gdn state cannot be rewound, so going back is possible only to a snapshot, and only as a whole;
//   - rows behind a position never change what is before it, so a snapshot is a copy of the states and a chain of rows, and snapshots
//     of one conversation, or of conversations that begin alike, share the rows they have in common;
//   - what a Store holds, every byte counted, is never above its budget after a call, but for what is being worked on.
//
// State is one sequence on a device, Snapshot what is kept of it, Index finds snapshots by tokens, Store bounds them, Disk keeps them in files.
package cache

import (
	"fmt"
	"weak"

	"pond/metal"
)

// Spec is one buffer that a sequence carries.
type Spec struct {
	Name     string
	LenBytes int64 // at most: with all rows
	RowBytes int64 // bytes that each position adds (KV rows); zero for a buffer that every step rewrites
	// Next is where a step writes what comes after: the same memory, or with Apart its own, so that a step can be undone by forgetting it.
	Next  string
	Apart bool
}

// State is the memory of one sequence. Its rows grow on demand.
type State struct {
	dev     metal.Device
	specs   []Spec
	buffers map[string]metal.Buffer
	pos     int
	rows    int     // positions that there is memory for
	base    *Rows   // the rows of the last snapshot taken or restored; nil: none
	runs    []int32 // behind base: see Took
	lies    []lie   // the chain of the rows in the buffers, from position 0 on, also after base was let go
}

// lie says that rows lie in the buffers, up to a position. It does not keep their copy alive.
type lie struct {
	rows weak.Pointer[Rows]
	to   int
}

// NewState allocates the buffers of one sequence but for its rows, at position 0.
func NewState(dev metal.Device, specs []Spec) (*State, error) {
	s := &State{dev: dev, specs: specs, buffers: map[string]metal.Buffer{}}
	for _, sp := range specs {
		if sp.RowBytes > 0 {
			continue
		}
		b, err := dev.NewBuffer(sp.Name, sp.LenBytes)
		if err != nil {
			return nil, err
		}
		s.buffers[sp.Name] = b
		if sp.Apart {
			if b, err = dev.NewBuffer(sp.Next, sp.LenBytes); err != nil {
				return nil, err
			}
		}
		if sp.Next != "" {
			s.buffers[sp.Next] = b
		}
	}
	return s, nil
}

// Buffers are all buffers, in the order of Names; nil where one has no rows yet. A buffer of rows is replaced by Grow.
func (s *State) Buffers() []metal.Buffer {
	var out []metal.Buffer
	for _, name := range Names(s.specs) {
		out = append(out, s.buffers[name])
	}
	return out
}

// Names are the names of all buffers, in the order of the specs, those that a step writes anew last.
func Names(specs []Spec) (out []string) {
	for _, sp := range specs {
		out = append(out, sp.Name)
	}
	for _, sp := range specs {
		if sp.Next != "" {
			out = append(out, sp.Next)
		}
	}
	return out
}

// Step goes on to what a run wrote as next, and the position by one.
func (s *State) Step() {
	for _, sp := range s.specs {
		if sp.Next != "" {
			s.buffers[sp.Name], s.buffers[sp.Next] = s.buffers[sp.Next], s.buffers[sp.Name]
		}
	}
	s.pos++
}

// Buffer returns a buffer by name, nil when there is none. A buffer of rows is replaced by Grow.
func (s *State) Buffer(name string) metal.Buffer { return s.buffers[name] }

// Pos is how many tokens the state has taken in.
func (s *State) Pos() int { return s.pos }

// Rows is how many positions there is memory for.
func (s *State) Rows() int { return s.rows }

// Advance moves the position after a run that took in n tokens.
func (s *State) Advance(n int) { s.pos += n }

// Took notes how positions were taken in: n at once, or -1 for one by a step. Where the last bits of a state depend on that, a run that is to
// be compared with it has to take the same steps: Snapshot.Runs tells them.
func (s *State) Took(run int32) { s.runs = append(s.runs, run) }

// LenBytes is the memory that the buffers take with a number of rows.
func (s *State) LenBytes(rows int) (n int64) {
	for _, sp := range s.specs {
		if sp.RowBytes > 0 {
			n += sp.RowBytes * int64(rows)
		} else {
			n += sp.LenBytes
		}
		if sp.Apart {
			n += sp.LenBytes
		}
	}
	return n
}

// Grow makes room for rows positions in all. It does nothing where there is as much.
func (s *State) Grow(rows int) error {
	if rows <= s.rows {
		return nil
	}
	grown := map[string]metal.Buffer{}
	for _, sp := range s.specs {
		if sp.RowBytes == 0 {
			continue
		}
		if int64(rows) > sp.LenBytes/sp.RowBytes {
			return fmt.Errorf("cache: got %d positions for %s, want at most %d", rows, sp.Name, sp.LenBytes/sp.RowBytes)
		}
		b, err := s.dev.NewBuffer(sp.Name, sp.RowBytes*int64(rows))
		if err != nil {
			return err
		}
		if old := s.buffers[sp.Name]; old != nil {
			copy(b.Bytes(), old.Bytes()[:sp.RowBytes*int64(s.filled())])
		}
		grown[sp.Name] = b
	}
	for name, b := range grown {
		s.buffers[name] = b
	}
	s.rows = rows
	return nil
}

// filled is how many rows are worth copying: those before the position, and those that a snapshot may find in place.
func (s *State) filled() int {
	if n := len(s.lies); n > 0 {
		return max(s.pos, s.lies[n-1].to)
	}
	return s.pos
}

// Reset forgets everything. The memory keeps its contents: at position 0 no kernel reads what an earlier sequence left.
func (s *State) Reset() { s.pos, s.base, s.runs, s.lies = 0, nil, nil, nil }

// Base is the rows that the next snapshot builds on; nil: none. They are to be counted while the state is worked on.
func (s *State) Base() *Rows { return s.base }

// Rest lets go of Base. The rows that lie in the buffers still spare copies when a snapshot that begins with them is restored.
func (s *State) Rest() { s.base = nil }
