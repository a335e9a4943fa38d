package gpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"pond/metal"
	"pond/metal/mtl"
)

// headDispatches is how many dispatches go into a first command buffer of their own: the GPU works on them while the rest is encoded.
const headDispatches = 48

// FaultError says that the GPU did not complete what it was given: results are undefined, the device itself can be used again.
type FaultError struct {
	Pass string
	Err  error
}

// Error implements error.
func (e *FaultError) Error() string { return fmt.Sprintf("%s: the GPU failed: %v", e.Pass, e.Err) }

// Unwrap implements errors.Is and errors.As.
func (e *FaultError) Unwrap() error { return e.Err }

// Run implements metal.Device. An untapped pass is two command buffers, both in flight while the second is encoded; with a tap it is one
// for each level, with times one for each dispatch.
func (d *Device) Run(p metal.Pass, o metal.RunOptions) error {
	gp, ok := p.(*pass)
	if !ok || gp.owner != d {
		return fmt.Errorf("metal: got a pass of another device, %T", p)
	}
	err := d.rt.Pool(func() error {
		d.bury()
		if d.changed {
			d.set.Commit()
			d.set.RequestResidency()
			d.changed = false
		}
		filled, err := d.fill(gp, o.Slots)
		if err != nil {
			return err
		}
		switch {
		case o.Timed != nil:
			return d.runTimed(gp, filled, o)
		case o.Tap != nil:
			return d.runTapped(gp, filled, o)
		}
		return d.runWhole(gp, filled, o)
	})
	runtime.KeepAlive(gp) // and with it the program's buffers, until the GPU is done
	runtime.KeepAlive(o.Slots)
	return err
}

// step is a dispatch of a pass by its place.
type step struct{ level, index int }

// order lists the steps of levels [lo, hi), each level shuffled when asked.
func (p *pass) order(lo, hi int, r *rand.Rand) []step {
	var out []step
	for l := lo; l < hi; l++ {
		from := len(out)
		for i := range p.levels[l] {
			out = append(out, step{l, i})
		}
		if level := out[from:]; r != nil {
			r.Shuffle(len(level), func(i, j int) { level[i], level[j] = level[j], level[i] })
		}
	}
	return out
}

func (d *Device) runWhole(p *pass, filled []mtl.Buffer, o metal.RunOptions) error {
	steps, head := p.steps, p.head
	if o.Shuffle != nil {
		steps = p.order(0, len(p.levels), o.Shuffle)
	}
	var running [2]mtl.CommandBuffer
	var err error
	if head > 0 {
		running[0], err = d.commit(p, filled, steps[:head], false, head < len(steps))
	}
	if err == nil && head < len(steps) {
		running[1], err = d.commit(p, filled, steps[head:], true, false)
	}
	return d.finish(p, err, running[:]...)
}

// headOf is how many steps go into the first command buffer. A level is not cut, so that the event between the command buffers is the barrier
// between two levels.
func headOf(steps []step) int {
	if len(steps) <= 2*headDispatches {
		return len(steps)
	}
	head := headDispatches
	for head < len(steps) && steps[head].level == steps[head-1].level {
		head++
	}
	return head
}

// EncodeNothing encodes a pass into an encoder that takes messages and does nothing: what a run costs in Go beside the GPU's own time.
func (d *Device) EncodeNothing(p metal.Pass) error {
	gp, ok := p.(*pass)
	if !ok || gp.owner != d {
		return fmt.Errorf("metal: got a pass of another device, %T", p)
	}
	if d.nothing == nil {
		d.nothing = d.rt.NoEncoder()
	}
	if len(gp.slots) > 0 {
		return fmt.Errorf("%s: got a program with slots, want one without", gp.program.Label)
	}
	return d.encode(d.nothing, gp, nil, gp.steps)
}

func (d *Device) runTapped(p *pass, filled []mtl.Buffer, o metal.RunOptions) error {
	for l := range p.levels {
		if len(p.levels[l]) > 0 {
			c, err := d.commit(p, filled, p.order(l, l+1, o.Shuffle), false, false)
			if err := d.finish(p, err, c); err != nil {
				return err
			}
		}
		if err := tap(p, l, o); err != nil {
			return err
		}
	}
	return nil
}

// tap shows a level to the run's tap, with the memory that the run was on.
func tap(p *pass, level int, o metal.RunOptions) error {
	ds, err := metal.Fill(p.program.Levels[level], o.Slots)
	if err == nil {
		o.Tap(level, ds)
	}
	return err
}

func (d *Device) runTimed(p *pass, filled []mtl.Buffer, o metal.RunOptions) error {
	for l := range p.levels {
		for _, s := range p.order(l, l+1, o.Shuffle) {
			c, err := d.commit(p, filled, []step{s}, false, false)
			if err := d.finish(p, err, c); err != nil {
				return err
			}
			o.Timed(l, p.program.Levels[l][s.index], time.Duration((c.GPUEndTime()-c.GPUStartTime())*float64(time.Second)))
		}
		if o.Tap != nil {
			if err := tap(p, l, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// commit encodes steps into a command buffer and gives it to the GPU. after makes it wait for the event, then makes it signal.
func (d *Device) commit(p *pass, filled []mtl.Buffer, steps []step, after, then bool) (mtl.CommandBuffer, error) {
	c, err := d.queue.CommandBufferWithDescriptor(d.commands)
	if err != nil {
		return c, err
	}
	label := d.rt.StringWithUTF8String(p.program.Label)
	c.SetLabel(label)
	if after {
		c.EncodeWaitForEvent(d.event, d.signals)
	}
	dispatches := mtl.DispatchTypeConcurrent
	if d.options.Serial {
		dispatches = mtl.DispatchTypeSerial
	}
	e, err := c.ComputeCommandEncoderWithDispatchType(dispatches)
	if err != nil {
		return mtl.CommandBuffer{}, err
	}
	e.SetLabel(label)
	if d.set.Nil() {
		if len(p.reads) > 0 {
			e.UseResources(p.reads, mtl.ResourceUsageRead)
		}
		for _, bs := range [][]mtl.Buffer{p.writes, filled} {
			if len(bs) > 0 {
				e.UseResources(bs, mtl.ResourceUsageRead|mtl.ResourceUsageWrite)
			}
		}
	}
	err = d.encode(e, p, filled, steps)
	e.EndEncoding()
	if err != nil {
		return mtl.CommandBuffer{}, err
	}
	if then {
		d.signals++
		c.EncodeSignalEvent(d.event, d.signals)
	}
	c.Commit()
	return c, nil
}

// encode puts steps into an encoder: a barrier where the level changes, and no message that would change nothing.
func (d *Device) encode(e *mtl.ComputeCommandEncoder, p *pass, filled []mtl.Buffer, steps []step) error {
	var set [maxArguments]place // what the encoder has
	var last mtl.ComputePipelineState
	memory := 0
	for i, s := range steps {
		if i > 0 && s.level != steps[i-1].level {
			e.MemoryBarrierWithScope(mtl.BarrierScopeBuffers)
		}
		b := &p.levels[s.level][s.index]
		if d.options.Labels {
			e.PushDebugGroup(d.rt.StringWithUTF8String(p.program.Levels[s.level][s.index].Label))
		}
		if b.pipeline != last {
			e.SetComputePipelineState(b.pipeline)
			last = b.pipeline
		}
		for n, at := range b.places {
			if at.slot > 0 {
				at = place{b: filled[at.slot-1], off: at.off}
			}
			if set[n] != at {
				e.SetBuffer(at.b, at.off, n)
				set[n] = at
			}
		}
		n := len(b.places)
		if err := e.SetBytes(b.params, n); err != nil {
			return err
		}
		set[n] = place{}
		// A kernel without dynamic memory gets the least there is, so that an earlier one's does not count against its limit.
		if want := max(b.threadgroupBytes, threadgroupUnit); want != memory && (memory != 0 || b.threadgroupBytes != 0) {
			e.SetThreadgroupMemoryLength(want, 0)
			memory = want
		}
		e.DispatchThreadgroups(b.groups, b.threads)
		if d.options.Labels {
			e.PopDebugGroup()
		}
	}
	return nil
}

// finish waits for command buffers and reads their status. After a failure the device gets a new queue.
func (d *Device) finish(p *pass, err error, running ...mtl.CommandBuffer) error {
	var fault error
	for _, c := range running {
		if c.Nil() {
			continue
		}
		c.WaitUntilCompleted()
		if status := c.Status(); status != mtl.CommandBufferStatusCompleted {
			why := c.Failure()
			if why == nil {
				why = fmt.Errorf("command buffer status: got %d, want %d", status, mtl.CommandBufferStatusCompleted)
			}
			fault = errors.Join(fault, why)
			d.event.SetSignaledValue(d.signals) // what waits for a command buffer that failed must not wait for ever
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.program.Label, err)
	}
	if fault != nil {
		return errors.Join(&FaultError{p.program.Label, fault}, d.newQueue())
	}
	return nil
}
