//go:build !darwin

package memgate

import (
	"os"
	"runtime"
)

// Read looks at this machine. What cannot be read stays unknown; it is never an error.
func Read() Reading {
	r := proc{os.DirFS("/"), os.Getpid()}.reading()
	if runtime.GOOS != "linux" {
		r.System = OtherSystem
	}
	return r
}

// CurrentPressure reads one file of /proc.
func CurrentPressure() Pressure { return proc{os.DirFS("/"), os.Getpid()}.pressure() }
