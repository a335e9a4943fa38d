package standin

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The library compiles without a warning, with each compiler that is there: what one warns of is a mistake in it, or will be one with the next.
func TestNoWarnings(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	names, err := objcNames()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := writeUnit(names, dir); err != nil {
		t.Fatal(err)
	}
	for _, cxx := range []string{"clang++-19", "g++"} {
		if _, err := exec.LookPath(cxx); err != nil {
			continue
		}
		cmd := exec.Command(cxx, append(objcFlags(), "-fsyntax-only", "-Werror", "unit.cc")...)
		cmd.Dir = dir
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", cxx, err, said)
		}
	}
}

// Only the low byte of a BOOL is defined: a program that takes the register for it must not get away with it.
func TestOnlyTheLowByteOfABOOL(t *testing.T) {
	m := open(t, Options{})
	no, yes := m.send(m.device, "isLowPower"), m.send(m.device, "hasUnifiedMemory")
	if no&0xff != 0 || yes&0xff != 1 || no == 0 || yes == 1 {
		t.Errorf("got %#x and %#x, want NO and YES below rubbish", no, yes)
	}
	m.clean()
}

func TestBalancedUseIsClean(t *testing.T) {
	m := open(t, Options{})
	lib := m.kernels()
	y := m.buffer("y", 64)
	fill := m.pipeline(lib, "fill")
	m.pool(func() {
		c := m.send(m.queue, "commandBuffer")
		e := m.encoder(c)
		m.fill(e, fill, y, 64)
		m.send(e, "endEncoding")
		if why := m.run(c); why != "" {
			t.Error(why)
		}
		if got := m.send(c, "status"); got != 4 {
			t.Errorf("got status %d, want 4 (completed)", got)
		}
		if start, end := m.float(c, m.selector("GPUStartTime")), m.float(c, m.selector("GPUEndTime")); start <= 0 || end < start {
			t.Errorf("got GPU times %v to %v, want a span", start, end)
		}
	})
	m.clean()
}

// A struct of 24 bytes comes back through memory: on x86-64 by another entry point than all else.
func TestStructResult(t *testing.T) {
	m := open(t, Options{})
	if got, want := m.size(m.device, m.selector("maxThreadsPerThreadgroup")), (size{1024, 1024, 1024}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if runtime.GOARCH != "amd64" {
		return
	}
	m.send(m.device, "maxThreadsPerThreadgroup")
	m.want("result-type", "want objc_msgSend_stret")
}

func TestMessagesThatAMacRefuses(t *testing.T) {
	m := open(t, Options{})
	cases := []struct {
		name, kind, pattern string
		plant               func()
	}{
		{"unknown selector", "unknown-selector", `-\[MTLDevice newThing\]: unrecognized selector`, func() { m.send(m.device, "newThing") }},
		{"unknown class method", "unknown-selector", `\+\[NSString newThing\]`, func() { m.send(m.class("NSString"), "newThing") }},
		{"no object", "no-object", "0x1234", func() { m.send(0x1234, "length") }},
		{"number for an object", "argument-type", "argument 1: got 0x7, which is no object, want NSString", func() { m.send(m.queue, "setLabel:", 7) }},
		{"object of another class", "argument-type", `argument 1: got MTLDevice #\d+, want NSString`, func() { m.send(m.queue, "setLabel:", m.device) }},
		{"nil for an object", "argument-type", "got nil, want MTLFunction", func() { m.try(m.device, "newComputePipelineStateWithFunction:error:", 0, 0) }},
		{"number for a BOOL", "argument-type", `argument 1: got 5, want a BOOL`, func() {
			o := m.send(m.class("MTLCompileOptions"), "new")
			m.send(o, "setFastMathEnabled:", 5)
			m.send(o, "release")
		}},
		{"nil for a C string", "argument-type", "got nil, want a pointer", func() { m.send(m.class("NSString"), "stringWithUTF8String:", 0) }},
		{"alloc of what Metal makes", "unknown-selector", "alloc", func() { m.send(m.device, "alloc") }},
	}
	for _, c := range cases {
		m.name = c.name + ": "
		m.pool(c.plant)
		m.want(c.kind, c.pattern)
	}
	// A message to nil is no mistake in Objective-C.
	if got := m.send(0, "length"); got != 0 {
		t.Errorf("got %d from nil, want 0", got)
	}
	m.clean()
	// Protocols are no classes.
	if got := m.class("MTLBuffer"); got != 0 {
		t.Errorf("got a class for the protocol MTLBuffer, want nil")
	}
}

func TestOldSystemsDoNotKnowNewMethods(t *testing.T) {
	m := open(t, Options{MacOS: 14})
	if m.class("MTLResidencySetDescriptor") != 0 {
		t.Error("got MTLResidencySetDescriptor on macOS 14, want nil")
	}
	if got := m.send(m.queue, "respondsToSelector:", m.selector("addResidencySet:")); got&0xff != 0 {
		t.Error("got YES for addResidencySet: on macOS 14, want NO")
	}
	if got := m.send(m.queue, "respondsToSelector:", m.selector("commandBuffer")); got&0xff != 1 {
		t.Error("got NO for commandBuffer, want YES")
	}
	m.clean()
	m.send(m.queue, "addResidencySet:", 0)
	m.want("unknown-selector", "addResidencySet:")
}

func TestOneSessionAtATime(t *testing.T) {
	open(t, Options{})
	if _, err := Open(Options{}); err == nil {
		t.Error("got a second session, want an error")
	}
}

// The cache serves what it has, forgets what nobody asks for, and leaves no locks behind.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	path, made := filepath.Join(dir, "lib.so"), 0
	produce := func(tmp string) error {
		made++
		return os.WriteFile(filepath.Join(tmp, "out.so"), nil, 0o644)
	}
	long := time.Now().Add(-2 * keepUnused)
	old := filepath.Join(dir, "old.so")
	if err := os.WriteFile(old, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := once(path, produce); err != nil {
			t.Fatal(err)
		}
	}
	if made != 1 {
		t.Errorf("got it made %d times, want once", made)
	}
	// Used again after a long time, it stays.
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
	if err := once(path, produce); err != nil {
		t.Fatal(err)
	}
	if err := once(filepath.Join(dir, "other.so"), produce); err != nil {
		t.Fatal(err)
	}
	if err := once(filepath.Join(dir, "failed.so"), func(string) error { return errors.New("no") }); err == nil {
		t.Error("got no error, want that of the compiler")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got, want := strings.Join(names, " "), "lib.so other.so"; got != want {
		t.Errorf("got %q in the cache, want %q", got, want)
	}
}
