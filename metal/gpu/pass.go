package gpu

import (
	"fmt"

	"pond/metal"
	"pond/metal/kernels"
	"pond/metal/mtl"
)

// maxArguments is the size of a kernel's table of buffers. (Metal feature set tables, "buffers in the buffer argument table".)
const maxArguments = 31

// place is a bound argument.
type place struct {
	b    mtl.Buffer
	off  int64
	slot int // one more than the index of the slot that each run fills; 0: b is known
}

// bound is a dispatch with everything resolved, so that encoding it looks nothing up.
type bound struct {
	pipeline         mtl.ComputePipelineState
	places           []place
	params           []byte // given in place, behind places
	groups, threads  mtl.Size
	threadgroupBytes int
}

type pass struct {
	owner   *Device
	program metal.Program
	levels  [][]bound
	steps   []step // all dispatches in order
	head    int    // of steps in the first command buffer
	// What the dispatches touch, each once: for systems without residency sets.
	reads, writes []mtl.Buffer
	slots         []slotArg // arguments that each run fills in
}

// slotArg is an argument that has a slot.
type slotArg struct {
	label string // of the dispatch
	sig   kernels.Buffer
	slice metal.Slice
}

// fill checks what a run puts into the slots, and returns it by index.
func (d *Device) fill(p *pass, slots []metal.Buffer) ([]mtl.Buffer, error) {
	if len(p.slots) == 0 {
		return nil, nil
	}
	out := make([]mtl.Buffer, len(slots))
	for _, a := range p.slots {
		s, err := a.slice.In(slots)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", p.program.Label, a.label, err)
		}
		b, err := d.argument(a.sig, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", p.program.Label, a.label, err)
		}
		out[a.slice.Buffer.(metal.Slot).Index] = b.b
	}
	return out, nil
}

func (p *pass) Program() metal.Program { return p.program }

// Compile implements metal.Device: every pipeline is compiled, every limit checked. Errors name the dispatch.
func (d *Device) Compile(p metal.Program) (metal.Pass, error) {
	out := &pass{owner: d, program: p}
	access := map[*buffer]kernels.Access{}
	err := d.rt.Pool(func() error {
		for _, level := range p.Levels {
			var bs []bound
			for _, ds := range level {
				b, err := d.bind(ds, out, access)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", p.Label, ds.Label, err)
				}
				bs = append(bs, b)
			}
			out.levels = append(out.levels, bs)
		}
		out.steps = out.order(0, len(out.levels), nil)
		out.head = headOf(out.steps)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for b, a := range access {
		if a&kernels.Write != 0 {
			out.writes = append(out.writes, b.b)
		} else {
			out.reads = append(out.reads, b.b)
		}
	}
	return out, nil
}

// bind resolves a dispatch.
func (d *Device) bind(ds metal.Dispatch, out *pass, access map[*buffer]kernels.Access) (b bound, err error) {
	k, ok := d.kernels[ds.Kernel]
	if !ok {
		return b, fmt.Errorf("no kernel %s", ds.Kernel)
	}
	if _, err := k.Param(0, len(ds.Args)); err != nil {
		return b, err
	}
	for i, s := range ds.Args {
		sig, err := k.Param(i, len(ds.Args))
		if err != nil {
			return b, err
		}
		if slot, ok := s.Buffer.(metal.Slot); ok {
			b.places = append(b.places, place{off: s.Off, slot: slot.Index + 1})
			out.slots = append(out.slots, slotArg{ds.Label, sig, s})
			continue
		}
		buf, err := d.argument(sig, s)
		if err != nil {
			return b, fmt.Errorf("%s: %w", sig.Name, err)
		}
		access[buf] |= sig.Access
		b.places = append(b.places, place{b: buf.b, off: s.Off})
	}
	// A matrix that is not there has no rows; its slots hold the first one's, because Metal wants every slot filled.
	for k.Segments > 0 && len(b.places) < len(k.Buffers)+kernels.SegmentArgs*k.Segments {
		b.places = append(b.places, b.places[len(k.Buffers)+(len(b.places)-len(k.Buffers))%kernels.SegmentArgs])
	}
	if len(b.places) >= maxArguments {
		return b, fmt.Errorf("got %d buffers and the parameters, want at most %d", len(b.places), maxArguments)
	}
	if k.Check != nil {
		if err := k.Check(ds.Params); err != nil {
			return b, err
		}
	}
	if b.params, err = kernels.EncodeParams(ds.Params); err != nil {
		return b, err
	}
	if len(b.params) > mtl.MaxBytes {
		return b, fmt.Errorf("parameters: got %d bytes, want at most %d", len(b.params), mtl.MaxBytes)
	}
	var constants []kernels.Constant
	if k.Constants != nil {
		constants = k.Constants(ds.Params)
	}
	p, err := d.pipeline(ds.Kernel, constants)
	if err != nil {
		return b, err
	}
	if k.Grid == nil {
		return b, fmt.Errorf("kernel %s has no launch on a GPU", ds.Kernel)
	}
	g := k.Grid(ds.Params, ds.Items)
	if err := d.check(p, g); err != nil {
		return b, err
	}
	b.pipeline, b.groups, b.threads, b.threadgroupBytes = p.state, size(g.Groups), size(g.Threads), g.ThreadgroupBytes
	return b, nil
}

func size(n [3]int) mtl.Size {
	return mtl.Size{Width: uint64(n[0]), Height: uint64(n[1]), Depth: uint64(n[2])}
}

// rawAlignment is what kernels may rely on where they load several codes or half-width numbers at once: a uint4.
const rawAlignment = 16

// argument checks a slice against what the kernel reads there.
func (d *Device) argument(sig kernels.Buffer, s metal.Slice) (*buffer, error) {
	b, ok := s.Buffer.(*buffer)
	if !ok {
		return nil, fmt.Errorf("got a buffer of another device, %T", s.Buffer)
	}
	if s.Off < 0 || s.Len <= 0 || s.Off+s.Len > int64(len(b.bytes)) {
		return nil, fmt.Errorf("got bytes [%d, %d) of %s, which has %d", s.Off, s.Off+s.Len, b.label, len(b.bytes))
	}
	switch sig.DType {
	case kernels.F32, kernels.U32:
		if !b.plain || s.Off%4 != 0 || s.Len%4 != 0 {
			return nil, fmt.Errorf("got bytes [%d, %d) of %s, want aligned words", s.Off, s.Off+s.Len, b.label)
		}
	default:
		if s.Off%rawAlignment != 0 {
			return nil, fmt.Errorf("got %s from byte %d on, want a multiple of %d", b.label, s.Off, rawAlignment)
		}
	}
	return b, nil
}
