package metal_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pond/metal"
	"pond/metal/kernels"
)

// What a metal.Device promises, for each of its implementations: the host executor, and package gpu on whatever Metal this machine has.

// deviceTest is one promise. It gets an open device.
var deviceTests = []struct {
	name string
	run  func(t *testing.T, d metal.Device)
}{
	{"new buffers are zero", newBuffersAreZero},
	{"weights are placed as published", weightsArePlaced},
	{"lengths are checked", lengthsAreChecked},
	{"a pass computes", aPassComputes},
	{"a pass can run again", aPassRunsAgain},
	{"levels are in order", levelsAreInOrder},
	{"a long pass is one pass", aLongPass},
	{"any order of a level gives the same", anyOrderIsTheSame},
	{"a tap sees each level", tapSeesEachLevel},
	{"a pass serves what stands in its slots", aPassHasSlots},
	{"times are told for each dispatch", timesAreTold},
	{"started passes run in order", startedInOrder},
	{"a dropped pass hurts nobody", droppedPass},
	{"Close does not mind what was started", closeWithStarted},
	{"programs are checked", programsAreChecked},
	{"foreign passes and buffers are refused", foreignersAreRefused},
	{"abandoned buffers hurt nobody", abandonedBuffers},
	{"Close can be called twice", closeTwice},
}

func TestDevices(t *testing.T) {
	for _, dev := range devices {
		t.Run(dev.name, func(t *testing.T) {
			for _, c := range deviceTests {
				t.Run(c.name, func(t *testing.T) {
					d := dev.open(t)
					t.Cleanup(func() {
						if err := d.Close(); err != nil {
							t.Errorf("close: %v", err)
						}
					})
					if d.Name() == "" {
						t.Error("the device has no name")
					}
					c.run(t, d)
				})
			}
		})
	}
}

func newBuffer(t *testing.T, d metal.Device, label string, words int) metal.Buffer {
	t.Helper()
	b, err := d.NewBuffer(label, 4*int64(words))
	if err != nil {
		t.Fatal(err)
	}
	if len(b.F32()) != words || len(b.U32()) != words || len(b.Bytes()) != 4*words || b.Label() != label {
		t.Fatalf("buffer %s: got %d floats, %d words and %d bytes, want %d words", b.Label(), len(b.F32()), len(b.U32()), len(b.Bytes()), words)
	}
	return b
}

func whole(b metal.Buffer) metal.Slice { return metal.Slice{Buffer: b, Len: int64(len(b.Bytes()))} }

func compile(t *testing.T, d metal.Device, levels ...[]metal.Dispatch) metal.Pass {
	t.Helper()
	p, err := d.Compile(metal.Program{Label: "test", Levels: levels})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t *testing.T, d metal.Device, p metal.Pass, o metal.RunOptions) {
	t.Helper()
	if err := d.Run(p, o); err != nil {
		t.Fatal(err)
	}
}

const siluWidth = 64

// silu is act = silu(gate) * up over rows of siluWidth.
func silu(label string, gu, act metal.Buffer, rows int) metal.Dispatch {
	return metal.Dispatch{Label: label, Kernel: "silu_mul", Params: kernels.SiluMulParams{M: rows, I: siluWidth}, Items: rows,
		Work: int64(rows) * siluWidth * 12, Args: []metal.Slice{whole(gu), whole(act)}}
}

func fill(b metal.Buffer) {
	for i := range b.F32() {
		b.F32()[i] = float32(i%97)/50 - 0.5
	}
}

// near compares with what silu should have given; the exponential is the device's own, to a few ulp.
func near(t *testing.T, gu, act metal.Buffer, rows int) {
	t.Helper()
	for r := range rows {
		for i := range siluWidth {
			g, u := float64(gu.F32()[r*2*siluWidth+i]), float64(gu.F32()[r*2*siluWidth+siluWidth+i])
			want, got := g/(1+math.Exp(-g))*u, float64(act.F32()[r*siluWidth+i])
			if math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
				t.Fatalf("row %d, column %d: got %v, want %v", r, i, got, want)
			}
		}
	}
}

func newBuffersAreZero(t *testing.T, d metal.Device) {
	for range 3 {
		b := newBuffer(t, d, "b", 5000)
		for i, v := range b.U32() {
			if v != 0 {
				t.Fatalf("word %d: got %#x, want 0", i, v)
			}
			b.U32()[i] = 0xffffffff
		}
	}
}

func weightsArePlaced(t *testing.T, d metal.Device) {
	data := make([]byte, 1001)
	for i := range data {
		data[i] = byte(i * 7)
	}
	b, err := d.PlaceWeights("w", data[3:]) // an odd address, as in a file
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.Bytes(), data[3:]) || b.Label() != "w" {
		t.Errorf("got %d other bytes as %s, want the %d published", len(b.Bytes()), b.Label(), len(data)-3)
	}
	if b.F32() != nil || b.U32() != nil {
		t.Error("weights may be unaligned: got words, want none")
	}
}

func lengthsAreChecked(t *testing.T, d metal.Device) {
	for _, n := range []int64{0, -4, 6} {
		if _, err := d.NewBuffer("b", n); err == nil || !strings.Contains(err.Error(), fmt.Sprint(n)) {
			t.Errorf("%d bytes: got %v, want an error with the number", n, err)
		}
	}
	if _, err := d.PlaceWeights("w", nil); err == nil {
		t.Error("weights of no bytes: got no error")
	}
}

func aPassComputes(t *testing.T, d metal.Device) {
	const rows = 37
	gu, act := newBuffer(t, d, "gu", rows*2*siluWidth), newBuffer(t, d, "act", rows*siluWidth)
	fill(gu)
	run(t, d, compile(t, d, []metal.Dispatch{silu("silu", gu, act, rows)}), metal.RunOptions{})
	near(t, gu, act, rows)
}

func aPassRunsAgain(t *testing.T, d metal.Device) {
	const rows = 3
	gu, act := newBuffer(t, d, "gu", rows*2*siluWidth), newBuffer(t, d, "act", rows*siluWidth)
	p := compile(t, d, []metal.Dispatch{silu("silu", gu, act, rows)})
	if got := p.Program().Label; got != "test" {
		t.Errorf("got program %q, want test", got)
	}
	for i := range 5 {
		fill(gu)
		gu.F32()[0] = float32(i)
		run(t, d, p, metal.RunOptions{})
		near(t, gu, act, rows)
	}
}

// chain makes n levels, each computed from the one before, so that a level out of order shows. A level has one dispatch that matters and
// one beside it.
func chain(t *testing.T, d metal.Device, n int) (levels [][]metal.Dispatch, first metal.Buffer, acts []metal.Buffer) {
	first = newBuffer(t, d, "x", 2*siluWidth)
	src := first
	for i := range n {
		// dst is [2*siluWidth] of which silu writes the first half; the second stays what it is
		dst, beside := newBuffer(t, d, fmt.Sprint("dst", i), 2*siluWidth), newBuffer(t, d, fmt.Sprint("beside", i), siluWidth)
		for j := range siluWidth {
			dst.F32()[siluWidth+j] = 2
		}
		on := silu(fmt.Sprint("on", i), src, dst, 1)
		on.Args[1].Len = 4 * siluWidth
		levels = append(levels, []metal.Dispatch{on, silu(fmt.Sprint("beside", i), src, beside, 1)})
		acts, src = append(acts, dst), dst
	}
	return levels, first, acts
}

// chained is the value of every column after n levels.
func chained(x float64, n int) float64 {
	up := x
	for range n {
		x, up = x/(1+math.Exp(-x))*up, 2
	}
	return x
}

// checkChain compares every level. Near zero silu is half its argument, so that rounding does not grow along the chain, and what a level
// read from an earlier run is far off.
func checkChain(t *testing.T, acts []metal.Buffer, x float32) {
	t.Helper()
	for i, b := range acts {
		want := chained(float64(x), i+1)
		for j, got := range b.F32()[:siluWidth] {
			if math.Abs(float64(got)-want) > 1e-5*math.Abs(want)*float64(i+1) {
				t.Fatalf("level %d, column %d: got %v, want %v", i, j, got, want)
			}
		}
	}
}

func setAll(b metal.Buffer, v float32) {
	for i := range b.F32() {
		b.F32()[i] = v
	}
}

func levelsAreInOrder(t *testing.T, d metal.Device) {
	levels, x, acts := chain(t, d, 9)
	p := compile(t, d, levels...)
	for _, v := range []float32{0.001, 0.002, -0.003} {
		setAll(x, v)
		run(t, d, p, metal.RunOptions{})
		checkChain(t, acts, v)
	}
}

// aLongPass is long enough for a device to cut it in two while it encodes.
func aLongPass(t *testing.T, d metal.Device) {
	levels, x, acts := chain(t, d, 150)
	p := compile(t, d, levels...)
	for _, v := range []float32{0.001, 0.003} {
		setAll(x, v)
		run(t, d, p, metal.RunOptions{})
		checkChain(t, acts, v)
	}
}

func anyOrderIsTheSame(t *testing.T, d metal.Device) {
	levels, x, acts := chain(t, d, 20)
	p := compile(t, d, levels...)
	setAll(x, 0.001)
	run(t, d, p, metal.RunOptions{})
	want := slices.Clone(acts[len(acts)-1].F32())
	for seed := range uint64(3) {
		for _, b := range acts {
			clear(b.F32()[:siluWidth])
		}
		run(t, d, p, metal.RunOptions{Shuffle: rand.New(rand.NewPCG(1, seed))})
		if !slices.Equal(acts[len(acts)-1].F32(), want) {
			t.Errorf("seed %d: another result", seed)
		}
	}
}

func tapSeesEachLevel(t *testing.T, d metal.Device) {
	levels, x, acts := chain(t, d, 4)
	p := compile(t, d, levels...)
	setAll(x, 0.002)
	var seen []string
	run(t, d, p, metal.RunOptions{Tap: func(level int, ds []metal.Dispatch) {
		seen = append(seen, ds[0].Label)
		checkChain(t, acts[:level+1], 0.002)
		if level+1 < len(acts) && acts[level+1].F32()[0] != 0 {
			t.Errorf("after level %d the next has run too", level)
		}
	}})
	if want := []string{"on0", "on1", "on2", "on3"}; !slices.Equal(seen, want) {
		t.Errorf("got taps %v, want %v", seen, want)
	}
}

func aPassHasSlots(t *testing.T, d metal.Device) {
	gu := newBuffer(t, d, "gu", 3*2*siluWidth)
	fill(gu)
	var acts []metal.Buffer
	for i := range 3 {
		acts = append(acts, newBuffer(t, d, "act", (i+1)*siluWidth))
	}
	ds := silu("silu", gu, acts[0], 1)
	ds.Args[0] = metal.Slice{Buffer: metal.Slot{Index: 1, Name: "gu"}, Len: 1 << 30} // all of what will stand there
	ds.Args[1].Buffer = metal.Slot{Index: 0, Name: "act"}
	p := compile(t, d, []metal.Dispatch{ds})
	for i := range acts {
		seen := ""
		run(t, d, p, metal.RunOptions{Slots: []metal.Buffer{acts[i], gu}})
		near(t, gu, acts[i], 1)
		clear(acts[i].F32())
		run(t, d, p, metal.RunOptions{Slots: []metal.Buffer{acts[i], gu}, Tap: func(_ int, ds []metal.Dispatch) {
			near(t, ds[0].Args[0].Buffer, ds[0].Args[1].Buffer, 1)
			seen = fmt.Sprint(ds[0].Args[0].Len)
		}})
		if want := fmt.Sprint(len(gu.Bytes())); seen != want {
			t.Errorf("got %s bytes at the tap, want the %s that stand there", seen, want)
		}
	}
	for want, slots := range map[string][]metal.Buffer{
		"silu: gu: got nothing in slot 1 of 0": nil,
		"got nothing in slot 1 of 2":           {acts[0], nil},
	} {
		if err := d.Run(p, metal.RunOptions{Slots: slots}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "test: silu") {
			t.Errorf("got %v, want an error of test: silu with %q", err, want)
		}
	}
}

func timesAreTold(t *testing.T, d metal.Device) {
	levels, x, acts := chain(t, d, 3)
	setAll(x, 0.002)
	told := map[string]int{}
	run(t, d, compile(t, d, levels...), metal.RunOptions{Timed: func(level int, ds metal.Dispatch, took time.Duration) {
		told[ds.Label]++
		if took < 0 || level > 2 {
			t.Errorf("%s: level %d took %v", ds.Label, level, took)
		}
	}})
	if len(told) != 6 {
		t.Errorf("got times of %v, want six dispatches once each", told)
	}
	checkChain(t, acts, 0.002)
}

func programsAreChecked(t *testing.T, d metal.Device) {
	gu, act := newBuffer(t, d, "gu", 2*siluWidth), newBuffer(t, d, "act", siluWidth)
	for want, change := range map[string]func(ds *metal.Dispatch){
		"no kernel x":             func(ds *metal.Dispatch) { ds.Kernel = "x" },
		"got 1 arguments":         func(ds *metal.Dispatch) { ds.Args = ds.Args[:1] },
		"got 0 arguments":         func(ds *metal.Dispatch) { ds.Args = nil },
		"gu, which has 512":       func(ds *metal.Dispatch) { ds.Args[0].Len += 4 },
		"want aligned":            func(ds *metal.Dispatch) { ds.Args[0].Off, ds.Args[0].Len = 2, 8 },
		"the dispatch: gu: got b": func(ds *metal.Dispatch) { ds.Args[0].Off = -4 },
	} {
		ds := silu("the dispatch", gu, act, 1)
		change(&ds)
		_, err := d.Compile(metal.Program{Label: "p", Levels: [][]metal.Dispatch{{ds}}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "p: the dispatch") {
			t.Errorf("got %v, want an error of p: the dispatch with %q", err, want)
		}
	}
}

type stranger struct{ metal.Pass }

func foreignersAreRefused(t *testing.T, d metal.Device) {
	if err := d.Run(stranger{}, metal.RunOptions{}); err == nil || !strings.Contains(err.Error(), "another device") {
		t.Errorf("got %v, want an error about another device", err)
	}
}

// startedInOrder has several passes in flight, of which each reads what the one before wrote, and waits for the first and the last alone.
func startedInOrder(t *testing.T, d metal.Device) {
	const n = 12
	levels, x, acts := chain(t, d, n)
	var passes []metal.Pass
	for _, l := range levels {
		passes = append(passes, compile(t, d, l))
	}
	for _, v := range []float32{0.001, -0.002, 0.003} {
		setAll(x, v)
		var started []metal.Running
		for i, p := range passes[:n-1] {
			o := metal.RunOptions{}
			if i%3 == 1 {
				o.Shuffle = rand.New(rand.NewPCG(1, uint64(i)))
			}
			started = append(started, d.Start(p, o))
		}
		if err := started[0].Wait(); err != nil {
			t.Fatal(err)
		}
		checkChain(t, acts[:1], v)
		run(t, d, passes[n-1], metal.RunOptions{}) // behind all that were started
		checkChain(t, acts, v)
		for _, r := range started[1:] {
			if err := r.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := d.Start(stranger{}, metal.RunOptions{}).Wait(); err == nil || !strings.Contains(err.Error(), "another device") {
		t.Errorf("got %v, want an error about another device", err)
	}
}

// droppedPass drops a pass between two: what it writes is written or not, as it says.
func droppedPass(t *testing.T, d metal.Device) {
	levels, x, acts := chain(t, d, 1)
	beside, z := newBuffer(t, d, "beside", siluWidth), newBuffer(t, d, "z", 2*siluWidth)
	first, dropped := compile(t, d, levels[0]), compile(t, d, []metal.Dispatch{silu("dropped", z, beside, 1)})
	setAll(z, 1)
	for _, v := range []float32{0.001, 0.002} {
		setAll(x, v)
		setAll(beside, 7)
		a, b, c := d.Start(first, metal.RunOptions{}), d.Start(dropped, metal.RunOptions{}), d.Start(first, metal.RunOptions{})
		if err := a.Wait(); err != nil {
			t.Fatal(err)
		}
		ran, err := b.Drop()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
		checkChain(t, acts, v)
		if written := beside.F32()[3] != 7; written != ran {
			t.Errorf("the dropped pass: ran %v, and what it writes is written: %v", ran, written)
		}
	}
}

func closeWithStarted(t *testing.T, d metal.Device) {
	levels, x, _ := chain(t, d, 3)
	setAll(x, 0.001)
	p := compile(t, d, levels...)
	d.Start(p, metal.RunOptions{})
	d.Start(p, metal.RunOptions{})
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// abandonedBuffers replaces scratch as growing plans do, with the collector at work, while an older pass still runs on its own.
func abandonedBuffers(t *testing.T, d metal.Device) {
	gu, act := newBuffer(t, d, "gu", 2*siluWidth), newBuffer(t, d, "act", siluWidth)
	fill(gu)
	p := compile(t, d, []metal.Dispatch{silu("silu", gu, act, 1)})
	for i := range 20 {
		newBuffer(t, d, "scratch", 1000*(i+1)).U32()[0] = 1
		runtime.GC()
		clear(act.F32())
		run(t, d, p, metal.RunOptions{})
		near(t, gu, act, 1)
	}
}

func closeTwice(t *testing.T, d metal.Device) {
	newBuffer(t, d, "b", 4)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
