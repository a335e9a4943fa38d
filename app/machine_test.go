package app

import (
	"runtime"
	"testing"
)

func TestFullModelLacks(t *testing.T) {
	mac := Machine{OS: "darwin", Arch: "arm64", OSVersion: "macOS 15.5"}
	for _, c := range []struct {
		name   string
		change func(*Machine)
		want   string
	}{
		{"enough", func(*Machine) {}, ""},
		{"macOS 14", func(m *Machine) { m.OSVersion = "macOS 14.7.1" }, "macOS 15 (this is macOS 14.7.1)"},
		{"macOS unknown", func(m *Machine) { m.OSVersion = "" }, "macOS 15 (this is unknown)"},
		{"macOS 26", func(m *Machine) { m.OSVersion = "macOS 26.1" }, ""},
		{"Intel", func(m *Machine) { m.Arch = "amd64" }, "Apple Silicon (this is amd64)"},
		{"Linux", func(m *Machine) { m.OS, m.OSVersion = "linux", "" }, ""},
		{"elsewhere", func(m *Machine) { m.OS = "plan9" }, "macOS or Linux (this is plan9)"},
	} {
		m := mac
		c.change(&m)
		if got := m.lacks(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestThisMachine(t *testing.T) {
	m := ThisMachine()
	if m.OS != runtime.GOOS || m.Threads < 1 {
		t.Errorf("got %+v", m)
	}
}
