package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// metalCase is one call of a kernel: the Metal text against Run, from the same inputs.
type metalCase struct {
	kernel Kernel
	name   string // of the case
	params any
	items  int
	args   []Arg
	// tolerance bounds |got - want| / (|want| + rms of the buffer): float32 sums in another order, so it grows with the length of
	// the sums; zero for what must be equal.
	tolerance float64
}

func (c metalCase) String() string { return c.kernel.Name + "/" + c.name }

// poison is what outputs hold before: not a number, so that a place that nobody writes shows.
var poison = math.Float32frombits(0xffffffff)

// copies of the arguments, with poison in what is only written.
func (c metalCase) fresh(t testing.TB) []Arg {
	out := make([]Arg, len(c.args))
	for i, a := range c.args {
		sig, err := c.kernel.Param(i, len(c.args))
		if err != nil {
			t.Fatal(err)
		}
		out[i] = Arg{F32: slices.Clone(a.F32), U32: slices.Clone(a.U32), Raw: slices.Clone(a.Raw)}
		if sig.Access == Write {
			for j := range out[i].F32 {
				out[i].F32[j] = poison
			}
			for j := range out[i].U32 {
				out[i].U32[j] = math.MaxUint32
			}
			for j := range out[i].Raw {
				out[i].Raw[j] = 0xff
			}
		}
	}
	return out
}

// reference runs the Go function in uneven parts.
func (c metalCase) reference(t testing.TB) []Arg {
	args := c.fresh(t)
	var ws Workspace
	step := max(1, c.items/3+1)
	for lo := 0; lo < c.items; lo += step {
		ws.Reset()
		c.kernel.Run(args, c.params, lo, min(lo+step, c.items), &ws)
	}
	return args
}

// bytesOf are an argument's bytes as a device has them, and fromBytes brings them back.
func bytesOf(a Arg) []byte {
	switch {
	case a.F32 != nil:
		b := make([]byte, 0, 4*len(a.F32))
		for _, v := range a.F32 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return b
	case a.U32 != nil:
		b := make([]byte, 0, 4*len(a.U32))
		for _, v := range a.U32 {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	return a.Raw
}

func fromBytes(a *Arg, b []byte) {
	for i := range a.F32 {
		a.F32[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	for i := range a.U32 {
		a.U32[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	copy(a.Raw, b)
}

// slots are the arguments by buffer index: a kernel with weight matrices has always all its slots, absent ones bound to the first.
func (c metalCase) slots(args []Arg) []int {
	var out []int
	for i := range args {
		out = append(out, i)
	}
	for len(out) < len(c.kernel.Buffers)+SegmentArgs*c.kernel.Segments {
		out = append(out, len(c.kernel.Buffers)+len(out[len(c.kernel.Buffers):])%SegmentArgs)
	}
	return out
}

// compare reports how the Metal result differs, and the largest ratio of a difference to its tolerance.
func (c metalCase) compare(t testing.TB, how string, got, want []Arg) {
	t.Helper()
	for i := range want {
		sig, err := c.kernel.Param(i, len(want))
		if err != nil {
			t.Fatal(err)
		}
		if sig.Access&Write == 0 {
			continue
		}
		if !slices.Equal(got[i].U32, want[i].U32) {
			for j, v := range want[i].U32 {
				if got[i].U32[j] != v {
					t.Errorf("%v %s: %s[%d]: got %d, want %d", c, how, sig.Name, j, got[i].U32[j], v)
					break
				}
			}
		}
		if sig.DType == BF16 {
			c.compareHalves(t, how+": "+sig.Name, got[i].Raw, want[i].Raw)
			continue
		}
		c.compareFloats(t, how+": "+sig.Name, got[i].F32, want[i].F32)
	}
}

// compareHalves wants the same bf16 numbers, but for a few that were rounded to the neighbour, beside the case's tolerance before the rounding.
func (c metalCase) compareHalves(t testing.TB, what string, got, want []byte) {
	t.Helper()
	neighbours, squares := 0, 0.0
	for j := range len(want) / 2 {
		if w := float64(bf16(want, j)); w == w {
			squares += w * w
		}
	}
	rms := math.Sqrt(squares / float64(len(want)/2))
	for j := range len(want) / 2 {
		g, w := bf16(got, j), bf16(want, j)
		if g == w || g != g && w != w {
			continue
		}
		if d := math.Abs(float64(g) - float64(w)); !(d <= math.Abs(float64(w))/128+c.tolerance*rms) {
			t.Errorf("%v %s[%d]: got %v, want %v or its neighbour", c, what, j, g, w)
			return
		}
		neighbours++
	}
	if neighbours > 1+len(want)/2/100 {
		t.Errorf("%v %s: got %d of %d numbers rounded the other way, want at most one in a hundred", c, what, neighbours, len(want)/2)
	}
}

func (c metalCase) compareFloats(t testing.TB, what string, got, want []float32) {
	t.Helper()
	var sum float64
	n := 0
	for _, v := range want {
		if v == v {
			sum += float64(v) * float64(v)
			n++
		}
	}
	rms := math.Sqrt(sum / float64(max(n, 1)))
	worst, at := 0.0, -1
	for j, w := range want {
		g := got[j]
		switch {
		case w != w && g != g, w == g:
		case w != w:
			t.Errorf("%v %s[%d]: got %v, want nothing written", c, what, j, g)
			return
		case g != g:
			t.Errorf("%v %s[%d]: not written or not a number, want %v", c, what, j, w)
			return
		default:
			if d := math.Abs(float64(g)-float64(w)) / (math.Abs(float64(w)) + rms); d > worst {
				worst, at = d, j
			}
		}
	}
	if worst > c.tolerance {
		t.Errorf("%v %s[%d]: got %v, want %v: off by %.2g of scale %.3g, tolerance %.1g", c, what, at, got[at], want[at], worst, rms, c.tolerance)
	}
}

// equalBits reports whether two results are the same to the last bit.
func equalBits(a, b []Arg) error {
	for i := range a {
		for j, v := range a[i].F32 {
			if math.Float32bits(v) != math.Float32bits(b[i].F32[j]) {
				return fmt.Errorf("argument %d, element %d: %v and %v", i, j, v, b[i].F32[j])
			}
		}
		if len(a[i].Raw) > 0 && len(b[i].Raw) > 0 && !slices.Equal(a[i].Raw, b[i].Raw) {
			return fmt.Errorf("argument %d differs", i)
		}
		if !slices.Equal(a[i].U32, b[i].U32) {
			return fmt.Errorf("argument %d differs", i)
		}
	}
	return nil
}

// maker makes inputs of cases.
type maker struct{ *rand.Rand }

func newMaker(seed uint64) maker { return maker{rand.New(rand.NewPCG(seed, 77))} }

func (m maker) f32(n int) Arg { return Arg{F32: randomVector(m.Rand, n)} }
func (m maker) out(n int) Arg { return Arg{F32: make([]float32, n)} }

func (m maker) ids(n int) Arg { return Arg{U32: make([]uint32, n)} }

// bf16 values around mean.
func (m maker) bf16(n int, mean, spread float64) Arg {
	raw := make([]byte, 2*n)
	for i := range n {
		binary.LittleEndian.PutUint16(raw[2*i:], uint16(math.Float32bits(float32(mean+spread*m.NormFloat64()))>>16))
	}
	return Arg{Raw: raw}
}

// matrix of n rows of k weights.
func (m maker) matrix(n, k, bits int) []Arg {
	codes := make([]byte, n*k*bits/8)
	for i := range codes {
		codes[i] = byte(m.Uint32())
	}
	spread := 0.5 / math.Sqrt(float64(k)) / math.Exp2(float64(bits-4))
	return []Arg{{Raw: codes}, m.bf16(n*k/Group, 0, spread), m.bf16(n*k/Group, 0, 4*spread)}
}

func word(v int) Arg { return Arg{U32: []uint32{uint32(v)}} }
