package app

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"pond/inference/memgate"
)

// FullModelMacOS is the first major version of macOS that the full model runs on.
const FullModelMacOS = 15

// Machine is what Pond needs to know of a computer. Zero numbers and empty names are unknown.
type Machine struct {
	OS, Arch  string // as Go names them
	OSVersion string // "macOS 15.5", "Debian GNU/Linux 12 (bookworm)"
	CPU       string
	Threads   int
	Memory    memgate.Reading
}

// ThisMachine reads the computer Pond runs on. What cannot be read stays unknown; it is never an error.
func ThisMachine() Machine {
	m := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Threads: runtime.GOMAXPROCS(0), Memory: memgate.Read()}
	probe(&m)
	return m
}

// lacks says what besides memory the full model needs and the machine does not have; empty: nothing.
func (m Machine) lacks() string {
	switch m.OS {
	case "linux":
		return ""
	case "darwin":
		var lacks []string
		if m.Arch != "arm64" {
			lacks = append(lacks, "Apple Silicon (this is "+m.Arch+")")
		}
		if v := macOSMajor(m.OSVersion); v < FullModelMacOS {
			lacks = append(lacks, fmt.Sprintf("macOS %d (this is %s)", FullModelMacOS, known(m.OSVersion)))
		}
		return strings.Join(lacks, ", and ")
	}
	return "macOS or Linux (this is " + m.OS + ")"
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
