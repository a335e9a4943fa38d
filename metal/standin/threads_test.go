package standin

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ebitengine/purego"
)

// Several threads of the system encode and wait at once, each with a queue of its own, while the collector moves through Go's heap.
func TestThreadsUnderCollection(t *testing.T) {
	m := open(t, Options{})
	lib := m.kernels()
	fill := m.pipeline(lib, "fill")
	const threads, rounds = 4, 40
	var buffers, queues [threads]uintptr
	for i := range threads {
		buffers[i] = m.buffer("y", 64)
		queues[i] = m.send(m.device, "newCommandQueue")
	}
	stop := make(chan struct{})
	var collector, workers sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	for i := range threads {
		workers.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for range rounds {
				m.pool(func() {
					c := m.send(queues[i], "commandBuffer")
					m.send(c, "setLabel:", m.string("round"))
					e := m.encoder(c)
					m.fill(e, fill, buffers[i], 64)
					m.send(e, "endEncoding")
					m.send(c, "commit")
					m.send(c, "waitUntilCompleted")
					if got := m.send(c, "status"); got != 4 {
						t.Errorf("got status %d, want 4 (completed)", got)
					}
				})
			}
		})
	}
	workers.Wait()
	close(stop)
	collector.Wait()
	for _, q := range queues {
		m.send(q, "release")
	}
	m.clean()
	c, err := m.lib.Report()
	if err != nil {
		t.Fatal(err)
	}
	if c.CommandBuffers != threads*rounds || c.Dispatches != threads*rounds || c.Levels != threads*rounds {
		t.Errorf("got %d command buffers, %d levels and %d dispatches, want %d of each", c.CommandBuffers, c.Levels, c.Dispatches, threads*rounds)
	}
}

// block lays a global block out in memory that does not move, as the compiler does: isa, flags, invoke, descriptor; size and signature behind it.
func (m *mac) block(isa, invoke uintptr, signature string) uintptr {
	words := func(w ...uint64) uintptr {
		var b []byte
		for _, v := range w {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		return m.memory(b)
	}
	const global, hasSignature = 1 << 28, 1 << 30
	descriptor := words(0, 32, uint64(m.memory(append([]byte(signature), 0))))
	return words(uint64(isa), global|hasSignature, uint64(invoke), uint64(descriptor))
}

// memory copies bytes to where the collector does not reach.
func (m *mac) memory(b []byte) uintptr {
	var with func(id, sel uintptr, b []byte, n, options uintptr) uintptr
	purego.RegisterFunc(&with, m.addr)
	o := with(m.device, m.selector("newBufferWithBytes:length:options:"), b, uintptr(len(b)), 0)
	m.atLeave(func() { m.send(o, "release") })
	return m.send(o, "contents")
}

// A completion handler runs on a thread that Go did not make, before waitUntilCompleted returns, and may send messages there.
func TestCompletionHandler(t *testing.T) {
	m := open(t, Options{})
	lib := m.kernels()
	fill := m.pipeline(lib, "fill")
	y := m.buffer("y", 64)
	isa, err := purego.Dlsym(m.h, "_NSConcreteGlobalBlock")
	if err != nil {
		t.Fatal(err)
	}
	var calls, status atomic.Uint64
	invoke := purego.NewCallback(func(block, commands uintptr) (unused uintptr) {
		calls.Add(1)
		status.Store(uint64(m.send(commands, "status")))
		m.send(commands, "retain")
		m.send(commands, "release")
		return
	})
	handler := m.block(isa, invoke, "v@?@")
	m.pool(func() {
		c := m.send(m.queue, "commandBuffer")
		e := m.encoder(c)
		m.fill(e, fill, y, 64)
		m.send(e, "endEncoding")
		m.send(c, "addCompletedHandler:", handler)
		m.send(c, "addCompletedHandler:", handler)
		m.run(c)
	})
	if calls.Load() != 2 || status.Load() != 4 {
		t.Errorf("got %d calls and status %d, want 2 and 4 (completed)", calls.Load(), status.Load())
	}
	m.clean()

	wrong := m.block(isa, invoke, "v@?@Q")
	stack := m.block(isa+8, invoke, "v@?@")
	m.pool(func() {
		c := m.send(m.queue, "commandBuffer")
		m.send(c, "addCompletedHandler:", wrong)
		m.want("block", `the block's signature is v@\?@Q, want v@\?@`)
		m.send(c, "addCompletedHandler:", stack)
		m.want("block", "a block that is not global")
		m.send(c, "addCompletedHandler:", 0)
		m.want("argument-type", "got no block")
	})
}

// Command buffers of one queue run in the order in which they were enqueued, not in which they were committed.
func TestOrderOfEnqueueing(t *testing.T) {
	m := open(t, Options{})
	event := m.send(m.device, "newSharedEvent")
	m.pool(func() {
		first, second := m.send(m.queue, "commandBuffer"), m.send(m.queue, "commandBuffer")
		m.send(first, "enqueue")
		m.send(second, "enqueue")
		m.send(first, "encodeSignalEvent:value:", event, 1)
		m.send(second, "encodeSignalEvent:value:", event, 2)
		m.send(second, "commit")
		if got := m.send(second, "status"); got != 2 {
			t.Errorf("got status %d of a command buffer behind one that is not committed, want 2 (committed)", got)
		}
		m.send(first, "commit")
		m.send(second, "waitUntilCompleted")
		if got := m.send(event, "signaledValue"); got != 2 {
			t.Errorf("got %d signaled, want 2", got)
		}
	})
	m.send(event, "release")
	m.clean()
}

// Two command buffers in flight: the second waits on the device for what the program signals when both are committed.
func TestTwoInFlight(t *testing.T) {
	m := open(t, Options{})
	event := m.send(m.device, "newSharedEvent")
	m.pool(func() {
		var cs [2]uintptr
		for i := range cs {
			cs[i] = m.send(m.queue, "commandBuffer")
			m.send(cs[i], "encodeWaitForEvent:value:", event, uintptr(i+1))
			m.send(cs[i], "commit")
		}
		for i, c := range cs {
			if got := m.send(c, "status"); got > 3 {
				t.Errorf("command buffer %d: got status %d before its event, want at most 3 (scheduled)", i, got)
			}
			m.send(event, "setSignaledValue:", uintptr(i+1))
			m.send(c, "waitUntilCompleted")
		}
	})
	m.send(event, "release")
	m.clean()
}

func TestTooManyCommandBuffers(t *testing.T) {
	m := open(t, Options{})
	q := m.send(m.device, "newCommandQueueWithMaxCommandBufferCount:", 2)
	m.pool(func() {
		m.send(q, "commandBuffer")
		m.send(q, "commandBuffer")
		if m.send(q, "commandBuffer") != 0 {
			t.Error("got a third command buffer, want nil")
		}
	})
	m.want("too-many", "2 command buffers exist and none is committed")
	m.send(q, "release")
}
