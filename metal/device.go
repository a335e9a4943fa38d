// Package metal is what the engine knows of a device: buffers, bound dispatches in levels, and running them. It holds value
// types and one small interface; it imports no binding and no unsafe.
//
// The kernels themselves are package metal/kernels; metal/host runs them as Go functions on any machine, metal/gpu through Metal.
package metal

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Device runs compiled passes. It is not safe for concurrent use: one goroutine owns it (package inference's worker).
type Device interface {
	// Name says what runs the kernels, for reports: "host exact, 2 threads".
	Name() string
	// NewBuffer returns zeroed memory of lenBytes bytes. Memory that is never touched costs nothing where the system is lazy.
	NewBuffer(label string, lenBytes int64) (Buffer, error)
	// PlaceWeights makes published bytes readable by kernels. The host keeps them where they lie (data must outlive the device);
	// a GPU copies them into aligned memory.
	PlaceWeights(label string, data []byte) (Buffer, error)
	// Compile checks a program against the kernels and prepares it to be run many times.
	Compile(p Program) (Pass, error)
	// Run executes a pass, behind all that were started, and waits for it.
	Run(p Pass, o RunOptions) error
	// Start has a pass executed behind all that were started, and need not wait for it: what the pass reads stays as it is, and what it writes
	// is not looked at, until Wait or Drop. A pass that cannot be started says so there.
	Start(p Pass, o RunOptions) Running
	// Close releases the device; buffers and passes die with it. A second call does nothing.
	Close() error
}

// Buffer is device memory that the host can see between runs.
type Buffer interface {
	Label() string
	Bytes() []byte
	F32() []float32 // the same memory as f32; nil for weights, which may be unaligned
	U32() []uint32  // the same memory as u32; nil for weights
}

// Slot stands in a program for a buffer that is named at each run: what one sequence carries. So one pass serves all sequences, alone
// or several together, and compiling is done once for all of them. As a Buffer it has a label and no memory.
type Slot struct {
	Index int // in RunOptions.Slots
	Name  string
}

var _ Buffer = Slot{}

// Label implements Buffer.
func (s Slot) Label() string { return s.Name }

// Bytes implements Buffer: there are none.
func (s Slot) Bytes() []byte { return nil }

// F32 implements Buffer: there is none.
func (s Slot) F32() []float32 { return nil }

// U32 implements Buffer: there is none.
func (s Slot) U32() []uint32 { return nil }

// Slice is a byte range of a buffer. In a slot Len is the most: what is put there may be shorter.
type Slice struct {
	Buffer   Buffer
	Off, Len int64
	Name     string // of what lies there, where it is not the buffer's: scratch has one buffer for much
}

// Label is the name of what lies in the slice.
func (s Slice) Label() string {
	if s.Name != "" || s.Buffer == nil {
		return s.Name
	}
	return s.Buffer.Label()
}

// In is the slice with its buffer, where it has a slot.
func (s Slice) In(slots []Buffer) (Slice, error) {
	slot, ok := s.Buffer.(Slot)
	if !ok {
		return s, nil
	}
	if slot.Index >= len(slots) || slots[slot.Index] == nil {
		return s, fmt.Errorf("%s: got nothing in slot %d of %d", slot.Name, slot.Index, len(slots))
	}
	s.Buffer = slots[slot.Index]
	s.Len = min(s.Len, int64(len(s.Buffer.Bytes()))-s.Off)
	if s.Len <= 0 {
		return s, fmt.Errorf("%s: got %d bytes in slot %d, want more than %d", slot.Name, len(s.Buffer.Bytes()), slot.Index, s.Off)
	}
	return s, nil
}

// Fill returns dispatches with what the slots hold in a run.
func Fill(ds []Dispatch, slots []Buffer) ([]Dispatch, error) {
	out := make([]Dispatch, len(ds))
	for i, d := range ds {
		out[i] = d
		out[i].Args = make([]Slice, len(d.Args))
		for j, a := range d.Args {
			var err error
			if out[i].Args[j], err = a.In(slots); err != nil {
				return nil, fmt.Errorf("%s: %w", d.Label, err)
			}
		}
	}
	return out, nil
}

// Dispatch is one kernel launch with its memory bound.
type Dispatch struct {
	Label  string
	Kernel string
	Params any     // the kernel's parameter struct
	Items  int     // independent work items
	Work   int64   // bytes moved, by which a device decides how widely to spread it
	Args   []Slice // in the order of the kernel's signature
}

// Program is a bound plan: Levels[i] may run in any order, and all of it before Levels[i+1].
type Program struct {
	Label  string
	Levels [][]Dispatch
}

// Pass is a compiled program; it belongs to the device that made it.
type Pass interface {
	Program() Program
}

// Running is a pass that was started. One of its methods is called, once.
type Running interface {
	// Wait returns when the pass has run.
	Wait() error
	// Drop is for a pass whose results nobody wants any more: what has not begun is left out, else it is waited for. ran says which.
	Drop() (ran bool, err error)
}

// Done is a pass that ran when it was started, with its error.
type Done struct{ Err error }

// Wait implements Running.
func (d Done) Wait() error { return d.Err }

// Drop implements Running.
func (d Done) Drop() (ran bool, err error) { return true, d.Err }

// RunOptions say on what a pass is run, and how.
type RunOptions struct {
	// Slots are the buffers that stand in the program's slots, by index.
	Slots []Buffer
	// Tap is called after each level with its dispatches, when their results are visible. Used by tests and inspection.
	Tap func(level int, ds []Dispatch)
	// Shuffle runs the dispatches of a level, and the work items of a dispatch, in a random order: a missing dependency shows
	// as a changed bit.
	Shuffle *rand.Rand
	// Timed is called after each dispatch with the time that the device spent on it. Dispatches then run one by one, so that their sum is more
	// than a pass takes.
	Timed func(level int, d Dispatch, took time.Duration)
}
