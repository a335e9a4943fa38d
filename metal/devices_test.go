package metal_test

import (
	"testing"

	"pond/metal"
	"pond/metal/gpu"
	"pond/metal/gputest"
	"pond/metal/host"
	"pond/metal/standin"
)

// devices are the implementations under test; open skips, with its reason, where this machine lacks one.
var devices = []struct {
	name string
	open func(t *testing.T) metal.Device
}{
	{"host exact", func(t *testing.T) metal.Device { return host.Open(host.Exact, 2) }},
	{"host int16", func(t *testing.T) metal.Device { return host.Open(host.Int16, 2) }},
	{"gpu", func(t *testing.T) metal.Device { return gputest.Open(t, gputest.Options{}) }},
	{"gpu with labels", func(t *testing.T) metal.Device {
		return gputest.Open(t, gputest.Options{GPU: gpu.Options{Labels: true}, Standin: standin.Options{Order: standin.Shuffled, ShuffleDispatches: true, Poison: true}})
	}},
	{"gpu of macOS 14", func(t *testing.T) metal.Device {
		return gputest.Open(t, gputest.Options{GPU: gpu.Options{NoResidencySet: true}, Standin: standin.Options{MacOS: 14, Order: standin.Descending}})
	}},
}
