// Package standin plays Apple's Objective-C runtime, Foundation and Metal on Linux, so that package mtl's binding, package gpu's device and every
// .metal kernel run unchanged in tests, and `pond serve --executor standin` answers without a Mac.
//
// Open builds a shared library from the C++ in src (once, kept by hash in a cache folder) and begins a session: metal/mtl loads Library.Path and
// believes that it talks to a Mac. The stand-in is as strict as a Mac or stricter; what it objects to is collected and read with
// Library.Reports, and Close says what the program still holds. It is no GPU: kernels run on processor threads, and no figure of time means
// anything. Start reading at src/objc_runtime.h (objects and messages), then src/metal_objects.h; src/msl_run.h is the border to the half that
// compiles and runs kernels.
package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/ebitengine/purego"
)

// Order is the order in which a dispatch's threads, simdgroups and threadgroups run. A GPU promises none, so results must not depend on it.
type Order int

const (
	Ascending Order = iota
	Descending
	Shuffled // by Options.Seed
)

func (o Order) String() string {
	return [...]string{"ascending", "descending", "shuffled"}[o]
}

// Options of a session. The zero value runs kernels as fast as it can, ascending, without checks of memory.
type Options struct {
	Backend           Backend // what runs kernels. "": what POND_STANDIN_BACKEND says, else the processor
	Order             Order
	Seed              uint64 // of Order Shuffled and of ShuffleDispatches
	ShuffleDispatches bool   // the dispatches of a level run in a random order: a missing dependency shows as a changed bit
	Poison            bool   // threadgroup memory is filled with NaN before each threadgroup
	Check             bool   // races, bounds, unwritten memory and barriers are checked at each access; three times slower
	Count             bool   // bytes and cache lines of each buffer are counted; two times slower
	Workers           int    // processor threads a dispatch; 0: chosen by its size

	MacOS           int    // the version that is played; API newer than it is unknown. 0: 15
	Family          int    // the Apple GPU family that is played. 0: 9
	Name            string // of the device. "": Pond stand-in
	MaxBufferBytes  int64  // 0: 64 GiB
	WorkingSetBytes int64  // recommendedMaxWorkingSetSize. 0: 24 GiB
	MaxThreads      int    // of every pipeline's threadgroups, as if its kernel needed more registers than there are for 1,024. 0: 1,024

	CacheDir string // where what is compiled is kept. "": pond/standin in the user's cache folder
}

// Library is an open session of the stand-in. One can be open at a time in a process; its methods may be called from any goroutine.
type Library struct {
	path     string
	compiler *kernelCompiler
	symbols

	mu     sync.Mutex // protects closed
	closed bool
}

// symbols are the functions of src/standin.cpp. A uintptr is the handle of a text, or of a compiler's job.
type symbols struct {
	begin         func(config string, compile uintptr) uintptr
	closeAll      func() uintptr
	reports       func() uintptr
	counters      func() uintptr
	resetCounters func()
	methods       func() uintptr
	fault         func(kind string, n uint64, what string)
	text          func(handle uintptr) string
	textFree      func(handle uintptr)
	jobSource     func(job uintptr) string
	jobOptions    func(job uintptr) string
	jobDone       func(job uintptr, ok int32, result string)
}

func loadSymbols(path string) (s symbols, err error) {
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return s, err
	}
	for name, f := range map[string]any{
		"open": &s.begin, "close": &s.closeAll, "reports": &s.reports, "counters": &s.counters, "reset_counters": &s.resetCounters, "methods": &s.methods,
		"fault": &s.fault, "text": &s.text, "text_free": &s.textFree, "job_source": &s.jobSource, "job_options": &s.jobOptions, "job_done": &s.jobDone,
	} {
		purego.RegisterLibFunc(f, h, "pond_standin_"+name)
	}
	return s, nil
}

// Open builds the library where it is not built yet, loads it and begins a session. The error is ErrNoCompiler where this machine has no C++ compiler
// that could build it, and ErrUnsupported on systems other than Linux.
func Open(o Options) (*Library, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	dir, err := cacheDir(o.CacheDir)
	if err != nil {
		return nil, err
	}
	path, err := build(dir)
	if err != nil {
		return nil, err
	}
	compiler, err := newKernelCompiler(dir, o)
	if err != nil {
		return nil, err
	}
	return begin(path, compiler, o)
}

// begin loads the library and begins the session.
func begin(path string, compiler *kernelCompiler, o Options) (*Library, error) {
	s, err := loadSymbols(path)
	if err != nil {
		return nil, fmt.Errorf("stand-in: load %s: %w", path, err)
	}
	l := &Library{path: path, compiler: compiler, symbols: s}
	if wrong := l.take(s.begin(o.config(compiler.runtime), purego.NewCallback(l.compile))); wrong != "" {
		return nil, fmt.Errorf("stand-in: %s", wrong)
	}
	return l, nil
}

// config is what pond_standin_open reads, a line a field.
func (o Options) config(runtime string) string {
	flags := 0
	for bit, set := range []bool{o.Poison, o.Check, o.Count} {
		if set {
			flags |= 1 << bit // MSL_POISON, MSL_CHECK, MSL_COUNT
		}
	}
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "%s=%v\n", key, value) }
	line("runtime", runtime)
	line("order", int(o.Order))
	line("flags", flags)
	line("seed", o.Seed)
	line("workers", o.Workers)
	if o.ShuffleDispatches {
		line("shuffleDispatches", 1)
	}
	for key, n := range map[string]int64{"macos": int64(o.MacOS), "family": int64(o.Family), "maxBufferLength": o.MaxBufferBytes, "workingSet": o.WorkingSetBytes, "maxThreads": int64(o.MaxThreads)} {
		if n != 0 {
			line(key, n)
		}
	}
	if o.Name != "" {
		line("name", o.Name)
	}
	return b.String()
}

// compile answers newLibraryWithSource:options:error: on the thread that sent it.
func (l *Library) compile(job uintptr) (unused uintptr) {
	defer func() {
		if p := recover(); p != nil {
			l.jobDone(job, 0, fmt.Sprintf("internal error of the kernel compiler: %v", p))
		}
	}()
	lib, err := l.compiler.compile(l.jobSource(job), l.jobOptions(job))
	if err != nil {
		l.jobDone(job, 0, err.Error())
		return
	}
	l.jobDone(job, 1, lib)
	return
}

// take reads a text and lets go of it.
func (l *Library) take(handle uintptr) string {
	if handle == 0 {
		return ""
	}
	defer l.textFree(handle)
	return l.text(handle)
}

// lines splits a text of one entry a line; a line break inside an entry travels as a vertical tab.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\v", "\n"))
	}
	return out
}

// Path is the shared library, for mtl.Load.
func (l *Library) Path() string { return l.path }

// Misuse is something that a Mac would crash on, complain of under its validation layer, or take in silence and do wrong.
type Misuse struct {
	Kind string // a stable word: "over-release", "unset-buffer", "missing-fence", "kernel", …
	Text string // what was got and what is wanted, with the message it came in
}

func (m Misuse) String() string { return m.Kind + ": " + m.Text }

// Reports takes the misuses since the last call. A program that is right leaves none.
func (l *Library) Reports() []Misuse {
	var out []Misuse
	for _, line := range lines(l.take(l.reports())) {
		kind, text, _ := strings.Cut(line, "\t")
		out = append(out, Misuse{kind, text})
	}
	return out
}

// Counters are what the session has done since it was opened or since ResetCounters. Bytes, lines and operations need Options.Count, but for the
// first eight.
type Counters struct {
	CommandBuffers, Passes, Levels, Dispatches, Barriers uint64
	Threadgroups, Threads                                uint64
	SimdOps, MatrixOps                                   uint64
	ThreadgroupBarriers, SimdgroupBarriers               uint64
	LoadBytes, StoreBytes                                uint64 // device and constant memory, as requested
	ThreadgroupLoadBytes, ThreadgroupStoreBytes          uint64
	Atomics                                              uint64
	ThreadgroupBytes                                     uint64  // most threadgroup memory in use
	GPUSeconds                                           float64 // that a GPU worked, by its own clock; 0 on the processor
	Buffers                                              []Traffic
	Kernels                                              []KernelCount
}

// Traffic is what kernels moved in all buffers of one label. A line is 64 bytes; lines count once a buffer, so they are the traffic of a perfect cache.
type Traffic struct {
	Label                 string
	LenBytes              uint64 // of the buffers that are alive
	LoadBytes, StoreBytes uint64
	LoadLines, StoreLines uint64
}

// KernelCount is how often a kernel ran, and for how long in all on this machine.
type KernelCount struct {
	Name       string
	Dispatches uint64
	Seconds    float64
}

// Report returns the counters.
func (l *Library) Report() (Counters, error) {
	var c Counters
	if err := json.Unmarshal([]byte(l.take(l.counters())), &c); err != nil {
		return c, fmt.Errorf("stand-in: counters: %w", err)
	}
	return c, nil
}

// ResetCounters begins counting anew.
func (l *Library) ResetCounters() { l.resetCounters() }

// Fault is something that can be made to go wrong.
type Fault string

const (
	FaultCommandBuffer Fault = "gpu-error"  // ends with MTLCommandBufferStatusError; what: "internal", "timeout", "page-fault", "out-of-memory"
	FaultAllocation    Fault = "allocation" // newBuffer… returns nil
	FaultCompile       Fault = "compile"    // newLibrary… fails; what is the compiler's text
	FaultPipeline      Fault = "pipeline"   // newComputePipelineState… fails; what is the text
)

// Inject makes the nth event of the fault's kind from now on fail, once; n is 1 for the next one.
func (l *Library) Inject(f Fault, nth int, what string) { l.fault(string(f), uint64(nth), what) }

// Method is a method that the stand-in has.
type Method struct {
	Class    string // Apple's name of the class or protocol
	Kind     byte   // '+' of the class, '-' of its instances
	Selector string
	Types    string // type encoding: the result, then the arguments behind the selector
	MacOS    int    // version that brought it, where that is newer than the oldest that Pond runs on
}

// Methods lists every method of every class, for the comparison with what a binding sends.
func (l *Library) Methods() ([]Method, error) {
	var out []Method
	for _, line := range lines(l.take(l.methods())) {
		f := strings.Split(line, "\t")
		m := Method{}
		if len(f) != 5 || len(f[1]) != 1 {
			return nil, fmt.Errorf("stand-in: method table: got %q, want five fields", line)
		}
		m.Class, m.Kind, m.Selector, m.Types = f[0], f[1][0], f[2], f[3]
		if _, err := fmt.Sscan(f[4], &m.MacOS); err != nil {
			return nil, fmt.Errorf("stand-in: method table: %q: %w", line, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// Close waits for the work in flight and ends the session. The error lists what the program did not release and every misuse that Reports has
// not taken. A second Close does nothing.
func (l *Library) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var errs []error
	for _, leak := range lines(l.take(l.closeAll())) {
		errs = append(errs, fmt.Errorf("leak: %s", leak))
	}
	for _, m := range l.Reports() {
		errs = append(errs, errors.New(m.String()))
	}
	return errors.Join(errs...)
}
