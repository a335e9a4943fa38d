// Package mtl is the binding to Metal: one Go type for each Objective-C class that Pond uses, one method for each selector, in pure Go. On a
// Mac it loads Apple's frameworks, elsewhere the stand-in library that plays them; nothing but the paths differs.
//
// It decides nothing: residency, barriers and checks are package metal/gpu's. selectors.go is the table of all that it says, and the rule of
// who releases what; runtime.go loads and sends; then one file a class.
//
// Invariants:
//   - Everything that returns an object not owned, or an error, is called inside Runtime.Pool, on one OS thread.
//   - An object is used by one goroutine at a time; a Runtime may be shared.
package mtl

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Runtime is the loaded libraries: addresses, registered selectors, classes. It is never unloaded.
type Runtime struct {
	functions [numFunctions]uintptr
	msgSend   uintptr // functions[fn_objc_msgSend], one load less on the hot path
	sels      [numSelectors]uintptr
	classes   [numClasses]uintptr

	// Results that do not come back in integer registers go through purego's reflection. They are off the hot path.
	sendFloat func(id, sel uintptr) float64
	sendSize  func(id, sel uintptr) Size
}

// Size is MTLSize, counted in threads or threadgroups. https://developer.apple.com/documentation/metal/mtlsize
type Size struct {
	Width, Height, Depth uint64
}

// load resolves every function, registers every selector and finds every class in the libraries.
func load(libraries []string) (*Runtime, error) {
	var handles []uintptr
	for _, path := range libraries {
		h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			return nil, fmt.Errorf("metal: load %s: %w", path, err)
		}
		handles = append(handles, h)
	}
	rt := &Runtime{}
	for f, name := range functions {
		if function(f) == fn_objc_msgSend_stret && runtime.GOARCH != "amd64" {
			continue
		}
		address, err := find(handles, name)
		if err != nil {
			return nil, fmt.Errorf("metal: %s: %w", name, err)
		}
		rt.functions[f] = address
	}
	rt.msgSend = rt.functions[fn_objc_msgSend]
	for _, m := range methods {
		rt.sels[m.sel] = rt.call(fn_sel_registerName, uintptr(unsafe.Pointer(cString(m.text))))
	}
	for c, name := range classes {
		rt.classes[c] = rt.call(fn_objc_getClass, uintptr(unsafe.Pointer(cString(name))))
	}
	purego.RegisterFunc(&rt.sendFloat, rt.msgSend)
	sized := rt.msgSend
	if runtime.GOARCH == "amd64" {
		sized = rt.functions[fn_objc_msgSend_stret]
	}
	purego.RegisterFunc(&rt.sendSize, sized)
	return rt, nil
}

// find looks a name up in the libraries in turn.
func find(handles []uintptr, name string) (address uintptr, err error) {
	for _, h := range handles {
		if address, err = purego.Dlsym(h, name); err == nil {
			return address, nil
		}
	}
	return 0, err
}

// call calls a C function.
//
//go:uintptrescapes
func (rt *Runtime) call(f function, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(rt.functions[f], args...)
	return r
}

// object is a reference to an Objective-C object; the zero value is nil, which takes any message and answers zero.
type object struct {
	rt *Runtime
	id uintptr
}

// Nil reports whether there is no object.
func (o object) Nil() bool { return o.id == 0 }

// Retain adds an owner: the caller, who must Release. https://developer.apple.com/documentation/objectivec/nsobjectprotocol/retain
func (o object) Retain() { o.send(sel_retain) }

// Release gives up ownership once. The reference is not used after it. https://developer.apple.com/documentation/objectivec/nsobjectprotocol/release
func (o object) Release() { o.send(sel_release) }

// responds says whether the object takes a message, for API newer than the oldest system. https://developer.apple.com/documentation/objectivec/nsobjectprotocol/responds(to:)
func (o object) responds(s selector) bool {
	return isTrue(o.send(sel_respondsToSelector, o.rt.sels[s]))
}

// send sends a message whose arguments and result fit integer registers. Pointers must be converted in the call itself, which keeps what they
// point to alive and in place.
//
//go:uintptrescapes
func (o object) send(s selector, args ...uintptr) uintptr {
	if o.id == 0 {
		return 0
	}
	all := make([]uintptr, 2, 2+len(args))
	all[0], all[1] = o.id, o.rt.sels[s]
	r, _, _ := purego.SyscallN(o.rt.msgSend, append(all, args...)...)
	return r
}

// class is a class as a receiver.
func (rt *Runtime) class(c class) object { return object{rt, rt.classes[c]} }

// object wraps a result.
func (rt *Runtime) object(id uintptr) object { return object{rt, id} }

// isTrue reads a BOOL, of which only the low byte is defined.
func isTrue(r uintptr) bool { return r&0xff != 0 }

// yes is a BOOL argument.
func yes(b bool) uintptr {
	if b {
		return 1
	}
	return 0
}

// cString is s with a zero behind it, for C.
func cString(s string) *byte {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return &b[0]
}

// pointer turns an address that C gave into a pointer. It is not Go's memory, so the collector does not care.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// goString copies a C string.
func goString(address uintptr) string {
	if address == 0 {
		return ""
	}
	p, n := (*byte)(pointer(address)), 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// Pool runs f on one OS thread inside an autorelease pool: what f was given without ownership dies when it returns.
// https://developer.apple.com/documentation/foundation/nsautoreleasepool
func (rt *Runtime) Pool(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pool := rt.call(fn_objc_autoreleasePoolPush)
	defer rt.call(fn_objc_autoreleasePoolPop, pool)
	return f()
}
