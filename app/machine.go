package app

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Needs of the full model (qwen3.6-35b-a3b, 4 bit). On a Mac the GPU's share and the rest of the system need a floor on the
// machine's total; on Linux the weights are mapped, so what counts is what can be cached now.
const (
	FullModelMacOS      = 15               // major version of macOS
	FullModelMacBytes   = 32 << 30         // total memory of the Mac
	FullModelLinuxBytes = 41 << 30 / 2     // 20.5 GiB available
	gib                 = float64(1 << 30) // for messages
)

// Machine is what Pond needs to know of a computer. Zero numbers and empty names are unknown.
type Machine struct {
	OS, Arch        string // as Go names them
	OSVersion       string // "macOS 15.5", "Debian GNU/Linux 12 (bookworm)"
	CPU             string
	Threads         int
	MemoryTotal     uint64 // bytes
	MemoryAvailable uint64 // bytes that a program can get without swapping
}

// ThisMachine reads the computer Pond runs on. What cannot be read stays unknown; it is never an error.
func ThisMachine() Machine {
	m := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Threads: runtime.GOMAXPROCS(0)}
	probe(&m)
	return m
}

// FullModelVerdict says whether the machine can run the full model, and why in one sentence.
func (m Machine) FullModelVerdict() (ok bool, why string) {
	switch m.OS {
	case "darwin":
		var lacks []string
		if m.Arch != "arm64" {
			lacks = append(lacks, "Apple Silicon (this is "+m.Arch+")")
		}
		if v := macOSMajor(m.OSVersion); v < FullModelMacOS {
			lacks = append(lacks, fmt.Sprintf("macOS %d (this is %s)", FullModelMacOS, known(m.OSVersion)))
		}
		if m.MemoryTotal < FullModelMacBytes {
			lacks = append(lacks, fmt.Sprintf("%d GB of memory (this Mac has %s)", FullModelMacBytes>>30, Bytes(m.MemoryTotal)))
		}
		if len(lacks) > 0 {
			return false, "it needs " + strings.Join(lacks, ", and ")
		}
		return true, fmt.Sprintf("%s, Apple Silicon and %s of memory are enough", m.OSVersion, Bytes(m.MemoryTotal))
	case "linux":
		if m.MemoryAvailable < FullModelLinuxBytes {
			return false, fmt.Sprintf("it needs %s available, and %s is", Bytes(FullModelLinuxBytes), Bytes(m.MemoryAvailable))
		}
		return true, fmt.Sprintf("%s is available, and it needs %s", Bytes(m.MemoryAvailable), Bytes(FullModelLinuxBytes))
	}
	return false, "it runs on macOS and Linux, and this is " + m.OS
}

// Bytes writes an amount of memory: "20.5 GiB".
func Bytes(n uint64) string {
	if n == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/gib)
}

func known(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// macOSMajor reads "macOS 15.5"; 0 when it cannot.
func macOSMajor(version string) int {
	rest, ok := strings.CutPrefix(version, "macOS ")
	if !ok {
		return 0
	}
	major, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return 0
	}
	return n
}

// meminfo reads total and available bytes from the text of /proc/meminfo.
func meminfo(text []byte) (total, available uint64) {
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line))
		if len(f) < 2 {
			continue
		}
		kib, err := strconv.ParseUint(f[1], 10, 54)
		if err != nil {
			continue
		}
		switch f[0] {
		case "MemTotal:":
			total = kib << 10
		case "MemAvailable:":
			available = kib << 10
		}
	}
	return total, available
}

// field finds the value of the first line "key <sep> value" in a file; empty when there is none.
func field(file, key, sep string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		k, v, ok := strings.Cut(line, sep)
		if ok && strings.TrimSpace(k) == key {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return ""
}
