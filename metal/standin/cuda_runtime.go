package standin

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// The executor on an NVIDIA GPU, a second runtime behind src/msl_run.h.
//
//go:embed src/cuda_*
var cudaSources embed.FS

// Backend is what runs kernels.
type Backend string

const (
	OnProcessor Backend = "processor" // fibers on processor threads, with checks
	OnCUDA      Backend = "cuda"      // an NVIDIA GPU: real parallelism, and times that mean something of that GPU
)

// BackendVariable is the environment variable that chooses the backend where the program does not.
const BackendVariable = "POND_STANDIN_BACKEND"

// chosenBackend is b, else what the environment says, else the processor.
func chosenBackend(b Backend) (Backend, error) {
	if b == "" {
		b = Backend(os.Getenv(BackendVariable))
	}
	switch b {
	case "":
		return OnProcessor, nil
	case OnProcessor, OnCUDA:
		return b, nil
	}
	return "", fmt.Errorf("stand-in: got backend %q, want %s or %s", b, OnProcessor, OnCUDA)
}

// CUDARuntime returns the path of the CUDA executor's shared library, and builds it when it is not in the cache. It needs no toolkit: the driver's
// library is loaded when it starts.
func (t *Toolchain) CUDARuntime() (string, error) {
	tables, err := t.Runtime()
	if err != nil {
		return "", err
	}
	names, err := fs.Glob(cudaSources, "src/cuda_*")
	if err != nil {
		return "", err
	}
	flags := append(machineFlags(), "-std=c++20", "-fPIC", "-O2", "-fvisibility=hidden", "-shared", "-pthread", "-Wall", "-Wextra")
	parts := []string{t.cxx, t.version, t.headers, filepath.Base(tables), strings.Join(flags, " ")}
	text := map[string][]byte{}
	for _, n := range names {
		if text[n], err = cudaSources.ReadFile(n); err != nil {
			return "", err
		}
		parts = append(parts, n, string(text[n]))
	}
	path := filepath.Join(t.dir, "libmslcuda-"+digest(parts...)+".so")
	return path, once(path, func(tmp string) error {
		var units []string
		for _, n := range names {
			file := filepath.Join(tmp, filepath.Base(n))
			if err := os.WriteFile(file, text[n], 0o644); err != nil {
				return err
			}
			if strings.HasSuffix(file, ".cpp") {
				units = append(units, file)
			}
		}
		args := append(append(flags, "-I"+t.shim), units...)
		// The tables' library comes along, and functions that both have are this one's.
		args = append(args, tables, "-Wl,-rpath,"+t.dir, "-o", filepath.Join(tmp, "out.so"), "-ldl")
		if b, err := exec.Command(t.cxx, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s could not build the CUDA executor: %w\n%s", t.cxx, err, b)
		}
		return nil
	})
}

// loadCUDARuntime opens the executor and tells it the compiler.
func loadCUDARuntime(t *Toolchain, c *CUDA) (path string, handle uintptr, err error) {
	if path, err = t.CUDARuntime(); err != nil {
		return "", 0, err
	}
	if handle, err = purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL); err != nil {
		return "", 0, fmt.Errorf("stand-in: CUDA executor: %w", err)
	}
	var setCompiler func(f uintptr)
	purego.RegisterLibFunc(&setCompiler, handle, "msl_cuda_set_compiler")
	setCompiler(c.Callback())
	return path, handle, nil
}

// newCUDACompiler is newKernelCompiler for the GPU.
func newCUDACompiler(t *Toolchain) (*kernelCompiler, error) {
	c, err := NewCUDA(t, "")
	if err != nil {
		return nil, err
	}
	path, _, err := loadCUDARuntime(t, c)
	if err != nil {
		return nil, err
	}
	return &kernelCompiler{backend: OnCUDA, runtime: path, compile: func(source, options string) (string, error) {
		o, err := parseCompileOptions(options)
		if err != nil {
			return "", err
		}
		return c.Build(source, o)
	}}, nil
}

// compileCUDA is Compile for the GPU.
func (t *Toolchain) compileCUDA(source string, o CompileOptions) (*Kernels, error) {
	c, err := NewCUDA(t, "")
	if err != nil {
		return nil, err
	}
	runtime, _, err := loadCUDARuntime(t, c)
	if err != nil {
		return nil, err
	}
	path, err := c.Build(source, o)
	if err != nil {
		return nil, err
	}
	return openKernels(runtime, path)
}

// GPU is what the CUDA executor can do beside Metal, for measurements.
type GPU struct {
	repeat   func(base unsafe.Pointer, n uint64, pattern unsafe.Pointer, patternBytes uint64) int32
	copyRate func(n uint64, times int32) float64
}

// OpenGPU returns the executor of the session; nil where the session has another backend.
func (l *Library) OpenGPU() (*GPU, error) {
	if l.compiler.backend != OnCUDA {
		return nil, nil
	}
	h, err := purego.Dlopen(l.compiler.runtime, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("stand-in: CUDA executor: %w", err)
	}
	g := &GPU{}
	purego.RegisterLibFunc(&g.repeat, h, "msl_cuda_repeat")
	purego.RegisterLibFunc(&g.copyRate, h, "msl_cuda_copy_rate")
	return g, nil
}

// Repeat fills a buffer's memory with copies of pattern, on the GPU: the processor touches none of it.
func (g *GPU) Repeat(buffer, pattern []byte) error {
	if len(buffer) == 0 || len(pattern) == 0 {
		return fmt.Errorf("stand-in: fill: got %d bytes to fill with %d", len(buffer), len(pattern))
	}
	if g.repeat(unsafe.Pointer(unsafe.SliceData(buffer)), uint64(len(buffer)), unsafe.Pointer(unsafe.SliceData(pattern)), uint64(len(pattern))) != 0 {
		return fmt.Errorf("stand-in: fill: the GPU did not copy %d bytes", len(buffer))
	}
	return nil
}

// CopyRate measures copies of n bytes on the GPU: bytes read and written a second. 0: it failed.
func (g *GPU) CopyRate(n int64, times int) float64 { return g.copyRate(uint64(n), int32(times)) }
