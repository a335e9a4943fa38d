package gpu

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"pond/metal"
	"pond/metal/mtl"
)

// shared is how all memory is allocated: seen by CPU and GPU, its hazards the plan's business.
const shared = mtl.ResourceStorageModeShared | mtl.ResourceHazardTrackingModeUntracked

// buffer is memory that CPU and GPU share.
type buffer struct {
	label string
	b     mtl.Buffer
	bytes []byte // its contents, lenBytes long
	plain bool   // made by NewBuffer: words may be read
}

func (b *buffer) Label() string { return b.label }
func (b *buffer) Bytes() []byte { return b.bytes }

func (b *buffer) U32() []uint32 {
	if !b.plain {
		return nil
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b.bytes))), len(b.bytes)/4)
}

func (b *buffer) F32() []float32 {
	if !b.plain {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b.bytes))), len(b.bytes)/4)
}

// graveyard collects the numbers of buffers that nothing refers to any more, until the owner of the device gives them back. A program
// holds its buffers, so a pass that could still run keeps them.
type graveyard struct {
	mu      sync.Mutex // the collector's goroutine adds, the device's owner takes
	numbers []uint64
}

func (g *graveyard) add(n uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.numbers = append(g.numbers, n)
}

func (g *graveyard) take() []uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.numbers
	g.numbers = nil
	return n
}

// bury gives abandoned buffers back.
func (d *Device) bury() {
	for _, n := range d.abandoned.take() {
		if b, ok := d.live[n]; ok {
			delete(d.live, n)
			d.drop(b)
		}
	}
}

// drop takes a buffer out of residency and releases it.
func (d *Device) drop(b mtl.Buffer) {
	if !d.set.Nil() {
		d.set.RemoveAllocation(b)
		d.changed = true
	}
	b.Release()
}

// NewBuffer implements metal.Device.
func (d *Device) NewBuffer(label string, lenBytes int64) (metal.Buffer, error) {
	if lenBytes <= 0 || lenBytes%4 != 0 {
		return nil, fmt.Errorf("buffer %s: got %d bytes, want a positive multiple of 4", label, lenBytes)
	}
	return d.allocate("buffer", label, lenBytes, true)
}

// PlaceWeights implements metal.Device: it copies the bytes, which lie at odd offsets in their file, into a buffer of their own. One tensor
// at a time, so that no more than one exists twice in memory that cannot be evicted.
func (d *Device) PlaceWeights(label string, data []byte) (metal.Buffer, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("weights %s: got no bytes", label)
	}
	b, err := d.allocate("weights", label, int64(len(data)), false)
	if err != nil {
		return nil, err
	}
	copy(b.bytes, data)
	return b, nil
}

// allocate takes zeroed memory from Metal, which clears what it gives.
// https://developer.apple.com/documentation/metal/mtldevice/makebuffer(length:options:)
func (d *Device) allocate(what, label string, lenBytes int64, plain bool) (*buffer, error) {
	if lenBytes > d.limits.bufferBytes {
		return nil, fmt.Errorf("%s %s: got %d bytes, want at most the %d that %s gives a buffer", what, label, lenBytes, d.limits.bufferBytes, d.name)
	}
	out := &buffer{label: label, plain: plain}
	err := d.rt.Pool(func() error {
		d.bury()
		b, ok := d.dev.NewBufferWithLength(lenBytes, shared)
		if !ok {
			return fmt.Errorf("%s %s: no memory for %d bytes on %s", what, label, lenBytes, d.name)
		}
		b.SetLabel(d.rt.StringWithUTF8String(label))
		if !d.set.Nil() {
			d.set.AddAllocation(b)
			d.changed = true
		}
		out.b, out.bytes = b, b.Contents()
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.made++
	d.live[d.made] = out.b
	runtime.AddCleanup(out, d.abandoned.add, d.made)
	return out, nil
}
