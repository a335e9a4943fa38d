// Package plan describes a forward pass as data: an ordered list of named dispatches, each with the byte ranges it reads
// and writes. Nobody writes a barrier: the levels between which an executor must wait are derived from those ranges.
//
// It knows nothing of devices, kernels or the model. Start with Builder.Build, which derives the levels and checks the plan;
// overlay.go places its scratch, dump.go prints it.
package plan

import "fmt"

// Class says where a buffer's contents come from, which decides what the checks allow.
type Class uint8

const (
	Weight  Class = iota // filled at load, never written
	Input                // written by the host before each run
	State                // carried from run to run: KV rows, gdn state, conv windows
	Scratch              // holds nothing between runs; must be written before it is read
	Output               // scratch that the host reads after the run
)

func (c Class) String() string {
	return [...]string{"weight", "input", "state", "scratch", "output"}[c]
}

// DType is the storage type of a buffer's elements.
type DType uint8

const (
	F32  DType = iota
	U32        // token ids, positions, routes
	BF16       // as published, any alignment
	Code       // packed 4 or 8 bit codes, as published, any alignment
)

func (t DType) String() string { return [...]string{"f32", "u32", "bf16", "code"}[t] }

// Bytes is the width of one element; packed codes count as bytes.
func (t DType) Bytes() int64 { return [...]int64{4, 4, 2, 1}[t] }

// Buffer is one named piece of memory. Name is what an executor binds by.
type Buffer struct {
	Name     string
	Class    Class
	DType    DType
	LenBytes int64
}

// BufferID is the index of a buffer in its plan.
type BufferID int32

// Access says what a dispatch does to a range.
type Access uint8

const (
	Read Access = 1 << iota
	Write
	ReadWrite = Read | Write
)

func (a Access) String() string { return [...]string{"-", "r", "w", "rw"}[a] }

// Range is a byte range of a buffer.
type Range struct {
	Buffer   BufferID
	Off, Len int64
}

// Arg is one bound parameter of a dispatch.
type Arg struct {
	Param  string // the kernel's name for it
	Range  Range
	Access Access
	// Touched is how many bytes one run is expected to move, when that is less than the range: a few experts of a stack, one row
	// of the embedding. Zero means all of it.
	Touched int64
	// At is where a range of scratch begins in the plan's scratch memory. Build sets it, see overlay.go.
	At int64
}

// Bytes is the traffic of the argument in one run.
func (a Arg) Bytes() int64 {
	n := a.Range.Len
	if a.Touched > 0 {
		n = a.Touched
	}
	if a.Access == ReadWrite {
		n *= 2
	}
	return n
}

// Dispatch is one kernel launch.
type Dispatch struct {
	Name   string // unique in the plan, e.g. "layers.3.attn.qkv"
	Kernel string
	Params any // the kernel's parameter struct, comparable
	Items  int // independent work items: rows, heads, tokens, as the kernel says
	Args   []Arg
}

// Bytes is the traffic of the dispatch in one run.
func (d Dispatch) Bytes() int64 {
	var n int64
	for _, a := range d.Args {
		n += a.Bytes()
	}
	return n
}

// Plan is a checked list of dispatches with their levels. Dispatches of one level touch nothing that another of the level
// writes, so they may run in any order or side by side.
type Plan struct {
	Name       string
	Buffers    []Buffer
	Dispatches []Dispatch // ordered by level, then as added
	Level      []int      // level of each dispatch, from 0
	Levels     int
	// ScratchBytes is the memory in which the ranges of scratch have their places: less than the buffers' sizes together.
	ScratchBytes int64
}

// Builder collects buffers and dispatches.
type Builder struct {
	name       string
	buffers    []Buffer
	byName     map[string]BufferID
	dispatches []Dispatch
	err        error
}

// New starts a plan.
func New(name string) *Builder {
	return &Builder{name: name, byName: map[string]BufferID{}}
}

// Buffer declares a buffer of elems elements, or returns the one of that name. A second declaration that differs is an error of
// the plan.
func (b *Builder) Buffer(name string, class Class, t DType, elems int) Range {
	want := Buffer{Name: name, Class: class, DType: t, LenBytes: int64(elems) * t.Bytes()}
	id, ok := b.byName[name]
	if !ok {
		id = BufferID(len(b.buffers))
		b.buffers = append(b.buffers, want)
		b.byName[name] = id
		if elems <= 0 {
			b.fail("buffer %s: got %d elements, want at least 1", name, elems)
		}
	} else if got := b.buffers[id]; got != want {
		b.fail("buffer %s: declared as %s %s of %d bytes and as %s %s of %d bytes", name, got.Class, got.DType, got.LenBytes, want.Class, want.DType, want.LenBytes)
	}
	return Range{Buffer: id, Len: want.LenBytes}
}

// Part is the range of n elements of width bytes from element off of r.
func (r Range) Part(off, n int, t DType) Range {
	return Range{Buffer: r.Buffer, Off: r.Off + int64(off)*t.Bytes(), Len: int64(n) * t.Bytes()}
}

// Add appends a dispatch.
func (b *Builder) Add(d Dispatch) { b.dispatches = append(b.dispatches, d) }

// Fail records an error found while emitting; Build returns the first.
func (b *Builder) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *Builder) fail(format string, a ...any) {
	b.Fail(fmt.Errorf("plan %s: "+format, append([]any{b.name}, a...)...))
}

// Build checks the dispatches, derives their levels, orders them and places what is scratch. Errors name the dispatch and the buffer.
func (b *Builder) Build() (*Plan, error) {
	b.check()
	if b.err != nil {
		return nil, b.err
	}
	p := &Plan{Name: b.name, Buffers: b.buffers}
	p.order(b.dispatches)
	p.place()
	return p, nil
}
