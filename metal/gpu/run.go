package gpu

import (
	"fmt"
	"math/rand/v2"

	"pond/metal"
	"pond/metal/mtl"
)

// HeadDispatches is how many dispatches go into a first command buffer of their own: the GPU works on them while the rest is encoded.
const HeadDispatches = 48

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
func (d *Device) Run(p metal.Pass, o metal.RunOptions) error { return d.Start(p, o).Wait() }

// Start implements metal.Device. With a tap or with times the pass runs at once.
func (d *Device) Start(p metal.Pass, o metal.RunOptions) metal.Running {
	gp, ok := p.(*pass)
	if !ok || gp.owner != d {
		return metal.Done{Err: fmt.Errorf("metal: got a pass of another device, %T", p)}
	}
	var r metal.Running
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
			r = metal.Done{Err: d.runTimed(gp, filled, o)}
		case o.Tap != nil:
			r = metal.Done{Err: d.runTapped(gp, filled, o)}
		default:
			r = d.startWhole(gp, filled, o)
		}
		return nil
	})
	if err != nil {
		return metal.Done{Err: err}
	}
	return r
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

func (d *Device) startWhole(p *pass, filled []mtl.Buffer, o metal.RunOptions) *running {
	steps, head := p.steps, p.head
	if o.Shuffle != nil {
		steps = p.order(0, len(p.levels), o.Shuffle)
	}
	r := d.begin(p, filled, o.Slots)
	if head > 0 {
		r.commit(steps[:head])
	}
	if head < len(steps) {
		r.commit(steps[head:])
	}
	return r
}

// headOf is how many steps go into the first command buffer. A level is not cut, so that the event between the command buffers is the barrier
// between two levels.
func headOf(steps []step) int {
	if len(steps) <= 2*HeadDispatches {
		return len(steps)
	}
	head := HeadDispatches
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
			r := d.begin(p, filled, o.Slots)
			r.commit(p.order(l, l+1, o.Shuffle))
			if err := r.Wait(); err != nil {
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
			r := d.begin(p, filled, o.Slots)
			r.timed = true
			r.commit([]step{s})
			if err := r.Wait(); err != nil {
				return err
			}
			o.Timed(l, p.program.Levels[l][s.index], r.took)
		}
		if o.Tap != nil {
			if err := tap(p, l, o); err != nil {
				return err
			}
		}
	}
	return nil
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
