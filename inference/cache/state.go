// Package cache holds what a sequence of tokens carries from step to step: KV rows, gdn states and conv windows, always
// at one common token index, and the copies of it from which a conversation can be taken up again.
//
// It knows sizes and names, not the model. Invariants:
//   - all buffers of a State stand at the same position;
//   - KV rows below the position are never rewritten while the position stays above them, so a snapshot needs no copy of them;
//   - a gdn state cannot be rewound, so going back is possible only to a snapshot, and only as a whole;
//   - restoring a snapshot makes every snapshot of a later position invalid, because its KV rows may be overwritten.
package cache

import (
	"fmt"

	"pond/metal"
)

// Spec is one buffer that a sequence carries.
type Spec struct {
	Name     string
	LenBytes int64
	RowBytes int64 // bytes that each position adds (KV rows); zero for a buffer that every step rewrites
}

// State is the memory of one sequence.
type State struct {
	specs   []Spec
	buffers map[string]metal.Buffer
	pos     int
	epoch   int // counts the times the position went back
	cuts    []cut
}

// cut records that the position went back to pos, so that rows from there on may have been written anew. Only the lowest position
// since a given epoch matters, so positions in the list ascend.
type cut struct{ epoch, pos int }

func (s *State) cutTo(pos int) {
	s.epoch++
	for len(s.cuts) > 0 && s.cuts[len(s.cuts)-1].pos >= pos {
		s.cuts = s.cuts[:len(s.cuts)-1]
	}
	s.cuts = append(s.cuts, cut{s.epoch, pos})
	s.pos = pos
}

// NewState allocates the buffers of one sequence, at position 0.
func NewState(dev metal.Device, specs []Spec) (*State, error) {
	s := &State{specs: specs, buffers: map[string]metal.Buffer{}}
	for _, sp := range specs {
		b, err := dev.NewBuffer(sp.Name, sp.LenBytes)
		if err != nil {
			return nil, err
		}
		s.buffers[sp.Name] = b
	}
	return s, nil
}

// Buffer returns a buffer by name, nil when there is none.
func (s *State) Buffer(name string) metal.Buffer { return s.buffers[name] }

// Pos is how many tokens the state has taken in.
func (s *State) Pos() int { return s.pos }

// Advance moves the position after a run that took in n tokens.
func (s *State) Advance(n int) { s.pos += n }

// Reset forgets everything. The memory keeps its contents: at position 0 no kernel reads what an earlier sequence left.
func (s *State) Reset() { s.cutTo(0) }

// Snapshot is a copy of what cannot be rewound, at one position.
type Snapshot struct {
	pos   int
	epoch int
	data  map[string][]byte
}

// Pos is the position to which the snapshot goes back.
func (c *Snapshot) Pos() int { return c.pos }

// LenBytes is the memory that the snapshot holds.
func (c *Snapshot) LenBytes() int64 {
	var n int64
	for _, d := range c.data {
		n += int64(len(d))
	}
	return n
}

// Snapshot copies the state at its position.
func (s *State) Snapshot() *Snapshot {
	c := &Snapshot{pos: s.pos, epoch: s.epoch, data: map[string][]byte{}}
	for _, sp := range s.specs {
		if sp.RowBytes == 0 {
			c.data[sp.Name] = append([]byte(nil), s.buffers[sp.Name].Bytes()...)
		}
	}
	return c
}

// Restore goes back to a snapshot. It fails when the rows below the snapshot may have been overwritten since: the state was reset, or
// an earlier position was restored.
func (s *State) Restore(c *Snapshot) error {
	if c.pos > s.pos {
		return fmt.Errorf("cache: got a snapshot of position %d, want one at or before %d", c.pos, s.pos)
	}
	for _, k := range s.cuts {
		if k.epoch > c.epoch && k.pos < c.pos {
			return fmt.Errorf("cache: snapshot of position %d: its rows were overwritten after a return to position %d", c.pos, k.pos)
		}
	}
	for name, d := range c.data {
		copy(s.buffers[name].Bytes(), d)
	}
	s.cutTo(c.pos)
	return nil
}
