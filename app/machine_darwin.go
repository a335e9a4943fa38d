package app

import "golang.org/x/sys/unix"

// probe asks the kernel by name (sysctl(3)). kern.memorystatus_level is the kernel's own percentage of memory that is free or can
// be freed without swapping, the number that memory pressure is judged by.
func probe(m *Machine) {
	if v, err := unix.Sysctl("kern.osproductversion"); err == nil {
		m.OSVersion = "macOS " + v
	}
	if v, err := unix.Sysctl("machdep.cpu.brand_string"); err == nil {
		m.CPU = v
	}
	if v, err := unix.SysctlUint64("hw.memsize"); err == nil {
		m.MemoryTotal = v
	}
	if v, err := unix.SysctlUint32("kern.memorystatus_level"); err == nil && v <= 100 {
		m.MemoryAvailable = m.MemoryTotal / 100 * uint64(v)
	}
}
