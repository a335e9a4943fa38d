//go:build !darwin

package inference

import (
	"errors"
	"fmt"

	"pond/inference/memgate"
	"pond/inference/qwen36"
	"pond/metal"
	"pond/metal/gpu"
	"pond/metal/host"
	"pond/metal/mtl"
	"pond/metal/standin"
)

// chosen is the executor that auto stands for: the processor.
func chosen(x Executor) Executor {
	if x == "" || x == Auto {
		return Host
	}
	return x
}

// available says why an executor does not run here.
func available(x Executor) error {
	switch x {
	case Metal:
		return errors.New("it needs a Mac with Apple Silicon")
	case Standin:
		return standin.Available()
	}
	return nil
}

// openDevice is the only choice of device.
func openDevice(x Executor, threads int, plans qwen36.Options) (metal.Device, error) {
	if err := Available(x); err != nil {
		return nil, fmt.Errorf("executor %s: %w", x, err)
	}
	if m, ok := chosen(x).hostMode(); ok {
		return host.Open(m, threads), nil
	}
	lib, err := standin.Open(standin.Options{Workers: threads})
	if err != nil {
		return nil, err
	}
	d := &standinDevice{library: lib}
	rt, err := mtl.Load(lib.Path())
	if err == nil {
		o := gpuOptions(plans)
		o.Labels = true
		d.Device, err = gpu.Open(rt, o)
	}
	if err != nil {
		return nil, errors.Join(err, lib.Close())
	}
	return detoured(d, plans)
}

// standinDevice is Metal on the processor. Its Close says what a Mac would have lost or objected to.
type standinDevice struct {
	*gpu.Device
	library *standin.Library
}

// Close implements metal.Device.
func (d *standinDevice) Close() error { return errors.Join(d.Device.Close(), d.library.Close()) }

// placementOf says what becomes of the weights: the host computes on the mapped files, the stand-in on a copy in ordinary memory.
func placementOf(x Executor) memgate.Placement {
	if x == Standin {
		return memgate.Held
	}
	return memgate.Mapped
}
