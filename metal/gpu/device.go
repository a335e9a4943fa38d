// Package gpu is the device that runs plans on Metal: Apple's on a Mac, the stand-in's elsewhere, through the same package mtl and with the
// same kernels.
//
// It adds no arithmetic and no order of its own: levels are the plan's, kernels are package kernels'. What it owns is memory that is resident,
// pipelines that are compiled once, command buffers that are checked, and limits that are told before they are hit. Start with Device.Run.
//
// Invariants:
//   - Buffers are untracked: Metal puts no wait between dispatches, so the barrier between two levels is the only one there is.
//   - Every command buffer that was committed has completed, and its status was read, before Run or Wait returns.
//   - Nothing is compiled in Run or Start.
//   - One goroutine owns a Device. Only the list of abandoned buffers is shared, with the garbage collector.
package gpu

import (
	"errors"
	"fmt"

	"pond/metal"
	"pond/metal/kernels"
	"pond/metal/mtl"
)

var _ metal.Device = (*Device)(nil)

// Options are how to open a device.
type Options struct {
	// Source is the Metal text of the kernels; empty means kernels.Source(). Tests plant faults with it.
	Source string
	// Resources is the folder of an app that may hold the kernels compiled; empty: there is none. A Source wins.
	Resources string
	// Labels puts each dispatch into a debug group of its name, so that captures, GPU errors and the stand-in's reports say it. Two messages
	// a dispatch.
	Labels bool
	// NoResidencySet names resources in each encoder instead, as systems before macOS 15 need it.
	NoResidencySet bool
	// Serial runs dispatches one after the other, also those of one level, to measure what running them side by side is worth.
	Serial bool
	// Tuning changes how kernels are launched.
	Tuning kernels.Tuning
	// TensorOpsOff is asked where products of many rows and attention of a chunk would go by tensor operations; nil means that they are not off.
	TensorOpsOff func() bool
	// EmulatedTensorOps uses them also where the GPU has no units for them, for tests and measurements.
	EmulatedTensorOps bool
	// TensorSource is the text by tensor operations; empty means kernels.TensorSource(). Tests plant faults with it.
	TensorSource string
}

// limits are what the device allows.
type limits struct {
	bufferBytes      int64
	threadgroupBytes int
	threads          mtl.Size // of a threadgroup, in each dimension
}

// Device is a GPU with the kernels loaded.
type Device struct {
	rt       *mtl.Runtime
	dev      mtl.Device
	queue    mtl.CommandQueue
	commands mtl.CommandBufferDescriptor
	event    mtl.SharedEvent // orders command buffers
	signals  uint64          // last value that the event was given
	running  []*running      // started and not waited for, in order
	library  mtl.Library
	tensors  tensors
	set      mtl.ResidencySet // nil on systems that have none
	changed  bool             // the set has uncommitted additions or removals

	name      string
	from      string // what the kernels were loaded from
	options   Options
	limits    limits
	kernels   map[string]kernels.Kernel
	pipelines map[string]pipeline
	live      map[uint64]mtl.Buffer // by number, so that the collector may find a buffer abandoned
	made      uint64                // number of the newest buffer
	abandoned *graveyard
	nothing   *mtl.ComputeCommandEncoder // of EncodeNothing, made when it is wanted
	closed    bool
}

// Open takes the machine's GPU and loads the library of kernels, or compiles it; pipelines follow with the programs that need them.
func Open(rt *mtl.Runtime, o Options) (_ *Device, err error) {
	d := &Device{rt: rt, options: o, kernels: map[string]kernels.Kernel{}, pipelines: map[string]pipeline{}, live: map[uint64]mtl.Buffer{}, abandoned: &graveyard{}}
	for _, k := range kernels.All() {
		d.kernels[k.Name] = kernels.Tuned(k, o.Tuning)
	}
	err = rt.Pool(func() error {
		if d.dev, err = rt.CreateSystemDefaultDevice(); err != nil {
			return err
		}
		return d.open()
	})
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Device) open() (err error) {
	d.name = "metal on " + d.dev.Name()
	d.limits = limits{d.dev.MaxBufferLength(), d.dev.MaxThreadgroupMemoryLength(), d.dev.MaxThreadsPerThreadgroup()}
	if d.event, err = d.dev.NewSharedEvent(); err != nil {
		return err
	}
	// Run waits for what it commits, and the device owns all that is encoded: the command buffers need not retain it.
	d.commands = d.rt.NewCommandBufferDescriptor()
	d.commands.SetRetainedReferences(false)
	d.commands.SetErrorOptions(mtl.CommandBufferErrorOptionEncoderExecutionStatus)
	if !d.options.NoResidencySet {
		if err := d.openSet(); err != nil {
			return err
		}
	}
	if err := d.newQueue(); err != nil {
		return err
	}
	if d.library, d.from, err = d.load(kernels.Main(), d.options.Source, "pond kernels"); err != nil {
		return err
	}
	d.openTensors()
	return nil
}

// openSet makes the residency set, where the system has them.
func (d *Device) openSet() error {
	c := d.rt.NewResidencySetDescriptor()
	if c.Nil() {
		return nil
	}
	defer c.Release()
	c.SetLabel(d.rt.StringWithUTF8String("pond"))
	set, _, err := d.dev.NewResidencySetWithDescriptor(c)
	if err != nil {
		return fmt.Errorf("residency set: %w", err)
	}
	d.set = set
	return nil
}

// newQueue replaces the queue: after a fault the old one may refuse all further work.
func (d *Device) newQueue() error {
	if !d.queue.Nil() {
		if !d.set.Nil() {
			d.queue.RemoveResidencySet(d.set)
		}
		d.queue.Release()
	}
	var err error
	if d.queue, err = d.dev.NewCommandQueue(); err != nil {
		return err
	}
	d.queue.SetLabel(d.rt.StringWithUTF8String("pond"))
	if !d.set.Nil() {
		d.queue.AddResidencySet(d.set)
	}
	return nil
}

// Name implements metal.Device: the GPU, and what became of tensor operations where they were tried.
func (d *Device) Name() string {
	if note := d.tensors.note(); note != "" {
		return d.name + ", " + note
	}
	return d.name
}

// Close implements metal.Device: everything taken is given back, once.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	return d.rt.Pool(func() error {
		for _, r := range d.running {
			r.complete(nil)
		}
		d.running = nil
		d.bury()
		for _, b := range d.live {
			d.drop(b)
		}
		clear(d.live)
		if d.changed && !d.set.Nil() {
			d.set.Commit()
		}
		for _, p := range d.pipelines {
			p.state.Release()
		}
		if !d.queue.Nil() && !d.set.Nil() {
			d.queue.RemoveResidencySet(d.set)
		}
		d.library.Release()
		d.tensors.library.Release()
		d.set.Release()
		d.queue.Release()
		d.commands.Release()
		d.event.Release()
		d.dev.Release()
		return nil
	})
}

// Capture records what f makes the GPU do into a file that Xcode opens. The process needs MTL_CAPTURE_ENABLED=1 in its environment.
func (d *Device) Capture(path string, f func() error) error {
	return d.rt.Pool(func() error {
		m := d.rt.SharedCaptureManager()
		if !m.SupportsDestination(mtl.CaptureDestinationGPUTraceDocument) {
			return errors.New("capture: this process may not write captures, want MTL_CAPTURE_ENABLED=1 in its environment")
		}
		c := d.rt.NewCaptureDescriptor()
		defer c.Release()
		c.SetCaptureDevice(d.dev)
		c.SetDestination(mtl.CaptureDestinationGPUTraceDocument)
		c.SetOutputURL(d.rt.FileURLWithPath(path))
		if err := m.StartCaptureWithDescriptor(c); err != nil {
			return fmt.Errorf("capture %s: %w", path, err)
		}
		defer m.StopCapture()
		return f()
	})
}
