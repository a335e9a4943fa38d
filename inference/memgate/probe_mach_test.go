package memgate

import (
	"encoding/binary"
	"testing"
	"unsafe"
)

// The structs as C declares them. Go lays out these fields as C does on both processors of the Mac, so the tables of offsets are
// checked against the declarations.
type (
	vmStatistics64 struct {
		free, active, inactive, wire                                                         uint32
		zeroFill, reactivations, pageins, pageouts, faults, cowFaults, lookups, hits, purges uint64
		purgeable, speculative                                                               uint32
		decompressions, compressions, swapins, swapouts                                      uint64
		compressor, throttled, external, internal                                            uint32
		uncompressedInCompressor                                                             uint64
	}
	taskVMInfoStruct struct {
		virtualSize                                                                                uint64
		regions, pageSize                                                                          int32
		resident, residentPeak, device, devicePeak, internal, internalPeak, external, externalPeak uint64
		reusable, reusablePeak, purgeablePmap, purgeableResident, purgeableVirtual                 uint64
		compressed, compressedPeak, compressedLifetime                                             uint64
		physFootprint                                                                              uint64
	}
	rusageInfo struct {
		uuid                                                                                         [16]uint8
		userTime, systemTime, idleWakeups, interruptWakeups, pageins, wired, resident, physFootprint uint64
		start, exit                                                                                  uint64
	}
	xswUsage struct {
		total, avail, used uint64
		pageSize           uint32
		encrypted          int32
	}
)

func TestLayouts(t *testing.T) {
	var v vmStatistics64
	var i taskVMInfoStruct
	var u rusageInfo
	var x xswUsage
	for name, c := range map[string][2]uintptr{
		"vm_statistics64 size":                  {unsafe.Sizeof(v), vmStatsWords * 4},
		"vm_statistics64.free_count":            {unsafe.Offsetof(v.free), vmStatsFree},
		"vm_statistics64.inactive_count":        {unsafe.Offsetof(v.inactive), vmStatsInactive},
		"vm_statistics64.wire_count":            {unsafe.Offsetof(v.wire), vmStatsWired},
		"vm_statistics64.purgeable_count":       {unsafe.Offsetof(v.purgeable), vmStatsPurge},
		"vm_statistics64.speculative_count":     {unsafe.Offsetof(v.speculative), vmStatsSpec},
		"vm_statistics64.compressor_page_count": {unsafe.Offsetof(v.compressor), vmStatsPacked},
		"vm_statistics64.external_page_count":   {unsafe.Offsetof(v.external), vmStatsExternal},
		"task_vm_info size, revision 1":         {unsafe.Sizeof(i), taskVMWords * 4},
		"task_vm_info.phys_footprint":           {unsafe.Offsetof(i.physFootprint), taskVMFootprint},
		"rusage_info_v0 size":                   {unsafe.Sizeof(u), rusageBytes},
		"rusage_info_v0.ri_phys_footprint":      {unsafe.Offsetof(u.physFootprint), rusageFootprint},
		"xsw_usage size":                        {unsafe.Sizeof(x), swapUsageBytes},
		"xsw_usage.xsu_used":                    {unsafe.Offsetof(x.used), swapUsageUsed},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: the declaration gives %d, the table %d", name, c[0], c[1])
		}
	}
}

func TestVMStats(t *testing.T) {
	b := make([]byte, vmStatsWords*4)
	put := func(offset int, pages uint32) { binary.LittleEndian.PutUint32(b[offset:], pages) }
	put(vmStatsFree, 100)
	put(vmStatsSpec, 30)
	put(vmStatsInactive, 7)
	put(vmStatsWired, 9)
	put(vmStatsPurge, 3)
	put(vmStatsPacked, 5)
	put(vmStatsExternal, 50)
	var r Reading
	vmStats(b, 16384, &r)
	want := Reading{Free: Of(70 << 14), Inactive: Of(7 << 14), Wired: Of(9 << 14), Purgeable: Of(3 << 14), Compressed: Of(5 << 14), FileBacked: Of(50 << 14)}
	if r.Free != want.Free || r.Inactive != want.Inactive || r.Wired != want.Wired || r.Purgeable != want.Purgeable || r.Compressed != want.Compressed || r.FileBacked != want.FileBacked {
		t.Errorf("got %+v, want %+v", r, want)
	}
	var none Reading
	vmStats(b[:100], 16384, &none) // an older kernel that filled less
	vmStats(b, 0, &none)
	if none.Free.Known || footprint(nil).Known || swapUsed(b[:8]).Known || processFootprint(nil) != 0 {
		t.Error("short answers must stay unknown")
	}
	usage := make([]byte, swapUsageBytes)
	binary.LittleEndian.PutUint64(usage[swapUsageUsed:], 648<<20)
	if got := swapUsed(usage); got != Of(648<<20) {
		t.Errorf("got %v", got)
	}
}

func TestMacPrograms(t *testing.T) {
	for path, want := range map[string]string{
		"/Applications/Docker.app/Contents/MacOS/com.docker.backend":                                                                                                                    "Docker Desktop",
		"/Applications/Google Chrome.app/Contents/Frameworks/Google Chrome Framework.framework/Helpers/Helper.app/Contents/MacOS/Helper":                                                "Google Chrome",
		"/System/Library/Frameworks/Virtualization.framework/Versions/A/XPCServices/com.apple.Virtualization.VirtualMachine.xpc/Contents/MacOS/com.apple.Virtualization.VirtualMachine": "a virtual machine",
		"/System/Library/PrivateFrameworks/SkyLight.framework/Resources/WindowServer":                                                                                                   "",
		"/System/Library/CoreServices/Finder.app/Contents/MacOS/Finder":                                                                                                                 "",
		"/System/Applications/Photos.app/Contents/MacOS/Photos":                                                                                                                         "Photos",
		"/usr/libexec/trustd":    "",
		"/opt/homebrew/bin/node": "node",
	} {
		if got := macProgram(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	for level, want := range map[uint32]Pressure{0: Normal, 1: Normal, 2: Warning, 4: Critical} {
		if got := machPressure(level); got != want {
			t.Errorf("level %d: got %s, want %s", level, got, want)
		}
	}
}
