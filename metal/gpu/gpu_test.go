package gpu_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pond/metal"
	"pond/metal/gpu"
	"pond/metal/gputest"
	"pond/metal/kernels"
	"pond/metal/standin"
)

// What the suite of package metal does not ask: faults, limits, and what is sent.

// text is Metal text with kernels that tests of faults need.
const text = `#include <metal_stdlib>
using namespace metal;
struct copy_params { int n; };
// y = x + 1; one thread an element.
kernel void copy_add(const device float* x [[buffer(0)]], device float* y [[buffer(1)]], constant copy_params& p [[buffer(2)]],
                     uint i [[thread_position_in_grid]]) {
  if (int(i) < p.n) y[i] = x[i] + 1.0f;
}
// Writes one element too many.
kernel void copy_beyond(const device float* x [[buffer(0)]], device float* y [[buffer(1)]], constant copy_params& p [[buffer(2)]],
                        uint i [[thread_position_in_grid]]) {
  if (int(i) <= p.n) y[i] = x[min(int(i), p.n - 1)] + 1.0f;
}
constant int factor [[function_constant(0)]];
constant bool negative [[function_constant(1)]];
kernel void copy_scaled(const device float* x [[buffer(0)]], device float* y [[buffer(1)]], constant copy_params& p [[buffer(2)]],
                        uint i [[thread_position_in_grid]]) {
  if (int(i) < p.n) y[i] = x[i] * float(negative ? -factor : factor);
}
// y = x by way of 4 KB of memory that the kernel declares itself.
kernel void copy_static(const device float* x [[buffer(0)]], device float* y [[buffer(1)]], constant copy_params& p [[buffer(2)]],
                        uint i [[thread_position_in_grid]], uint lane [[thread_position_in_threadgroup]]) {
  threadgroup float own[1024];
  own[lane] = int(i) < p.n ? x[i] : 0.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (int(i) < p.n) y[i] = own[lane];
}
// y = x + z; its result is where the parameters of the others are.
kernel void copy_both(const device float* x [[buffer(0)]], const device float* z [[buffer(1)]], device float* y [[buffer(2)]],
                      constant copy_params& p [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  if (int(i) < p.n) y[i] = x[i] + z[i];
}
// y = sum of a threadgroup's x, through dynamic memory.
kernel void copy_summed(const device float* x [[buffer(0)]], device float* y [[buffer(1)]], constant copy_params& p [[buffer(2)]],
                        threadgroup float* shared [[threadgroup(0)]], uint i [[thread_position_in_grid]], uint lane [[thread_position_in_threadgroup]],
                        uint threads [[threads_per_threadgroup]]) {
  shared[lane] = int(i) < p.n ? x[i] : 0.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0.0f;
  for (uint j = 0; j < threads; j++) sum += shared[j];
  if (int(i) < p.n) y[i] = sum;
}
`

type copyParams struct{ N int }

// copyKernel describes one of the kernels above, launched with threads threads a threadgroup.
func copyKernel(name string, threads, threadgroupBytes int) kernels.Kernel {
	return kernels.Kernel{Name: name, Buffers: []kernels.Buffer{{Name: "x", DType: kernels.F32, Access: kernels.Read, Shape: "[N]"}, {Name: "y", DType: kernels.F32, Access: kernels.Write, Shape: "[N]"}},
		Grid: func(params any, items int) kernels.Grid {
			return kernels.Grid{Groups: [3]int{(items + threads - 1) / threads, 1, 1}, Threads: [3]int{threads, 1, 1}, ThreadgroupBytes: threadgroupBytes}
		}}
}

func open(t *testing.T, o gputest.Options) *gputest.Device {
	t.Helper()
	o.GPU.Source = text
	d := gputest.Open(t, o)
	for _, name := range []string{"copy_add", "copy_beyond"} {
		d.SetKernel(copyKernel(name, 64, 0))
	}
	d.SetKernel(copyKernel("copy_summed", 64, 256))
	return d
}

func newBuffer(t *testing.T, d metal.Device, label string, n int) metal.Buffer {
	t.Helper()
	b, err := d.NewBuffer(label, int64(4*n))
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.F32() {
		b.F32()[i] = float32(i)
	}
	return b
}

func dispatch(kernel string, x, y metal.Buffer) metal.Dispatch {
	n := len(x.F32())
	return metal.Dispatch{Label: kernel + " of " + x.Label(), Kernel: kernel, Params: copyParams{n}, Items: n,
		Args: []metal.Slice{{Buffer: x, Len: int64(4 * n)}, {Buffer: y, Len: int64(len(y.Bytes()))}}}
}

func compile(t *testing.T, d metal.Device, levels ...[]metal.Dispatch) metal.Pass {
	t.Helper()
	p, err := d.Compile(metal.Program{Label: "p", Levels: levels})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t *testing.T, d metal.Device, p metal.Pass) {
	t.Helper()
	if err := d.Run(p, metal.RunOptions{}); err != nil {
		t.Fatal(err)
	}
}

// expect wants an error that says all of the words.
func expect(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Fatalf("got %v, want an error with %q", err, w)
		}
	}
}

func needStandin(t *testing.T, d *gputest.Device) {
	t.Helper()
	if d.Standin == nil {
		t.Skip("the fault is planted in the stand-in; this is a Mac")
	}
}

func TestAKernelThatDoesNotCompile(t *testing.T) {
	_, err := gputest.Try(t, gputest.Options{GPU: gpu.Options{Source: "#line 1 \"broken.metal\"\n#include <metal_stdlib>\nkernel void f(device float* x [[buffer(0)]]) { x[0] = syntax; }\n"}})
	expect(t, err, "kernels do not compile", "broken.metal:2", "syntax")
}

func TestAMissingAddressSpaceDoesNotCompile(t *testing.T) {
	_, err := gputest.Try(t, gputest.Options{GPU: gpu.Options{Source: "#line 1 \"broken.metal\"\n#include <metal_stdlib>\nusing namespace metal;\n" +
		"kernel void f(device float* x [[buffer(0)]]) { float* y = x; y[0] = 1; }\n"}})
	expect(t, err, "broken.metal:3")
}

func TestAKernelThatIsNotThere(t *testing.T) {
	d := open(t, gputest.Options{})
	d.SetKernel(copyKernel("copy_nothing", 64, 0))
	x, y := newBuffer(t, d, "x", 4), newBuffer(t, d, "y", 4)
	_, err := d.Compile(metal.Program{Label: "p", Levels: [][]metal.Dispatch{{dispatch("copy_nothing", x, y)}}})
	expect(t, err, "p: copy_nothing of x", "no Metal kernel copy_nothing")
}

func TestPipelinesAreCompiledOnce(t *testing.T) {
	d := open(t, gputest.Options{})
	x, y := newBuffer(t, d, "x", 100), newBuffer(t, d, "y", 100)
	for range 3 {
		run(t, d, compile(t, d, []metal.Dispatch{dispatch("copy_add", x, y)}, []metal.Dispatch{dispatch("copy_add", y, x)}))
	}
	if got := d.Pipelines(); got != 1 {
		t.Errorf("got %d pipelines, want 1", got)
	}
	if x.F32()[7] != 7+6 {
		t.Errorf("got %v, want 13", x.F32()[7])
	}
}

func TestFunctionConstants(t *testing.T) {
	d := open(t, gputest.Options{})
	x, y := newBuffer(t, d, "x", 100), newBuffer(t, d, "y", 100)
	for i, negative := range []bool{false, true} {
		k := copyKernel("copy_scaled", 64, 0)
		k.Constants = func(any) []kernels.Constant {
			return []kernels.Constant{{Index: 0, Value: int32(3)}, {Index: 1, Value: negative}}
		}
		d.SetKernel(k)
		run(t, d, compile(t, d, []metal.Dispatch{dispatch("copy_scaled", x, y)}))
		want := float32(15)
		if negative {
			want = -15
		}
		if got := y.F32()[5]; got != want || d.Pipelines() != i+1 {
			t.Errorf("negative %v: got %v from %d pipelines, want %v from %d", negative, got, d.Pipelines(), want, i+1)
		}
	}
	k := copyKernel("copy_scaled", 64, 0)
	k.Constants = func(any) []kernels.Constant { return []kernels.Constant{{Index: 0, Value: 3}} }
	d.SetKernel(k)
	_, err := d.Compile(metal.Program{Label: "p", Levels: [][]metal.Dispatch{{dispatch("copy_scaled", x, y)}}})
	expect(t, err, "constant 0: got a int, want bool or int32")
}

// A slice begins anywhere in its buffer, and the same buffer again from elsewhere is another argument.
func TestOffsets(t *testing.T) {
	d := open(t, gputest.Options{})
	x, y := newBuffer(t, d, "x", 100), newBuffer(t, d, "y", 100)
	clear(y.F32())
	from := func(in, out int) metal.Dispatch {
		ds := dispatch("copy_add", x, y)
		ds.Params, ds.Items = copyParams{10}, 10
		ds.Args = []metal.Slice{{Buffer: x, Off: int64(4 * in), Len: 40}, {Buffer: y, Off: int64(4 * out), Len: 40}}
		return ds
	}
	run(t, d, compile(t, d, []metal.Dispatch{from(0, 20)}, []metal.Dispatch{from(50, 40)}))
	for i, got := range y.F32() {
		want := float32(0)
		if i >= 20 && i < 30 {
			want = float32(i - 20 + 1)
		} else if i >= 40 && i < 50 {
			want = float32(i - 40 + 50 + 1)
		}
		if got != want {
			t.Errorf("y[%d]: got %v, want %v", i, got, want)
		}
	}
}

// Parameters take the place of a buffer; a later dispatch that wants the buffer there gets it.
func TestABufferAfterParametersInItsPlace(t *testing.T) {
	d := open(t, gputest.Options{})
	both := copyKernel("copy_both", 64, 0)
	both.Buffers = []kernels.Buffer{both.Buffers[0], {Name: "z", DType: kernels.F32, Access: kernels.Read, Shape: "[N]"}, both.Buffers[1]}
	d.SetKernel(both)
	x, y, w := newBuffer(t, d, "x", 100), newBuffer(t, d, "y", 100), newBuffer(t, d, "w", 100)
	ds := dispatch("copy_both", x, y)
	ds.Args = []metal.Slice{ds.Args[0], ds.Args[0], ds.Args[1]}
	again := ds
	again.Args = []metal.Slice{{Buffer: w, Len: 400}, ds.Args[0], ds.Args[2]}
	run(t, d, compile(t, d, []metal.Dispatch{ds}, []metal.Dispatch{dispatch("copy_add", x, w)}, []metal.Dispatch{again}))
	for i, got := range y.F32() {
		if want := float32(2*i + 1); got != want {
			t.Fatalf("y[%d]: got %v, want %v", i, got, want)
		}
	}
}

func TestDynamicThreadgroupMemory(t *testing.T) {
	d := open(t, gputest.Options{})
	x, y, z := newBuffer(t, d, "x", 128), newBuffer(t, d, "y", 128), newBuffer(t, d, "z", 128)
	// one with, one without, one with: what one kernel was given is not another's
	run(t, d, compile(t, d, []metal.Dispatch{dispatch("copy_summed", x, y)}, []metal.Dispatch{dispatch("copy_add", y, z)}, []metal.Dispatch{dispatch("copy_summed", x, y)}))
	if y.F32()[0] != 63*64/2 || z.F32()[64] != (64+127)*64/2+1 {
		t.Errorf("got sums %v and %v, want %v and %v", y.F32()[0], z.F32()[64], 63*64/2, (64+127)*64/2+1)
	}
}

// All the memory that one kernel was given at launch is no part of what the next one, which declares its own, may use.
func TestThreadgroupMemoryEndsWithItsKernel(t *testing.T) {
	d := open(t, gputest.Options{})
	d.SetKernel(copyKernel("copy_summed", 64, 32768))
	d.SetKernel(copyKernel("copy_static", 64, 0))
	x, y, z := newBuffer(t, d, "x", 64), newBuffer(t, d, "y", 64), newBuffer(t, d, "z", 64)
	run(t, d, compile(t, d, []metal.Dispatch{dispatch("copy_summed", x, y)}, []metal.Dispatch{dispatch("copy_static", x, z)}))
	if y.F32()[0] != 63*64/2 || z.F32()[63] != 63 {
		t.Errorf("got %v and %v, want %v and 63", y.F32()[0], z.F32()[63], 63*64/2)
	}
}

func TestLimitsAreToldBeforeTheyAreHit(t *testing.T) {
	d := open(t, gputest.Options{})
	x, y := newBuffer(t, d, "x", 100), newBuffer(t, d, "y", 100)
	weights, err := d.PlaceWeights("w", make([]byte, 256))
	if err != nil {
		t.Fatal(err)
	}
	type big struct{ V [1025]int }
	for _, c := range []struct {
		name, want string
		kernel     kernels.Kernel
		change     func(ds *metal.Dispatch)
	}{
		{"threads", "threadgroup of [2048 1 1]", copyKernel("copy_add", 2048, 0), nil},
		{"threads in all", "registers allow", func() kernels.Kernel {
			k := copyKernel("copy_add", 64, 0)
			k.Grid = func(any, int) kernels.Grid { return kernels.Grid{Groups: [3]int{1, 1, 1}, Threads: [3]int{64, 64, 1}} }
			return k
		}(), nil},
		{"no threads", "want 1 to", copyKernel("copy_add", 64, 0), func(ds *metal.Dispatch) { ds.Items = 0 }},
		{"threadgroup memory", "want at most", copyKernel("copy_summed", 64, 65536), nil},
		{"odd threadgroup memory", "multiple of 16", copyKernel("copy_summed", 64, 100), nil},
		{"no launch", "has no launch", func() kernels.Kernel { k := copyKernel("copy_add", 64, 0); k.Grid = nil; return k }(), nil},
		{"parameters", "got 4100 bytes, want at most 4096", copyKernel("copy_add", 64, 0), func(ds *metal.Dispatch) { ds.Params = big{} }},
		{"parameter of 64 bits", "32 bits", copyKernel("copy_add", 64, 0), func(ds *metal.Dispatch) { ds.Params = copyParams{1 << 31} }},
		{"a matrix off its place", "multiple of 16", kernels.Kernel{Name: "copy_add", Buffers: []kernels.Buffer{{Name: "w", DType: kernels.BF16, Access: kernels.Read, Shape: "[N]"}, {Name: "y", DType: kernels.F32, Access: kernels.Write, Shape: "[N]"}}},
			func(ds *metal.Dispatch) { ds.Args[0] = metal.Slice{Buffer: weights, Off: 2, Len: 8} }},
		{"too many buffers", "want at most 31", kernels.Kernel{Name: "copy_add", Buffers: slices.Repeat([]kernels.Buffer{{Name: "x", DType: kernels.F32, Access: kernels.Read, Shape: "[N]"}}, 31)},
			func(ds *metal.Dispatch) { ds.Args = slices.Repeat(ds.Args[:1], 31) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.SetKernel(c.kernel)
			ds := dispatch(c.kernel.Name, x, y)
			if c.change != nil {
				c.change(&ds)
			}
			_, err := d.Compile(metal.Program{Label: "p", Levels: [][]metal.Dispatch{{ds}}})
			expect(t, err, "p: "+ds.Label, c.want)
		})
	}
	d.SetLimits(1000, 32768)
	_, err = d.NewBuffer("large", 1004)
	expect(t, err, "buffer large: got 1004 bytes, want at most the 1000")
	_, err = d.PlaceWeights("large", make([]byte, 1001))
	expect(t, err, "weights large: got 1001 bytes, want at most the 1000")
}

func TestNoMemoryIsAnError(t *testing.T) {
	d := open(t, gputest.Options{})
	needStandin(t, d)
	d.Standin.Inject(standin.FaultAllocation, 1, "")
	_, err := d.NewBuffer("kv", 4096)
	expect(t, err, "buffer kv: no memory for 4096 bytes")
	newBuffer(t, d, "kv", 1024)
}

func TestAPipelineThatDoesNotCompile(t *testing.T) {
	d := open(t, gputest.Options{})
	needStandin(t, d)
	x, y := newBuffer(t, d, "x", 4), newBuffer(t, d, "y", 4)
	d.Standin.Inject(standin.FaultPipeline, 1, "too many registers")
	_, err := d.Compile(metal.Program{Label: "p", Levels: [][]metal.Dispatch{{dispatch("copy_add", x, y)}}})
	expect(t, err, "kernel copy_add does not compile", "too many registers")
	run(t, d, compile(t, d, []metal.Dispatch{dispatch("copy_add", x, y)}))
}

// A GPU that fails costs the run, not the device: the engine's next request works.
func TestAFailureOfTheGPUIsAnErrorOfTheRun(t *testing.T) {
	for _, what := range []string{"internal", "timeout", "page-fault", "out-of-memory"} {
		t.Run(what, func(t *testing.T) {
			d := open(t, gputest.Options{})
			needStandin(t, d)
			x, y := newBuffer(t, d, "x", 100), newBuffer(t, d, "y", 100)
			p := compile(t, d, []metal.Dispatch{dispatch("copy_add", x, y)})
			d.Standin.Inject(standin.FaultCommandBuffer, 1, what)
			_, _, before := d.Raw()
			before.Retain() // so that its address is not another's
			err := d.Run(p, metal.RunOptions{})
			if _, _, after := d.Raw(); after == before {
				t.Error("the queue is the same after the failure: a Mac ignores what it is given")
			}
			before.Release()
			var fault *gpu.FaultError
			if !errors.As(err, &fault) || fault.Pass != "p" {
				t.Fatalf("got %v, want a FaultError of p", err)
			}
			expect(t, err, "p: the GPU failed")
			run(t, d, p)
			if y.F32()[9] != 10 {
				t.Errorf("got %v after the failure, want 10", y.F32()[9])
			}
		})
	}
}

// Both command buffers of a long pass are checked, and what waits for one that failed does not wait for ever.
func TestAFailureInEitherHalfOfALongPass(t *testing.T) {
	for half := 1; half <= 2; half++ {
		d := open(t, gputest.Options{})
		needStandin(t, d)
		x, y := newBuffer(t, d, "x", 100), newBuffer(t, d, "y", 100)
		var levels [][]metal.Dispatch
		for range 70 {
			levels = append(levels, []metal.Dispatch{dispatch("copy_add", x, y)}, []metal.Dispatch{dispatch("copy_add", y, x)})
		}
		p := compile(t, d, levels...)
		d.Standin.Inject(standin.FaultCommandBuffer, half, "internal")
		expect(t, d.Run(p, metal.RunOptions{}), "the GPU failed")
		for i := range x.F32() {
			x.F32()[i] = float32(i)
		}
		run(t, d, p)
		if x.F32()[3] != 3+140 {
			t.Errorf("half %d: got %v after the failure, want 143", half, x.F32()[3])
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What was started behind a pass that failed has failed with it; the device works on.
func TestAFailureWithPassesInFlight(t *testing.T) {
	for failing := 1; failing <= 3; failing++ {
		d := open(t, gputest.Options{})
		needStandin(t, d)
		x, y := newBuffer(t, d, "x", 100), newBuffer(t, d, "y", 100)
		p := compile(t, d, []metal.Dispatch{dispatch("copy_add", x, y)})
		d.Standin.Inject(standin.FaultCommandBuffer, failing, "internal")
		var started []metal.Running
		for range 3 { // each in memory of its own: the failed one signals nothing, and the program's signal orders nothing in the stand-in's books
			from, to := newBuffer(t, d, "from", 100), newBuffer(t, d, "to", 100)
			started = append(started, d.Start(compile(t, d, []metal.Dispatch{dispatch("copy_add", from, to)}), metal.RunOptions{}))
		}
		for i, r := range started {
			err := r.Wait()
			if i+1 < failing && err != nil {
				t.Errorf("pass %d of %d failed, pass %d: got %v, want no error", failing, 3, i+1, err)
			}
			if i+1 >= failing {
				expect(t, err, "p: the GPU failed")
			}
		}
		run(t, d, p)
		if y.F32()[9] != 10 {
			t.Errorf("got %v after the failure, want 10", y.F32()[9])
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAKernelOutOfBoundsIsAnErrorThatNamesTheDispatch(t *testing.T) {
	d := open(t, gputest.Options{GPU: gpu.Options{Labels: true}, Standin: standin.Options{Check: true}})
	needStandin(t, d)
	x, y := newBuffer(t, d, "x", 128), newBuffer(t, d, "y", 128)
	p := compile(t, d, []metal.Dispatch{dispatch("copy_beyond", x, y)})
	p2 := compile(t, d, []metal.Dispatch{dispatch("copy_add", x, y)})
	ds := dispatch("copy_beyond", x, y)
	ds.Items++
	p = compile(t, d, []metal.Dispatch{ds})
	expect(t, d.Run(p, metal.RunOptions{}), "copy_beyond of x", "y")
	if len(d.Standin.Reports()) == 0 {
		t.Error("got no report, want one of the kernel")
	}
	run(t, d, p2)
}

// Two dispatches that depend on each other in one level are what a missing barrier is.
func TestAMissingBarrierIsFound(t *testing.T) {
	d := open(t, gputest.Options{GPU: gpu.Options{Labels: true}, Standin: standin.Options{Check: true}})
	needStandin(t, d)
	x, y, z := newBuffer(t, d, "x", 100), newBuffer(t, d, "y", 100), newBuffer(t, d, "z", 100)
	first, second := dispatch("copy_add", x, y), dispatch("copy_add", y, z)
	run(t, d, compile(t, d, []metal.Dispatch{first}, []metal.Dispatch{second}))
	if r := d.Standin.Reports(); len(r) > 0 {
		t.Fatalf("two levels: got %v, want nothing", r)
	}
	err := d.Run(compile(t, d, []metal.Dispatch{first, second}), metal.RunOptions{})
	if r := d.Standin.Reports(); err == nil && len(r) == 0 {
		t.Error("one level: got nothing, want a report of the race between the dispatches")
	}
}

func TestEverythingIsReleased(t *testing.T) {
	d := open(t, gputest.Options{})
	x, y := newBuffer(t, d, "x", 100), newBuffer(t, d, "y", 100)
	p := compile(t, d, []metal.Dispatch{dispatch("copy_add", x, y)})
	for _, o := range []metal.RunOptions{{}, {Tap: func(int, []metal.Dispatch) {}}} {
		if err := d.Run(p, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil { // lists leaks and misuses
		t.Error(err)
	}
}

func TestUnbalancedReferencesAreFound(t *testing.T) {
	t.Run("one retain too many", func(t *testing.T) {
		d := open(t, gputest.Options{})
		needStandin(t, d)
		_, _, queue := d.Raw()
		queue.Retain()
		expect(t, d.Close(), "leak", "MTLCommandQueue")
	})
	t.Run("one release too many", func(t *testing.T) {
		d := open(t, gputest.Options{})
		needStandin(t, d)
		_, dev, _ := d.Raw()
		b, ok := dev.NewBufferWithLength(64, 0)
		if !ok {
			t.Fatal("no buffer")
		}
		b.Release()
		b.Release()
		expect(t, d.Close(), "release")
	})
}

func TestAbandonedBuffersAreGivenBack(t *testing.T) {
	d := open(t, gputest.Options{})
	x, y := newBuffer(t, d, "x", 100), newBuffer(t, d, "y", 100)
	p := compile(t, d, []metal.Dispatch{dispatch("copy_add", x, y)})
	const large = 1 << 20
	_, dev, _ := d.Raw()
	before := dev.CurrentAllocatedSize()
	for range 50 {
		newBuffer(t, d, "scratch", large/4)
	}
	for deadline := time.Now().Add(time.Minute); d.Live() > 2+5 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		runtime.GC() // the collector finds them in its own time
	}
	if got := d.Live(); got > 2+5 {
		t.Errorf("got %d live buffers, want the two in use and perhaps a few", got)
	}
	run(t, d, p) // residency ends with the next run; until then the set holds what was given back
	if got := dev.CurrentAllocatedSize() - before; d.Standin != nil && got > 10*large {
		t.Errorf("got %d bytes still allocated after 50 buffers of %d were given back", got, large)
	}
	runtime.KeepAlive(x)
	if y.F32()[1] != 2 {
		t.Errorf("got %v, want 2", y.F32()[1])
	}
}

// One barrier between levels and none elsewhere; every dispatch once.
func TestWhatIsSent(t *testing.T) {
	d := open(t, gputest.Options{})
	needStandin(t, d)
	x, y := newBuffer(t, d, "x", 100), newBuffer(t, d, "y", 100)
	var side []metal.Dispatch
	for i := range 3 {
		side = append(side, dispatch("copy_add", x, newBuffer(t, d, fmt.Sprint("side", i), 100)))
	}
	p := compile(t, d, []metal.Dispatch{dispatch("copy_add", x, y)}, side, []metal.Dispatch{dispatch("copy_add", y, x)})
	d.Standin.ResetCounters()
	run(t, d, p)
	c, err := d.Standin.Report()
	if err != nil {
		t.Fatal(err)
	}
	if c.CommandBuffers != 1 || c.Dispatches != 5 || c.Levels != 3 || c.Barriers != 2 {
		t.Errorf("got %d command buffers, %d dispatches, %d levels, %d barriers, want 1, 5, 3, 2", c.CommandBuffers, c.Dispatches, c.Levels, c.Barriers)
	}
}

// Positions pass 16 bits in long contexts, and byte offsets 31 bits in large buffers.
func TestRowsBeyond16Bits(t *testing.T) {
	d := open(t, gputest.Options{})
	const n = 70_000
	x, y := newBuffer(t, d, "x", n), newBuffer(t, d, "y", n)
	run(t, d, compile(t, d, []metal.Dispatch{dispatch("copy_add", x, y)}))
	for i, v := range y.F32() {
		if math.Abs(float64(v)-float64(i)-1) > 0 {
			t.Fatalf("row %d: got %v, want %v", i, v, i+1)
		}
	}
}

func TestCaptureNeedsItsPermission(t *testing.T) {
	d := open(t, gputest.Options{})
	ran := false
	err := d.Capture(t.TempDir()+"/x.gputrace", func() error { ran = true; return nil })
	if err == nil && !ran {
		t.Error("capture: got no error, and nothing ran")
	}
	if err != nil {
		expect(t, err, "MTL_CAPTURE_ENABLED")
	}
}

// TestEncodingAllocatesNothing: a pass that was compiled is encoded without memory from Go's heap.
func TestEncodingAllocatesNothing(t *testing.T) {
	d := open(t, gputest.Options{})
	x, y, z := newBuffer(t, d, "x", 64), newBuffer(t, d, "y", 64), newBuffer(t, d, "z", 64)
	p := compile(t, d, []metal.Dispatch{dispatch("copy_add", x, y)}, []metal.Dispatch{dispatch("copy_summed", y, z)}, []metal.Dispatch{dispatch("copy_add", z, y)})
	var err error
	if n := testing.AllocsPerRun(100, func() { err = errors.Join(err, d.EncodeNothing(p)) }); n != 0 {
		t.Errorf("got %v allocations a pass, want 0", n)
	}
	if err != nil {
		t.Fatal(err)
	}
}
