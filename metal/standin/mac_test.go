package standin

import (
	"errors"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/ebitengine/purego"
)

// mac is a program that talks to the stand-in as one talks to a Mac, without any of the binding's care: what the misuses are planted with.
type mac struct {
	t    testing.TB
	name string // of the planted mistake, for messages; a subtest would run on another thread, without the pool
	lib  *Library
	h    uintptr // of the shared library
	addr uintptr // objc_msgSend

	getClass func(string) uintptr
	selector func(string) uintptr
	push     func() uintptr
	pop      func(uintptr)
	retain   func(uintptr) uintptr
	release  func(uintptr)

	str     func(id, sel uintptr, s string) uintptr
	text    func(id, sel uintptr) string
	float   func(id, sel uintptr) float64
	bytes   func(id, sel uintptr, b []byte, n, i uintptr)
	size    func(id, sel uintptr) size
	sizes   func(id, sel uintptr, a, b size)
	withErr func(id, sel, a, b uintptr, err *uintptr) uintptr
	objects func(id, sel uintptr, o []uintptr, n uintptr)

	device, queue uintptr
	leaving       []func()
}

// size is MTLSize.
type size struct{ Width, Height, Depth uint64 }

// open begins a session on a locked thread within a pool, with a device and a queue; the test's end closes it. Every misuse that the test did not take
// with reports, and every leak, fails the test.
func open(t testing.TB, o Options) *mac {
	t.Helper()
	lib, err := Open(o)
	if errors.Is(err, ErrNoCompiler) || errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := purego.Dlopen(lib.Path(), purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		t.Fatal(err)
	}
	m := &mac{t: t, lib: lib, h: h}
	for name, f := range map[string]any{
		"objc_getClass": &m.getClass, "sel_registerName": &m.selector, "objc_autoreleasePoolPush": &m.push, "objc_autoreleasePoolPop": &m.pop,
		"objc_retain": &m.retain, "objc_release": &m.release,
	} {
		purego.RegisterLibFunc(f, h, name)
	}
	if m.addr, err = purego.Dlsym(h, "objc_msgSend"); err != nil {
		t.Fatal(err)
	}
	stret := m.addr
	if runtime.GOARCH == "amd64" {
		if stret, err = purego.Dlsym(h, "objc_msgSend_stret"); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []any{&m.str, &m.text, &m.float, &m.bytes, &m.sizes, &m.withErr, &m.objects} {
		purego.RegisterFunc(f, m.addr)
	}
	purego.RegisterFunc(&m.size, stret)

	runtime.LockOSThread()
	pool := m.push()
	var create func() uintptr
	purego.RegisterLibFunc(&create, h, "MTLCreateSystemDefaultDevice")
	m.device = create()
	m.queue = m.send(m.device, "newCommandQueue")
	m.atLeave(func() {
		m.send(m.queue, "release")
		m.send(m.device, "release")
		m.pop(pool)
		runtime.UnlockOSThread()
	})
	t.Cleanup(func() {
		if err := m.leave(); err != nil {
			t.Errorf("at the end of the session: %v", err)
		}
	})
	return m
}

// atLeave has f called before the session closes, in reverse order.
func (m *mac) atLeave(f func()) { m.leaving = append(m.leaving, f) }

// leave releases what the test made through m and closes the session.
func (m *mac) leave() error {
	for len(m.leaving) > 0 {
		f := m.leaving[len(m.leaving)-1]
		m.leaving = m.leaving[:len(m.leaving)-1]
		f()
	}
	return m.lib.Close()
}

// send sends a message whose arguments and result are integers or objects.
func (m *mac) send(id uintptr, sel string, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(m.addr, append([]uintptr{id, m.selector(sel)}, args...)...)
	return r
}

func (m *mac) class(name string) uintptr { return m.getClass(name) }

// string makes an NSString that the pool releases.
func (m *mac) string(s string) uintptr {
	return m.str(m.class("NSString"), m.selector("stringWithUTF8String:"), s)
}

func (m *mac) goString(id uintptr) string {
	if id == 0 {
		return ""
	}
	return m.text(id, m.selector("UTF8String"))
}

// try sends a message that ends in error:, and returns the error's text.
func (m *mac) try(id uintptr, sel string, a, b uintptr) (result uintptr, why string) {
	var e uintptr
	if strings.Count(sel, ":") == 2 {
		var one func(id, sel, a uintptr, err *uintptr) uintptr
		purego.RegisterFunc(&one, m.addr)
		result = one(id, m.selector(sel), a, &e)
	} else {
		result = m.withErr(id, m.selector(sel), a, b, &e)
	}
	if e != 0 {
		why = m.goString(m.send(e, "localizedDescription"))
	}
	return result, why
}

// kernels compiles testdata/kernels.metal.
func (m *mac) kernels() uintptr {
	m.t.Helper()
	text, err := os.ReadFile("testdata/kernels.metal")
	if err != nil {
		m.t.Fatal(err)
	}
	lib, why := m.try(m.device, "newLibraryWithSource:options:error:", m.string(string(text)), 0)
	if lib == 0 {
		m.t.Fatal(why)
	}
	m.atLeave(func() { m.send(lib, "release") })
	return lib
}

// pipeline builds the pipeline of a kernel without function constants.
func (m *mac) pipeline(lib uintptr, kernel string) uintptr {
	m.t.Helper()
	f := m.send(lib, "newFunctionWithName:", m.string(kernel))
	p, why := m.try(m.device, "newComputePipelineStateWithFunction:error:", f, 0)
	if p == 0 {
		m.t.Fatal(why)
	}
	m.send(f, "release")
	m.atLeave(func() { m.send(p, "release") })
	return p
}

const untracked = 1 << 8

// buffer makes n floats of shared, untracked memory.
func (m *mac) buffer(label string, n int) uintptr {
	b := m.send(m.device, "newBufferWithLength:options:", uintptr(4*n), untracked)
	m.send(b, "setLabel:", m.string(label))
	m.atLeave(func() { m.send(b, "release") })
	return b
}

// params is struct Params of the kernels.
func params(n int, value byte) []byte { return []byte{byte(n), byte(n >> 8), 0, 0, 0, 0, value, 0x3f} }

// encoder opens a concurrent encoder.
func (m *mac) encoder(commands uintptr) uintptr {
	return m.send(commands, "computeCommandEncoderWithDispatchType:", 1)
}

func (m *mac) setBuffer(e, b uintptr, off, i int) {
	m.send(e, "setBuffer:offset:atIndex:", b, uintptr(off), uintptr(i))
}

func (m *mac) setBytes(e uintptr, b []byte, i int) {
	m.bytes(e, m.selector("setBytes:length:atIndex:"), b, uintptr(len(b)), uintptr(i))
}

func (m *mac) dispatch(e uintptr, groups, threads int) {
	m.sizes(e, m.selector("dispatchThreadgroups:threadsPerThreadgroup:"), size{uint64(groups), 1, 1}, size{uint64(threads), 1, 1})
}

// fill encodes the kernel fill over n floats of y.
func (m *mac) fill(e, pipeline, y uintptr, n int) {
	m.send(e, "setComputePipelineState:", pipeline)
	m.setBuffer(e, y, 0, 0)
	m.setBytes(e, params(n, 0x80), 1)
	m.dispatch(e, (n+31)/32, 32)
}

// run commits and waits, and returns the error's text.
func (m *mac) run(commands uintptr) string {
	m.send(commands, "commit")
	m.send(commands, "waitUntilCompleted")
	if e := m.send(commands, "error"); e != 0 {
		return m.goString(m.send(e, "localizedDescription"))
	}
	return ""
}

// pool runs f within a pool of its own.
func (m *mac) pool(f func()) {
	p := m.push()
	defer m.pop(p)
	f()
}

// want takes the reports and fails the test unless there is one of the kind that the pattern matches, and none of another kind.
func (m *mac) want(kind, pattern string) {
	m.t.Helper()
	reports := m.lib.Reports()
	found := false
	for _, r := range reports {
		if r.Kind == kind && regexpMatch(pattern, r.Text) {
			found = true
		} else if r.Kind != kind {
			m.t.Errorf("%sgot the report %v besides", m.name, r)
		}
	}
	if !found {
		m.t.Errorf("%sgot reports %v, want one of kind %s like %q", m.name, reports, kind, pattern)
	}
}

func regexpMatch(pattern, s string) bool { return regexp.MustCompile(pattern).MatchString(s) }

// clean fails the test if there is any report.
func (m *mac) clean() {
	m.t.Helper()
	for _, r := range m.lib.Reports() {
		m.t.Errorf("got the report %v, want none", r)
	}
}
