package standin

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Kernels is a compiled library with the means to run one kernel at a time, without Objective-C between: what tests of kernels use.
// Dispatches of one process run one after the other. A library is never unloaded.
type Kernels struct {
	run  *runner
	lib  uintptr
	path string
}

// Compile builds kernel text with this machine's compiler and loads it, for the backend that the environment chooses. The error is ErrNoCompiler,
// ErrUnsupported or ErrNoNVCC where that cannot be.
func Compile(source string, o CompileOptions) (*Kernels, error) {
	t, err := NewToolchain("", "")
	if err != nil {
		return nil, err
	}
	backend, err := chosenBackend("")
	if err != nil {
		return nil, err
	}
	if backend == OnCUDA {
		return t.compileCUDA(source, o)
	}
	return t.Compile(source, o)
}

// Compile builds kernel text and loads it, to run on the processor.
func (t *Toolchain) Compile(source string, o CompileOptions) (*Kernels, error) {
	path, err := t.Build(source, o)
	if err != nil {
		return nil, err
	}
	return openKernels(path, path)
}

// openKernels opens a compiled library. The runtime is a library that brings the functions of msl_run.h along: the compiled one itself, whose runtime is that of
// the processor, or another.
func openKernels(runtime, path string) (*Kernels, error) {
	r, err := loadRunner(runtime)
	if err != nil {
		return nil, err
	}
	k := &Kernels{run: r, path: path}
	text := make([]byte, reportBytes)
	if k.lib = r.open(path, &text[0], reportBytes); k.lib == 0 {
		return nil, errors.New(cString(text))
	}
	return k, nil
}

const reportBytes = 16 << 10

// runner is msl_run.h through purego.
type runner struct {
	open      func(path string, text *byte, n uintptr) uintptr
	kernels   func(lib uintptr) int32
	kernel    func(lib uintptr, i int32) string
	describe  func(lib uintptr, name string, out *KernelInfo) int32
	arg       func(lib uintptr, name string, i int32, out *cArg) int32
	pipeline  func(lib uintptr, name string, constants *cConstant, n int32, text *byte, bytes uintptr) uintptr
	release   func(p uintptr)
	newMemory func(n uint64, label string, flags uint32) unsafe.Pointer
	free      func(p unsafe.Pointer)
	unwritten func(p unsafe.Pointer, off, n uint64)
	traffic   func(p unsafe.Pointer, out *MemoryTraffic)
	dispatch  uintptr
}

// cBinding, cGrid, cOptions, cConstant and cArg are the structs of msl_run.h.
type cBinding struct {
	index, inlineBytes uint32
	base               unsafe.Pointer
	lenBytes           uint64
	label              *byte
}
type cGrid struct {
	groups, threads, last [3]uint32
	threadgroupBytes      [8]uint32
}
type cOptions struct {
	order, flags      uint32
	seed              uint64
	workers, reserved uint32
	group             uint64
}
type cConstant struct {
	index, bytes uint32
	value        unsafe.Pointer
}
type cArg struct {
	name                                                *byte
	kind, index, access, elementBytes, align, reference uint32
}

// abi is the version of msl_run.h that the structs above follow.
const abi = 4

func loadRunner(path string) (*runner, error) {
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("kernel library: %w", err)
	}
	r := &runner{}
	var version func() uint32
	var symboliser func(f uintptr)
	for name, f := range map[string]any{
		"abi": &version, "library_open": &r.open, "library_kernels": &r.kernels, "library_kernel": &r.kernel, "kernel_describe": &r.describe, "kernel_arg": &r.arg,
		"pipeline_new": &r.pipeline, "pipeline_free": &r.release, "memory_new": &r.newMemory, "memory_free": &r.free, "memory_unwritten": &r.unwritten,
		"memory_traffic": &r.traffic, "set_symboliser": &symboliser,
	} {
		purego.RegisterLibFunc(f, h, "msl_"+name)
	}
	if v := version(); v != abi {
		return nil, fmt.Errorf("kernel library %s: got interface %d, want %d", path, v, abi)
	}
	if r.dispatch, err = purego.Dlsym(h, "msl_run"); err != nil {
		return nil, err
	}
	symboliser(SymboliserCallback())
	return r, nil
}

// KernelInfo is what a kernel needs; msl_kernel_info of msl_run.h.
type KernelInfo struct {
	Args             uint32
	MaxThreads       uint32
	ThreadgroupBytes uint32 // static threadgroup memory
	Synchronises     uint32 // 0: no barrier and no simdgroup operation
}

// ArgInfo is one argument of a kernel.
type ArgInfo struct {
	Name         string
	Threadgroup  bool // [[threadgroup(Index)]], else [[buffer(Index)]]
	Index        int
	Writable     bool // not const
	ElementBytes int
	AlignBytes   int
	Reference    bool // constant T&
}

// Names lists the kernels in the order of the text.
func (k *Kernels) Names() []string {
	var out []string
	for i := range k.run.kernels(k.lib) {
		out = append(out, k.run.kernel(k.lib, i))
	}
	return out
}

// Describe returns what a kernel needs.
func (k *Kernels) Describe(name string) (KernelInfo, []ArgInfo, error) {
	var info KernelInfo
	if k.run.describe(k.lib, name, &info) != 0 {
		return info, nil, fmt.Errorf("no kernel named %s", name)
	}
	var args []ArgInfo
	for i := range int32(info.Args) {
		var a cArg
		k.run.arg(k.lib, name, i, &a)
		args = append(args, ArgInfo{pointerString(a.name), a.kind == 1, int(a.index), a.access&2 != 0, int(a.elementBytes), int(a.align), a.reference != 0})
	}
	return info, args, nil
}

// Memory is zeroed memory of a kernel library's runtime, between guard zones.
type Memory struct {
	k    *Kernels
	base unsafe.Pointer
	n    int
}

// NewMemory returns zeroed memory of n bytes, aligned to 16. Free it.
func (k *Kernels) NewMemory(label string, n int) *Memory {
	return &Memory{k, k.run.newMemory(uint64(n), label, 0), n}
}

// Bytes is the memory itself.
func (m *Memory) Bytes() []byte { return unsafe.Slice((*byte)(m.base), m.n) }

// F32 is the memory as floats.
func (m *Memory) F32() []float32 { return unsafe.Slice((*float32)(m.base), m.n/4) }

// U32 is the memory as unsigned integers.
func (m *Memory) U32() []uint32 { return unsafe.Slice((*uint32)(m.base), m.n/4) }

// Unwritten says that nothing has been written to bytes [off, off+n), so that check mode reports loads of them.
func (m *Memory) Unwritten(off, n int) { m.k.run.unwritten(m.base, uint64(off), uint64(n)) }

// MemoryTraffic counts what kernels moved; lines are distinct lines of 64 bytes.
type MemoryTraffic struct{ LoadBytes, StoreBytes, LoadLines, StoreLines uint64 }

// Traffic returns what counting mode saw since the last call.
func (m *Memory) Traffic() MemoryTraffic {
	var t MemoryTraffic
	m.k.run.traffic(m.base, &t)
	return t
}

// Free returns the memory. It must not be used afterwards.
func (m *Memory) Free() { m.k.run.free(m.base) }

// KernelArg is bound at the index of its place in the list: memory from an offset on, or bytes (setBytes). A zero KernelArg leaves the index unset.
type KernelArg struct {
	Memory *Memory
	Offset int
	Bytes  []byte
}

// KernelGrid is how a kernel is spread.
type KernelGrid struct {
	Groups, Threads [3]int // zero counts as one
	Last            [3]int // threads of the last threadgroup in each dimension; 0: as many as the others
	// ThreadgroupBytes is the length of [[threadgroup(0)]].
	ThreadgroupBytes int
}

// KernelOptions change how a dispatch is run, not what it should compute.
type KernelOptions struct {
	Order     Order  // of lanes, simdgroups and threadgroups
	Seed      uint64 // of Shuffled
	Poison    bool   // threadgroup memory is NaN before each threadgroup
	Check     bool   // races, bounds, unwritten memory, barriers; the library must be compiled with CompileOptions.Checked
	Count     bool   // bytes and lines of each memory; the same
	Workers   int    // 0: two from about 16,000 threads up
	Group     uint64 // dispatches of one number run without a barrier between them: check mode reports conflicts among them
	Constants []KernelConstant
}

// KernelConstant is the value of a function constant, as it lies in memory.
type KernelConstant struct {
	Index int
	Value []byte
}

// KernelCounts is what a dispatch did; msl_counts of msl_run.h. Bytes are counted in counting mode.
type KernelCounts struct {
	Dispatches, Threadgroups, Threads                                           uint64
	SimdOps, MatrixOps, ThreadgroupBarriers, SimdgroupBarriers, Switches        uint64
	LoadBytes, StoreBytes, ThreadgroupLoadBytes, ThreadgroupStoreBytes, Atomics uint64
	ThreadgroupBytes                                                            uint64
}

// Run runs a kernel to its end. The error says what was wrong with the call or what the checks saw, a sentence a line.
func (k *Kernels) Run(name string, args []KernelArg, g KernelGrid, o KernelOptions) (KernelCounts, error) {
	var counts KernelCounts
	var pin runtime.Pinner
	defer pin.Unpin()
	text := make([]byte, reportBytes)
	constants := make([]cConstant, len(o.Constants)+1)
	for i, c := range o.Constants {
		pin.Pin(&c.Value[0])
		constants[i] = cConstant{uint32(c.Index), uint32(len(c.Value)), unsafe.Pointer(&c.Value[0])}
	}
	p := k.run.pipeline(k.lib, name, &constants[0], int32(len(o.Constants)), &text[0], reportBytes)
	if p == 0 {
		return counts, errors.New(cString(text))
	}
	defer k.run.release(p)
	bindings := make([]cBinding, 0, len(args)+1)
	for i, a := range args {
		switch {
		case a.Memory != nil:
			if a.Offset < 0 || a.Offset > a.Memory.n {
				return counts, fmt.Errorf("%s: buffer %d: got offset %d, want at most %d", name, i, a.Offset, a.Memory.n)
			}
			bindings = append(bindings, cBinding{uint32(i), 0, unsafe.Add(a.Memory.base, a.Offset), uint64(a.Memory.n - a.Offset), nil})
		case len(a.Bytes) > 0:
			pin.Pin(&a.Bytes[0])
			bindings = append(bindings, cBinding{uint32(i), uint32(len(a.Bytes)), unsafe.Pointer(&a.Bytes[0]), uint64(len(a.Bytes)), nil})
		}
	}
	n := len(bindings)
	bindings = append(bindings, cBinding{})
	grid := cGrid{threadgroupBytes: [8]uint32{uint32(g.ThreadgroupBytes)}}
	for i := range 3 {
		grid.groups[i], grid.threads[i], grid.last[i] = uint32(max(1, g.Groups[i])), uint32(max(1, g.Threads[i])), uint32(g.Last[i])
	}
	options := cOptions{order: uint32(o.Order), seed: o.Seed, workers: uint32(o.Workers), group: o.Group}
	for bit, on := range []bool{o.Poison, o.Check, o.Count} {
		if on {
			options.flags |= 1 << bit
		}
	}
	for _, q := range []any{&bindings[0], &grid, &options, &counts, &text[0]} {
		pin.Pin(q)
	}
	rc, _, _ := purego.SyscallN(k.run.dispatch, p, uintptr(unsafe.Pointer(&bindings[0])), uintptr(n), uintptr(unsafe.Pointer(&grid)), uintptr(unsafe.Pointer(&options)),
		uintptr(unsafe.Pointer(&counts)), uintptr(unsafe.Pointer(&text[0])), reportBytes)
	if int32(rc) != 0 {
		return counts, errors.New(cString(text))
	}
	return counts, nil
}

func cString(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

func pointerString(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return unsafe.String(p, n)
}
