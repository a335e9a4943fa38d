package inference

import (
	"errors"

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
		return nil, errors.New("executor metal: this version of Pond has no Metal kernels; it computes with the host executor")
	}
	return nil, unknownExecutor(x)
}

// placementOf says what becomes of the weights.
func placementOf(x Executor) memgate.Placement {
	if x == Metal {
		return memgate.Wired
	}
	return memgate.Mapped
}
