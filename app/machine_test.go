package app

import (
	"runtime"
	"strings"
	"testing"
)

func TestFullModelVerdict(t *testing.T) {
	mac := Machine{OS: "darwin", Arch: "arm64", OSVersion: "macOS 15.5", MemoryTotal: 32 << 30}
	cases := []struct {
		name   string
		change func(*Machine)
		ok     bool
		why    string
	}{
		{"enough", func(*Machine) {}, true, "macOS 15.5, Apple Silicon and 32.0 GiB"},
		{"24 GB for ever", func(m *Machine) { m.MemoryTotal = 24 << 30 }, false, "32 GB of memory (this Mac has 24.0 GiB)"},
		{"macOS 14", func(m *Machine) { m.OSVersion = "macOS 14.7.1" }, false, "macOS 15 (this is macOS 14.7.1)"},
		{"macOS unknown", func(m *Machine) { m.OSVersion = "" }, false, "this is unknown"},
		{"macOS 26", func(m *Machine) { m.OSVersion = "macOS 26.1" }, true, "macOS 26.1"},
		{"Intel", func(m *Machine) { m.Arch = "amd64" }, false, "Apple Silicon (this is amd64)"},
		{"Linux, enough", func(m *Machine) { m.OS, m.MemoryAvailable = "linux", 41<<29 }, true, "20.5 GiB is available"},
		{"Linux, a byte short", func(m *Machine) { m.OS, m.MemoryAvailable = "linux", 41<<29-1 }, false, "it needs 20.5 GiB available"},
		{"Linux, unknown", func(m *Machine) { m.OS = "linux" }, false, "unknown is"},
		{"elsewhere", func(m *Machine) { m.OS = "plan9" }, false, "this is plan9"},
	}
	for _, c := range cases {
		m := mac
		c.change(&m)
		if ok, why := m.FullModelVerdict(); ok != c.ok || !strings.Contains(why, c.why) {
			t.Errorf("%s: got %v, %q; want %v, %q", c.name, ok, why, c.ok, c.why)
		}
	}
}

func TestMeminfo(t *testing.T) {
	total, available := meminfo([]byte("MemTotal:       24000000 kB\nMemFree: 1 kB\nMemAvailable:   20000000 kB\nHugePages_Total: 0\n\nodd\n"))
	if total != 24000000<<10 || available != 20000000<<10 {
		t.Errorf("got %d, %d", total, available)
	}
	if total, available := meminfo([]byte("MemTotal: many kB")); total != 0 || available != 0 {
		t.Errorf("nonsense: got %d, %d", total, available)
	}
}

func TestThisMachine(t *testing.T) {
	m := ThisMachine()
	if m.OS != runtime.GOOS || m.Threads < 1 {
		t.Errorf("got %+v", m)
	}
	if runtime.GOOS == "linux" && (m.MemoryTotal == 0 || m.MemoryAvailable > m.MemoryTotal) {
		t.Errorf("got %s of %s", Bytes(m.MemoryAvailable), Bytes(m.MemoryTotal))
	}
}
