package mtl

// ComputePassDescriptor is MTLComputePassDescriptor. https://developer.apple.com/documentation/metal/mtlcomputepassdescriptor
type ComputePassDescriptor struct{ object }

// ComputePassDescriptor makes a descriptor that belongs to the pool.
func (rt *Runtime) ComputePassDescriptor() ComputePassDescriptor {
	return ComputePassDescriptor{rt.object(rt.class(class_MTLComputePassDescriptor).send(sel_computePassDescriptor))}
}

// SetDispatchType chooses whether dispatches wait for each other.
func (c ComputePassDescriptor) SetDispatchType(t DispatchType) {
	c.send(sel_setDispatchType, uintptr(t))
}

// SampleBufferAttachments is, borrowed, where timestamps are asked for.
func (c ComputePassDescriptor) SampleBufferAttachments() ComputePassSampleBufferAttachmentDescriptorArray {
	return ComputePassSampleBufferAttachmentDescriptorArray{c.rt.object(c.send(sel_sampleBufferAttachments))}
}

// ComputePassSampleBufferAttachmentDescriptorArray is the class of that name.
// https://developer.apple.com/documentation/metal/mtlcomputepasssamplebufferattachmentdescriptorarray
type ComputePassSampleBufferAttachmentDescriptorArray struct{ object }

// ObjectAtIndexedSubscript borrows an element.
func (a ComputePassSampleBufferAttachmentDescriptorArray) ObjectAtIndexedSubscript(i int) ComputePassSampleBufferAttachmentDescriptor {
	return ComputePassSampleBufferAttachmentDescriptor{a.rt.object(a.send(sel_objectAtIndexedSubscript, uintptr(i)))}
}

// ComputePassSampleBufferAttachmentDescriptor is the class of that name.
// https://developer.apple.com/documentation/metal/mtlcomputepasssamplebufferattachmentdescriptor
type ComputePassSampleBufferAttachmentDescriptor struct{ object }

// SetSampleBuffer is where the encoder's timestamps go.
func (c ComputePassSampleBufferAttachmentDescriptor) SetSampleBuffer(b CounterSampleBuffer) {
	c.send(sel_setSampleBuffer, b.id)
}

// SetStartOfEncoderSampleIndex is the place of the first.
func (c ComputePassSampleBufferAttachmentDescriptor) SetStartOfEncoderSampleIndex(i int) {
	c.send(sel_setStartOfEncoderSampleIndex, uintptr(i))
}

// SetEndOfEncoderSampleIndex is the place of the last.
func (c ComputePassSampleBufferAttachmentDescriptor) SetEndOfEncoderSampleIndex(i int) {
	c.send(sel_setEndOfEncoderSampleIndex, uintptr(i))
}

// CounterSet is MTLCounterSet. https://developer.apple.com/documentation/metal/mtlcounterset
type CounterSet struct{ object }

// CommonCounterSetTimestamp is the name of the set that has timestamps. https://developer.apple.com/documentation/metal/mtlcommoncounterset
const CommonCounterSetTimestamp = "timestamp"

// Name is the set's.
func (s CounterSet) Name() string { return String{s.rt.object(s.send(sel_name))}.UTF8String() }

// CounterSampleBufferDescriptor is MTLCounterSampleBufferDescriptor. https://developer.apple.com/documentation/metal/mtlcountersamplebufferdescriptor
type CounterSampleBufferDescriptor struct{ object }

// NewCounterSampleBufferDescriptor returns an owned descriptor.
func (rt *Runtime) NewCounterSampleBufferDescriptor() CounterSampleBufferDescriptor {
	return CounterSampleBufferDescriptor{rt.object(rt.class(class_MTLCounterSampleBufferDescriptor).send(sel_new))}
}

// SetCounterSet chooses what is sampled.
func (c CounterSampleBufferDescriptor) SetCounterSet(s CounterSet) { c.send(sel_setCounterSet, s.id) }

// SetStorageMode chooses where samples lie.
func (c CounterSampleBufferDescriptor) SetStorageMode(mode int) {
	c.send(sel_setStorageMode, uintptr(mode))
}

// SetSampleCount is how many samples there is room for.
func (c CounterSampleBufferDescriptor) SetSampleCount(n int) { c.send(sel_setSampleCount, uintptr(n)) }

// SetLabel names the buffer in tools.
func (c CounterSampleBufferDescriptor) SetLabel(s String) { c.send(sel_setLabel, s.id) }

// CounterSampleBuffer is MTLCounterSampleBuffer. https://developer.apple.com/documentation/metal/mtlcountersamplebuffer
type CounterSampleBuffer struct{ object }

// ResolveCounterRange is n samples from the first on, after their command buffer has completed; for timestamps, a uint64 each.
// NSRange is two words, which every system passes in registers.
func (b CounterSampleBuffer) ResolveCounterRange(first, n int) Data {
	return Data{b.rt.object(b.send(sel_resolveCounterRange, uintptr(first), uintptr(n)))}
}

// CounterErrorValue is the sample that could not be taken. https://developer.apple.com/documentation/metal/mtlcountererrorvalue
const CounterErrorValue = ^uint64(0)
