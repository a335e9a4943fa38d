package gpu

import (
	"fmt"
	"slices"

	"pond/metal/kernels"
	"pond/metal/mtl"
)

// pipeline is a compiled kernel and what it allows.
type pipeline struct {
	state                   mtl.ComputePipelineState
	maxThreads, staticBytes int
}

// pipeline returns the kernel compiled with its constants, compiling it when it is new. Called in a pool.
func (d *Device) pipeline(kernel string, constants []kernels.Constant) (pipeline, error) {
	library := d.libraryOf(kernel)
	key := fmt.Sprint(kernel, constants, library == d.tensors.library)
	if p, ok := d.pipelines[key]; ok {
		return p, nil
	}
	f, err := d.function(library, kernel, constants)
	if err != nil {
		return pipeline{}, err
	}
	defer f.Release()
	c := d.rt.NewComputePipelineDescriptor()
	defer c.Release()
	c.SetLabel(d.rt.StringWithUTF8String(kernel))
	c.SetComputeFunction(f)
	state, err := d.dev.NewComputePipelineStateWithDescriptor(c)
	if err != nil {
		return pipeline{}, fmt.Errorf("kernel %s does not compile for %s: %w", kernel, d.name, err)
	}
	p := pipeline{state, state.MaxTotalThreadsPerThreadgroup(), state.StaticThreadgroupMemoryLength()}
	d.pipelines[key] = p
	return p, nil
}

// function finds the kernel in the library and sets its constants; owned.
func (d *Device) function(library mtl.Library, kernel string, constants []kernels.Constant) (mtl.Function, error) {
	name := d.rt.StringWithUTF8String(kernel)
	if len(constants) == 0 {
		f, ok := library.NewFunctionWithName(name)
		if !ok {
			return f, fmt.Errorf("no Metal kernel %s", kernel)
		}
		return f, nil
	}
	if !slices.Contains(library.FunctionNames(), kernel) {
		return mtl.Function{}, fmt.Errorf("no Metal kernel %s", kernel)
	}
	values := d.rt.NewFunctionConstantValues()
	defer values.Release()
	for _, c := range constants {
		switch v := c.Value.(type) {
		case bool:
			values.SetBool(v, c.Index)
		case int32:
			values.SetInt(v, c.Index)
		default:
			return mtl.Function{}, fmt.Errorf("kernel %s: constant %d: got a %T, want bool or int32", kernel, c.Index, v)
		}
	}
	f, err := library.NewFunctionWithConstantValues(name, values)
	if err != nil {
		return f, fmt.Errorf("kernel %s with constants %v: %w", kernel, constants, err)
	}
	return f, nil
}

// threadgroupUnit is what the length of dynamic threadgroup memory must be a multiple of.
// https://developer.apple.com/documentation/metal/mtlcomputecommandencoder/setthreadgroupmemorylength(_:index:)
const threadgroupUnit = 16

// check holds a launch to the limits of pipeline and device.
func (d *Device) check(p pipeline, g kernels.Grid) error {
	threads := 1
	for i, n := range g.Threads {
		if most := [3]uint64{d.limits.threads.Width, d.limits.threads.Height, d.limits.threads.Depth}[i]; n < 1 || uint64(n) > most {
			return fmt.Errorf("threadgroup of %v threads: got %d in dimension %d, want 1 to %d", g.Threads, n, i, most)
		}
		threads *= n
		if n := g.Groups[i]; n < 1 || n > maxGroups {
			return fmt.Errorf("grid of %v threadgroups: got %d in dimension %d, want 1 to %d", g.Groups, n, i, maxGroups)
		}
	}
	if threads > p.maxThreads {
		return fmt.Errorf("threadgroup of %v: got %d threads, want at most the %d that the kernel's registers allow", g.Threads, threads, p.maxThreads)
	}
	if g.ThreadgroupBytes < 0 || g.ThreadgroupBytes%threadgroupUnit != 0 {
		return fmt.Errorf("threadgroup memory: got %d bytes, want a multiple of %d", g.ThreadgroupBytes, threadgroupUnit)
	}
	if n := p.staticBytes + g.ThreadgroupBytes; n > d.limits.threadgroupBytes {
		return fmt.Errorf("threadgroup memory: got %d bytes declared and %d asked for, want at most %d", p.staticBytes, g.ThreadgroupBytes, d.limits.threadgroupBytes)
	}
	return nil
}

// maxGroups bounds a dimension of the grid: positions in it are 32 bits wide in the kernels.
const maxGroups = 1<<31 - 1
