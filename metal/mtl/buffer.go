package mtl

import "unsafe"

// Buffer is MTLBuffer. https://developer.apple.com/documentation/metal/mtlbuffer
type Buffer struct{ object }

// SetLabel names the buffer in tools and errors. https://developer.apple.com/documentation/metal/mtlresource/label
func (b Buffer) SetLabel(s String) { b.send(sel_setLabel, s.id) }

// Length is the number of bytes.
func (b Buffer) Length() int64 { return int64(b.send(sel_length)) }

// Contents is the memory of a shared buffer: what the GPU wrote is there once its command buffer has completed. It dies with the buffer.
func (b Buffer) Contents() []byte {
	return unsafe.Slice((*byte)(pointer(b.send(sel_contents))), int(b.Length()))
}

// ResidencySetDescriptor is MTLResidencySetDescriptor (macOS 15). https://developer.apple.com/documentation/metal/mtlresidencysetdescriptor
type ResidencySetDescriptor struct{ object }

// NewResidencySetDescriptor returns an owned descriptor; nil before macOS 15.
func (rt *Runtime) NewResidencySetDescriptor() ResidencySetDescriptor {
	return ResidencySetDescriptor{rt.object(rt.class(class_MTLResidencySetDescriptor).send(sel_new))}
}

// SetLabel names the set in tools.
func (c ResidencySetDescriptor) SetLabel(s String) { c.send(sel_setLabel, s.id) }

// SetInitialCapacity is how many allocations to expect.
func (c ResidencySetDescriptor) SetInitialCapacity(n int) { c.send(sel_setInitialCapacity, uintptr(n)) }

// ResidencySet is MTLResidencySet (macOS 15): memory that stays resident for the queues that have it, so that no command names it again.
// https://developer.apple.com/documentation/metal/mtlresidencyset
type ResidencySet struct{ object }

// AddAllocation adds a buffer with the next Commit.
func (s ResidencySet) AddAllocation(b Buffer) { s.send(sel_addAllocation, b.id) }

// RemoveAllocation takes a buffer out with the next Commit.
func (s ResidencySet) RemoveAllocation(b Buffer) { s.send(sel_removeAllocation, b.id) }

// Commit makes additions and removals hold for command buffers committed later.
func (s ResidencySet) Commit() { s.send(sel_commit) }

// RequestResidency brings the memory in before it is needed.
func (s ResidencySet) RequestResidency() { s.send(sel_requestResidency) }

// EndResidency lets the system take the memory out again.
func (s ResidencySet) EndResidency() { s.send(sel_endResidency) }

// AllocatedSize is the set's bytes.
func (s ResidencySet) AllocatedSize() int64 { return int64(s.send(sel_allocatedSize)) }
