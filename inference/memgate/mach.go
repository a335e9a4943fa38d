package memgate

import (
	"encoding/binary"
	"path"
	"strings"
)

// The structs of macOS that the probe reads, as tables of byte offsets (little-endian, the same on arm64 and x86-64), so that they
// are checked on every system. Each was read off the public headers named (apple-oss-distributions/xnu); the kernel only ever adds
// to their ends, and a call says how many words it has room for.

// struct vm_statistics64 of osfmk/mach/vm_statistics.h, for host_statistics64(HOST_VM_INFO64):
// https://developer.apple.com/documentation/kernel/1502863-host_statistics64
//
//	offset type      field
//	     0 natural_t free_count                     speculative pages included
//	     4 natural_t active_count
//	     8 natural_t inactive_count
//	    12 natural_t wire_count
//	    16 uint64_t  zero_fill_count, reactivations, pageins, pageouts, faults, cow_faults, lookups, hits, purges (9 × 8)
//	    88 natural_t purgeable_count
//	    92 natural_t speculative_count              read ahead from files, not used yet
//	    96 uint64_t  decompressions, compressions, swapins, swapouts (4 × 8)
//	   128 natural_t compressor_page_count          pages that hold compressed ones
//	   132 natural_t throttled_count
//	   136 natural_t external_page_count            file-backed
//	   140 natural_t internal_page_count            anonymous
//	   144 uint64_t  total_uncompressed_pages_in_compressor
//	   152 end: 38 words, HOST_VM_INFO64_COUNT
const (
	hostVMInfo64    = 4 // flavor
	vmStatsWords    = 38
	vmStatsFree     = 0
	vmStatsInactive = 8
	vmStatsWired    = 12
	vmStatsPurge    = 88
	vmStatsSpec     = 92
	vmStatsPacked   = 128
	vmStatsExternal = 136
)

// vmStats turns the counts of pages into a reading's amounts.
func vmStats(b []byte, pageBytes uint64, r *Reading) {
	if len(b) < vmStatsWords*4 || pageBytes == 0 {
		return
	}
	pages := func(offset int) uint64 { return uint64(binary.LittleEndian.Uint32(b[offset:])) }
	amount := func(pages uint64) Amount { return Of(mul(pages, pageBytes)) }
	r.Free = amount(sub(pages(vmStatsFree), pages(vmStatsSpec))) // speculative pages are file-backed
	r.Inactive = amount(pages(vmStatsInactive))
	r.Wired = amount(pages(vmStatsWired))
	r.Purgeable = amount(pages(vmStatsPurge))
	r.Compressed = amount(pages(vmStatsPacked))
	r.FileBacked = amount(pages(vmStatsExternal))
}

// struct task_vm_info of osfmk/mach/task_info.h, for task_info(TASK_VM_INFO).
//
//	offset type           field
//	     0 mach_vm_size_t virtual_size
//	     8 integer_t      region_count, page_size (2 × 4)
//	    16 mach_vm_size_t resident_size, resident_size_peak, device, device_peak, internal, internal_peak, external, external_peak,
//	                      reusable, reusable_peak, purgeable_volatile_pmap, purgeable_volatile_resident,
//	                      purgeable_volatile_virtual, compressed, compressed_peak, compressed_lifetime (16 × 8)
//	   144 mach_vm_size_t phys_footprint            what Activity Monitor shows; GPU buffers and compressed pages included
//	   152 end of revision 1: 38 words, TASK_VM_INFO_REV1_COUNT
const (
	taskVMInfo      = 22 // flavor
	taskVMWords     = 38
	taskVMFootprint = 144
)

// footprint reads phys_footprint.
func footprint(b []byte) Amount {
	if len(b) < taskVMWords*4 {
		return Amount{}
	}
	return Of(binary.LittleEndian.Uint64(b[taskVMFootprint:]))
}

// struct rusage_info_v0 of bsd/sys/resource.h, for proc_pid_rusage(RUSAGE_INFO_V0) of <libproc.h>. It answers for the user's own
// processes alone.
//
//	offset type     field
//	     0 uint8_t  ri_uuid[16]
//	    16 uint64_t ri_user_time, ri_system_time, ri_pkg_idle_wkups, ri_interrupt_wkups, ri_pageins, ri_wired_size,
//	                ri_resident_size (7 × 8)
//	    72 uint64_t ri_phys_footprint
//	    80 uint64_t ri_proc_start_abstime, ri_proc_exit_abstime (2 × 8)
//	    96 end
const (
	rusageInfoV0    = 0 // flavor
	rusageBytes     = 96
	rusageFootprint = 72
)

// processFootprint reads ri_phys_footprint.
func processFootprint(b []byte) uint64 {
	if len(b) < rusageBytes {
		return 0
	}
	return binary.LittleEndian.Uint64(b[rusageFootprint:])
}

// struct xsw_usage of bsd/sys/sysctl.h, for sysctl vm.swapusage.
//
//	offset type      field
//	     0 u_int64_t xsu_total
//	     8 u_int64_t xsu_avail
//	    16 u_int64_t xsu_used
//	    24 u_int32_t xsu_pagesize, xsu_encrypted (2 × 4)
//	    32 end
const (
	swapUsageBytes = 32
	swapUsageUsed  = 16
)

// swapUsed reads xsu_used.
func swapUsed(b []byte) Amount {
	if len(b) < swapUsageBytes {
		return Amount{}
	}
	return Of(binary.LittleEndian.Uint64(b[swapUsageUsed:]))
}

// machPressure turns kern.memorystatus_vm_pressure_level into a Pressure. The values are those of DISPATCH_MEMORYPRESSURE_NORMAL, WARN
// and CRITICAL: https://developer.apple.com/documentation/dispatch/dispatchsource/memorypressureevent
func machPressure(level uint32) Pressure {
	switch {
	case level >= 4:
		return Critical
	case level >= 2:
		return Warning
	}
	return Normal
}

// macProgram names the program that a person quits, from the path of a process: the outermost bundle that is not the system's.
// It is empty for what nobody can quit.
func macProgram(executable string) string {
	switch {
	case strings.Contains(executable, "/Virtualization.framework/"):
		return "a virtual machine" // Docker, Parallels and others run theirs in this service of macOS
	case strings.HasPrefix(executable, "/System/"), strings.HasPrefix(executable, "/usr/libexec/"), strings.HasPrefix(executable, "/usr/sbin/"),
		strings.HasPrefix(executable, "/sbin/"), strings.HasPrefix(executable, "/Library/Apple/"):
		if app, ok := bundle(strings.TrimPrefix(executable, "/System")); ok && strings.HasPrefix(executable, "/System/Applications/") {
			return app
		}
		return ""
	}
	if app, ok := bundle(executable); ok {
		return app
	}
	return path.Base(executable)
}

// bundle is the name of the outermost .app folder on a path.
func bundle(executable string) (string, bool) {
	before, _, ok := strings.Cut(executable, ".app/")
	if !ok {
		return "", false
	}
	name := path.Base(before)
	if name == "Docker" {
		name = "Docker Desktop"
	}
	return name, true
}
