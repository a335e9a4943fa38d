// Package detour is a device that leaves some kernels to the host: a pass ends before each of them, the host reads what it needs, computes, and
// a further pass goes on. It is what a device that keeps everything to itself is measured against.
//
// It knows no model. Anything that runs on a metal.Device runs on this one. Start with New.
package detour

import (
	"fmt"
	"time"

	"pond/metal"
	"pond/metal/kernels"
)

var _ metal.Device = (*Device)(nil)

// Device is another one without some of its kernels.
type Device struct {
	metal.Device
	kernels map[string]kernels.Kernel // those of the host
}

// New leaves kernels, by name, to the host. Close closes the device.
func New(device metal.Device, names ...string) (*Device, error) {
	d := &Device{device, map[string]kernels.Kernel{}}
	for _, name := range names {
		for _, k := range kernels.All() {
			if k.Name == name {
				d.kernels[name] = k
			}
		}
		if d.kernels[name].Run == nil {
			return nil, fmt.Errorf("detour: got kernel %q, want one of package kernels", name)
		}
	}
	return d, nil
}

// part is a pass and what the host does after it.
type part struct {
	pass   metal.Pass       // nil: nothing is left for the device
	levels []int            // of the program, for each level of the pass
	host   []metal.Dispatch // of the level host belongs to
	level  int
}

type pass struct {
	program metal.Program
	parts   []part
}

// Program implements metal.Pass.
func (p *pass) Program() metal.Program { return p.program }

// Compile implements metal.Device.
func (d *Device) Compile(p metal.Program) (metal.Pass, error) {
	out := &pass{program: p}
	var next part
	inner := metal.Program{Label: p.Label}
	end := func() error {
		if len(inner.Levels) > 0 {
			var err error
			if next.pass, err = d.Device.Compile(inner); err != nil {
				return err
			}
		}
		out.parts = append(out.parts, next)
		next, inner.Levels = part{}, nil
		return nil
	}
	for l, ds := range p.Levels {
		var rest []metal.Dispatch
		for _, x := range ds {
			if _, ours := d.kernels[x.Kernel]; ours {
				next.host = append(next.host, x)
			} else {
				rest = append(rest, x)
			}
		}
		if len(rest) > 0 || len(ds) == 0 {
			inner.Levels, next.levels = append(inner.Levels, rest), append(next.levels, l)
		}
		if next.level = l; len(next.host) > 0 {
			if err := end(); err != nil {
				return nil, err
			}
		}
	}
	if err := end(); err != nil {
		return nil, err
	}
	return out, nil
}

// Run implements metal.Device. A level of which the host does a part is shown to a tap when it is whole.
func (d *Device) Run(p metal.Pass, o metal.RunOptions) error {
	own, ok := p.(*pass)
	if !ok {
		return fmt.Errorf("detour: got a pass of another device, %T", p)
	}
	for _, part := range own.parts {
		if part.pass != nil {
			inner := o
			if o.Tap != nil {
				inner.Tap = func(level int, ds []metal.Dispatch) {
					if l := part.levels[level]; len(part.host) == 0 || l != part.level {
						o.Tap(l, ds)
					}
				}
			}
			if o.Timed != nil {
				inner.Timed = func(level int, x metal.Dispatch, took time.Duration) { o.Timed(part.levels[level], x, took) }
			}
			if err := d.Device.Run(part.pass, inner); err != nil {
				return err
			}
		}
		if err := d.onHost(own.program, part, o); err != nil {
			return fmt.Errorf("%s: %w", own.program.Label, err)
		}
	}
	return nil
}

// Start implements metal.Device: the host cannot come in between later, so the pass is run.
func (d *Device) Start(p metal.Pass, o metal.RunOptions) metal.Running {
	return metal.Done{Err: d.Run(p, o)}
}

// onHost runs the host's dispatches of a part.
func (d *Device) onHost(p metal.Program, part part, o metal.RunOptions) error {
	if len(part.host) == 0 {
		return nil
	}
	ds, err := metal.Fill(part.host, o.Slots)
	if err != nil {
		return err
	}
	for _, x := range ds {
		begun := time.Now()
		if err := run(d.kernels[x.Kernel], x); err != nil {
			return fmt.Errorf("%s: %w", x.Label, err)
		}
		if o.Timed != nil {
			o.Timed(part.level, x, time.Since(begun))
		}
	}
	if o.Tap != nil {
		whole, err := metal.Fill(p.Levels[part.level], o.Slots)
		if err != nil {
			return err
		}
		o.Tap(part.level, whole)
	}
	return nil
}

// run computes a dispatch with the kernel's reference, on the device's memory.
func run(k kernels.Kernel, x metal.Dispatch) error {
	args := make([]kernels.Arg, len(x.Args))
	for i, a := range x.Args {
		sig, err := k.Param(i, len(x.Args))
		if err != nil {
			return err
		}
		switch sig.DType {
		case kernels.F32:
			args[i].F32 = a.Buffer.F32()[a.Off/4 : (a.Off+a.Len)/4]
		case kernels.U32:
			args[i].U32 = a.Buffer.U32()[a.Off/4 : (a.Off+a.Len)/4]
		default:
			args[i].Raw = a.Buffer.Bytes()[a.Off : a.Off+a.Len]
		}
	}
	k.Run(args, x.Params, 0, x.Items, &kernels.Workspace{})
	return nil
}
