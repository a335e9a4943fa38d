package mtl

import "errors"

// CommandQueue is MTLCommandQueue. https://developer.apple.com/documentation/metal/mtlcommandqueue
type CommandQueue struct{ object }

// SetLabel names the queue in tools.
func (q CommandQueue) SetLabel(s String) { q.send(sel_setLabel, s.id) }

// AddResidencySet makes a set resident for all command buffers of the queue (macOS 15).
func (q CommandQueue) AddResidencySet(s ResidencySet) { q.send(sel_addResidencySet, s.id) }

// RemoveResidencySet undoes AddResidencySet (macOS 15).
func (q CommandQueue) RemoveResidencySet(s ResidencySet) { q.send(sel_removeResidencySet, s.id) }

// CommandBuffer returns a command buffer that belongs to the pool and retains what is encoded into it.
func (q CommandQueue) CommandBuffer() (CommandBuffer, error) {
	return q.made(q.send(sel_commandBuffer))
}

// CommandBufferWithDescriptor returns a command buffer that belongs to the pool.
func (q CommandQueue) CommandBufferWithDescriptor(c CommandBufferDescriptor) (CommandBuffer, error) {
	return q.made(q.send(sel_commandBufferWithDescriptor, c.id))
}

func (q CommandQueue) made(id uintptr) (CommandBuffer, error) {
	b := CommandBuffer{q.rt.object(id)}
	if b.Nil() {
		return b, errors.New("metal: the queue gave no command buffer")
	}
	return b, nil
}

// CommandBufferDescriptor is MTLCommandBufferDescriptor. https://developer.apple.com/documentation/metal/mtlcommandbufferdescriptor
type CommandBufferDescriptor struct{ object }

// NewCommandBufferDescriptor returns an owned descriptor.
func (rt *Runtime) NewCommandBufferDescriptor() CommandBufferDescriptor {
	return CommandBufferDescriptor{rt.object(rt.class(class_MTLCommandBufferDescriptor).send(sel_new))}
}

// SetRetainedReferences says whether the command buffer keeps alive what is encoded into it; without, that is the caller's task.
func (c CommandBufferDescriptor) SetRetainedReferences(b bool) {
	c.send(sel_setRetainedReferences, yes(b))
}

// SetErrorOptions says how much an error shall tell.
func (c CommandBufferDescriptor) SetErrorOptions(options int) {
	c.send(sel_setErrorOptions, uintptr(options))
}

// CommandBuffer is MTLCommandBuffer: encoded once, committed once. https://developer.apple.com/documentation/metal/mtlcommandbuffer
type CommandBuffer struct{ object }

// SetLabel names the command buffer in tools and errors.
func (b CommandBuffer) SetLabel(s String) { b.send(sel_setLabel, s.id) }

// ComputeCommandEncoderWithDispatchType starts encoding; the encoder belongs to the pool.
func (b CommandBuffer) ComputeCommandEncoderWithDispatchType(t DispatchType) (*ComputeCommandEncoder, error) {
	return newEncoder(b.rt.object(b.send(sel_computeCommandEncoderWithDispatchType, uintptr(t))))
}

// ComputeCommandEncoderWithDescriptor starts encoding with timestamps; the encoder belongs to the pool.
func (b CommandBuffer) ComputeCommandEncoderWithDescriptor(c ComputePassDescriptor) (*ComputeCommandEncoder, error) {
	return newEncoder(b.rt.object(b.send(sel_computeCommandEncoderWithDescriptor, c.id)))
}

// EncodeSignalEvent sets an event's value after the work encoded before.
func (b CommandBuffer) EncodeSignalEvent(e SharedEvent, value uint64) {
	b.send(sel_encodeSignalEvent_value, e.id, uintptr(value))
}

// EncodeWaitForEvent holds the work encoded behind it until the event has the value.
func (b CommandBuffer) EncodeWaitForEvent(e SharedEvent, value uint64) {
	b.send(sel_encodeWaitForEvent_value, e.id, uintptr(value))
}

// Commit gives the work to the GPU.
func (b CommandBuffer) Commit() { b.send(sel_commit) }

// WaitUntilCompleted blocks until the work is done or has failed.
func (b CommandBuffer) WaitUntilCompleted() { b.send(sel_waitUntilCompleted) }

// Status is where the work stands.
func (b CommandBuffer) Status() CommandBufferStatus { return CommandBufferStatus(b.send(sel_status)) }

// Failure is why the work failed; nil when it did not.
func (b CommandBuffer) Failure() error { return b.rt.errorOf(b.send(sel_error)) }

// GPUStartTime is when the GPU began, in seconds; valid after completion.
func (b CommandBuffer) GPUStartTime() float64 {
	return b.rt.sendFloat(b.id, b.rt.sels[sel_GPUStartTime])
}

// GPUEndTime is when the GPU was done, in seconds; valid after completion.
func (b CommandBuffer) GPUEndTime() float64 { return b.rt.sendFloat(b.id, b.rt.sels[sel_GPUEndTime]) }

// SharedEvent is MTLSharedEvent. https://developer.apple.com/documentation/metal/mtlsharedevent
type SharedEvent struct{ object }

// SignaledValue is the event's value.
func (e SharedEvent) SignaledValue() uint64 { return uint64(e.send(sel_signaledValue)) }

// SetSignaledValue sets it from the CPU.
func (e SharedEvent) SetSignaledValue(v uint64) { e.send(sel_setSignaledValue, uintptr(v)) }

// WaitUntilSignaledValue blocks until the value is reached, at most for a time; it reports whether it was.
func (e SharedEvent) WaitUntilSignaledValue(v, milliseconds uint64) bool {
	return isTrue(e.send(sel_waitUntilSignaledValue_timeoutMS, uintptr(v), uintptr(milliseconds)))
}
