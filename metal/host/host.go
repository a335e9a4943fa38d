// Package host runs plans on the CPU, spread over workers that meet between levels. It is the portable backend and the yardstick for
// every other one.
//
// In mode Exact each dispatch is the Go reference of its kernel: float32 in a fixed order of sums, so that any chunking, order or number
// of threads gives the same bits. Int16 and Int8 run vectorised kernels (simd/) where there are some: activations are quantised in
// products, and results depend on how tokens were cut into chunks. Start with Device.Run; pool.go holds the workers, fast*.go the
// vectorised kernels.
package host

import (
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"pond/metal"
	"pond/metal/host/simd"
	"pond/metal/kernels"
)

var _ metal.Device = (*Device)(nil)

// Mode is how the host computes.
type Mode string

// The modes.
const (
	Exact Mode = "exact" // float32, reproducible to the bit
	Int16 Mode = "int16" // activations of products in 16 bits
	Int8  Mode = "int8"  // in 8 bits: prefill is faster, a product's error is a hundredth
)

// Device is the CPU. Close stops its workers.
type Device struct {
	kernels map[string]kernels.Kernel
	mode    Mode
	fast    fast           // of Int16 and Int8
	quick   map[string]run // its kernels by name; nil in Exact
	pool    *pool
	started []*started // and not run, in order
	stop    sync.Once
}

// Open starts a device with the given number of threads; zero means one for each CPU that Go may use.
func Open(m Mode, threads int) *Device { return OpenLevel(simd.Best(), m, threads) }

// OpenLevel is Open with an instruction set that the processor has, for tests and comparisons.
func OpenLevel(l simd.Level, m Mode, threads int) *Device {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	d := &Device{kernels: map[string]kernels.Kernel{}, mode: m, pool: newPool(threads)}
	switch m {
	case Int16:
		d.fast = fast{simd.New(l, simd.Int16)}
	case Int8:
		d.fast = fast{simd.New(l, simd.Int8)}
	}
	if m != Exact {
		d.quick = d.fast.all()
	}
	for _, k := range kernels.All() {
		d.kernels[k.Name] = k
	}
	return d
}

// Name implements metal.Device.
func (d *Device) Name() string {
	if d.mode == Exact {
		return fmt.Sprintf("host exact, %d threads", d.pool.threads())
	}
	name := fmt.Sprintf("host int%d with %v, %d threads", d.fast.Precision, d.fast.Level, d.pool.threads())
	if d.mode == Int8 && d.fast.Precision != simd.Int8 {
		name += " (int8 has no kernels of its own there)"
	}
	return name
}

// Close implements metal.Device.
func (d *Device) Close() error {
	d.stop.Do(d.pool.stop)
	return nil
}

// buffer is memory on the host. words is nil for weights, which lie wherever the file has them.
type buffer struct {
	label string
	bytes []byte
	words []uint32
}

func (b *buffer) Label() string { return b.label }
func (b *buffer) Bytes() []byte { return b.bytes }
func (b *buffer) U32() []uint32 { return b.words }

func (b *buffer) F32() []float32 {
	if b.words == nil {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b.words))), len(b.words))
}

// NewBuffer implements metal.Device. The memory is the Go heap's: large zeroed blocks come from the system untouched, so a KV cache
// costs what is used of it.
func (d *Device) NewBuffer(label string, lenBytes int64) (metal.Buffer, error) {
	if lenBytes <= 0 || lenBytes%4 != 0 {
		return nil, fmt.Errorf("buffer %s: got %d bytes, want a positive multiple of 4", label, lenBytes)
	}
	words := make([]uint32, lenBytes/4)
	return &buffer{label: label, words: words, bytes: unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), lenBytes)}, nil
}

// PlaceWeights implements metal.Device: the kernels read the published bytes where they are.
func (d *Device) PlaceWeights(label string, data []byte) (metal.Buffer, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("weights %s: got no bytes", label)
	}
	return &buffer{label: label, bytes: data}, nil
}

// bound is a dispatch with its arguments resolved to memory, so that a run allocates nothing.
type bound struct {
	run    run
	params any
	items  int
	work   int64
	args   []kernels.Arg
	label  string
	names  []string // labels of the arguments' buffers
}

type pass struct {
	program metal.Program
	levels  [][]bound
	slots   []slotArg // arguments that each run fills in
}

// slotArg is where an argument stands that has a slot.
type slotArg struct {
	level, dispatch, arg int
	slice                metal.Slice
	dtype                kernels.DType
}

// fill puts the run's buffers into the slots.
func (p *pass) fill(slots []metal.Buffer) error {
	for _, a := range p.slots {
		b := &p.levels[a.level][a.dispatch]
		s, err := a.slice.In(slots)
		if err == nil {
			b.args[a.arg], err = argument(a.dtype, s)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", b.label, err)
		}
	}
	return nil
}

// empty lets go of them: a pass keeps no sequence's memory alive.
func (p *pass) empty() {
	for _, a := range p.slots {
		p.levels[a.level][a.dispatch].args[a.arg] = kernels.Arg{}
	}
}

func (p *pass) Program() metal.Program { return p.program }

// Compile implements metal.Device. Errors name the dispatch and the argument.
func (d *Device) Compile(p metal.Program) (metal.Pass, error) {
	out := &pass{program: p}
	for l, level := range p.Levels {
		var bs []bound
		for i, ds := range level {
			b, slots, err := d.bind(ds)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", p.Label, ds.Label, err)
			}
			for _, s := range slots {
				s.level, s.dispatch = l, i
				out.slots = append(out.slots, s)
			}
			bs = append(bs, b)
		}
		out.levels = append(out.levels, bs)
	}
	return out, nil
}

func (d *Device) bind(ds metal.Dispatch) (b bound, slots []slotArg, err error) {
	k, ok := d.kernels[ds.Kernel]
	if !ok {
		return b, nil, fmt.Errorf("no kernel %s", ds.Kernel)
	}
	if _, err := k.Param(0, len(ds.Args)); err != nil {
		return b, nil, err
	}
	r := d.quick[ds.Kernel]
	if r == nil || !fits(ds.Params) {
		r = plain(k.Run)
	}
	b = bound{run: r, params: ds.Params, items: ds.Items, work: ds.Work, label: ds.Label}
	for i, s := range ds.Args {
		sig, err := k.Param(i, len(ds.Args))
		if err != nil {
			return b, nil, err
		}
		var arg kernels.Arg
		if _, ok := s.Buffer.(metal.Slot); ok {
			slots = append(slots, slotArg{arg: i, slice: s, dtype: sig.DType})
		} else if arg, err = argument(sig.DType, s); err != nil {
			return b, nil, fmt.Errorf("%s: %w", sig.Name, err)
		}
		b.args = append(b.args, arg)
		b.names = append(b.names, s.Buffer.Label())
	}
	return b, slots, nil
}

// argument is a slice as a kernel sees it.
func argument(t kernels.DType, s metal.Slice) (arg kernels.Arg, err error) {
	if s.Off < 0 || s.Len <= 0 || s.Off+s.Len > int64(len(s.Buffer.Bytes())) {
		return arg, fmt.Errorf("got bytes [%d, %d) of %s, which has %d", s.Off, s.Off+s.Len, s.Buffer.Label(), len(s.Buffer.Bytes()))
	}
	switch t {
	case kernels.F32, kernels.U32:
		if s.Buffer.U32() == nil || s.Off%4 != 0 || s.Len%4 != 0 {
			return arg, fmt.Errorf("got bytes [%d, %d) of %s, want aligned words", s.Off, s.Off+s.Len, s.Buffer.Label())
		}
		lo, hi := s.Off/4, (s.Off+s.Len)/4
		if t == kernels.F32 {
			arg.F32 = s.Buffer.F32()[lo:hi:hi]
		} else {
			arg.U32 = s.Buffer.U32()[lo:hi:hi]
		}
	default:
		arg.Raw = s.Buffer.Bytes()[s.Off : s.Off+s.Len : s.Off+s.Len]
	}
	return arg, nil
}

// weightsAt finds the weights that hold the byte at addr, and which byte of the dispatch's part of them it is.
func (b *bound) weightsAt(addr uintptr) (name string, off uintptr, ok bool) {
	for i, a := range b.args {
		start := uintptr(unsafe.Pointer(unsafe.SliceData(a.Raw)))
		if addr >= start && addr-start < uintptr(len(a.Raw)) {
			return b.names[i], addr - start, true
		}
	}
	return "", 0, false
}

// started is a pass that waits for its time: for somebody who waits for it, or for a later pass.
type started struct {
	d       *Device
	p       metal.Pass
	o       metal.RunOptions
	ran     bool
	dropped bool
	err     error
}

// Start implements metal.Device. The processor that would run the pass is the one that the caller goes on with, so the pass runs when it is
// waited for, and one that is dropped costs nothing.
func (d *Device) Start(p metal.Pass, o metal.RunOptions) metal.Running {
	s := &started{d: d, p: p, o: o}
	d.started = append(d.started, s)
	return s
}

// catchUp runs what was started, up to last or all of it.
func (d *Device) catchUp(last *started) {
	for len(d.started) > 0 && (last == nil || !last.ran) {
		s := d.started[0]
		d.started = d.started[1:]
		if !s.dropped {
			s.ran, s.err = true, d.run(s.p, s.o)
		}
	}
}

// Wait implements metal.Running.
func (s *started) Wait() error {
	s.d.catchUp(s)
	return s.err
}

// Drop implements metal.Running.
func (s *started) Drop() (ran bool, err error) {
	s.dropped = true
	return s.ran, s.err
}

// Run implements metal.Device. A panic of a kernel comes back as an error with its dispatch, and a fault on mapped weights, whose file
// shrank or whose disk failed, as an error with their name.
func (d *Device) Run(p metal.Pass, o metal.RunOptions) error {
	d.catchUp(nil)
	return d.run(p, o)
}

func (d *Device) run(p metal.Pass, o metal.RunOptions) error {
	hp, ok := p.(*pass)
	if !ok {
		return fmt.Errorf("host: got a pass of another device, %T", p)
	}
	if err := hp.fill(o.Slots); err != nil {
		return fmt.Errorf("%s: %w", hp.program.Label, err)
	}
	defer hp.empty()
	for i, level := range hp.levels {
		var err error
		switch {
		case o.Timed != nil:
			err = d.runTimed(hp, i, o)
		case o.Shuffle != nil:
			err = d.pool.runShuffled(level, o.Shuffle)
		default:
			err = d.pool.run(level)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", hp.program.Label, err)
		}
		if o.Tap != nil {
			ds, err := metal.Fill(hp.program.Levels[i], o.Slots)
			if err != nil {
				return err
			}
			o.Tap(i, ds)
		}
	}
	return nil
}

// runTimed runs the dispatches of a level one by one.
func (d *Device) runTimed(p *pass, level int, o metal.RunOptions) error {
	for i := range p.levels[level] {
		start := time.Now()
		if err := d.pool.run(p.levels[level][i : i+1]); err != nil {
			return err
		}
		o.Timed(level, p.program.Levels[level][i], time.Since(start))
	}
	return nil
}
