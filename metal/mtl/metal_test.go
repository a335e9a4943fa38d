package mtl_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pond/metal/gputest"
	"pond/metal/mtl"
	"pond/metal/standin"
)

// Every class and nearly every method on whatever Metal there is: arguments must arrive, results must come back, and everything owned is
// released (the stand-in's session ends with a list of what was not).

const text = `#include <metal_stdlib>
using namespace metal;
constant int factor [[function_constant(0)]];
constant bool negative [[function_constant(1)]];
kernel void plain(const device float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]], uint3 i [[thread_position_in_grid]],
                  uint3 size [[threads_per_grid]]) {
  uint at = (i.z * size.y + i.y) * size.x + i.x;
  if (int(at) < n) y[at] = x[at] + float(at);
}
kernel void constants(device int* y [[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i] = negative ? -factor : factor; }
kernel void shares(device int* y [[buffer(0)]], threadgroup int* t [[threadgroup(0)]], uint i [[thread_position_in_threadgroup]]) {
  t[i] = int(i) * 3;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = t[31 - i];
}
`

// metal is what the tests begin with; all of it is released with the test.
type metal struct {
	*testing.T
	rt    *mtl.Runtime
	lib   *standin.Library
	dev   mtl.Device
	queue mtl.CommandQueue
	code  mtl.Library
}

// start opens the device and runs f in a pool.
func start(t *testing.T, o standin.Options, f func(m *metal)) {
	t.Helper()
	rt, lib := gputest.Load(t, o)
	m := &metal{T: t, rt: rt, lib: lib}
	if err := rt.Pool(func() (err error) {
		if m.dev, err = rt.CreateSystemDefaultDevice(); err != nil {
			return err
		}
		defer m.dev.Release()
		if m.queue, err = m.dev.NewCommandQueue(); err != nil {
			return err
		}
		defer m.queue.Release()
		m.queue.SetLabel(rt.StringWithUTF8String("queue"))
		o := rt.NewCompileOptions()
		defer o.Release()
		o.SetLanguageVersion(mtl.LanguageVersion3_1)
		o.SetSafeMath()
		if m.code, err = m.dev.NewLibraryWithSource(text, o); err != nil {
			return err
		}
		defer m.code.Release()
		m.code.SetLabel(rt.StringWithUTF8String("code"))
		f(m)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func (m *metal) s(text string) mtl.String { return m.rt.StringWithUTF8String(text) }

func (m *metal) buffer(n int64) mtl.Buffer {
	m.Helper()
	b, ok := m.dev.NewBufferWithLength(n, mtl.ResourceStorageModeShared)
	if !ok {
		m.Fatal("no buffer")
	}
	return b
}

// pipeline compiles a kernel of text, owned.
func (m *metal) pipeline(name string, set func(v mtl.FunctionConstantValues)) mtl.ComputePipelineState {
	m.Helper()
	var f mtl.Function
	if set == nil {
		var ok bool
		if f, ok = m.code.NewFunctionWithName(m.s(name)); !ok {
			m.Fatalf("no function %s", name)
		}
	} else {
		v := m.rt.NewFunctionConstantValues()
		defer v.Release()
		set(v)
		var err error
		if f, err = m.code.NewFunctionWithConstantValues(m.s(name), v); err != nil {
			m.Fatal(err)
		}
	}
	defer f.Release()
	p, err := m.dev.NewComputePipelineStateWithFunction(f)
	if err != nil {
		m.Fatal(err)
	}
	return p
}

// encode runs what f encodes, and returns the finished command buffer.
func (m *metal) encode(f func(e *mtl.ComputeCommandEncoder)) mtl.CommandBuffer {
	m.Helper()
	c, err := m.queue.CommandBuffer()
	if err != nil {
		m.Fatal(err)
	}
	c.SetLabel(m.s("work"))
	e, err := c.ComputeCommandEncoderWithDispatchType(mtl.DispatchTypeConcurrent)
	if err != nil {
		m.Fatal(err)
	}
	e.SetLabel(m.s("encoder"))
	f(e)
	e.EndEncoding()
	c.Commit()
	c.WaitUntilCompleted()
	if s := c.Status(); s != mtl.CommandBufferStatusCompleted {
		m.Fatalf("status: got %d, %v", s, c.Failure())
	}
	return c
}

func words(b mtl.Buffer) []int32 {
	out := make([]int32, b.Length()/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(b.Contents()[4*i:]))
	}
	return out
}

func TestDeviceAnswers(t *testing.T) {
	start(t, standin.Options{Name: "Grüner Teich", MaxBufferBytes: 123 << 20, WorkingSetBytes: 77 << 20}, func(m *metal) {
		if m.lib != nil {
			if got := m.dev.Name(); got != "Grüner Teich" {
				t.Errorf("name: got %q", got)
			}
			if got := m.dev.MaxBufferLength(); got != 123<<20 {
				t.Errorf("largest buffer: got %d", got)
			}
			if got := m.dev.RecommendedMaxWorkingSetSize(); got != 77<<20 {
				t.Errorf("working set: got %d", got)
			}
		}
		size := m.dev.MaxThreadsPerThreadgroup()
		if size.Width < 512 || size.Height < 512 || size.Depth < 32 || size.Width > 4096 {
			t.Errorf("threads: got %v", size)
		}
		if n := m.dev.MaxThreadgroupMemoryLength(); n < 32<<10 || n > 1<<20 {
			t.Errorf("threadgroup memory: got %d", n)
		}
		if !m.dev.HasUnifiedMemory() || !m.dev.SupportsFamily(mtl.GPUFamilyApple7) || m.dev.SupportsFamily(mtl.GPUFamily(1999)) {
			t.Error("got another kind of machine than Apple Silicon")
		}
		before := m.dev.CurrentAllocatedSize()
		b := m.buffer(1 << 20)
		if got := m.dev.CurrentAllocatedSize(); got < before+1<<20 {
			t.Errorf("allocated: got %d after %d and a buffer of 1 MiB", got, before)
		}
		b.Release()
		if names := m.code.FunctionNames(); !slices.Equal(slices.Sorted(slices.Values(names)), []string{"constants", "plain", "shares"}) {
			t.Errorf("functions: got %v", names)
		}
	})
}

func TestDispatchesInBothWays(t *testing.T) {
	start(t, standin.Options{}, func(m *metal) {
		p := m.pipeline("plain", nil)
		defer p.Release()
		if p.MaxTotalThreadsPerThreadgroup() < 64 || p.ThreadExecutionWidth() != 32 || p.StaticThreadgroupMemoryLength() != 0 {
			t.Errorf("pipeline: got %d threads, width %d, %d bytes", p.MaxTotalThreadsPerThreadgroup(), p.ThreadExecutionWidth(), p.StaticThreadgroupMemoryLength())
		}
		const n = 3 * 5 * 7
		data := make([]byte, 8+4*n)
		x, ok := m.dev.NewBufferWithBytes(data, mtl.ResourceStorageModeShared)
		if !ok {
			t.Fatal("no buffer")
		}
		defer x.Release()
		y := m.buffer(4 * n)
		defer y.Release()
		x.SetLabel(m.s("x"))
		for name, send := range map[string]func(e *mtl.ComputeCommandEncoder){
			// sizes whose every number counts: a number in another place computes fewer elements
			"threads": func(e *mtl.ComputeCommandEncoder) {
				e.DispatchThreads(mtl.Size{Width: 3, Height: 5, Depth: 7}, mtl.Size{Width: 3, Height: 2, Depth: 1})
			},
			"threadgroups": func(e *mtl.ComputeCommandEncoder) {
				e.DispatchThreadgroups(mtl.Size{Width: 1, Height: 5, Depth: 7}, mtl.Size{Width: 3, Height: 1, Depth: 1})
			},
		} {
			clear(y.Contents())
			c := m.encode(func(e *mtl.ComputeCommandEncoder) {
				e.PushDebugGroup(m.s("group"))
				e.SetComputePipelineState(p)
				e.SetBuffer(x, 8, 0)
				e.SetBuffer(y, 0, 1)
				if err := e.SetBytes([]byte{n, 0, 0, 0}, 2); err != nil {
					t.Fatal(err)
				}
				if err := e.SetBytes(nil, 2); err == nil {
					t.Error("no bytes: got no error")
				}
				if err := e.SetBytes(make([]byte, mtl.MaxBytes+1), 2); err == nil {
					t.Error("too many bytes: got no error")
				}
				e.UseResource(x, mtl.ResourceUsageRead)
				e.UseResources([]mtl.Buffer{x, y}, mtl.ResourceUsageRead|mtl.ResourceUsageWrite)
				send(e)
				e.MemoryBarrierWithScope(mtl.BarrierScopeBuffers)
				send(e)
				e.MemoryBarrierWithResources([]mtl.Buffer{x, y})
				send(e)
				e.PopDebugGroup()
			})
			for i, got := range words(y) {
				if want := []float32{float32(i)}; got != int32(bits(want[0])) {
					t.Fatalf("%s: element %d: got bits %#x, want %v", name, i, got, want)
				}
			}
			if from, to := c.GPUStartTime(), c.GPUEndTime(); from <= 0 || to < from {
				t.Errorf("%s: got GPU times %v to %v", name, from, to)
			}
			if err := c.Failure(); err != nil {
				t.Errorf("%s: got %v from a command buffer that completed", name, err)
			}
		}
	})
}

func TestFunctionConstantsAndDescriptors(t *testing.T) {
	start(t, standin.Options{}, func(m *metal) {
		y := m.buffer(4 * 32)
		defer y.Release()
		for _, negative := range []bool{false, true} {
			p := m.pipeline("constants", func(v mtl.FunctionConstantValues) { v.SetInt(-70000, 0); v.SetBool(negative, 1) })
			m.encode(func(e *mtl.ComputeCommandEncoder) {
				e.SetComputePipelineState(p)
				e.SetBuffer(y, 0, 0)
				e.DispatchThreads(mtl.Size{Width: 32, Height: 1, Depth: 1}, mtl.Size{Width: 32, Height: 1, Depth: 1})
			})
			want := int32(-70000)
			if negative {
				want = 70000
			}
			if got := words(y)[31]; got != want {
				t.Errorf("negative %v: got %d, want %d", negative, got, want)
			}
			p.Release()
		}
		f, ok := m.code.NewFunctionWithName(m.s("shares"))
		if !ok {
			t.Fatal("no function")
		}
		defer f.Release()
		if g, ok := m.code.NewFunctionWithName(m.s("nothing")); ok {
			t.Errorf("got a function %v that is not there", g)
		}
		c := m.rt.NewComputePipelineDescriptor()
		defer c.Release()
		c.SetLabel(m.s("labelled"))
		c.SetComputeFunction(f)
		c.SetMaxTotalThreadsPerThreadgroup(64)
		c.SetThreadGroupSizeIsMultipleOfThreadExecutionWidth(true)
		p, err := m.dev.NewComputePipelineStateWithDescriptor(c)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Release()
		if got := p.MaxTotalThreadsPerThreadgroup(); got != 64 {
			t.Errorf("got %d threads, want the promised 64", got)
		}
		m.encode(func(e *mtl.ComputeCommandEncoder) {
			e.SetComputePipelineState(p)
			e.SetBuffer(y, 0, 0)
			e.SetThreadgroupMemoryLength(4*32, 0)
			e.DispatchThreadgroups(mtl.Size{Width: 1, Height: 1, Depth: 1}, mtl.Size{Width: 32, Height: 1, Depth: 1})
		})
		if got := words(y); got[0] != 93 || got[31] != 0 {
			t.Errorf("got %v, want 93 down to 0", got)
		}
	})
}

func TestErrorsAreCopied(t *testing.T) {
	var kept error
	start(t, standin.Options{}, func(m *metal) {
		o := m.rt.NewCompileOptions()
		defer o.Release()
		_, kept = m.dev.NewLibraryWithSource("kernel void f() { syntax }", o)
		if _, err := m.dev.NewLibraryWithURL(m.rt.FileURLWithPath("/nowhere/x.metallib")); err == nil {
			t.Error("a library that is not there: got no error")
		}
		if _, err := m.dev.NewLibraryWithData([]byte("this is no library at all")); err == nil {
			t.Error("a library of no library's bytes: got no error")
		}
	})
	var e *mtl.Error
	if !errors.As(kept, &e) || !strings.Contains(e.Text, "syntax") || e.Code == 0 || !strings.Contains(e.Domain, "MTLLibrary") {
		t.Errorf("got %+v after the pool is gone, want the compiler's text", kept)
	}
}

func TestNoCopyBuffers(t *testing.T) {
	start(t, standin.Options{}, func(m *metal) {
		const page = 16384
		memory, free := pages(t, page)
		defer free()
		b, ok := m.dev.NewBufferWithBytesNoCopy(memory, mtl.ResourceStorageModeShared)
		if !ok {
			t.Fatal("no buffer")
		}
		defer b.Release()
		memory[5] = 77
		if b.Length() != page || b.Contents()[5] != 77 {
			t.Errorf("got %d bytes, and %d in the middle, want the memory itself", b.Length(), b.Contents()[5])
		}
	})
}

func TestSharedEvents(t *testing.T) {
	start(t, standin.Options{}, func(m *metal) {
		ev, err := m.dev.NewSharedEvent()
		if err != nil {
			t.Fatal(err)
		}
		defer ev.Release()
		c, err := m.queue.CommandBuffer()
		if err != nil {
			t.Fatal(err)
		}
		c.EncodeWaitForEvent(ev, 7)
		c.EncodeSignalEvent(ev, 1<<40)
		c.Commit()
		if ev.WaitUntilSignaledValue(1<<40, 1) {
			t.Error("the signal came before what it waits for")
		}
		ev.SetSignaledValue(7)
		if !ev.WaitUntilSignaledValue(1<<40, uint64(time.Minute/time.Millisecond)) || ev.SignaledValue() != 1<<40 {
			t.Errorf("got value %d, want 1<<40", ev.SignaledValue())
		}
		c.WaitUntilCompleted()
	})
}

func TestResidencySets(t *testing.T) {
	for version, want := range map[int]bool{15: true, 14: false} {
		t.Run(strconv.Itoa(version), func(t *testing.T) { residency(t, version, want) })
	}
}

func residency(t *testing.T, version int, want bool) {
	start(t, standin.Options{MacOS: version}, func(m *metal) {
		if m.lib == nil {
			want = true // this Mac is new enough to run Pond
		}
		c := m.rt.NewResidencySetDescriptor()
		if c.Nil() == want {
			t.Fatalf("macOS %d: got descriptor %v", version, c)
		}
		if !want {
			return
		}
		defer c.Release()
		c.SetLabel(m.s("set"))
		c.SetInitialCapacity(4)
		set, ok, err := m.dev.NewResidencySetWithDescriptor(c)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		defer set.Release()
		b := m.buffer(1 << 16)
		defer b.Release()
		set.AddAllocation(b)
		set.Commit()
		set.RequestResidency()
		if got := set.AllocatedSize(); got < 1<<16 {
			t.Errorf("got %d bytes in the set, want at least 64 KiB", got)
		}
		m.queue.AddResidencySet(set)
		m.queue.RemoveResidencySet(set)
		set.RemoveAllocation(b)
		set.Commit()
		set.EndResidency()
	})
}

func TestTimestamps(t *testing.T) {
	start(t, standin.Options{}, func(m *metal) {
		if !m.dev.SupportsCounterSampling(mtl.CounterSamplingPointAtStageBoundary) {
			t.Fatal("no samples at the ends of encoders")
		}
		sets := m.dev.CounterSets()
		i := slices.IndexFunc(sets, func(s mtl.CounterSet) bool { return s.Name() == mtl.CommonCounterSetTimestamp })
		if i < 0 {
			t.Fatalf("no set of timestamps among %d", len(sets))
		}
		c := m.rt.NewCounterSampleBufferDescriptor()
		defer c.Release()
		c.SetLabel(m.s("times"))
		c.SetCounterSet(sets[i])
		c.SetStorageMode(mtl.StorageModeShared)
		c.SetSampleCount(4)
		times, err := m.dev.NewCounterSampleBufferWithDescriptor(c)
		if err != nil {
			t.Fatal(err)
		}
		defer times.Release()
		p := m.pipeline("constants", func(v mtl.FunctionConstantValues) { v.SetInt(1, 0); v.SetBool(false, 1) })
		defer p.Release()
		y := m.buffer(128)
		defer y.Release()
		pass := m.rt.ComputePassDescriptor()
		pass.SetDispatchType(mtl.DispatchTypeSerial)
		at := pass.SampleBufferAttachments().ObjectAtIndexedSubscript(0)
		at.SetSampleBuffer(times)
		at.SetStartOfEncoderSampleIndex(2)
		at.SetEndOfEncoderSampleIndex(3)
		work, err := m.queue.CommandBuffer()
		if err != nil {
			t.Fatal(err)
		}
		e, err := work.ComputeCommandEncoderWithDescriptor(pass)
		if err != nil {
			t.Fatal(err)
		}
		e.SetComputePipelineState(p)
		e.SetBuffer(y, 0, 0)
		e.DispatchThreads(mtl.Size{Width: 32, Height: 1, Depth: 1}, mtl.Size{Width: 32, Height: 1, Depth: 1})
		e.EndEncoding()
		work.Commit()
		work.WaitUntilCompleted()
		data := times.ResolveCounterRange(2, 2).Bytes()
		if len(data) != 16 {
			t.Fatalf("got %d bytes of samples, want 16", len(data))
		}
		from, to := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])
		if from == 0 || to < from || from == mtl.CounterErrorValue {
			t.Errorf("got times %d to %d", from, to)
		}
	})
}

func TestBinaryArchives(t *testing.T) {
	start(t, standin.Options{}, func(m *metal) {
		d := m.rt.NewBinaryArchiveDescriptor()
		defer d.Release()
		archive, err := m.dev.NewBinaryArchiveWithDescriptor(d)
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Release()
		archive.SetLabel(m.s("archive"))
		f, ok := m.code.NewFunctionWithName(m.s("plain"))
		if !ok {
			t.Fatal("no function")
		}
		defer f.Release()
		c := m.rt.NewComputePipelineDescriptor()
		defer c.Release()
		c.SetComputeFunction(f)
		if err := archive.AddComputePipelineFunctionsWithDescriptor(c); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "kernels.archive")
		if err := archive.SerializeToURL(m.rt.FileURLWithPath(path)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
		again := m.rt.NewBinaryArchiveDescriptor()
		defer again.Release()
		again.SetURL(m.rt.FileURLWithPath(path))
		saved, err := m.dev.NewBinaryArchiveWithDescriptor(again)
		if err != nil {
			t.Fatal(err)
		}
		defer saved.Release()
		c.SetBinaryArchive(saved)
		p, err := m.dev.NewComputePipelineStateWithDescriptor(c)
		if err != nil {
			t.Fatal(err)
		}
		p.Release()
	})
}

func TestCommandBufferDescriptors(t *testing.T) {
	start(t, standin.Options{}, func(m *metal) {
		c := m.rt.NewCommandBufferDescriptor()
		defer c.Release()
		c.SetRetainedReferences(false)
		c.SetErrorOptions(mtl.CommandBufferErrorOptionEncoderExecutionStatus)
		b, err := m.queue.CommandBufferWithDescriptor(c)
		if err != nil {
			t.Fatal(err)
		}
		if s := b.Status(); s != mtl.CommandBufferStatusNotEnqueued {
			t.Errorf("status: got %d, want not enqueued", s)
		}
		b.Commit()
		b.WaitUntilCompleted()
		if m.lib == nil {
			return
		}
		m.lib.Inject(standin.FaultCommandBuffer, 1, "timeout")
		if b, err = m.queue.CommandBufferWithDescriptor(c); err != nil {
			t.Fatal(err)
		}
		b.Commit()
		b.WaitUntilCompleted()
		var e *mtl.Error
		if !errors.As(b.Failure(), &e) || e.Code != 2 || b.Status() != mtl.CommandBufferStatusError {
			t.Errorf("got status %d and %v, want an error of code 2", b.Status(), b.Failure())
		}
	})
}

// An encoder's messages allocate nothing: two thousand of them are a token.
func TestEncodingAllocatesNothing(t *testing.T) {
	start(t, standin.Options{}, func(m *metal) {
		p := m.pipeline("plain", nil)
		defer p.Release()
		x, y := m.buffer(4096), m.buffer(4096)
		defer x.Release()
		defer y.Release()
		n := []byte{0, 4, 0, 0}
		m.encode(func(e *mtl.ComputeCommandEncoder) {
			one := mtl.Size{Width: 1, Height: 1, Depth: 1}
			if allocs := testing.AllocsPerRun(50, func() {
				e.SetComputePipelineState(p)
				e.SetBuffer(x, 0, 0)
				e.SetBuffer(y, 0, 1)
				if err := e.SetBytes(n, 2); err != nil {
					t.Fatal(err)
				}
				e.DispatchThreadgroups(one, one)
				e.MemoryBarrierWithScope(mtl.BarrierScopeBuffers)
			}); allocs > 0 {
				t.Errorf("got %v allocations for six messages, want 0", allocs)
			}
		})
	})
}

func BenchmarkEncode(b *testing.B) {
	rt, _ := gputest.Load(b, standin.Options{})
	_ = rt.Pool(func() error {
		dev, err := rt.CreateSystemDefaultDevice()
		if err != nil {
			b.Fatal(err)
		}
		defer dev.Release()
		queue, err := dev.NewCommandQueue()
		if err != nil {
			b.Fatal(err)
		}
		defer queue.Release()
		buf, _ := dev.NewBufferWithLength(4096, 0)
		defer buf.Release()
		c, err := queue.CommandBuffer()
		if err != nil {
			b.Fatal(err)
		}
		e, err := c.ComputeCommandEncoderWithDispatchType(mtl.DispatchTypeConcurrent)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			e.SetBuffer(buf, 0, 0)
		}
		e.EndEncoding()
		c.Commit()
		c.WaitUntilCompleted()
		return nil
	})
}
