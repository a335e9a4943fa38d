package inference

import (
	"errors"
	"fmt"
	"runtime"

	"pond/inference/memgate"
	"pond/inference/qwen36"
	"pond/metal"
	"pond/metal/gpu"
	"pond/metal/host"
	"pond/metal/mtl"
)

// chosen is the executor that auto stands for: the GPU of an Apple chip, the processor of an Intel Mac.
func chosen(x Executor) Executor {
	if x == "" || x == Auto {
		if runtime.GOARCH == "arm64" {
			return Metal
		}
		return Host
	}
	return x
}

// available says why an executor does not run here.
func available(x Executor) error {
	switch chosen(x) {
	case Metal:
		if runtime.GOARCH != "arm64" {
			return errors.New("it needs a Mac with Apple Silicon")
		}
	case Standin:
		return errors.New("it plays Metal where there is none; a Mac has its own")
	}
	return nil
}

// openDevice is the only choice of device. A GPU that does not open is an error, never the processor instead.
func openDevice(x Executor, threads int, plans qwen36.Options) (metal.Device, error) {
	if err := Available(x); err != nil {
		return nil, fmt.Errorf("executor %s: %w", x, err)
	}
	if m, ok := chosen(x).hostMode(); ok {
		return host.Open(m, threads), nil
	}
	rt, err := mtl.Load("")
	if err != nil {
		return nil, err
	}
	d, err := gpu.Open(rt, gpuOptions(plans))
	if err != nil {
		return nil, err
	}
	return detoured(d, plans)
}

// placementOf says what becomes of the weights: the GPU's copy cannot be evicted.
func placementOf(x Executor) memgate.Placement {
	if chosen(x) == Metal {
		return memgate.Wired
	}
	return memgate.Mapped
}
