package mtl

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// MaxBytes is the largest argument of SetBytes; more goes into a buffer.
// https://developer.apple.com/documentation/metal/mtlcomputecommandencoder/setbytes(_:length:index:)
const MaxBytes = 4096

// ComputeCommandEncoder is MTLComputeCommandEncoder. https://developer.apple.com/documentation/metal/mtlcomputecommandencoder
//
// Its methods are the hot path: a token sends some two thousand messages. Arguments are laid into memory that the encoder keeps, so that a
// message allocates nothing; that memory is on the heap, where Go moves nothing.
type ComputeCommandEncoder struct {
	object
	*call
}

// call is the memory of one message.
type call struct {
	args        [2 + 4 + 6]uintptr // receiver, selector, the other four registers of amd64, two sizes on its stack
	grid, group Size
	bytes       [MaxBytes]byte
}

// newCall is not inlined, so that its result is on the heap whatever becomes of it.
//
//go:noinline
func newCall() *call { return new(call) }

func newEncoder(o object) (*ComputeCommandEncoder, error) {
	if o.Nil() {
		return nil, errors.New("metal: the command buffer gave no encoder")
	}
	return &ComputeCommandEncoder{o, newCall()}, nil
}

// NoEncoder is an encoder that is nil: it takes every message and does nothing, so that the cost of encoding on this side can be measured.
func (rt *Runtime) NoEncoder() *ComputeCommandEncoder {
	return &ComputeCommandEncoder{object{rt: rt}, newCall()}
}

// hot sends a message of up to three integer arguments.
func (e *ComputeCommandEncoder) hot(s selector, a, b, c uintptr) {
	e.args[0], e.args[1], e.args[2], e.args[3], e.args[4] = e.id, e.rt.sels[s], a, b, c
	purego.SyscallN(e.rt.msgSend, e.args[:5]...)
	runtime.KeepAlive(e.call)
}

// SetLabel names the encoder in tools and errors.
func (e *ComputeCommandEncoder) SetLabel(s String) { e.send(sel_setLabel, s.id) }

// PushDebugGroup opens a named group of commands. https://developer.apple.com/documentation/metal/mtlcommandencoder/pushdebuggroup(_:)
func (e *ComputeCommandEncoder) PushDebugGroup(s String) { e.hot(sel_pushDebugGroup, s.id, 0, 0) }

// PopDebugGroup closes it.
func (e *ComputeCommandEncoder) PopDebugGroup() { e.hot(sel_popDebugGroup, 0, 0, 0) }

// EndEncoding ends the encoder; nothing is encoded with it after.
func (e *ComputeCommandEncoder) EndEncoding() { e.send(sel_endEncoding) }

// SetComputePipelineState chooses the kernel of the dispatches that follow.
func (e *ComputeCommandEncoder) SetComputePipelineState(p ComputePipelineState) {
	e.hot(sel_setComputePipelineState, p.id, 0, 0)
}

// SetBuffer binds argument i to a buffer from byte off on.
func (e *ComputeCommandEncoder) SetBuffer(b Buffer, off int64, i int) {
	e.hot(sel_setBuffer_offset_atIndex, b.id, uintptr(off), uintptr(i))
}

// SetBytes binds argument i to a copy of at most MaxBytes bytes.
func (e *ComputeCommandEncoder) SetBytes(data []byte, i int) error {
	if len(data) == 0 || len(data) > MaxBytes {
		return fmt.Errorf("argument %d: got %d bytes in place, want 1 to %d", i, len(data), MaxBytes)
	}
	n := copy(e.bytes[:], data)
	e.hot(sel_setBytes_length_atIndex, uintptr(unsafe.Pointer(&e.bytes)), uintptr(n), uintptr(i))
	return nil
}

// SetThreadgroupMemoryLength gives the threads of a threadgroup n bytes to share, as threadgroup argument i: a multiple of 16.
func (e *ComputeCommandEncoder) SetThreadgroupMemoryLength(n, i int) {
	e.hot(sel_setThreadgroupMemoryLength_atIndex, uintptr(n), uintptr(i), 0)
}

// DispatchThreadgroups runs the kernel over a grid of whole threadgroups.
func (e *ComputeCommandEncoder) DispatchThreadgroups(groups, threads Size) {
	e.sized(sel_dispatchThreadgroups_threadsPerThreadgroup, groups, threads)
}

// DispatchThreads runs the kernel over a grid of threads; threadgroups at its edges may be smaller.
func (e *ComputeCommandEncoder) DispatchThreads(grid, threads Size) {
	e.sized(sel_dispatchThreads_threadsPerThreadgroup, grid, threads)
}

// sized sends a message whose two arguments are structures of 24 bytes: arm64 passes the addresses of copies, amd64 the words on the stack,
// behind the four registers that are left. (AAPCS64 6.8.2 stage B.4; System V AMD64 ABI 3.2.3.)
func (e *ComputeCommandEncoder) sized(s selector, a, b Size) {
	if runtime.GOARCH == "arm64" {
		e.grid, e.group = a, b
		e.hot(s, uintptr(unsafe.Pointer(&e.grid)), uintptr(unsafe.Pointer(&e.group)), 0)
		return
	}
	e.args = [12]uintptr{e.id, e.rt.sels[s], 0, 0, 0, 0, uintptr(a.Width), uintptr(a.Height), uintptr(a.Depth), uintptr(b.Width), uintptr(b.Height), uintptr(b.Depth)}
	purego.SyscallN(e.rt.msgSend, e.args[:]...)
	runtime.KeepAlive(e.call)
}

// MemoryBarrierWithScope orders all dispatches before it, in a concurrent encoder, before those behind it.
func (e *ComputeCommandEncoder) MemoryBarrierWithScope(scope int) {
	e.hot(sel_memoryBarrierWithScope, uintptr(scope), 0, 0)
}

// MemoryBarrierWithResources orders accesses to some buffers alone.
func (e *ComputeCommandEncoder) MemoryBarrierWithResources(bs []Buffer) {
	ids := idsOf(bs)
	e.send(sel_memoryBarrierWithResources_count, uintptr(unsafe.Pointer(unsafe.SliceData(ids))), uintptr(len(ids)))
}

// UseResource makes a buffer resident for the encoder.
func (e *ComputeCommandEncoder) UseResource(b Buffer, u ResourceUsage) {
	e.hot(sel_useResource_usage, b.id, uintptr(u), 0)
}

// UseResources makes buffers resident for the encoder.
func (e *ComputeCommandEncoder) UseResources(bs []Buffer, u ResourceUsage) {
	ids := idsOf(bs)
	e.send(sel_useResources_count_usage, uintptr(unsafe.Pointer(unsafe.SliceData(ids))), uintptr(len(ids)), uintptr(u))
}

func idsOf(bs []Buffer) []uintptr {
	ids := make([]uintptr, len(bs))
	for i, b := range bs {
		ids[i] = b.id
	}
	return ids
}
