// Package crosscheck is a device made of two: every level runs on the device under test and on the reference, from the same inputs, and
// what they wrote is compared. The reference's results go on, so that a difference is the fault of the dispatch that shows it and of no
// earlier one.
//
// It knows no model and no binding. Anything that runs on a metal.Device runs on this one; ask Results afterwards. Start with Device.Run.
package crosscheck

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pond/metal"
	"pond/metal/kernels"
)

var _ metal.Device = (*Device)(nil)

// Tolerance is how far an f32 may be from the reference, in parts of itself and of the root mean square of what the dispatch wrote there:
// float32 sums of some thousand products in another order, and a device's own exponential, differ by parts in 1e6.
const Tolerance = 3e-5

// Tolerances of devices that quantise the activations of products, to 16 and to 8 bits: what a group's largest activation hides of the others.
const (
	ToleranceInt16 = 1e-3
	ToleranceInt8  = 0.2
)

// What a kernel writes as bf16 may be rounded to the neighbour, a part in 128 away, and what it computes from such a number moves with it.
const (
	toleranceBF16    = 1.0 / 128
	toleranceRounded = 1e-3
)

// toleranceTensor is for kernels whose products are rounded to bf16, in parts of the root mean square: weights whose offset cancels most of a
// sum leave up to a tenth, see Loosen.
const toleranceTensor = 0.15

// widened are bf16 numbers as float32.
func widened(b []byte) []float32 {
	out := make([]float32, len(b)/2)
	for i := range out {
		out[i] = math.Float32frombits(uint32(b[2*i])<<16 | uint32(b[2*i+1])<<24)
	}
	return out
}

// Result is what became of one kernel.
type Result struct {
	Kernel     string
	Dispatches int     // compared
	Worst      float64 // largest difference, in parts of the tolerance
	Failure    string  // of the first dispatch that differs or could not be run; empty when it matches
}

// Device compares a device with a reference.
type Device struct {
	reference, device metal.Device
	tolerance         float64
	kernels           map[string]kernels.Kernel
	mirrors           map[metal.Buffer]metal.Buffer // the device's memory for each buffer of the reference
	results           map[string]*Result
	loose             []string // see Loosen
}

// New compares device with reference within a tolerance; Close closes both.
func New(reference, device metal.Device, tolerance float64) *Device {
	d := &Device{tolerance: tolerance, reference: reference, device: device, kernels: map[string]kernels.Kernel{}, mirrors: map[metal.Buffer]metal.Buffer{}, results: map[string]*Result{}}
	for _, k := range kernels.All() {
		d.kernels[k.Name] = k
	}
	return d
}

// Loosen names kernels that multiply in bf16, as tensor operations do.
func (d *Device) Loosen(kernels []string) { d.loose = kernels }

// Results lists every kernel by name; one that no program used has no dispatches.
func (d *Device) Results() []Result {
	var out []Result
	for _, k := range kernels.All() {
		if r := d.results[k.Name]; r != nil {
			out = append(out, *r)
		} else {
			out = append(out, Result{Kernel: k.Name})
		}
	}
	return out
}

// Name implements metal.Device.
func (d *Device) Name() string { return d.device.Name() + ", checked against " + d.reference.Name() }

// NewBuffer implements metal.Device: the caller sees the reference's memory.
func (d *Device) NewBuffer(label string, lenBytes int64) (metal.Buffer, error) {
	b, err := d.reference.NewBuffer(label, lenBytes)
	if err != nil {
		return nil, err
	}
	d.mirrors[b], err = d.device.NewBuffer(label, lenBytes)
	return b, err
}

// PlaceWeights implements metal.Device.
func (d *Device) PlaceWeights(label string, data []byte) (metal.Buffer, error) {
	b, err := d.reference.PlaceWeights(label, data)
	if err != nil {
		return nil, err
	}
	d.mirrors[b], err = d.device.PlaceWeights(label, data)
	return b, err
}

// level is one level on both.
type level struct {
	reference, device metal.Pass
	dispatches        []metal.Dispatch // bound to the reference's memory
}

type pass struct {
	program metal.Program
	levels  []level
}

func (p *pass) Program() metal.Program { return p.program }

// Compile implements metal.Device. A program that the device does not take is an error, though the reference takes it.
func (d *Device) Compile(p metal.Program) (metal.Pass, error) {
	out := &pass{program: p}
	for _, ds := range p.Levels {
		one := metal.Program{Label: p.Label, Levels: [][]metal.Dispatch{ds}}
		l := level{dispatches: ds}
		var err error
		if l.reference, err = d.reference.Compile(one); err != nil {
			return nil, err
		}
		mirrored := make([]metal.Dispatch, len(ds))
		for i, x := range ds {
			mirrored[i] = x
			mirrored[i].Args = slices.Clone(x.Args)
			for j, a := range x.Args {
				if _, slot := a.Buffer.(metal.Slot); !slot {
					mirrored[i].Args[j].Buffer = d.mirrors[a.Buffer]
				}
			}
		}
		if l.device, err = d.device.Compile(metal.Program{Label: p.Label, Levels: [][]metal.Dispatch{mirrored}}); err != nil {
			return nil, err
		}
		out.levels = append(out.levels, l)
	}
	return out, nil
}

// Run implements metal.Device. A difference is a result, not an error; a device that fails is both.
func (d *Device) Run(p metal.Pass, o metal.RunOptions) error {
	cp, ok := p.(*pass)
	if !ok {
		return fmt.Errorf("crosscheck: got a pass of another device, %T", p)
	}
	once := o
	once.Tap, once.Timed = nil, nil
	once.Slots = make([]metal.Buffer, len(o.Slots))
	for i, b := range o.Slots {
		once.Slots[i] = d.mirrors[b]
	}
	for i, l := range cp.levels {
		ds, err := metal.Fill(l.dispatches, o.Slots)
		if err != nil {
			return err
		}
		d.copyIn(ds)
		if err := d.device.Run(l.device, once); err != nil {
			for _, x := range ds {
				d.fail(x, err.Error())
			}
			return err
		}
		if err := d.reference.Run(l.reference, metal.RunOptions{Slots: o.Slots}); err != nil {
			return err
		}
		for _, x := range ds {
			d.compare(x)
		}
		if o.Tap != nil {
			o.Tap(i, ds)
		}
	}
	return nil
}

// Start implements metal.Device: the pass runs at once.
func (d *Device) Start(p metal.Pass, o metal.RunOptions) metal.Running {
	return metal.Done{Err: d.Run(p, o)}
}

// copyIn makes the device's memory equal to the reference's, as far as the dispatches touch it.
func (d *Device) copyIn(ds []metal.Dispatch) {
	for _, x := range ds {
		for _, a := range x.Args {
			if a.Buffer.U32() != nil { // weights do not change
				copy(d.mirrors[a.Buffer].Bytes()[a.Off:a.Off+a.Len], a.Buffer.Bytes()[a.Off:a.Off+a.Len])
			}
		}
	}
}

func (d *Device) result(kernel string) *Result {
	r := d.results[kernel]
	if r == nil {
		r = &Result{Kernel: kernel}
		d.results[kernel] = r
	}
	return r
}

// fail notes the first failure of a kernel.
func (d *Device) fail(x metal.Dispatch, why string) {
	if r := d.result(x.Kernel); r.Failure == "" {
		r.Failure = strings.TrimSpace(x.Label + ": " + why)
	}
}

// compare compares everything that a dispatch may have written.
func (d *Device) compare(x metal.Dispatch) {
	r := d.result(x.Kernel)
	r.Dispatches++
	tolerance, halves := d.tolerance, toleranceBF16
	if slices.Contains(d.loose, x.Kernel) {
		tolerance, halves = max(tolerance, toleranceTensor), toleranceTensor
	}
	for i := range x.Args {
		if sig, err := d.kernels[x.Kernel].Param(i, len(x.Args)); err == nil && sig.DType == kernels.BF16 && sig.Access&kernels.Write != 0 {
			tolerance = max(tolerance, toleranceRounded)
		}
	}
	for i, a := range x.Args {
		sig, err := d.kernels[x.Kernel].Param(i, len(x.Args))
		if err != nil || sig.Access&kernels.Write == 0 {
			continue
		}
		lo, hi := a.Off/4, (a.Off+a.Len)/4
		if sig.DType == kernels.U32 {
			want, got := a.Buffer.U32()[lo:hi], d.mirrors[a.Buffer].U32()[lo:hi]
			if head, ok := x.Params.(kernels.HeadParams); ok {
				want = d.bestsOf(x, head)
			}
			for j := range want {
				if got[j] != want[j] {
					r.Worst = math.Inf(1)
					d.fail(x, fmt.Sprintf("%s[%d]: got %d, want %d", sig.Name, j, got[j], want[j]))
					break
				}
			}
			continue
		}
		got, want, most := d.mirrors[a.Buffer].F32(), a.Buffer.F32(), tolerance
		if sig.DType == kernels.BF16 {
			got, want, most = widened(d.mirrors[a.Buffer].Bytes()[a.Off:a.Off+a.Len]), widened(a.Buffer.Bytes()[a.Off:a.Off+a.Len]), halves
			lo, hi = 0, a.Len/2
		}
		worst, at := difference(got[lo:hi], want[lo:hi], most)
		r.Worst = max(r.Worst, worst)
		if worst > 1 {
			d.fail(x, fmt.Sprintf("%s[%d]: got %v, want %v", sig.Name, at, got[lo+int64(at)], want[lo+int64(at)]))
		}
	}
}

// bestsOf are the bests of the logits that the device computed itself: another order of sums gives other logits, within the tolerance, and so other bests.
func (d *Device) bestsOf(x metal.Dispatch, p kernels.HeadParams) (bests []uint32) {
	args := make([]kernels.Arg, len(x.Args))
	for i, a := range x.Args {
		sig, err := d.kernels[x.Kernel].Param(i, len(x.Args))
		if err != nil {
			return nil
		}
		written, lo, hi := sig.Access&kernels.Write != 0, a.Off/4, (a.Off+a.Len)/4
		switch {
		case sig.DType == kernels.U32 && written:
			bests = make([]uint32, hi-lo)
			args[i].U32 = bests
		case sig.DType == kernels.U32:
			args[i].U32 = a.Buffer.U32()[lo:hi]
		case sig.DType == kernels.F32 && written:
			args[i].F32 = d.mirrors[a.Buffer].F32()[lo:hi]
		case sig.DType == kernels.F32:
			args[i].F32 = a.Buffer.F32()[lo:hi]
		} // bests do not read the norm and the weights
	}
	p.FindBests(args, 0, p.Blocks())
	return bests
}

// difference is the largest distance of got from want in parts of the tolerance, and where. A number that only one of them has is infinitely
// far.
func difference(got, want []float32, tolerance float64) (worst float64, at int) {
	var squares float64
	finite := 0
	for _, w := range want {
		if v := float64(w); !math.IsNaN(v) && !math.IsInf(v, 0) {
			squares += v * v
			finite++
		}
	}
	rms := math.Sqrt(squares / float64(max(finite, 1)))
	for i, w := range want {
		g, w := float64(got[i]), float64(w)
		if g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		far := math.Abs(g-w) / (tolerance * (math.Abs(w) + rms))
		if math.IsNaN(far) {
			far = math.Inf(1)
		}
		if far > worst {
			worst, at = far, i
		}
	}
	return worst, at
}

// Close implements metal.Device.
func (d *Device) Close() error {
	err := d.device.Close()
	if e := d.reference.Close(); err == nil {
		err = e
	}
	return err
}
