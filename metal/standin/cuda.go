package standin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	"pond/metal/standin/mslpp"
)

// ErrNoNVCC says that CUDA's compiler was not found. Tests skip on it.
var ErrNoNVCC = errors.New("no CUDA compiler: want nvcc in PATH, or its path in " + NVCCVariable)

// NVCCVariable is the environment variable that names CUDA's compiler.
const NVCCVariable = "POND_STANDIN_NVCC"

// CUDA compiles kernels for an NVIDIA GPU, one for each pipeline: src/msl_cuda_abi.h says what comes out. It is safe for concurrent use.
type CUDA struct {
	tools   *Toolchain
	nvcc    string // path
	release string // "13.0"
	headers string // digest of what a kernel's code depends on
	export  func() uintptr
}

// NewCUDA finds CUDA's compiler: nvcc where it is given, else what the environment names, in PATH, or at the usual place. The error is ErrNoNVCC where there is
// none. What is compiled goes into the cache folder of t.
func NewCUDA(t *Toolchain, nvcc string) (*CUDA, error) {
	if nvcc == "" {
		nvcc = os.Getenv(NVCCVariable)
	}
	names := []string{nvcc}
	if nvcc == "" {
		names = []string{"nvcc", "/usr/local/cuda/bin/nvcc"}
	}
	c := &CUDA{tools: t}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil && c.nvcc == "" {
			c.nvcc = path
		}
	}
	if c.nvcc == "" {
		return nil, ErrNoNVCC
	}
	out, err := exec.Command(c.nvcc, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", c.nvcc, err)
	}
	m := releaseRE.FindSubmatch(out)
	if m == nil {
		return nil, fmt.Errorf("%s --version: got %q, want a release", c.nvcc, out)
	}
	c.release = string(m[1])
	if c.headers, err = sourceDigest("src/msl_cuda*.h", "src/msl_types.h", "src/msl_math.h", "src/msl_run.h", "src/msl_tensor_types.h"); err != nil {
		return nil, err
	}
	c.export = sync.OnceValue(func() uintptr { return purego.NewCallback(c.call) })
	return c, nil
}

var releaseRE = regexp.MustCompile(`release (\d+\.\d+)`)

// String names the compiler, for reports.
func (c *CUDA) String() string { return "nvcc " + c.release }

// Build makes the library that tells what a text holds, and beside it the text rewritten for CUDA, which Kernel compiles. The path is for
// msl_library_open. The error is a *CompileError when the text is at fault.
func (c *CUDA) Build(source string, o CompileOptions) (string, error) {
	o.Checked, o.Tables = false, true
	lib, err := c.tools.Build(source, o)
	if err != nil {
		return "", err
	}
	return lib, once(cudaText(lib), func(tmp string) error {
		text, err := c.tools.rewrite(source, o, mslpp.CUDA)
		if err != nil {
			return err
		}
		if o.FastMath {
			text = fastMath + text
		}
		return os.WriteFile(filepath.Join(tmp, "out.so"), []byte(text), 0o644)
	})
}

// fastMath is the first line of a text whose arithmetic may be fast.
const fastMath = "// fast math\n"

// cudaText is where the text of a library lies.
func cudaText(lib string) string { return strings.TrimSuffix(lib, ".so") + ".cu" }

// cudaArch is the machine that code is made for: an H200.
const cudaArch = "sm_90a"

// -lineinfo costs nothing and lets compute-sanitizer name lines of the text.
func cudaFlags(text string) []string {
	flags := []string{"-std=c++20", "-arch=" + cudaArch, "-cubin", "-lineinfo", "-w", "--expt-relaxed-constexpr"}
	if strings.HasPrefix(text, fastMath) {
		flags = append(flags, "-use_fast_math")
	}
	return flags
}

// Kernel returns the path of a kernel's machine code, for a library of Build and values of the function constants; values that the kernel does not
// read are ignored. With poison its threadgroup memory is NaN at the start.
func (c *CUDA) Kernel(lib, kernel string, constants []KernelConstant, poison bool) (string, error) {
	data, err := os.ReadFile(cudaText(lib))
	if err != nil {
		return "", fmt.Errorf("%s: not a library made for CUDA: %w", lib, err)
	}
	text := string(data)
	settings, err := kernelSettings(text, kernel, constants)
	if err != nil {
		return "", err
	}
	if poison {
		settings = append(settings, "-DMSL_NAN_FIRST=1")
	}
	flags := append(cudaFlags(text), settings...)
	// Neither the compiler's path nor the machine is in the name: a cache folder may be carried to the one with the GPU.
	path := filepath.Join(c.tools.dir, kernel+"-"+digest(text, c.headers, c.release, strings.Join(flags, " "))+".cubin")
	return path, once(path, func(tmp string) error {
		source := filepath.Join(tmp, "kernel.cu")
		if err := os.WriteFile(source, data, 0o644); err != nil {
			return err
		}
		args := append(flags, "-I"+c.tools.shim, source, "-o", filepath.Join(tmp, "out.so"))
		b, err := exec.Command(c.nvcc, args...).CombinedOutput()
		if err != nil {
			return compileError(err, nvccLineRE.ReplaceAllString(string(b), "$1:$2: error: "))
		}
		return nil
	})
}

// nvcc says gemv.metal(12): error: where others say gemv.metal:12: error:.
var nvccLineRE = regexp.MustCompile(`(?m)^(\S+)\((\d+)\): error: `)

// kernelSettings are the macros that choose a kernel of a rewritten text and give its constants their values.
func kernelSettings(text, kernel string, constants []KernelConstant) ([]string, error) {
	_, rest, found := strings.Cut(text, "\n#ifdef MSL_ENTRY_"+kernel+" // constants")
	if !found {
		return nil, fmt.Errorf("no kernel named %s", kernel)
	}
	line, _, _ := strings.Cut(rest, "\n")
	settings := []string{"-DMSL_ENTRY_" + kernel + "=msl_kernel"}
	for _, index := range strings.Fields(line) {
		for _, k := range constants {
			if strconv.Itoa(k.Index) != index {
				continue
			}
			if len(k.Value) > 8 {
				return nil, fmt.Errorf("%s: function constant %s: got %d bytes, want a scalar", kernel, index, len(k.Value))
			}
			var bits [8]byte
			copy(bits[:], k.Value)
			settings = append(settings, fmt.Sprintf("-DMSL_CONSTANT_%s=%#xull", index, binary.LittleEndian.Uint64(bits[:])))
		}
	}
	slices.Sort(settings[1:])
	return settings, nil
}

// Callback returns the C function for msl_cuda_set_compiler.
func (c *CUDA) Callback() uintptr { return c.export() }

// msl_options.flags: threadgroup memory is NaN at the start.
const flagPoison = 1

// call is msl_cuda_compiler of src/msl_cuda_abi.h.
func (c *CUDA) call(library, kernel *byte, constants *cConstant, n int32, flags uint32, out *byte, outBytes uintptr) (failed uintptr) {
	answer := unsafe.Slice(out, outBytes)
	say := func(s string) {
		if outBytes > 0 {
			answer[copy(answer[:outBytes-1], s)] = 0
		}
	}
	defer func() {
		if p := recover(); p != nil {
			say(fmt.Sprintf("internal error of the kernel compiler: %v", p))
			failed = 1
		}
	}()
	var values []KernelConstant
	for _, k := range unsafe.Slice(constants, n) {
		values = append(values, KernelConstant{int(k.index), unsafe.Slice((*byte)(k.value), k.bytes)})
	}
	path, err := c.Kernel(pointerString(library), pointerString(kernel), values, flags&flagPoison != 0)
	if err != nil {
		say(err.Error())
		return 1
	}
	if uintptr(len(path)) >= outBytes {
		say("the path of the machine code is too long")
		return 1
	}
	say(path)
	return 0
}
