package memgate

import (
	"os"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// Read looks at this Mac. What cannot be read stays unknown; it is never an error.
func Read() Reading {
	r := Reading{System: MacOS, Pressure: CurrentPressure()}
	if v, err := unix.SysctlUint64("hw.memsize"); err == nil {
		r.Total = Of(v)
	}
	if b, err := unix.SysctlRaw("vm.swapusage"); err == nil {
		r.SwapUsed = swapUsed(b)
	}
	// Zero, the default, leaves the limit to macOS. The name exists from macOS 14 on, on Apple Silicon.
	if v, err := unix.SysctlUint32("iogpu.wired_limit_mb"); err == nil && v > 0 {
		r.GPURaised = Of(uint64(v) << 20)
	}
	r.GPULimit = workingSet()
	system, err := purego.Dlopen("/usr/lib/libSystem.B.dylib", purego.RTLD_LAZY|purego.RTLD_GLOBAL)
	if err != nil {
		return r
	}
	l := library{system}
	l.host(&r)
	l.self(&r)
	r.Users = l.users()
	return r
}

// CurrentPressure is one sysctl: kern.memorystatus_vm_pressure_level.
func CurrentPressure() Pressure {
	v, err := unix.SysctlUint32("kern.memorystatus_vm_pressure_level")
	if err != nil {
		return Normal
	}
	return machPressure(v)
}

// library calls C functions of one dynamic library by name. A name that is missing makes its amounts unknown.
type library struct{ handle uintptr }

// function is the address of a symbol, 0 when there is none.
func (l library) function(name string) uintptr {
	f, err := purego.Dlsym(l.handle, name)
	if err != nil {
		return 0
	}
	return f
}

// call calls a function that returns an int or a kern_return_t; ok is false when there is no such function. What an argument points
// to stays where it is until the call returns.
//
//go:uintptrescapes
func (l library) call(name string, args ...uintptr) (result int32, ok bool) {
	f := l.function(name)
	if f == 0 {
		return 0, false
	}
	r, _, _ := purego.SyscallN(f, args...)
	return int32(r), true
}

// taskSelf is mach_task_self_, the variable behind the macro mach_task_self().
func (l library) taskSelf() (uintptr, bool) {
	p := l.function("mach_task_self_")
	if p == 0 {
		return 0, false
	}
	// The address is of a variable in libSystem, which no garbage collector moves.
	return uintptr(**(**uint32)(unsafe.Pointer(&p))), true
}

// host reads the machine's counts of pages. kern_return_t host_statistics64(host_t, host_flavor_t, host_info64_t,
// mach_msg_type_number_t *words), kern_return_t host_page_size(host_t, vm_size_t *).
func (l library) host(r *Reading) {
	self, ok := l.taskSelf()
	f := l.function("mach_host_self")
	if !ok || f == 0 {
		return
	}
	host, _, _ := purego.SyscallN(f) // a right of ours, given back below
	defer l.call("mach_port_deallocate", self, host)
	var page uint64
	if kr, ok := l.call("host_page_size", host, uintptr(unsafe.Pointer(&page))); !ok || kr != 0 {
		return
	}
	var stats [vmStatsWords * 4 / 8]uint64 // of eight-byte words for their alignment
	words := uint32(vmStatsWords)
	kr, ok := l.call("host_statistics64", host, hostVMInfo64, uintptr(unsafe.Pointer(&stats)), uintptr(unsafe.Pointer(&words)))
	if ok && kr == 0 && words >= vmStatsWords {
		vmStats(unsafe.Slice((*byte)(unsafe.Pointer(&stats)), vmStatsWords*4), page, r)
	}
}

// self reads this process's footprint. kern_return_t task_info(task_name_t, task_flavor_t, task_info_t, mach_msg_type_number_t *words).
func (l library) self(r *Reading) {
	self, ok := l.taskSelf()
	if !ok {
		return
	}
	var info [taskVMWords * 4 / 8]uint64
	words := uint32(taskVMWords)
	kr, ok := l.call("task_info", self, taskVMInfo, uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&words)))
	if ok && kr == 0 && words >= taskVMWords {
		r.Own = footprint(unsafe.Slice((*byte)(unsafe.Pointer(&info)), taskVMWords*4))
	}
}

// users adds up the footprints of this user's processes by program. int proc_listallpids(void *pids, int bytes) returns a number of
// processes, int proc_pid_rusage(int pid, int flavor, rusage_info_t *) zero, int proc_pidpath(int pid, void *, uint32_t) a length.
func (l library) users() []User {
	const most = 8192
	pids := make([]int32, most)
	n, ok := l.call("proc_listallpids", uintptr(unsafe.Pointer(&pids[0])), most*4)
	if !ok || n <= 0 {
		return nil
	}
	own := int32(os.Getpid())
	var ps []process
	var usage [rusageBytes / 8]uint64
	name := make([]byte, 4096) // PROC_PIDPATHINFO_MAXSIZE
	for _, pid := range pids[:min(int(n), most)] {
		if pid <= 1 || pid == own {
			continue
		}
		if e, ok := l.call("proc_pid_rusage", uintptr(pid), rusageInfoV0, uintptr(unsafe.Pointer(&usage))); !ok || e != 0 {
			continue // another user's, or gone
		}
		chars, ok := l.call("proc_pidpath", uintptr(pid), uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)))
		if !ok || chars <= 0 || int(chars) > len(name) {
			continue
		}
		ps = append(ps, process{macProgram(string(name[:chars])), processFootprint(unsafe.Slice((*byte)(unsafe.Pointer(&usage)), rusageBytes))})
	}
	return biggest(ps)
}

// workingSet asks the GPU for recommendedMaxWorkingSetSize, which follows iogpu.wired_limit_mb:
// https://developer.apple.com/documentation/metal/mtldevice/recommendedmaxworkingsetsize
// MTLCreateSystemDefaultDevice returns a device that is ours to release:
// https://developer.apple.com/documentation/metal/mtlcreatesystemdefaultdevice()
func workingSet() Amount {
	runtime, err := purego.Dlopen("/usr/lib/libobjc.A.dylib", purego.RTLD_LAZY|purego.RTLD_GLOBAL)
	if err != nil {
		return Amount{}
	}
	// A program without a window is told of no default device unless CoreGraphics is loaded.
	if _, err := purego.Dlopen("/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics", purego.RTLD_LAZY|purego.RTLD_GLOBAL); err != nil {
		return Amount{}
	}
	metal, err := purego.Dlopen("/System/Library/Frameworks/Metal.framework/Metal", purego.RTLD_LAZY|purego.RTLD_GLOBAL)
	if err != nil {
		return Amount{}
	}
	create, send, selector := library{metal}.function("MTLCreateSystemDefaultDevice"), library{runtime}.function("objc_msgSend"), library{runtime}.function("sel_registerName")
	if create == 0 || send == 0 || selector == 0 {
		return Amount{}
	}
	sel := func(name string) uintptr {
		text := append([]byte(name), 0)
		s, _, _ := purego.SyscallN(selector, uintptr(unsafe.Pointer(&text[0])))
		return s
	}
	device, _, _ := purego.SyscallN(create)
	if device == 0 {
		return Amount{}
	}
	bytes, _, _ := purego.SyscallN(send, device, sel("recommendedMaxWorkingSetSize"))
	purego.SyscallN(send, device, sel("release"))
	if bytes == 0 {
		return Amount{}
	}
	return Of(uint64(bytes))
}
