package mslpp

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// onDevice marks a function for the GPU: nvcc compiles for the host what does not say so.
func (r *rewriter) onDevice(d shape) {
	if r.target == CUDA {
		r.ts[d.head].before = "MSL_DEVICE " + r.ts[d.head].before
	}
}

// isArray reports whether a variable is declared with brackets.
func (r *rewriter) isArray(d shape) bool {
	for i := d.head; i < d.end && i != d.equals; i++ {
		if r.is(i, "[") && !r.ts[i].dropped {
			return true
		}
	}
	return false
}

// settings gives the function constants that a compilation leaves out a value: code of other kernels, which is not compiled, must parse.
func (r *rewriter) settings() string {
	var sb strings.Builder
	for _, i := range slices.Compact(slices.Sorted(maps.Values(r.indexOf))) {
		fmt.Fprintf(&sb, "#ifdef MSL_CONSTANT_%[1]s\n#define MSL_DEFINED_%[1]s true\n#else\n#define MSL_CONSTANT_%[1]s 0\n#define MSL_DEFINED_%[1]s false\n#endif\n", i)
	}
	return sb.String()
}

var identifierRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*$`)

// entry writes the entry point of a kernel, which the compiler is asked for by the macro MSL_ENTRY_name, whose value the entry is called. The
// comment lists the function constants that it reads: others do not change its code.
func (r *rewriter) entry(e entry) string {
	t := r.ts[e.k.at]
	if !identifierRE.MatchString(e.host) {
		return fmt.Sprintf("# %d %q\n#error host_name(\"%s\") must be an identifier\n", t.line, t.file, e.host)
	}
	var call []string
	for i, a := range e.k.args {
		switch a.role {
		case "buffer":
			call = append(call, fmt.Sprintf("block.buffer<%d, %d>()", i, a.index))
		case "threadgroup":
			call = append(call, fmt.Sprintf("block.threadgroup<%d, %d>()", i, a.index))
		default:
			call = append(call, "msl::"+a.role+"()")
		}
	}
	bounds := ""
	if e.k.maxThreads != "" {
		bounds = fmt.Sprintf("__launch_bounds__(%s) ", e.k.maxThreads)
	}
	reads := ""
	for _, name := range r.reads(e.k.name) {
		reads += " " + r.indexOf[name]
	}
	return fmt.Sprintf("#ifdef MSL_ENTRY_%[1]s // constants%[2]s\n# %[3]d %[4]q\nextern \"C\" __global__ void %[5]sMSL_ENTRY_%[1]s(const __grid_constant__ msl::Block<decltype(&%[6]s)> block) { msl::begin(); %[6]s(%[7]s); }\n#endif\n",
		e.host, reads, t.line, t.file, bounds, e.call, strings.Join(call, ", "))
}
