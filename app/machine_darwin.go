package app

import "golang.org/x/sys/unix"

// probe asks the kernel by name (sysctl(3)).
func probe(m *Machine) {
	if v, err := unix.Sysctl("kern.osproductversion"); err == nil {
		m.OSVersion = "macOS " + v
	}
	if v, err := unix.Sysctl("machdep.cpu.brand_string"); err == nil {
		m.CPU = v
	}
}
