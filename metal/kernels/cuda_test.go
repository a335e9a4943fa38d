package kernels

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"

	"pond/metal/standin"
)

// TestEveryCaseCompilesForCUDA compiles each kernel with the constants of every case for an NVIDIA GPU, so that the tests on one need no compiler.
// It takes a CUDA compiler and some minutes, but no GPU.
func TestEveryCaseCompilesForCUDA(t *testing.T) {
	if os.Getenv("POND_METAL_CHECK") == "" {
		t.Skip("takes minutes: POND_METAL_CHECK=1 runs it, where there is a CUDA compiler")
	}
	tools, err := standin.NewToolchain("", "")
	if err != nil {
		t.Skip(err)
	}
	c, err := standin.NewCUDA(tools, "")
	if errors.Is(err, standin.ErrNoNVCC) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tools.CUDARuntime(); err != nil {
		t.Fatal(err)
	}
	lib, err := c.Build(Source(), standin.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cases := append(shortCases(), wideKeys(newMaker(6))...)
	cases = append(cases, wideRows(newMaker(6))...)
	for _, shape := range attnShapes { // of TestHeadsSharedOrNot
		cases = append(cases, newMaker(9).decode(shape, 300, 128)...)
	}
	needed := map[string]metalCase{}
	for _, c := range cases {
		needed[fmt.Sprint(c.kernel.Name, c.constants())] = c
	}
	next := make(chan metalCase)
	var wait sync.WaitGroup
	for range runtime.NumCPU() {
		wait.Go(func() {
			for x := range next {
				if _, err := c.Kernel(lib, x.kernel.Name, x.constants(), false); err != nil {
					t.Errorf("%v: %v", x, err)
				}
			}
		})
	}
	for _, x := range needed {
		next <- x
	}
	close(next)
	wait.Wait()
	t.Logf("%d pipelines by %s", len(needed), c)
}
