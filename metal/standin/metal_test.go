package standin

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/ebitengine/purego"
)

// floats copies the memory of a buffer of n floats.
func (m *mac) floats(b uintptr, n int) []float32 {
	var data func(id, sel, p, n uintptr) uintptr
	purego.RegisterFunc(&data, m.addr)
	var out []float32
	m.pool(func() {
		d := data(m.class("NSData"), m.selector("dataWithBytes:length:"), m.send(b, "contents"), uintptr(4*n))
		for _, w := range m.words(d, n) {
			out = append(out, math.Float32frombits(w))
		}
	})
	return out
}

// words reads the first n 32-bit words of an NSData, by way of the C library.
func (m *mac) words(data uintptr, n int) []uint32 {
	var copyOut func(to []byte, from, n uintptr) uintptr
	purego.RegisterLibFunc(&copyOut, purego.RTLD_DEFAULT, "memcpy")
	b := make([]byte, 4*n)
	copyOut(b, m.send(data, "bytes"), uintptr(len(b)))
	out := make([]uint32, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return out
}

// add encodes y += x over n floats.
func (m *mac) add(e, pipeline, x, y uintptr, n int) {
	m.send(e, "setComputePipelineState:", pipeline)
	m.setBuffer(e, x, 0, 0)
	m.setBuffer(e, y, 0, 1)
	m.setBytes(e, params(n, 0), 2)
	m.dispatch(e, (n+31)/32, 32)
}

// Two dispatches of a concurrent encoder that share memory need a barrier between them; check mode sees the lack of it byte by byte.
func TestMissingBarrierInEveryOrder(t *testing.T) {
	for _, order := range []Options{{Check: true}, {Check: true, Order: Descending}, {Check: true, Order: Shuffled, Seed: 7, ShuffleDispatches: true}} {
		m := open(t, order)
		lib := m.kernels()
		fill, add := m.pipeline(lib, "fill"), m.pipeline(lib, "add")
		x, y := m.buffer("x", 64), m.buffer("y", 64)
		run := func(barrier bool) (why string) {
			m.pool(func() {
				c := m.send(m.queue, "commandBuffer")
				e := m.encoder(c)
				m.fill(e, fill, x, 64)
				if barrier {
					m.send(e, "memoryBarrierWithScope:", 1)
				}
				m.add(e, add, x, y, 64)
				m.send(e, "endEncoding")
				why = m.run(c)
			})
			return why
		}
		if why := run(true); why != "" {
			t.Errorf("%v, with the barrier: %s", order.Order, why)
		}
		m.clean()
		if why := run(false); why == "" {
			t.Errorf("%v: got no error without the barrier", order.Order)
		}
		m.want("kernel", "race on buffer x|buffer x")
		if err := m.leave(); err != nil {
			t.Error(err)
		}
	}
}

// A serial encoder needs no barrier.
func TestSerialEncoder(t *testing.T) {
	m := open(t, Options{Check: true})
	lib := m.kernels()
	fill, add := m.pipeline(lib, "fill"), m.pipeline(lib, "add")
	x, y := m.buffer("x", 64), m.buffer("y", 64)
	m.pool(func() {
		c := m.send(m.queue, "commandBuffer")
		e := m.send(c, "computeCommandEncoder")
		m.fill(e, fill, x, 64)
		m.add(e, add, x, y, 64)
		m.add(e, add, x, y, 64)
		m.send(e, "endEncoding")
		if why := m.run(c); why != "" {
			t.Error(why)
		}
	})
	if got := m.floats(y, 64); got[0] != 2 || got[63] != 2 {
		t.Errorf("got %v, want 2 everywhere", got)
	}
	m.clean()
}

func TestCounters(t *testing.T) {
	m := open(t, Options{Count: true})
	lib := m.kernels()
	fill, add := m.pipeline(lib, "fill"), m.pipeline(lib, "add")
	x, y := m.buffer("x", 64), m.buffer("y", 64)
	run := func() {
		m.pool(func() {
			c := m.send(m.queue, "commandBuffer")
			e := m.encoder(c)
			m.fill(e, fill, x, 64)
			m.fill(e, fill, y, 64)
			m.send(e, "memoryBarrierWithScope:", 1)
			m.add(e, add, x, y, 64)
			m.send(e, "endEncoding")
			m.run(c)
		})
	}
	run()
	m.lib.ResetCounters()
	run()
	c, err := m.lib.Report()
	if err != nil {
		t.Fatal(err)
	}
	if c.CommandBuffers != 1 || c.Passes != 1 || c.Levels != 2 || c.Dispatches != 3 || c.Barriers != 1 || c.Threads != 192 {
		t.Errorf("got %+v, want 1 command buffer, 1 pass, 2 levels, 3 dispatches, 1 barrier and 192 threads", c)
	}
	traffic := map[string]Traffic{}
	for _, b := range c.Buffers {
		traffic[b.Label] = b
	}
	for label, want := range map[string]Traffic{
		"x": {Label: "x", LenBytes: 256, LoadBytes: 256, StoreBytes: 256},
		"y": {Label: "y", LenBytes: 256, LoadBytes: 256, StoreBytes: 512},
	} {
		got := traffic[label]
		lines := func(n uint64) bool { return n == 4 || n == 5 } // a buffer need not begin at a line
		if got.LenBytes != want.LenBytes || got.LoadBytes != want.LoadBytes || got.StoreBytes != want.StoreBytes || !lines(got.LoadLines) || !lines(got.StoreLines) {
			t.Errorf("got %+v, want %+v and 4 or 5 lines of each", got, want)
		}
	}
	kernels := map[string]uint64{}
	for _, k := range c.Kernels {
		kernels[k.Name] = k.Dispatches
	}
	if kernels["fill"] != 2 || kernels["add"] != 1 {
		t.Errorf("got %v, want 2 of fill and 1 of add", kernels)
	}
	m.clean()
}

func TestTimestamps(t *testing.T) {
	m := open(t, Options{})
	lib := m.kernels()
	fill := m.pipeline(lib, "fill")
	y := m.buffer("y", 64)
	d := m.send(m.class("MTLCounterSampleBufferDescriptor"), "new")
	if _, why := m.try(m.device, "newCounterSampleBufferWithDescriptor:error:", d, 0); why == "" {
		t.Error("got no error for a descriptor without a counter set")
	}
	m.pool(func() {
		m.send(d, "setCounterSet:", m.send(m.send(m.device, "counterSets"), "objectAtIndex:", 0))
	})
	m.send(d, "setSampleCount:", 3)
	samples, why := m.try(m.device, "newCounterSampleBufferWithDescriptor:error:", d, 0)
	if samples == 0 {
		t.Fatal(why)
	}
	m.send(d, "release")
	m.pool(func() {
		pass := m.send(m.class("MTLComputePassDescriptor"), "computePassDescriptor")
		m.send(pass, "setDispatchType:", 1)
		at := m.send(m.send(pass, "sampleBufferAttachments"), "objectAtIndexedSubscript:", 0)
		m.send(at, "setSampleBuffer:", samples)
		m.send(at, "setStartOfEncoderSampleIndex:", 0)
		m.send(at, "setEndOfEncoderSampleIndex:", 1)
		c := m.send(m.queue, "commandBuffer")
		e := m.send(c, "computeCommandEncoderWithDescriptor:", pass)
		m.fill(e, fill, y, 64)
		m.send(e, "endEncoding")
		if why := m.run(c); why != "" {
			t.Error(why)
		}
		w := m.words(m.send(samples, "resolveCounterRange:", 0, 3), 6)
		start, end, never := uint64(w[1])<<32|uint64(w[0]), uint64(w[3])<<32|uint64(w[2]), uint64(w[5])<<32|uint64(w[4])
		if start == 0 || end < start || never != math.MaxUint64 {
			t.Errorf("got samples %d, %d and %x, want a span and MTLCounterErrorValue", start, end, never)
		}
	})
	m.send(samples, "release")
	m.clean()
}

func TestFunctionConstants(t *testing.T) {
	m := open(t, Options{})
	lib := m.kernels()
	fill := m.pipeline(lib, "fill")
	y := m.buffer("y", 64)
	const float, integer = 3, 29
	scaled := func(kind uintptr, index int, value uint32) (p uintptr, why string) {
		m.pool(func() {
			values := m.send(m.class("MTLFunctionConstantValues"), "new")
			var set func(id, sel uintptr, v []byte, kind, index uintptr)
			purego.RegisterFunc(&set, m.addr)
			set(values, m.selector("setConstantValue:type:atIndex:"), binary.LittleEndian.AppendUint32(nil, value), kind, uintptr(index))
			var f uintptr
			if f, why = m.try(lib, "newFunctionWithName:constantValues:error:", m.string("scaled"), values); f != 0 {
				p, why = m.try(m.device, "newComputePipelineStateWithFunction:error:", f, 0)
				m.send(f, "release")
			}
			m.send(values, "release")
		})
		return p, why
	}
	p, why := scaled(float, 0, math.Float32bits(3))
	if p == 0 {
		t.Fatal(why)
	}
	m.pool(func() {
		c := m.send(m.queue, "commandBuffer")
		e := m.encoder(c)
		m.fill(e, fill, y, 64)
		m.send(e, "memoryBarrierWithScope:", 1)
		m.send(e, "setComputePipelineState:", p)
		m.dispatch(e, 2, 32)
		m.send(e, "endEncoding")
		if why := m.run(c); why != "" {
			t.Error(why)
		}
	})
	if got := m.floats(y, 64); got[0] != 3 || got[63] != 3 {
		t.Errorf("got %v, want 3 everywhere", got)
	}
	m.send(p, "release")
	m.clean()

	if p, why := scaled(integer, 0, 3); p != 0 || why == "" {
		t.Errorf("got pipeline %d and %q for an int where the kernel wants a float, want an error", p, why)
	}
	// "fill" reads no constant, and needs none (above); "scaled" without values is no pipeline on a Mac either.
	f := m.send(lib, "newFunctionWithName:", m.string("scaled"))
	if p, why := m.try(m.device, "newComputePipelineStateWithFunction:error:", f, 0); p != 0 || !regexpMatch("scale .* has no value", why) {
		t.Errorf("got pipeline %d and %q of a function without its constants, want an error", p, why)
	}
	m.send(f, "release")
	if p, why := scaled(float, 5, 3); p != 0 || !regexpMatch("scale .* has no value", why) {
		t.Errorf("got pipeline %d and %q without the constant, want an error", p, why)
	}
	m.want("constants", "no function constant with index 5")
}

// A kernel that needs many registers gets fewer threads on a Mac than the device allows.
func TestPipelineWithFewerThreads(t *testing.T) {
	m := open(t, Options{MaxThreads: 128})
	fill := m.pipeline(m.kernels(), "fill")
	if got := m.send(fill, "maxTotalThreadsPerThreadgroup"); got != 128 {
		t.Errorf("got %d threads, want 128", got)
	}
	y := m.buffer("y", 256)
	m.pool(func() {
		e := m.encoder(m.send(m.queue, "commandBuffer"))
		m.send(e, "setComputePipelineState:", fill)
		m.setBuffer(e, y, 0, 0)
		m.setBytes(e, params(256, 0x80), 1)
		m.dispatch(e, 1, 256)
		m.send(e, "endEncoding")
	})
	m.want("threads", "got a threadgroup of 256 x 1 x 1 threads, want at most 128")
}

func TestLibrariesFromFiles(t *testing.T) {
	m := open(t, Options{})
	url := func(path string) uintptr { return m.send(m.class("NSURL"), "fileURLWithPath:", m.string(path)) }
	text, err := filepath.Abs("testdata/kernels.metal")
	if err != nil {
		t.Fatal(err)
	}
	lib, why := m.try(m.device, "newLibraryWithURL:error:", url(text), 0)
	if lib == 0 {
		t.Fatal(why)
	}
	if got := m.send(m.send(lib, "functionNames"), "count"); got != 4 {
		t.Errorf("got %d functions, want 4", got)
	}
	m.send(lib, "release")
	content, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	before := filepath.Join(t.TempDir(), "before.metallib")
	if err := Precompile(before, string(content), CompileOptions{}, ""); err != nil {
		t.Fatal(err)
	}
	if lib, why = m.try(m.device, "newLibraryWithURL:error:", url(before), 0); lib == 0 {
		t.Fatal(why)
	}
	if got := m.send(m.send(lib, "functionNames"), "count"); got != 4 {
		t.Errorf("compiled before: got %d functions, want 4", got)
	}
	m.send(lib, "release")
	cut := filepath.Join(t.TempDir(), "cut.metallib")
	if library, err := os.ReadFile(before); err != nil || os.WriteFile(cut, library[:200], 0o644) != nil {
		t.Fatal(err)
	}
	compiled := filepath.Join(t.TempDir(), "default.metallib")
	if err := os.WriteFile(compiled, []byte("MTLB\x01\x80\x02\x00"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{compiled: "the stand-in runs Metal text", cut: "file too short|cannot read file data", compiled + ".none": "library not found"} {
		if lib, why := m.try(m.device, "newLibraryWithURL:error:", url(path), 0); lib != 0 || !regexpMatch(want, why) {
			t.Errorf("%s: got library %d and %q, want %q", path, lib, why, want)
		}
	}
	m.clean()
}

func TestBinaryArchives(t *testing.T) {
	m := open(t, Options{})
	lib := m.kernels()
	path := filepath.Join(t.TempDir(), "pipelines")
	url := m.send(m.class("NSURL"), "fileURLWithPath:", m.string(path))
	archive := func(from uintptr) (uintptr, string) {
		d := m.send(m.class("MTLBinaryArchiveDescriptor"), "new")
		defer m.send(d, "release")
		if from != 0 {
			m.send(d, "setUrl:", from)
		}
		return m.try(m.device, "newBinaryArchiveWithDescriptor:error:", d, 0)
	}
	descriptor := func(kernel string) uintptr {
		d := m.send(m.class("MTLComputePipelineDescriptor"), "new")
		f := m.send(lib, "newFunctionWithName:", m.string(kernel))
		m.send(d, "setComputeFunction:", f)
		m.send(f, "release")
		return d
	}
	if _, why := archive(url); !regexpMatch("no such archive", why) {
		t.Errorf("got %q, want that there is no such archive", why)
	}
	a, _ := archive(0)
	fill, add := descriptor("fill"), descriptor("add")
	if ok, why := m.try(a, "addComputePipelineFunctionsWithDescriptor:error:", fill, 0); ok&0xff != 1 {
		t.Fatal(why)
	}
	if ok, why := m.try(a, "serializeToURL:error:", url, 0); ok&0xff != 1 {
		t.Fatal(why)
	}
	m.send(a, "release")
	a, why := archive(url)
	if a == 0 {
		t.Fatal(why)
	}
	var with func(id, sel, d, options, reflection uintptr, err *uintptr) uintptr
	purego.RegisterFunc(&with, m.addr)
	const failOnMiss = 4
	for d, found := range map[uintptr]bool{fill: true, add: false} {
		m.send(d, "setBinaryArchives:", m.send(m.class("NSArray"), "arrayWithObject:", a))
		var e uintptr
		p := with(m.device, m.selector("newComputePipelineStateWithDescriptor:options:reflection:error:"), d, failOnMiss, 0, &e)
		if (p != 0) != found {
			t.Errorf("got pipeline %d, want one: %v", p, found)
		}
		m.send(p, "release")
		m.send(d, "release")
	}
	m.send(a, "release")
	m.clean()
}

func TestCapture(t *testing.T) {
	m := open(t, Options{})
	manager := m.send(m.class("MTLCaptureManager"), "sharedCaptureManager")
	path := filepath.Join(t.TempDir(), "pass.gputrace")
	d := m.send(m.class("MTLCaptureDescriptor"), "new")
	m.send(d, "setCaptureObject:", m.queue)
	m.send(d, "setDestination:", 2)
	m.send(d, "setOutputURL:", m.send(m.class("NSURL"), "fileURLWithPath:", m.string(path)))
	for i, want := range []string{"", "already running"} {
		if ok, why := m.try(manager, "startCaptureWithDescriptor:error:", d, 0); (ok&0xff == 1) != (want == "") || !regexpMatch(want, why) {
			t.Errorf("start %d: got %d and %q, want %q", i+1, ok, why, want)
		}
	}
	m.send(manager, "stopCapture")
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	m.send(d, "release")
	m.clean()
	m.send(manager, "stopCapture")
	m.want("capture", "no capture is running")
}

// BenchmarkSetBuffer is the cost of a message with all its checks.
func BenchmarkSetBuffer(b *testing.B) {
	m := open(b, Options{})
	y := m.buffer("y", 64)
	m.pool(func() {
		e := m.encoder(m.send(m.queue, "commandBuffer"))
		set := m.selector("setBuffer:offset:atIndex:")
		for b.Loop() {
			purego.SyscallN(m.addr, e, set, y, 0, 0)
		}
		m.send(e, "endEncoding")
	})
}

// The error of a command buffer names the encoder that failed and those behind it, when the program asked for it.
func TestWhichEncoderFailed(t *testing.T) {
	m := open(t, Options{})
	fill := m.pipeline(m.kernels(), "fill")
	d := m.send(m.class("MTLCommandBufferDescriptor"), "new")
	m.send(d, "setErrorOptions:", 1)
	buffers := []uintptr{m.buffer("a", 64), m.buffer("b", 64), m.buffer("c", 64)}
	m.pool(func() {
		c := m.send(m.queue, "commandBufferWithDescriptor:", d)
		for i, b := range buffers {
			e := m.encoder(c)
			m.send(e, "setLabel:", m.string(string(rune('a'+i))))
			count := 64
			if i == 1 {
				count = 4096
			}
			m.send(e, "setComputePipelineState:", fill)
			m.setBuffer(e, b, 0, 0)
			m.setBytes(e, params(count, 0x80), 1)
			m.dispatch(e, count/32, 32)
			m.send(e, "endEncoding")
		}
		if why := m.run(c); !regexpMatch(`Caused GPU Address Fault Error .*PageFault\): fill: .*out of bounds`, why) {
			t.Errorf("got %q, want the page fault with the kernel's words", why)
		}
		info := m.send(m.send(c, "error"), "userInfo")
		encoders := m.send(info, "objectForKey:", m.string("MTLCommandBufferEncoderInfoErrorKey"))
		if got := m.send(encoders, "count"); got != 3 {
			t.Fatalf("got %d encoders, want 3", got)
		}
		const completed, affected, faulted = 1, 2, 4
		for i, want := range []uintptr{completed, faulted, affected} {
			e := m.send(encoders, "objectAtIndex:", uintptr(i))
			if got := m.send(e, "errorState"); got != want || m.goString(m.send(e, "label")) != string(rune('a'+i)) {
				t.Errorf("encoder %d: got label %s and state %d, want %c and %d", i, m.goString(m.send(e, "label")), got, 'a'+i, want)
			}
		}
	})
	m.send(d, "release")
	m.want("kernel", "out of bounds")
}

// The grid of an indirect dispatch is what a kernel before it wrote.
func TestIndirectDispatch(t *testing.T) {
	m := open(t, Options{})
	fill := m.pipeline(m.kernels(), "fill")
	y := m.buffer("y", 64)
	var with func(id, sel uintptr, b []byte, n, options uintptr) uintptr
	purego.RegisterFunc(&with, m.addr)
	var grid []byte
	for _, n := range []uint32{1, 1, 1} {
		grid = binary.LittleEndian.AppendUint32(grid, n)
	}
	groups := with(m.device, m.selector("newBufferWithBytes:length:options:"), grid, uintptr(len(grid)), 0)
	var indirect func(id, sel, b, offset uintptr, threads size)
	purego.RegisterFunc(&indirect, m.addr)
	sel := m.selector("dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:")
	m.pool(func() {
		c := m.send(m.queue, "commandBuffer")
		e := m.encoder(c)
		m.send(e, "setComputePipelineState:", fill)
		m.setBuffer(e, y, 0, 0)
		m.setBytes(e, params(64, 0x80), 1)
		indirect(e, sel, groups, 4, size{32, 1, 1})
		m.want("offset", "got indirect offset 4")
		indirect(e, sel, groups, 0, size{32, 1, 1})
		m.send(e, "endEncoding")
		if why := m.run(c); why != "" {
			t.Error(why)
		}
	})
	m.send(groups, "release")
	if got := m.floats(y, 64); got[31] != 1 || got[32] != 0 {
		t.Errorf("got %v, want 1 in the first 32", got)
	}
	m.clean()
}

// A threadgroup of dispatchThreads at the edge has only the threads that the grid has left.
func TestDispatchThreads(t *testing.T) {
	m := open(t, Options{})
	lib := m.kernels()
	fill, shared := m.pipeline(lib, "fill"), m.pipeline(lib, "shared")
	y, sums := m.buffer("y", 64), m.buffer("sums", 2)
	m.pool(func() {
		c := m.send(m.queue, "commandBuffer")
		e := m.encoder(c)
		m.send(e, "setComputePipelineState:", fill)
		m.setBuffer(e, y, 0, 0)
		m.setBytes(e, params(64, 0x80), 1)
		threads := m.selector("dispatchThreads:threadsPerThreadgroup:")
		m.sizes(e, threads, size{40, 1, 1}, size{32, 1, 1})
		m.send(e, "setComputePipelineState:", shared)
		m.setBuffer(e, sums, 0, 0)
		m.send(e, "setThreadgroupMemoryLength:atIndex:", 16, 0)
		m.sizes(e, threads, size{40, 1, 1}, size{32, 1, 1})
		m.send(e, "endEncoding")
		if why := m.run(c); why != "" {
			t.Error(why)
		}
	})
	if got := m.floats(y, 64); got[39] != 1 || got[40] != 0 {
		t.Errorf("got %v, want 1 in the first 40", got)
	}
	if got := m.floats(sums, 2); got[0] != 31*32/2 || got[1] != 7*8/2 {
		t.Errorf("got sums %v, want 496 of 32 threads and 28 of 8", got)
	}
	m.clean()
}

// Dispatches of a level run in a random order on request: what depends on their order shows.
func TestShuffledDispatches(t *testing.T) {
	last := map[float32]int{}
	for seed := range uint64(12) {
		m := open(t, Options{ShuffleDispatches: true, Seed: seed})
		fill := m.pipeline(m.kernels(), "fill")
		y := m.buffer("y", 64)
		m.pool(func() {
			c := m.send(m.queue, "commandBuffer")
			e := m.encoder(c)
			m.send(e, "setComputePipelineState:", fill)
			m.setBuffer(e, y, 0, 0)
			for _, value := range []byte{0x80, 0x00} { // 1 and 0.5
				m.setBytes(e, params(64, value), 1)
				m.dispatch(e, 2, 32)
			}
			m.send(e, "endEncoding")
			m.run(c)
		})
		last[m.floats(y, 1)[0]]++
		m.clean()
		if err := m.leave(); err != nil {
			t.Error(err)
		}
	}
	if len(last) != 2 || last[1]+last[0.5] != 12 {
		t.Errorf("got %v after 12 seeds, want each of 1 and 0.5 sometimes", last)
	}
}
