//go:build !darwin

package inference

import (
	"errors"
	"fmt"

	"pond/inference/memgate"
	"pond/metal"
	"pond/metal/host"
)

// available says why an executor does not run here.
func available(x Executor) error {
	switch x {
	case Metal:
		return errors.New("it needs a Mac with Apple Silicon")
	case Standin:
		return errors.New("this version of Pond does not have it")
	}
	return nil
}

// openDevice is the only choice of device.
func openDevice(x Executor, threads int) (metal.Device, error) {
	if err := Available(x); err != nil {
		return nil, fmt.Errorf("executor %s: %w", x, err)
	}
	return host.Open(threads), nil
}

// placementOf says what becomes of the weights: the host computes on the mapped files, the stand-in on a copy in ordinary memory.
func placementOf(x Executor) memgate.Placement {
	if x == Standin {
		return memgate.Held
	}
	return memgate.Mapped
}
