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
	cases := append(shortCases(), wideKeys(newMaker(6))...)
	cases = append(cases, wideRows(newMaker(6))...)
	for _, shape := range attnShapes { // of TestHeadsSharedOrNot
		cases = append(cases, newMaker(9).decode(shape, 300, 128)...)
	}
	for _, s := range headShapes { // of TestHeadFindsWhatLogitBestsFinds
		mk := newMaker(21)
		head := mk.head(s.width, s.rows, s.n, mk.draw(s.n))
		product := head
		product.kernel, product.params = Q4GemvNorm(), head.params.(HeadParams).Product
		cases = append(cases, head, product)
	}
	cases = append(cases, allTuned(cases, Tuning{NarrowSets: true}, Tuning{TallTiles: true}, Tuning{LoneHeads: true}, Tuning{StoredState: true}, Tuning{LoneKeys: true}, Tuning{EvenBlocks: true})...)
	tensors := tensorCases()
	tensors = append(tensors, allTuned(tensors, Tuning{TensorOps: true, TallTiles: true})...)
	type pipeline struct {
		lib string
		metalCase
	}
	needed := map[string]pipeline{}
	for _, text := range []struct {
		source string
		o      standin.CompileOptions
		cases  []metalCase
	}{{Source(), standin.CompileOptions{}, cases}, {TensorSource(), standin.CompileOptions{Language: 400}, tensors}} {
		lib, err := c.Build(text.source, text.o)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range text.cases {
			needed[fmt.Sprint(lib, x.kernel.Name, x.constants())] = pipeline{lib, x}
		}
	}
	next := make(chan pipeline)
	var wait sync.WaitGroup
	for range runtime.NumCPU() {
		wait.Go(func() {
			for x := range next {
				if _, err := c.Kernel(x.lib, x.kernel.Name, x.constants(), false); err != nil {
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

// allTuned are the cases with each choice of launch switched off.
func allTuned(cases []metalCase, tunings ...Tuning) (out []metalCase) {
	for _, tuning := range tunings {
		for _, c := range cases {
			c.kernel = Tuned(c.kernel, tuning)
			out = append(out, c)
		}
	}
	return out
}
