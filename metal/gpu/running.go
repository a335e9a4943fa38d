package gpu

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pond/metal"
	"pond/metal/mtl"
)

// running is a pass whose command buffers were given to the GPU. The device lists it until they have completed, and with it everything
// that they use.
type running struct {
	d         *Device
	p         *pass
	filled    []mtl.Buffer   // what stands in the slots
	slots     []metal.Buffer // the same, kept from the collector
	committed []committed    // in order; those that have completed are gone
	room      [2]committed
	err       error
	timed     bool
	took      time.Duration // of the GPU, where timed
}

// committed is a command buffer, owned, and the value that the event has once it has completed.
type committed struct {
	c      mtl.CommandBuffer
	signal uint64
}

func (d *Device) begin(p *pass, filled []mtl.Buffer, slots []metal.Buffer) *running {
	r := &running{d: d, p: p, filled: filled, slots: slots}
	r.committed = r.room[:0]
	d.running = append(d.running, r)
	return r
}

// Wait implements metal.Running: passes complete in the order in which they were started.
func (r *running) Wait() error {
	r.d.settle(r)
	return r.err
}

// Drop implements metal.Running: the GPU has begun.
func (r *running) Drop() (ran bool, err error) { return true, r.Wait() }

// commit encodes steps into a command buffer and gives it to the GPU, unless something failed before. Buffers are untracked, so each command
// buffer waits by the event for the one before it.
func (r *running) commit(steps []step) {
	if r.err != nil {
		return
	}
	if err := r.encode(steps); err != nil {
		r.err = fmt.Errorf("%s: %w", r.p.program.Label, err)
	}
}

func (r *running) encode(steps []step) error {
	d := r.d
	c, err := d.queue.CommandBufferWithDescriptor(d.commands)
	if err != nil {
		return err
	}
	label := d.rt.StringWithUTF8String(r.p.program.Label)
	c.SetLabel(label)
	if d.inFlight() {
		c.EncodeWaitForEvent(d.event, d.signals)
	}
	dispatches := mtl.DispatchTypeConcurrent
	if d.options.Serial {
		dispatches = mtl.DispatchTypeSerial
	}
	e, err := c.ComputeCommandEncoderWithDispatchType(dispatches)
	if err != nil {
		return err
	}
	e.SetLabel(label)
	if d.set.Nil() {
		if len(r.p.reads) > 0 {
			e.UseResources(r.p.reads, mtl.ResourceUsageRead)
		}
		writes := slices.DeleteFunc(append(slices.Clone(r.p.writes), r.filled...), func(b mtl.Buffer) bool { return b.Nil() })
		if len(writes) > 0 {
			e.UseResources(writes, mtl.ResourceUsageRead|mtl.ResourceUsageWrite)
		}
	}
	err = d.encode(e, r.p, r.filled, steps)
	e.EndEncoding()
	if err != nil {
		return err
	}
	d.signals++
	c.EncodeSignalEvent(d.event, d.signals)
	c.Retain() // the pool that it belongs to ends before the work does
	c.Commit()
	r.committed = append(r.committed, committed{c, d.signals})
	return nil
}

// inFlight reports whether a command buffer may still be at work.
func (d *Device) inFlight() bool {
	for _, r := range d.running {
		if len(r.committed) > 0 {
			return true
		}
	}
	return false
}

// settle waits for all passes up to r. After a failure it waits for those behind it too, which ran on undefined results and have failed with
// it, and the device gets a new queue.
func (d *Device) settle(r *running) {
	err := d.rt.Pool(func() error {
		var fault error
		for !r.settled() || fault != nil && len(d.running) > 0 {
			first := d.running[0]
			d.running = d.running[1:]
			fault = first.complete(fault)
		}
		if fault != nil {
			return d.newQueue()
		}
		return nil
	})
	if err != nil {
		r.err = errors.Join(r.err, err)
	}
}

func (r *running) settled() bool {
	for _, o := range r.d.running {
		if o == r {
			return false
		}
	}
	return true
}

// complete waits for the command buffers of a pass and reads their status. fault is what an earlier pass failed with, and the result what
// the next one has to know.
func (r *running) complete(fault error) error {
	for _, b := range r.committed {
		b.c.WaitUntilCompleted()
		if status := b.c.Status(); status != mtl.CommandBufferStatusCompleted {
			why := b.c.Failure()
			if why == nil {
				why = fmt.Errorf("command buffer status: got %d, want %d", status, mtl.CommandBufferStatusCompleted)
			}
			fault = errors.Join(fault, why)
			if r.d.event.SignaledValue() < b.signal {
				r.d.event.SetSignaledValue(b.signal) // what waits for a command buffer that failed must not wait for ever
			}
		}
		if r.timed {
			r.took += time.Duration((b.c.GPUEndTime() - b.c.GPUStartTime()) * float64(time.Second))
		}
		b.c.Release()
	}
	r.committed = nil
	if r.err == nil && fault != nil {
		r.err = &FaultError{r.p.program.Label, fault}
	}
	return fault
}
