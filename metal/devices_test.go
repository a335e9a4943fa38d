package metal_test

import (
	"testing"

	"pond/metal"
	"pond/metal/host"
)

// devices are the implementations under test; open skips, with its reason, where this machine lacks one.
var devices = []struct {
	name string
	open func(t *testing.T) metal.Device
}{
	{"host", func(t *testing.T) metal.Device { return host.Open(2) }},
}
