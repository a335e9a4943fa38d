package crosscheck

import (
	"encoding/binary"
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

// TestBestsAreOfTheDevicesLogits: a head whose logits are within the tolerance, and so its bests other numbers, is right; one whose bests are not of its
// own logits is not. What a user saw: a doctor that called every head wrong that does not add in the reference's order.
func TestBestsAreOfTheDevicesLogits(t *testing.T) {
	product := kernels.LinearParams{M: 1, K: kernels.Group, Bits: 4, Rows: [kernels.MaxSegments]int{100}, Eps: 1e-6}
	p := kernels.HeadParams{Product: product, Choice: kernels.SampleParams{N: 100, Block: kernels.Tuning{}.HeadBlock(product)}}
	const best = 40
	const logits, bests = 2, 6
	for _, c := range []struct {
		name, failure string
		bend          func(logits []float32, bests []uint32)
	}{
		{"the same", "", func([]float32, []uint32) {}},
		{"other logits and their bests", "", func(logits []float32, bests []uint32) {
			logits[best] = math.Nextafter32(logits[best], math.MaxFloat32)
			bests[2*(best/p.Choice.Block)]++
		}},
		{"other logits and no bests of theirs", "bests[", func(logits []float32, _ []uint32) { logits[best] = math.Nextafter32(logits[best], math.MaxFloat32) }},
		{"another block's", "bests[1]", func(_ []float32, bests []uint32) { bests[1] = best }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bend := func(run metal.Pass) {
				args := run.Program().Levels[0][0].Args
				c.bend(args[logits].Buffer.F32(), args[bests].Buffer.U32())
			}
			d := New(host.Open(host.Exact, 1), bent{host.Open(host.Exact, 1), bend}, Tolerance)
			defer d.Close()
			x := metal.Dispatch{Label: "head", Kernel: "q4_gemv_norm_bests", Params: p, Items: p.Blocks()}
			for _, n := range []int{4 * product.K, 2 * product.K, 4 * 100, 4 * kernels.DrawWords, 4 * 100, 4 * kernels.MaxBiases, 8 * p.Choice.Bests(), 100 * product.K / 2, 2 * 100, 2 * 100} {
				b, err := d.NewBuffer("b", int64(n))
				if err != nil {
					t.Fatal(err)
				}
				x.Args = append(x.Args, metal.Slice{Buffer: b, Len: int64(n)})
			}
			for i := range product.K {
				x.Args[0].Buffer.F32()[i] = 1
				binary.LittleEndian.PutUint16(x.Args[1].Buffer.Bytes()[2*i:], 0x3f80) // 1 as bf16
			}
			for row := range 100 {
				binary.LittleEndian.PutUint16(x.Args[9].Buffer.Bytes()[2*row:], 0x3f80)
			}
			binary.LittleEndian.PutUint16(x.Args[9].Buffer.Bytes()[2*best:], 0x4080) // 4
			run, err := d.Compile(metal.Program{Label: "p", Levels: [][]metal.Dispatch{{x}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Run(run, metal.RunOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, r := range d.Results() {
				if r.Kernel == x.Kernel && ((c.failure == "") != (r.Failure == "") || !strings.Contains(r.Failure, c.failure)) {
					t.Errorf("got %q, want a failure with %q", r.Failure, c.failure)
				}
			}
		})
	}
}
