package standin

import "errors"

// errNoKernels says that the half that compiles kernels is not there. Tests skip on it.
var errNoKernels = errors.New("stand-in: no kernel compiler")

// kernelCompiler turns Metal text into libraries that the kernel runtime loads.
type kernelCompiler struct {
	runtime string // path of the runtime's shared library
	compile func(source, options string) (lib string, err error)
}

func newKernelCompiler(dir string, o Options) (*kernelCompiler, error) { return nil, errNoKernels }
