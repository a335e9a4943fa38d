package inference

import (
	"fmt"
	"os"
	"strings"

	"pond/inference/ablate"
	"pond/inference/qwen36"
	"pond/metal"
	"pond/metal/detour"
	"pond/metal/gpu"
	"pond/metal/host"
)

// executors are the names that a user may ask for.
func executors() []string {
	return []string{string(Auto), string(Host), string(HostExact), string(HostInt8), string(Metal), string(Standin)}
}

// ParseExecutor reads an executor's name.
func ParseExecutor(s string) (Executor, error) {
	names := executors()
	for _, name := range names {
		if s == name {
			return Executor(s), nil
		}
	}
	last := len(names) - 1
	return "", fmt.Errorf("executor: got %q, want %s or %s", s, strings.Join(names[:last], ", "), names[last])
}

// Available says why an executor does not run on this machine or in this build; nil when it does. It opens nothing.
func Available(x Executor) error {
	if x == "" {
		x = Auto
	}
	if _, err := ParseExecutor(string(x)); err != nil {
		return err
	}
	return available(x)
}

// hostMode is how the host executor computes for a chosen x; false where another one does.
func (x Executor) hostMode() (m host.Mode, ok bool) {
	switch x {
	case Host:
		return host.Int16, true
	case HostExact:
		return host.Exact, true
	case HostInt8:
		return host.Int8, true
	}
	return "", false
}

// PlanOptions are those of the plans that an executor runs, with optimisations switched off.
func PlanOptions(x Executor, off *ablate.Set) qwen36.Options {
	return qwen36.Options{Ablate: off, GPU: chosen(x) == Metal || chosen(x) == Standin}
}

// gpuOptions are what the plans' options mean for a GPU.
func gpuOptions(o qwen36.Options) gpu.Options {
	return gpu.Options{Serial: o.Ablate.Off(ablate.ConcurrentEncoding), Tuning: o.Tuning(), Resources: resources(os.Executable()),
		TensorOpsOff: func() bool { return o.Ablate.Off(ablate.TensorOps) }}
}

// detoured is a device without the kernels that the options leave to the host.
func detoured(d metal.Device, o qwen36.Options) (metal.Device, error) {
	names := o.OnHost()
	if len(names) == 0 {
		return d, nil
	}
	return detour.New(d, names...)
}

// Chunk is how many tokens of a prompt one run takes in when nothing else was asked for. A client that leaves is noticed after one, and
// other clients' tokens wait for it, so slow executors take less. An expert sees a thirty-second of a chunk: with 512 tokens a group of
// its weights is unpacked for 16 of them, with 128 for 4, which costs the vectorised host a third of its speed on the full model.
func (x Executor) Chunk() int {
	switch mode, onHost := chosen(x).hostMode(); {
	case onHost && mode != host.Exact, chosen(x) == Metal:
		return 512
	}
	return 128 // a second of the demo model in plain Go; longer on the stand-in
}

// HostKernels says in a few words how the vectorised host computes on this processor.
func HostKernels() string {
	set, plain := host.Vectorised()
	return fmt.Sprintf("%s; in plain Go: %s", set, strings.Join(plain, ", "))
}
