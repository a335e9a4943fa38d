package standin

import (
	"runtime"
	"testing"
)

// Each case plants one mistake in an otherwise correct program; the stand-in must name it, and nothing else.
func TestPlantedMisuse(t *testing.T) {
	m := open(t, Options{})
	lib := m.kernels()
	fill, add, shared := m.pipeline(lib, "fill"), m.pipeline(lib, "add"), m.pipeline(lib, "shared")
	x, y := m.buffer("x", 64), m.buffer("y", 64)

	// encoding runs f with an open encoder of a fresh command buffer, ends it and drops the command buffer.
	encoding := func(f func(e uintptr)) {
		m.pool(func() {
			e := m.encoder(m.send(m.queue, "commandBuffer"))
			f(e)
			m.send(e, "endEncoding")
		})
	}
	threadgroups := m.selector("dispatchThreadgroups:threadsPerThreadgroup:")

	cases := []struct {
		name, kind, pattern string
		plant               func()
	}{
		{"no pipeline", "no-pipeline", "no pipeline is set", func() { encoding(func(e uintptr) { m.dispatch(e, 1, 32) }) }},
		{"unset buffer", "unset-buffer", "fill: y at index 0 is not set", func() {
			encoding(func(e uintptr) {
				m.send(e, "setComputePipelineState:", fill)
				m.setBytes(e, params(64, 0x80), 1)
				m.dispatch(e, 2, 32)
			})
		}},
		{"unset bytes", "unset-buffer", "fill: p at index 1 is not set", func() {
			encoding(func(e uintptr) {
				m.send(e, "setComputePipelineState:", fill)
				m.setBuffer(e, y, 0, 0)
				m.dispatch(e, 2, 32)
			})
		}},
		{"bytes too short for the struct", "offset", "fill: p at index 1 has 4 bytes, want the 8", func() {
			encoding(func(e uintptr) {
				m.send(e, "setComputePipelineState:", fill)
				m.setBuffer(e, y, 0, 0)
				m.setBytes(e, []byte{1, 0, 0, 0}, 1)
				m.dispatch(e, 2, 32)
			})
		}},
		{"bytes where the kernel writes", "unset-buffer", "y at index 0 is written by the kernel and has setBytes", func() {
			encoding(func(e uintptr) {
				m.send(e, "setComputePipelineState:", fill)
				m.setBytes(e, make([]byte, 256), 0)
				m.setBytes(e, params(64, 0x80), 1)
				m.dispatch(e, 2, 32)
			})
		}},
		{"offset behind the end", "offset", "got offset 256 at index 0, want less than the length 256 of buffer y", func() { encoding(func(e uintptr) { m.setBuffer(e, y, 256, 0) }) }},
		{"odd offset", "offset", "got offset 2 at index 0, want a multiple of 4", func() { encoding(func(e uintptr) { m.setBuffer(e, y, 2, 0) }) }},
		{"buffer index", "range", "got buffer index 31, want at most 30", func() { encoding(func(e uintptr) { m.setBuffer(e, y, 0, 31) }) }},
		{"too many bytes", "length", "got 4097 bytes at index 1, want 1 to 4096", func() { encoding(func(e uintptr) { m.setBytes(e, make([]byte, 4097), 1) }) }},
		{"too many threads", "threads", "got a threadgroup of 2048 x 1 x 1 threads, want at most 1024", func() {
			encoding(func(e uintptr) {
				m.send(e, "setComputePipelineState:", fill)
				m.dispatch(e, 1, 2048)
			})
		}},
		{"too many threads in all", "threads", "got a threadgroup of 64 x 64 x 1 threads", func() {
			encoding(func(e uintptr) {
				m.send(e, "setComputePipelineState:", fill)
				m.sizes(e, threadgroups, size{1, 1, 1}, size{64, 64, 1})
			})
		}},
		{"empty grid", "grid", "got a grid of 0 x 1 x 1", func() {
			encoding(func(e uintptr) {
				m.send(e, "setComputePipelineState:", fill)
				m.dispatch(e, 0, 32)
			})
		}},
		{"too much threadgroup memory", "threadgroup-memory", `shared: got 32768 \+ 1024 bytes of threadgroup memory, want at most 32768`, func() {
			encoding(func(e uintptr) {
				m.send(e, "setComputePipelineState:", shared)
				m.setBuffer(e, y, 0, 0)
				m.send(e, "setThreadgroupMemoryLength:atIndex:", 32768, 0)
				m.dispatch(e, 1, 32)
			})
		}},
		{"far too much threadgroup memory", "threadgroup-memory", "got 65536 bytes", func() {
			encoding(func(e uintptr) { m.send(e, "setThreadgroupMemoryLength:atIndex:", 65536, 0) })
		}},
		{"odd threadgroup memory", "alignment", "got 20 bytes of threadgroup memory at index 0, want a multiple of 16", func() {
			encoding(func(e uintptr) { m.send(e, "setThreadgroupMemoryLength:atIndex:", 20, 0) })
		}},
		{"no threadgroup memory", "threadgroup-memory", `shared: t at \[\[threadgroup\(0\)\]\] has no memory`, func() {
			encoding(func(e uintptr) {
				m.send(e, "setComputePipelineState:", shared)
				m.setBuffer(e, y, 0, 0)
				m.dispatch(e, 1, 32)
			})
		}},
		{"encode after the end", "after-end", "endEncoding was called", func() { encoding(func(e uintptr) { m.send(e, "endEncoding"); m.setBuffer(e, y, 0, 0) }) }},
		{"debug group left open", "debug-group", "1 debug groups are still open", func() {
			encoding(func(e uintptr) { m.send(e, "pushDebugGroup:", m.string("q4_gemv")) })
		}},
		{"debug group popped twice", "debug-group", "no debug group is open", func() { encoding(func(e uintptr) { m.send(e, "popDebugGroup") }) }},
		{"commit with an open encoder", "encoder-open", "is still open: want endEncoding first", func() {
			m.pool(func() {
				c := m.send(m.queue, "commandBuffer")
				e := m.encoder(c)
				m.send(c, "commit")
				m.send(e, "endEncoding")
			})
		}},
		{"no endEncoding", "encoder-open", "is released without endEncoding", func() { m.pool(func() { m.encoder(m.send(m.queue, "commandBuffer")) }) }},
		{"two encoders", "encoder-open", "is still open", func() {
			m.pool(func() {
				c := m.send(m.queue, "commandBuffer")
				e := m.encoder(c)
				m.encoder(c)
				m.send(e, "endEncoding")
			})
		}},
		{"encode after commit", "after-commit", "the command buffer is committed", func() {
			m.pool(func() {
				c := m.send(m.queue, "commandBuffer")
				m.run(c)
				m.encoder(c)
			})
		}},
		{"commit twice", "after-commit", "committed already", func() {
			m.pool(func() {
				c := m.send(m.queue, "commandBuffer")
				m.run(c)
				m.send(c, "commit")
			})
		}},
		{"wait without commit", "not-committed", "waits here forever", func() { m.pool(func() { m.send(m.send(m.queue, "commandBuffer"), "waitUntilCompleted") }) }},
		{"enqueued and forgotten", "not-committed", "released without commit", func() { m.pool(func() { m.send(m.send(m.queue, "commandBuffer"), "enqueue") }) }},
		{"time before the end", "too-early", "has not completed", func() {
			m.pool(func() { m.float(m.send(m.queue, "commandBuffer"), m.selector("GPUStartTime")) })
		}},
		{"samples between dispatches", "unsupported", "only at the ends of an encoder", func() {
			d := m.send(m.class("MTLCounterSampleBufferDescriptor"), "new")
			sets := m.send(m.device, "counterSets")
			m.send(d, "setCounterSet:", m.send(sets, "objectAtIndex:", 0))
			m.send(d, "setSampleCount:", 2)
			b, why := m.try(m.device, "newCounterSampleBufferWithDescriptor:error:", d, 0)
			if b == 0 {
				t.Fatal(why)
			}
			m.send(d, "release")
			encoding(func(e uintptr) { m.send(e, "sampleCountersInBuffer:atSampleIndex:withBarrier:", b, 0, 1) })
			m.send(b, "release")
		}},
		{"managed storage", "options", "storage mode managed", func() { m.send(m.device, "newBufferWithLength:options:", 64, 1<<4) }},
		{"contents of private memory", "options", "the program cannot see the memory", func() {
			b := m.send(m.device, "newBufferWithLength:options:", 64, 2<<4)
			if m.send(b, "contents") != 0 {
				t.Error("got an address, want nil")
			}
			m.send(b, "release")
		}},
		{"didModifyRange", "options", "not managed", func() { m.send(x, "didModifyRange:", 0, 4) }},
		{"length 0", "length", "got length 0", func() { m.send(m.device, "newBufferWithLength:options:", 0, 0) }},
		{"no-copy memory off the page", "alignment", "want multiples of the page of 16384 bytes", func() {
			m.send(m.device, "newBufferWithBytesNoCopy:length:options:deallocator:", m.send(x, "contents")|4, 16384, 0, 0)
		}},
		{"language of a newer system", "language", "got language version 0x40000, want at most 0x30002 on macOS 15", func() {
			o := m.send(m.class("MTLCompileOptions"), "new")
			m.send(o, "setLanguageVersion:", 0x40000)
			m.send(o, "release")
		}},
		{"barrier of no scope", "argument-type", "got barrier scope 0", func() { encoding(func(e uintptr) { m.send(e, "memoryBarrierWithScope:", 0) }) }},
		{"event that goes back", "event", "values of an event only grow", func() {
			ev := m.send(m.device, "newSharedEvent")
			m.send(ev, "setSignaledValue:", 5)
			m.send(ev, "setSignaledValue:", 4)
			m.send(ev, "release")
		}},
		{"unset second buffer", "unset-buffer", "add: y at index 1 is not set", func() {
			encoding(func(e uintptr) {
				m.send(e, "setComputePipelineState:", add)
				m.setBuffer(e, x, 0, 0)
				m.setBytes(e, params(64, 0), 2)
				m.dispatch(e, 2, 32)
			})
		}},
	}
	for _, c := range cases {
		m.name = c.name + ": "
		m.pool(c.plant)
		m.want(c.kind, c.pattern)
	}
}

// A message to what the program released and only Metal still holds is told and not run: Metal may let go of it in the middle of the method, which ended
// the process with a segmentation violation one time in four. The same of an argument.
func TestWhatOnlyMetalHoldsIsNotUsed(t *testing.T) {
	m := open(t, Options{})
	m.pool(func() {
		q := m.send(m.device, "newCommandQueue")
		c := m.send(q, "commandBuffer") // holds q
		m.send(q, "release")
		if got := m.send(q, "commandBuffer"); got != 0 {
			t.Errorf("got command buffer 0x%x of a released queue, want none", got)
		}
		m.want("use-after-release", `only Metal still holds it`)
		e := m.send(m.device, "newEvent")
		m.send(c, "encodeSignalEvent:value:", e, 1) // holds e
		m.send(e, "release")
		m.send(c, "encodeSignalEvent:value:", e, 2)
		m.want("use-after-release", `argument 1: MTLEvent`)
	})
}

func TestPlantedOwnershipMistakes(t *testing.T) {
	m := open(t, Options{})
	newBuffer := func() uintptr { return m.send(m.device, "newBufferWithLength:options:", 64, 0) }
	cases := []struct {
		name, kind, pattern string
		plant               func()
	}{
		{"release twice", "over-release", `-\[MTLBuffer release\]: MTLBuffer #\d+ has been released`, func() {
			b := newBuffer()
			m.send(b, "release")
			m.send(b, "release")
		}},
		{"use after release", "use-after-release", `-\[MTLBuffer length\]`, func() {
			b := newBuffer()
			m.send(b, "release")
			m.send(b, "length")
		}},
		{"argument after release", "use-after-release", `setLabel:\]: argument 1: NSString`, func() {
			b := newBuffer()
			s := uintptr(0)
			m.pool(func() { s = m.string("late") })
			m.send(b, "setLabel:", s)
			m.send(b, "release")
		}},
		{"release of what the pool releases", "over-release", "NSString", func() {
			m.pool(func() { m.send(m.string("x"), "release") })
		}},
		{"command buffer kept beyond its pool", "use-after-release", "MTLCommandBuffer", func() {
			var c uintptr
			m.pool(func() {
				c = m.send(m.queue, "commandBuffer")
				m.run(c)
			})
			m.send(c, "status")
		}},
		{"pool popped twice", "pool", "no such pool is open", func() {
			p := m.push()
			m.pop(p)
			m.pop(p)
		}},
		{"pools popped out of order", "pool", "an inner pool is still open", func() {
			outer := m.push()
			m.push()
			m.pop(outer)
		}},
		{"pool popped on another thread", "pool", "pushed on another thread", func() {
			p := m.push()
			done := make(chan struct{})
			go func() {
				defer close(done)
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				m.pop(p)
			}()
			<-done
			m.pop(p)
		}},
		{"no pool", "pool", "autoreleased on a thread without a pool", func() {
			done := make(chan uintptr)
			go func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				done <- m.string("lost")
			}()
			m.send(<-done, "release")
		}},
	}
	for _, c := range cases {
		m.name = c.name + ": "
		m.pool(c.plant)
		m.want(c.kind, c.pattern)
	}
}

func TestLeakIsNamedAtClose(t *testing.T) {
	m := open(t, Options{})
	b := m.send(m.device, "newBufferWithLength:options:", 64, 0)
	m.send(b, "retain")
	m.send(b, "release")
	err := m.leave()
	if err == nil || !regexpMatch(`leak: MTLBuffer #\d+: 1 references of the program are left`, err.Error()) {
		t.Errorf("got %v, want the leak of the buffer named", err)
	}
}

// A buffer that a command buffer does not retain must outlive it.
func TestBufferFreedInFlight(t *testing.T) {
	m := open(t, Options{})
	lib := m.kernels()
	fill := m.pipeline(lib, "fill")
	m.pool(func() {
		y := m.send(m.device, "newBufferWithLength:options:", 256, 0)
		c := m.send(m.queue, "commandBufferWithUnretainedReferences")
		e := m.encoder(c)
		m.fill(e, fill, y, 64)
		m.send(e, "endEncoding")
		m.send(y, "release")
		m.want("freed-in-flight", "is freed while a command buffer that does not retain it is using it")
		m.run(c)
	})
	// The pipeline and the event likewise.
	m.pool(func() {
		f := m.send(lib, "newFunctionWithName:", m.string("fill"))
		p, why := m.try(m.device, "newComputePipelineStateWithFunction:error:", f, 0)
		if p == 0 {
			t.Fatal(why)
		}
		m.send(f, "release")
		y := m.send(m.device, "newBufferWithLength:options:", 256, 0)
		c := m.send(m.queue, "commandBufferWithUnretainedReferences")
		e := m.encoder(c)
		m.fill(e, p, y, 64)
		m.send(e, "endEncoding")
		m.send(p, "release")
		m.run(c)
		m.want("freed-in-flight", `MTLComputePipelineState #\d+ is released while`)
		m.send(y, "release")
	})
	// With retained references the same program is right.
	m.pool(func() {
		y := m.send(m.device, "newBufferWithLength:options:", 256, 0)
		c := m.send(m.queue, "commandBuffer")
		e := m.encoder(c)
		m.fill(e, fill, y, 64)
		m.send(e, "endEncoding")
		m.send(y, "release")
		m.run(c)
	})
	m.clean()
}

func TestResidency(t *testing.T) {
	m := open(t, Options{})
	lib := m.kernels()
	fill := m.pipeline(lib, "fill")
	y := m.buffer("y", 64)
	d := m.send(m.class("MTLResidencySetDescriptor"), "new")
	set, why := m.try(m.device, "newResidencySetWithDescriptor:error:", d, 0)
	if set == 0 {
		t.Fatal(why)
	}
	m.send(d, "release")
	m.send(m.queue, "addResidencySet:", set)
	run := func() {
		m.pool(func() {
			c := m.send(m.queue, "commandBuffer")
			e := m.encoder(c)
			m.fill(e, fill, y, 64)
			m.send(e, "endEncoding")
			m.run(c)
		})
	}
	run()
	m.want("residency", "buffer y is used by encoder and is in no residency set$")
	m.send(set, "addAllocation:", y)
	run()
	m.want("residency", `added, but the set not committed`)
	m.send(set, "commit")
	run()
	m.clean()
	m.send(set, "removeAllocation:", y)
	m.send(set, "commit")
	run()
	m.want("residency", "buffer y")
	m.send(m.queue, "removeResidencySet:", set)
	run()
	m.clean()
	m.send(set, "release")
}

// An encoder that names what it uses, as systems without residency sets need it for buffers that are reached through others, names all of it.
func TestNamedResources(t *testing.T) {
	m := open(t, Options{MacOS: 14})
	fill := m.pipeline(m.kernels(), "fill")
	y, other := m.buffer("y", 64), m.buffer("other", 64)
	const read, write = 1, 2
	run := func(named uintptr, usage uintptr) {
		m.pool(func() {
			c := m.send(m.queue, "commandBuffer")
			e := m.encoder(c)
			m.send(e, "useResource:usage:", named, usage)
			m.fill(e, fill, y, 64)
			m.send(e, "endEncoding")
			m.run(c)
		})
	}
	run(y, write)
	m.clean()
	run(y, read)
	m.want("residency", "buffer y is named by useResource: of encoder as read, and a kernel may write it")
	run(other, read)
	m.want("residency", "buffer y is used by encoder, which names others by useResource: and not this one")
}

// Untracked buffers are ordered by nothing between passes but what the program says.
func TestMissingFence(t *testing.T) {
	m := open(t, Options{})
	lib := m.kernels()
	fill := m.pipeline(lib, "fill")
	y := m.buffer("y", 64)
	event := m.send(m.device, "newSharedEvent")
	fence := m.send(m.device, "newFence")

	two := func(between func(c, first uintptr), second func(e uintptr)) {
		m.pool(func() {
			c := m.send(m.queue, "commandBuffer")
			e := m.encoder(c)
			m.fill(e, fill, y, 64)
			if between != nil {
				between(c, e)
			}
			m.send(e, "endEncoding")
			e = m.encoder(c)
			if second != nil {
				second(e)
			}
			m.fill(e, fill, y, 64)
			m.send(e, "endEncoding")
			m.run(c)
		})
	}
	two(nil, nil)
	m.want("missing-fence", "pass encoder writes buffer y, which pass encoder writes, and no fence")
	two(func(c, e uintptr) { m.send(e, "updateFence:", fence) }, func(e uintptr) { m.send(e, "waitForFence:", fence) })
	m.clean()

	// Two command buffers in flight: an event orders them.
	flight := func(ordered bool) {
		m.pool(func() {
			var cs [2]uintptr
			for i := range cs {
				cs[i] = m.send(m.queue, "commandBuffer")
				if ordered && i == 1 {
					m.send(cs[i], "encodeWaitForEvent:value:", event, 1)
				}
				e := m.encoder(cs[i])
				m.fill(e, fill, y, 64)
				m.send(e, "endEncoding")
				if ordered && i == 0 {
					m.send(cs[i], "encodeSignalEvent:value:", event, 1)
				}
			}
			m.send(cs[0], "commit")
			m.send(cs[1], "commit")
			for _, c := range cs {
				m.send(c, "waitUntilCompleted")
			}
		})
	}
	flight(true)
	m.clean()
	m.send(event, "release")
	m.send(fence, "release")
}

func TestBarrierForNamedResources(t *testing.T) {
	m := open(t, Options{})
	lib := m.kernels()
	fill, add := m.pipeline(lib, "fill"), m.pipeline(lib, "add")
	x, y := m.buffer("x", 64), m.buffer("y", 64)
	run := func(names ...uintptr) {
		m.pool(func() {
			c := m.send(m.queue, "commandBuffer")
			e := m.encoder(c)
			m.fill(e, fill, x, 64)
			m.fill(e, fill, y, 64)
			m.objects(e, m.selector("memoryBarrierWithResources:count:"), names, uintptr(len(names)))
			m.send(e, "setComputePipelineState:", add)
			m.setBuffer(e, x, 0, 0)
			m.setBuffer(e, y, 0, 1)
			m.setBytes(e, params(64, 0), 2)
			m.dispatch(e, 2, 32)
			m.send(e, "endEncoding")
			m.run(c)
		})
	}
	run(x, y)
	m.clean()
	run(y)
	m.want("missing-barrier", "buffer x was used before a memoryBarrierWithResources: that does not name it")
}

// A kernel that goes wrong is an error of the command buffer and a report, and the device goes on.
func TestKernelFailureIsTheCommandBuffersError(t *testing.T) {
	m := open(t, Options{})
	lib := m.kernels()
	fill := m.pipeline(lib, "fill")
	y := m.buffer("y", 64)
	for round, count := range []int{4096, 64} {
		m.pool(func() {
			c := m.send(m.queue, "commandBuffer")
			e := m.encoder(c)
			m.send(e, "setComputePipelineState:", fill)
			m.setBuffer(e, y, 0, 0)
			m.setBytes(e, params(count, 0x80), 1)
			m.dispatch(e, count/32, 32)
			m.send(e, "endEncoding")
			why := m.run(c)
			if failed := round == 0; failed != (why != "") {
				t.Errorf("%d elements of 64: got the error %q", count, why)
			}
		})
		if round == 0 {
			m.want("kernel", "fill.*out of bounds")
		}
	}
	m.clean()
}

func TestInjectedFaults(t *testing.T) {
	m := open(t, Options{})
	lib := m.kernels()
	fill := m.pipeline(lib, "fill")
	y := m.buffer("y", 64)
	run := func() (why string) {
		m.pool(func() {
			c := m.send(m.queue, "commandBuffer")
			e := m.encoder(c)
			m.fill(e, fill, y, 64)
			m.send(e, "endEncoding")
			if why = m.run(c); why != "" {
				if got := m.send(c, "status"); got != 5 {
					t.Errorf("got status %d, want 5 (error)", got)
				}
				if got := m.goString(m.send(m.send(c, "error"), "domain")); got != "MTLCommandBufferErrorDomain" {
					t.Errorf("got the domain %s", got)
				}
			}
		})
		return why
	}
	m.lib.Inject(FaultCommandBuffer, 2, "timeout")
	for i, want := range []string{"", "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)", ""} {
		if got := run(); got != want {
			t.Errorf("command buffer %d: got %q, want %q", i+1, got, want)
		}
	}
	m.lib.Inject(FaultAllocation, 1, "")
	if b := m.send(m.device, "newBufferWithLength:options:", 64, 0); b != 0 {
		t.Error("got a buffer, want nil")
	}
	m.lib.Inject(FaultCompile, 1, "program_source:3:1: error: planted")
	if l, why := m.try(m.device, "newLibraryWithSource:options:error:", m.string("kernel void k() {}"), 0); l != 0 || why != "program_source:3:1: error: planted" {
		t.Errorf("got library %d and %q, want the planted error", l, why)
	}
	f := m.send(lib, "newFunctionWithName:", m.string("fill"))
	m.lib.Inject(FaultPipeline, 1, "planted")
	if p, why := m.try(m.device, "newComputePipelineStateWithFunction:error:", f, 0); p != 0 || why != "planted" {
		t.Errorf("got pipeline %d and %q, want the planted error", p, why)
	}
	m.send(f, "release")
	m.clean()
}
