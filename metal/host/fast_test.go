package host

import (
	"testing"

	"pond/metal"
	"pond/metal/kernels"
)

// TestAStepAllocatesNothing: what a worker needs it keeps.
func TestAStepAllocatesNothing(t *testing.T) {
	for _, mode := range []Mode{Exact, Int16} {
		d := Open(mode, 2)
		const k, n = 512, 2048
		buffer := func(label string, words int) metal.Slice { return whole(buffer32(t, d, label, words)) }
		weights := func(label string, bytes int) metal.Slice {
			b, err := d.PlaceWeights(label, make([]byte, bytes))
			if err != nil {
				t.Fatal(err)
			}
			return metal.Slice{Buffer: b, Len: int64(bytes)}
		}
		pass, err := d.Compile(metal.Program{Label: "test", Levels: [][]metal.Dispatch{{{Label: "product", Kernel: "q4_gemv_norm",
			Params: kernels.LinearParams{M: 1, K: k, Bits: 4, Rows: [kernels.MaxSegments]int{n}, Eps: 1e-6}, Items: n, Work: n * k / 2,
			Args: []metal.Slice{buffer("x", k), weights("norm", 2*k), buffer("y", n), weights("codes", n*k/2), weights("scales", n*k/32), weights("biases", n*k/32)}}}}})
		if err != nil {
			t.Fatal(err)
		}
		step := func() {
			if err := d.Run(pass, metal.RunOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 { // both workers have had a chunk
			step()
		}
		if got := testing.AllocsPerRun(50, step); got > 0 {
			t.Errorf("%s: got %v allocations a step, want none", mode, got)
		}
		d.Close()
	}
}
