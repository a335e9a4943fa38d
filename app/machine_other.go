//go:build !darwin

package app

// probe reads what Linux tells in /proc and /etc; elsewhere the files are missing and everything stays unknown.
func probe(m *Machine) {
	m.OSVersion = field("/etc/os-release", "PRETTY_NAME", "=")
	m.CPU = field("/proc/cpuinfo", "model name", ":")
}
