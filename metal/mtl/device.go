package mtl

import (
	"errors"
	"unsafe"
)

// Device is MTLDevice. https://developer.apple.com/documentation/metal/mtldevice
type Device struct{ object }

// CreateSystemDefaultDevice returns the machine's GPU, owned. https://developer.apple.com/documentation/metal/mtlcreatesystemdefaultdevice()
func (rt *Runtime) CreateSystemDefaultDevice() (Device, error) {
	d := Device{rt.object(rt.call(fn_MTLCreateSystemDefaultDevice))}
	if d.Nil() {
		return d, errors.New("metal: this machine has no GPU that Metal can use")
	}
	return d, nil
}

// Name is what Apple calls the GPU: "Apple M4 Pro".
func (d Device) Name() string { return String{d.rt.object(d.send(sel_name))}.UTF8String() }

// MaxThreadsPerThreadgroup is the limit in each dimension.
func (d Device) MaxThreadsPerThreadgroup() Size {
	return d.rt.sendSize(d.id, d.rt.sels[sel_maxThreadsPerThreadgroup])
}

// MaxThreadgroupMemoryLength is how many bytes the threads of a threadgroup may share.
func (d Device) MaxThreadgroupMemoryLength() int { return int(d.send(sel_maxThreadgroupMemoryLength)) }

// MaxBufferLength is the largest buffer in bytes.
func (d Device) MaxBufferLength() int64 { return int64(d.send(sel_maxBufferLength)) }

// RecommendedMaxWorkingSetSize is how many bytes may be resident without a loss of speed.
func (d Device) RecommendedMaxWorkingSetSize() int64 {
	return int64(d.send(sel_recommendedMaxWorkingSetSize))
}

// CurrentAllocatedSize is how many bytes this process has taken from the GPU.
func (d Device) CurrentAllocatedSize() int64 { return int64(d.send(sel_currentAllocatedSize)) }

// HasUnifiedMemory reports whether CPU and GPU share memory.
func (d Device) HasUnifiedMemory() bool { return isTrue(d.send(sel_hasUnifiedMemory)) }

// SupportsFamily reports whether the GPU has the features of a family.
func (d Device) SupportsFamily(f GPUFamily) bool {
	return isTrue(d.send(sel_supportsFamily, uintptr(f)))
}

// SupportsCounterSampling reports whether counters can be read at a point.
func (d Device) SupportsCounterSampling(point int) bool {
	return isTrue(d.send(sel_supportsCounterSampling, uintptr(point)))
}

// NewCommandQueue returns an owned queue.
func (d Device) NewCommandQueue() (CommandQueue, error) {
	q := CommandQueue{d.rt.object(d.send(sel_newCommandQueue))}
	if q.Nil() {
		return q, errors.New("metal: the device gave no command queue")
	}
	return q, nil
}

// NewBufferWithLength returns an owned buffer of n zero bytes; false when there is no memory for it.
func (d Device) NewBufferWithLength(n int64, options int) (Buffer, bool) {
	b := Buffer{d.rt.object(d.send(sel_newBufferWithLength_options, uintptr(n), uintptr(options)))}
	return b, !b.Nil()
}

// NewBufferWithBytes returns an owned buffer with a copy of data; false when there is no memory for it.
func (d Device) NewBufferWithBytes(data []byte, options int) (Buffer, bool) {
	b := Buffer{d.rt.object(d.send(sel_newBufferWithBytes_length_options, uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)), uintptr(options)))}
	return b, !b.Nil()
}

// NewBufferWithBytesNoCopy returns an owned buffer over memory that stays the caller's and must outlive the buffer: whole pages, not Go's heap.
func (d Device) NewBufferWithBytesNoCopy(data []byte, options int) (Buffer, bool) {
	const noDeallocator = 0
	b := Buffer{d.rt.object(d.send(sel_newBufferWithBytesNoCopy_length_options_deallocator,
		uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)), uintptr(options), noDeallocator))}
	return b, !b.Nil()
}

// NewLibraryWithSource compiles Metal text into an owned library; the error is the compiler's. Options may be nil.
func (d Device) NewLibraryWithSource(text string, o CompileOptions) (Library, error) {
	var e uintptr
	l := Library{d.rt.object(d.send(sel_newLibraryWithSource_options_error, d.rt.StringWithUTF8String(text).id, o.id, uintptr(unsafe.Pointer(&e))))}
	if l.Nil() {
		return l, d.rt.failed(e)
	}
	return l, nil
}

// NewLibraryWithURL loads a compiled library, owned, from a file.
func (d Device) NewLibraryWithURL(u URL) (Library, error) {
	var e uintptr
	l := Library{d.rt.object(d.send(sel_newLibraryWithURL_error, u.id, uintptr(unsafe.Pointer(&e))))}
	if l.Nil() {
		return l, d.rt.failed(e)
	}
	return l, nil
}

// NewLibraryWithData loads a compiled library, owned, from memory. The bytes are copied.
// https://developer.apple.com/documentation/dispatch/1452970-dispatch_data_create
func (d Device) NewLibraryWithData(data []byte) (Library, error) {
	const noQueue, copyBytes = 0, 0 // DISPATCH_DATA_DESTRUCTOR_DEFAULT
	block := d.rt.object(d.rt.call(fn_dispatch_data_create, uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)), noQueue, copyBytes))
	if block.Nil() {
		return Library{}, errors.New("metal: no memory for the library's bytes")
	}
	defer d.rt.call(fn_dispatch_release, block.id)
	var e uintptr
	l := Library{d.rt.object(d.send(sel_newLibraryWithData_error, block.id, uintptr(unsafe.Pointer(&e))))}
	if l.Nil() {
		return l, d.rt.failed(e)
	}
	return l, nil
}

// NewComputePipelineStateWithFunction compiles a kernel for the GPU into an owned pipeline.
func (d Device) NewComputePipelineStateWithFunction(f Function) (ComputePipelineState, error) {
	var e uintptr
	p := ComputePipelineState{d.rt.object(d.send(sel_newComputePipelineStateWithFunction_error, f.id, uintptr(unsafe.Pointer(&e))))}
	if p.Nil() {
		return p, d.rt.failed(e)
	}
	return p, nil
}

// NewComputePipelineStateWithDescriptor is NewComputePipelineStateWithFunction with a label, limits and archives.
func (d Device) NewComputePipelineStateWithDescriptor(c ComputePipelineDescriptor) (ComputePipelineState, error) {
	const noReflection = 0
	var e uintptr
	p := ComputePipelineState{d.rt.object(d.send(sel_newComputePipelineStateWithDescriptor_options_reflection_error,
		c.id, uintptr(PipelineOptionNone), noReflection, uintptr(unsafe.Pointer(&e))))}
	if p.Nil() {
		return p, d.rt.failed(e)
	}
	return p, nil
}

// NewBinaryArchiveWithDescriptor opens or starts an archive of compiled pipelines, owned.
func (d Device) NewBinaryArchiveWithDescriptor(c BinaryArchiveDescriptor) (BinaryArchive, error) {
	var e uintptr
	a := BinaryArchive{d.rt.object(d.send(sel_newBinaryArchiveWithDescriptor_error, c.id, uintptr(unsafe.Pointer(&e))))}
	if a.Nil() {
		return a, d.rt.failed(e)
	}
	return a, nil
}

// NewSharedEvent returns an owned event that CPU and GPU both signal and await.
func (d Device) NewSharedEvent() (SharedEvent, error) {
	e := SharedEvent{d.rt.object(d.send(sel_newSharedEvent))}
	if e.Nil() {
		return e, errors.New("metal: the device gave no event")
	}
	return e, nil
}

// NewResidencySetWithDescriptor returns an owned set; ok is false on a system before macOS 15, which has none.
func (d Device) NewResidencySetWithDescriptor(c ResidencySetDescriptor) (set ResidencySet, ok bool, err error) {
	if !d.responds(sel_newResidencySetWithDescriptor_error) {
		return set, false, nil
	}
	var e uintptr
	set = ResidencySet{d.rt.object(d.send(sel_newResidencySetWithDescriptor_error, c.id, uintptr(unsafe.Pointer(&e))))}
	if set.Nil() {
		return set, true, d.rt.failed(e)
	}
	return set, true, nil
}

// CounterSets lists, borrowed, what the GPU can count.
func (d Device) CounterSets() []CounterSet {
	a := Array{d.rt.object(d.send(sel_counterSets))}
	out := make([]CounterSet, a.Count())
	for i := range out {
		out[i] = CounterSet{a.objectAtIndex(i)}
	}
	return out
}

// NewCounterSampleBufferWithDescriptor returns an owned buffer for samples.
func (d Device) NewCounterSampleBufferWithDescriptor(c CounterSampleBufferDescriptor) (CounterSampleBuffer, error) {
	var e uintptr
	b := CounterSampleBuffer{d.rt.object(d.send(sel_newCounterSampleBufferWithDescriptor_error, c.id, uintptr(unsafe.Pointer(&e))))}
	if b.Nil() {
		return b, d.rt.failed(e)
	}
	return b, nil
}
