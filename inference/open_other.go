//go:build !darwin

package inference

import (
	"fmt"

	"pond/inference/memgate"
	"pond/metal"
	"pond/metal/host"
)

// openDevice is the only choice of device.
func openDevice(x Executor, threads int) (metal.Device, error) {
	switch x {
	case "", Auto, Host:
		return host.Open(threads), nil
	case Metal:
		return nil, fmt.Errorf("executor metal: got this machine, want a Mac with Apple Silicon")
	}
	return nil, unknownExecutor(x)
}

// placementOf says what becomes of the weights: without a GPU they are mapped.
func placementOf(Executor) memgate.Placement { return memgate.Mapped }
