package standin

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/ebitengine/purego"
)

// kernelCompiler turns Metal text into libraries that the kernel runtime loads.
type kernelCompiler struct {
	backend Backend
	runtime string // path of the runtime's shared library
	compile func(source, options string) (lib string, err error)
}

// newKernelCompiler builds and loads the runtime. Libraries have access hooks when the options ask for checks or counts.
func newKernelCompiler(dir string, o Options) (*kernelCompiler, error) {
	t, err := NewToolchain("", dir)
	if err != nil {
		return nil, err
	}
	backend, err := chosenBackend(o.Backend)
	if err != nil {
		return nil, err
	}
	if backend == OnCUDA {
		return newCUDACompiler(t)
	}
	path, err := t.Runtime()
	if err != nil {
		return nil, err
	}
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("stand-in: kernel runtime: %w", err)
	}
	var symboliser func(f uintptr)
	purego.RegisterLibFunc(&symboliser, h, "msl_set_symboliser")
	symboliser(SymboliserCallback())
	return &kernelCompiler{backend: backend, runtime: path, compile: func(source, options string) (string, error) {
		c, err := parseCompileOptions(options)
		if err != nil {
			return "", err
		}
		c.Checked = o.Check || o.Count
		return t.Build(source, c)
	}}, nil
}

// Precompile writes to file what stands in for a compiled Metal library: kernel text as a library of this machine's, which newLibraryWithURL:error: loads in a
// session without checks and counts, or with them when o.Checked. It works with the stand-in's own build of the runtime in dir ("": the usual cache folder).
func Precompile(file, source string, o CompileOptions, dir string) error {
	t, err := NewToolchain("", dir)
	if err != nil {
		return err
	}
	built, err := t.Build(source, o)
	if err != nil {
		return err
	}
	lib, err := os.ReadFile(built)
	if err != nil {
		return fmt.Errorf("stand-in: %w", err)
	}
	if err := os.WriteFile(file, lib, 0o644); err != nil {
		return fmt.Errorf("stand-in: %w", err)
	}
	return nil
}

// parseCompileOptions reads what the Objective-C half says of MTLCompileOptions, a line a field: language=196610 (3.2, as MTLLanguageVersion has
// it; 0 is the newest), math=safe|relaxed|fast, macro NAME=VALUE.
func parseCompileOptions(s string) (CompileOptions, error) {
	o := CompileOptions{Macros: map[string]string{}}
	for line := range strings.Lines(s) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "macro "); ok {
			name, value, _ := strings.Cut(rest, "=")
			o.Macros[name] = value
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		switch key {
		case "":
		case "math": // on the processor products and sums are never contracted, and nothing is reordered: exact is within what fast allows
			o.FastMath = value == "fast"
		case "language":
			v, err := strconv.Atoi(value)
			if err != nil {
				return o, fmt.Errorf("compile options: language: %w", err)
			}
			o.Language = v>>16*100 + v&0xffff*10
		default:
			return o, fmt.Errorf("compile options: got %q, want language, math or macro", line)
		}
	}
	return o, nil
}
