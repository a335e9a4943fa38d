// Package gputest opens package gpu's device for tests: on a Mac the real one, elsewhere on the stand-in, whose complaints and leaks are
// failures of the test.
package gputest

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"pond/metal/gpu"
	"pond/metal/mtl"
	"pond/metal/standin"
)

// realGPU names the environment variable that lets tests use a Mac's GPU: `make test-gpu` sets it.
const realGPU = "POND_TEST_GPU"

// Options are how to open the device.
type Options struct {
	GPU     gpu.Options
	Standin standin.Options // not on a Mac
}

// Device is a device under test.
type Device struct {
	*gpu.Device
	Standin *standin.Library // nil on a Mac
}

// Close closes the device and ends the stand-in's session. The error lists what was not released, and every misuse that the test has not taken
// with Standin.Reports.
func (d *Device) Close() error {
	err := d.Device.Close()
	if d.Standin != nil {
		err = errors.Join(err, d.Standin.Close())
	}
	return err
}

// Open opens the device, or skips the test with the reason why this machine has none. The device is closed with the test.
func Open(t testing.TB, o Options) *Device {
	t.Helper()
	d, err := Try(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Try is Open for tests of a device that does not open.
func Try(t testing.TB, o Options) (*Device, error) {
	t.Helper()
	rt, lib := Load(t, o.Standin)
	dev, err := gpu.Open(rt, o.GPU)
	if err != nil {
		return nil, err
	}
	d := &Device{dev, lib}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d, nil
}

// OnCUDA reports whether the stand-in's kernels run on an NVIDIA GPU. Its compiler fuses products and sums differently in every pipeline, and accesses and
// orders are not the stand-in's there.
func OnCUDA() bool { return os.Getenv(standin.BackendVariable) == string(standin.OnCUDA) }

// Load loads Metal alone, for tests of the binding.
func Load(t testing.TB, o standin.Options) (*mtl.Runtime, *standin.Library) {
	t.Helper()
	if runtime.GOOS == "darwin" {
		if os.Getenv(realGPU) == "" {
			t.Skip(realGPU + " is not set: make test-gpu runs this on the GPU")
		}
		rt, err := mtl.Load("")
		if err != nil {
			t.Fatal(err)
		}
		return rt, nil
	}
	if OnCUDA() && (o.Check || o.Count) {
		t.Skip("accesses are checked and counted on the processor; on a GPU compute-sanitizer checks them, over the tests of kernels")
	}
	lib, err := standin.Open(o)
	if errors.Is(err, standin.ErrNoCompiler) || errors.Is(err, standin.ErrUnsupported) || errors.Is(err, standin.ErrNoNVCC) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lib.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	rt, err := mtl.Load(lib.Path())
	if err != nil {
		t.Fatal(err)
	}
	return rt, lib
}
