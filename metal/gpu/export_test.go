package gpu

import (
	"pond/metal/kernels"
	"pond/metal/mtl"
)

// SetKernel adds or replaces a kernel, for tests that plant faults.
func (d *Device) SetKernel(k kernels.Kernel) { d.kernels[k.Name] = k }

// SetLimits makes the device smaller.
func (d *Device) SetLimits(bufferBytes int64, threadgroupBytes int) {
	d.limits.bufferBytes, d.limits.threadgroupBytes = bufferBytes, threadgroupBytes
}

// Raw gives tests the objects, to misuse them.
func (d *Device) Raw() (*mtl.Runtime, mtl.Device, mtl.CommandQueue) { return d.rt, d.dev, d.queue }

// Live counts the buffers that the device holds.
func (d *Device) Live() int {
	_ = d.rt.Pool(func() error { d.bury(); return nil })
	return len(d.live)
}

// Pipelines counts what was compiled.
func (d *Device) Pipelines() int { return len(d.pipelines) }
