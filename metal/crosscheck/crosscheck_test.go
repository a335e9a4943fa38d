package crosscheck

import (
	"math"
	"strings"
	"testing"

	"pond/metal"
	"pond/metal/host"
	"pond/metal/kernels"
)

// bent is a host executor with one fault.
type bent struct {
	*host.Device
	bend func(p metal.Pass)
}

func (b bent) Run(p metal.Pass, o metal.RunOptions) error {
	err := b.Device.Run(p, o)
	b.bend(p)
	return err
}

// last is the last argument of a level's only dispatch.
func last(p metal.Pass) metal.Slice {
	args := p.Program().Levels[0][0].Args
	return args[len(args)-1]
}

func TestDifferencesAreFound(t *testing.T) {
	for _, c := range []struct {
		name, failure string
		bend          func(p metal.Pass)
	}{
		{"equal", "", func(metal.Pass) {}},
		{"rounding", "", func(p metal.Pass) { last(p).Buffer.F32()[3] *= 1 + 1e-6 }},
		{"one value off", "act[3]: got", func(p metal.Pass) { last(p).Buffer.F32()[3] += 0.1 }},
		{"not a number", "act[7]: got NaN", func(p metal.Pass) { last(p).Buffer.F32()[7] = float32(math.NaN()) }},
		{"a row not written", "]: got 0, want", func(p metal.Pass) { clear(last(p).Buffer.F32()[64:128]) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := New(host.Open(host.Exact, 1), bent{host.Open(host.Exact, 1), c.bend}, Tolerance)
			defer d.Close()
			gu, err := d.NewBuffer("gu", 4*4*128)
			if err != nil {
				t.Fatal(err)
			}
			act, err := d.NewBuffer("act", 4*4*64)
			if err != nil {
				t.Fatal(err)
			}
			for i := range gu.F32() {
				gu.F32()[i] = float32(i%13) + 1
			}
			whole := func(b metal.Buffer) metal.Slice { return metal.Slice{Buffer: b, Len: int64(len(b.Bytes()))} }
			p, err := d.Compile(metal.Program{Label: "p", Levels: [][]metal.Dispatch{{{Label: "silu", Kernel: "silu_mul",
				Params: kernels.SiluMulParams{M: 4, I: 64}, Items: 4, Args: []metal.Slice{whole(gu), whole(act)}}}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Run(p, metal.RunOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, r := range d.Results() {
				switch {
				case r.Kernel != "silu_mul":
					if r.Dispatches != 0 || r.Failure != "" {
						t.Errorf("got %+v, want nothing of a kernel that did not run", r)
					}
				case r.Dispatches != 1 || (c.failure == "") != (r.Failure == "") || !strings.Contains(r.Failure, c.failure):
					t.Errorf("got %+v, want a failure with %q", r, c.failure)
				}
			}
			if act.F32()[70] == 0 {
				t.Error("the reference's results do not go on")
			}
		})
	}
}
