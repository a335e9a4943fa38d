package host

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pond/metal"
	"pond/metal/kernels"
)

func buffer32(t *testing.T, d *Device, label string, n int) metal.Buffer {
	t.Helper()
	b, err := d.NewBuffer(label, int64(4*n))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func whole(b metal.Buffer) metal.Slice { return metal.Slice{Buffer: b, Len: int64(len(b.Bytes()))} }

// siluProgram is one dispatch of silu_mul over m rows of 64.
func siluProgram(d *Device, t *testing.T, m int) (metal.Program, metal.Buffer, metal.Buffer) {
	gu, act := buffer32(t, d, "gu", m*128), buffer32(t, d, "act", m*64)
	for i := range gu.F32() {
		gu.F32()[i] = float32(i%97) / 50
	}
	return metal.Program{Label: "test", Levels: [][]metal.Dispatch{{{Label: "silu", Kernel: "silu_mul", Params: kernels.SiluMulParams{M: m, I: 64}, Items: m,
		Work: int64(m) * 192 * 4, Args: []metal.Slice{whole(gu), whole(act)}}}}}, gu, act
}

func TestRunIsTheSameForAnyThreadsAndOrder(t *testing.T) {
	var want []float32
	for threads := 1; threads <= 4; threads++ {
		d := Open(Exact, threads)
		p, _, act := siluProgram(d, t, 301)
		pass, err := d.Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []metal.RunOptions{{}, {Shuffle: rand.New(rand.NewPCG(1, uint64(threads)))}} {
			clear(act.F32())
			if err := d.Run(pass, o); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = slices.Clone(act.F32())
			}
			if !slices.Equal(act.F32(), want) {
				t.Errorf("%d threads: another result", threads)
			}
		}
		d.Close()
	}
	if want[5] == 0 {
		t.Error("nothing was computed")
	}
}

func TestPanicOfAKernelIsAnError(t *testing.T) {
	d := Open(Exact, 2)
	defer d.Close()
	p, _, act := siluProgram(d, t, 400)
	p.Levels[0][0].Args[1].Len = 4 * 64 * 300 // the kernel will write past it
	pass, err := d.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Run(pass, metal.RunOptions{})
	if err == nil || !strings.Contains(err.Error(), "silu: items") {
		t.Fatalf("got %v, want an error that names the dispatch", err)
	}
	p.Levels[0][0].Args[1] = whole(act)
	if pass, err = d.Compile(p); err != nil {
		t.Fatal(err)
	}
	if err := d.Run(pass, metal.RunOptions{}); err != nil {
		t.Errorf("the device does not work after a panic: %v", err)
	}
}

func TestCompileErrors(t *testing.T) {
	d := Open(Exact, 1)
	defer d.Close()
	for want, change := range map[string]func(ds *metal.Dispatch){
		"no kernel x":      func(ds *metal.Dispatch) { ds.Kernel = "x" },
		"got 1 arguments":  func(ds *metal.Dispatch) { ds.Args = ds.Args[:1] },
		"which has":        func(ds *metal.Dispatch) { ds.Args[0].Len += 4 },
		"want aligned":     func(ds *metal.Dispatch) { ds.Args[0].Off, ds.Args[0].Len = 2, 8 },
		"silu: gu: got by": func(ds *metal.Dispatch) { ds.Args[0].Off = -4 },
	} {
		p, _, _ := siluProgram(d, t, 2)
		change(&p.Levels[0][0])
		if _, err := d.Compile(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	if _, err := d.NewBuffer("b", 6); err == nil {
		t.Error("a buffer of 6 bytes: got no error")
	}
	if _, err := d.PlaceWeights("w", nil); err == nil {
		t.Error("weights of no bytes: got no error")
	}
}

func TestTapSeesEachLevel(t *testing.T) {
	d := Open(Exact, 2)
	defer d.Close()
	p, _, act := siluProgram(d, t, 3)
	again := p.Levels[0][0]
	again.Label = "again"
	p.Levels = append(p.Levels, []metal.Dispatch{again})
	pass, err := d.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	if err := d.Run(pass, metal.RunOptions{Tap: func(level int, ds []metal.Dispatch) {
		if act.F32()[1] == 0 {
			t.Error("the tap does not see results")
		}
		seen = append(seen, ds[0].Label)
	}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, []string{"silu", "again"}) {
		t.Errorf("got taps %v, want silu, again", seen)
	}
}

// A step makes no garbage: at 100 tokens a second the collector would otherwise run all the time.
func TestRunAllocatesNothing(t *testing.T) {
	d := Open(Exact, 2)
	defer d.Close()
	p, _, _ := siluProgram(d, t, 300)
	pass, err := d.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	run := func() {
		if err := d.Run(pass, metal.RunOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(20, run); n > 0 {
		t.Errorf("got %v allocations a run, want 0", n)
	}
}
