package mtl

import "unsafe"

// ComputePipelineDescriptor is MTLComputePipelineDescriptor. https://developer.apple.com/documentation/metal/mtlcomputepipelinedescriptor
type ComputePipelineDescriptor struct{ object }

// NewComputePipelineDescriptor returns an owned descriptor.
func (rt *Runtime) NewComputePipelineDescriptor() ComputePipelineDescriptor {
	return ComputePipelineDescriptor{rt.object(rt.class(class_MTLComputePipelineDescriptor).send(sel_new))}
}

// SetLabel names the pipeline in tools and errors.
func (c ComputePipelineDescriptor) SetLabel(s String) { c.send(sel_setLabel, s.id) }

// SetComputeFunction chooses the kernel.
func (c ComputePipelineDescriptor) SetComputeFunction(f Function) {
	c.send(sel_setComputeFunction, f.id)
}

// SetMaxTotalThreadsPerThreadgroup promises a largest threadgroup, by which the compiler gives out registers.
func (c ComputePipelineDescriptor) SetMaxTotalThreadsPerThreadgroup(n int) {
	c.send(sel_setMaxTotalThreadsPerThreadgroup, uintptr(n))
}

// SetThreadGroupSizeIsMultipleOfThreadExecutionWidth promises whole simdgroups.
func (c ComputePipelineDescriptor) SetThreadGroupSizeIsMultipleOfThreadExecutionWidth(b bool) {
	c.send(sel_setThreadGroupSizeIsMultipleOfThreadExecutionWidth, yes(b))
}

// SetBinaryArchive is where to look for the compiled pipeline first.
func (c ComputePipelineDescriptor) SetBinaryArchive(a BinaryArchive) {
	c.send(sel_setBinaryArchives, c.rt.arrayWithObject(a.object).id)
}

// ComputePipelineState is MTLComputePipelineState. https://developer.apple.com/documentation/metal/mtlcomputepipelinestate
type ComputePipelineState struct{ object }

// MaxTotalThreadsPerThreadgroup is the largest threadgroup that the compiled kernel's registers allow.
func (p ComputePipelineState) MaxTotalThreadsPerThreadgroup() int {
	return int(p.send(sel_maxTotalThreadsPerThreadgroup))
}

// ThreadExecutionWidth is the number of threads in a simdgroup.
func (p ComputePipelineState) ThreadExecutionWidth() int {
	return int(p.send(sel_threadExecutionWidth))
}

// StaticThreadgroupMemoryLength is how many bytes of threadgroup memory the kernel declares itself.
func (p ComputePipelineState) StaticThreadgroupMemoryLength() int {
	return int(p.send(sel_staticThreadgroupMemoryLength))
}

// BinaryArchiveDescriptor is MTLBinaryArchiveDescriptor. https://developer.apple.com/documentation/metal/mtlbinaryarchivedescriptor
type BinaryArchiveDescriptor struct{ object }

// NewBinaryArchiveDescriptor returns an owned descriptor of a new archive.
func (rt *Runtime) NewBinaryArchiveDescriptor() BinaryArchiveDescriptor {
	return BinaryArchiveDescriptor{rt.object(rt.class(class_MTLBinaryArchiveDescriptor).send(sel_new))}
}

// SetURL makes it the descriptor of an archive on disk.
func (c BinaryArchiveDescriptor) SetURL(u URL) { c.send(sel_setUrl, u.id) }

// BinaryArchive is MTLBinaryArchive: pipelines compiled for one GPU, to be saved. https://developer.apple.com/documentation/metal/mtlbinaryarchive
type BinaryArchive struct{ object }

// SetLabel names the archive in tools.
func (a BinaryArchive) SetLabel(s String) { a.send(sel_setLabel, s.id) }

// AddComputePipelineFunctionsWithDescriptor compiles a pipeline into the archive.
func (a BinaryArchive) AddComputePipelineFunctionsWithDescriptor(c ComputePipelineDescriptor) error {
	var e uintptr
	if !isTrue(a.send(sel_addComputePipelineFunctionsWithDescriptor_error, c.id, uintptr(unsafe.Pointer(&e)))) {
		return a.rt.failed(e)
	}
	return nil
}

// SerializeToURL saves the archive.
func (a BinaryArchive) SerializeToURL(u URL) error {
	var e uintptr
	if !isTrue(a.send(sel_serializeToURL_error, u.id, uintptr(unsafe.Pointer(&e)))) {
		return a.rt.failed(e)
	}
	return nil
}
