package standin

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"

	"pond/metal/standin/mslpp"
)

// CompileOptions say how kernel text becomes a library; they follow MTLCompileOptions.
type CompileOptions struct {
	Checked  bool              // with access hooks: slower, and what the check and counting modes need; and through Lint, if the compiler is clang
	Macros   map[string]string // preprocessorMacros
	Language int               // __METAL_VERSION__: 320 (macOS 15) when zero, 400 has tensors
	FastMath bool              // mathMode fast: for CUDA alone; the processor's arithmetic is exact either way
	Tables   bool              // the library is asked what it holds and its kernels never run here: no optimisation
}

// CompileError is kernel text that a Metal compiler would refuse, or that this one cannot take. Text has lines of the form
// "gemv.metal:12:5: error: …".
type CompileError struct{ Text string }

func (e *CompileError) Error() string { return e.Text }

// Toolchain is a compiler with the shim written out: what turns kernel text into libraries. It is safe for concurrent use; the same
// text is compiled once, in this process and in those that come later.
type Toolchain struct {
	cxx     string // path
	version string
	clang   bool
	dir     string // the cache
	shim    string // folder of the headers
	headers string // digest of the headers
}

// NewToolchain prepares a compiler, the first of this machine when none is named, with a cache folder, by default the usual one. The error
// is ErrNoCompiler or ErrUnsupported where kernels cannot be compiled; tests skip with it.
func NewToolchain(compiler, dir string) (*Toolchain, error) {
	found, err := findCompiler()
	if compiler != "" && !errors.Is(err, ErrUnsupported) {
		if found, err = exec.LookPath(compiler); err != nil {
			err = fmt.Errorf("%w: %s is not installed", ErrNoCompiler, compiler)
		}
	}
	if err != nil {
		return nil, err
	}
	t := &Toolchain{cxx: found}
	out, err := exec.Command(t.cxx, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", t.cxx, err)
	}
	t.version, _, _ = strings.Cut(string(out), "\n")
	t.clang = strings.Contains(t.version, "clang")
	if dir, err = cacheDir(dir); err != nil {
		return nil, err
	}
	if t.dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if t.headers, err = shimDigest(); err != nil {
		return nil, err
	}
	t.shim = filepath.Join(t.dir, "shim-"+t.headers)
	return t, once(t.shim, func(tmp string) error {
		shim := filepath.Join(tmp, "out.so") // the name that once publishes
		if err := os.Mkdir(shim, 0o755); err != nil {
			return err
		}
		return writeShim(shim)
	})
}

// String names the compiler, for reports.
func (t *Toolchain) String() string { return t.version }

// machineFlags choose the instruction set; what is compiled stays on this kind of machine.
func machineFlags() []string {
	if runtime.GOARCH == "amd64" && hasV3() {
		return []string{"-march=x86-64-v3"}
	}
	return nil
}

// -ffp-contract=off: a product and a sum are two roundings, so that results do not depend on the compiler.
func commonFlags() []string {
	return append(machineFlags(), "-std=c++20", "-fPIC", "-g1", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-math-errno", "-w")
}

// Runtime returns the path of the runtime's shared library, and builds it when it is not in the cache.
func (t *Toolchain) Runtime() (string, error) {
	flags := commonFlags()
	flags = append(flags, "-O2", "-ftree-vectorize", "-shared", "-pthread")
	sum, err := runtimeDigest()
	if err != nil {
		return "", err
	}
	name := "libmsl-" + digest(t.cxx, t.version, sum, strings.Join(flags, " ")) + ".so"
	path := filepath.Join(t.dir, name)
	return path, once(path, func(tmp string) error {
		sources, err := fs.Glob(mslSources, "src/msl_*.cpp")
		if err != nil {
			return err
		}
		var unit strings.Builder // one unit compiles twice as fast as many
		for _, s := range sources {
			fmt.Fprintf(&unit, "#include %q\n", filepath.Join(t.shim, filepath.Base(s)))
		}
		main := filepath.Join(tmp, "unit.cpp")
		if err := os.WriteFile(main, []byte(unit.String()), 0o644); err != nil {
			return err
		}
		args := append(flags, main, "-o", filepath.Join(tmp, "out.so"), "-Wl,-soname,"+name, "-ldl")
		if b, err := exec.Command(t.cxx, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s could not build the kernel runtime: %w\n%s", t.cxx, err, b)
		}
		return nil
	})
}

// Build compiles kernel text and returns the path of the shared library. The error is a *CompileError when the text is at fault.
func (t *Toolchain) Build(source string, o CompileOptions) (string, error) {
	rt, err := t.Runtime()
	if err != nil {
		return "", err
	}
	flags := commonFlags()
	switch {
	case o.Checked && t.clang:
		// bounds and alignment trap: an index outside a private array, a vector at an address that is no multiple of its size.
		flags = append(flags, "-O1", "-fsanitize=thread,bounds,alignment", "-fsanitize-trap=bounds,alignment", "-mllvm", "-ubsan-unique-traps", "-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm", "-tsan-instrument-atomics=0",
			"-mllvm", "-tsan-instrument-read-before-write=1") // y += x reads y: count it
	case o.Checked:
		flags = append(flags, "-O1", "-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0")
	case o.Tables:
		flags = append(flags, "-O0")
	default:
		flags = append(flags, "-O2")
	}
	if !t.clang {
		flags = append(flags, "-fno-gnu-unique")
	}
	flags = append(flags, "-fvisibility=hidden", "-I"+t.shim)
	path := filepath.Join(t.dir, "kernels-"+digest(t.cxx, t.version, t.headers, filepath.Base(rt), strings.Join(flags, " "), strings.Join(preprocessorFlags(o), " "), source)+".so")
	return path, once(path, func(tmp string) error {
		text, err := t.rewrite(source, o, mslpp.Host)
		if err != nil {
			return err
		}
		if o.Checked && t.clang {
			if err := t.Lint(source, o); err != nil {
				return err
			}
		}
		cpp, object := filepath.Join(tmp, "kernels.cpp"), filepath.Join(tmp, "kernels.o")
		if err := os.WriteFile(cpp, []byte(text), 0o644); err != nil {
			return err
		}
		// Compiled and linked apart: at link time -fsanitize=thread would bring the sanitizer's own runtime.
		if err := t.run(append(flags, "-c", cpp, "-o", object)...); err != nil {
			return err
		}
		return t.run("-shared", object, "-o", filepath.Join(tmp, "out.so"), rt, "-Wl,-rpath,"+t.dir)
	})
}

func preprocessorFlags(o CompileOptions) []string {
	version := o.Language
	if version == 0 {
		version = 320
	}
	flags := []string{"-D__METAL__=1", fmt.Sprintf("-D__METAL_VERSION__=%d", version), "-D__HAVE_BFLOAT__=1", "-D__METAL_MACOS__=1"}
	var names []string
	for n := range o.Macros {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		flags = append(flags, "-D"+n+"="+o.Macros[n])
	}
	return flags
}

// rewrite preprocesses text and makes C++ of it.
func (t *Toolchain) rewrite(source string, o CompileOptions, target mslpp.Target) (string, error) {
	args := append([]string{"-E", "-x", "c++", "-std=c++20", "-undef", "-nostdinc", "-I" + filepath.Join(t.shim, "metal")}, preprocessorFlags(o)...)
	cmd := exec.Command(t.cxx, append(args, "-")...)
	cmd.Stdin = strings.NewReader("# 1 \"program_source\"\n" + source)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", compileError(err, stderr.String())
	}
	text, err := mslpp.Rewrite(stdout.String(), "program_source", target)
	var bad *mslpp.Error
	if errors.As(err, &bad) {
		return "", &CompileError{bad.Error()}
	}
	return text, err
}

// run starts the compiler; what it says about the text becomes a *CompileError.
func (t *Toolchain) run(args ...string) error {
	cmd := exec.Command(t.cxx, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return compileError(err, stderr.String())
	}
	return nil
}

// compileError keeps the lines that carry a message: excerpts of generated text help nobody.
func compileError(err error, stderr string) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	var keep []string
	for _, l := range strings.Split(stderr, "\n") {
		if strings.Contains(l, ": error: ") || strings.Contains(l, ": fatal error: ") || strings.Contains(l, ": note: ") || strings.Contains(l, "required from") || strings.Contains(l, "undefined reference") {
			if keep = append(keep, l); len(keep) == 40 {
				break
			}
		}
	}
	if len(keep) == 0 {
		return fmt.Errorf("the C++ compiler failed: %w\n%s", err, stderr)
	}
	return &CompileError{strings.Join(keep, "\n")}
}
