package inference

import (
	"os"
	"path/filepath"

	"pond/metal"
	"pond/metal/gpu"
	"pond/metal/kernels"
)

// resources is the folder that an app has for its files, when executable is an app's; else empty. It takes what os.Executable returns.
func resources(executable string, err error) string {
	if err == nil {
		executable, err = filepath.EvalSymlinks(executable) // the command line's link points into the app
	}
	contents := filepath.Dir(filepath.Dir(executable))
	if err != nil || filepath.Base(contents) != "Contents" {
		return ""
	}
	return filepath.Join(contents, "Resources")
}

// Kernels says in a few words where a GPU's kernels will come from. It loads nothing.
func Kernels() string {
	if err := gpu.CompiledKernels(resources(os.Executable()), kernels.Main()); err != nil {
		return "compiled from their text when a model is opened: " + err.Error()
	}
	return "compiled with the app"
}

// kernelsOf says where the kernels of an open device came from; empty for a device that loads none.
func kernelsOf(d metal.Device) string {
	if d, ok := d.(interface{ Kernels() string }); ok { // gpu's, alone or with the stand-in around it
		return d.Kernels()
	}
	return ""
}
