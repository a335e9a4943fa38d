package standin

import (
	"math"
	"strings"
	"testing"
)

// TestCounts: what is counted is what the kernel's text says, to the byte.
func TestCounts(t *testing.T) {
	const n, rows = 1000, 3
	for _, tc := range toolchains(t) {
		k, err := tc.Compile(fixture(t, "basic.metal"), CompileOptions{Checked: true})
		if err != nil {
			t.Fatal(err)
		}
		x, y := k.NewMemory("x", 4*rows*n), k.NewMemory("y", 4*n)
		params := append(u32s(n), u32s(math.Float32bits(3))...)
		c, err := k.Run("scale", []KernelArg{{Memory: x}, {Memory: y}, {Bytes: params}}, KernelGrid{Groups: [3]int{4}, Threads: [3]int{256}}, KernelOptions{Count: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := x.Traffic(), (MemoryTraffic{LoadBytes: 4 * n, LoadLines: (4*n + 63) / 64}); got.LoadBytes != want.LoadBytes || got.StoreBytes != 0 || got.LoadLines-want.LoadLines > 1 {
			t.Errorf("x: got %+v, want %+v (a line more where the memory begins inside one)", got, want)
		}
		if got := y.Traffic(); got.StoreBytes != 4*n || got.LoadBytes != 0 {
			t.Errorf("y: got %+v, want %d bytes stored", got, 4*n)
		}
		if c.Dispatches != 1 || c.Threads != 1024 || c.Threadgroups != 4 || c.StoreBytes != 4*n || c.ThreadgroupBarriers != 0 || c.SimdOps != 0 {
			t.Errorf("scale: got %+v", c)
		}

		c, err = k.Run("row_sum", []KernelArg{{Memory: x}, {Memory: y}, {Bytes: u32s(n)}}, KernelGrid{Groups: [3]int{rows}, Threads: [3]int{128}}, KernelOptions{Count: true})
		if err != nil {
			t.Fatal(err)
		}
		// A sum for each of four simdgroups, and one more; a partial sum stored by each, and read by four lanes of the first.
		if c.SimdOps != rows*5 || c.ThreadgroupBarriers != rows || c.ThreadgroupStoreBytes != rows*16 || c.ThreadgroupLoadBytes != rows*16 || c.ThreadgroupBytes != 128 {
			t.Errorf("row_sum: got %+v", c)
		}
		if got := x.Traffic(); got.LoadBytes != 4*rows*n {
			t.Errorf("row_sum: got %d bytes of x, want %d", got.LoadBytes, 4*rows*n)
		}
		x.Free()
		y.Free()
	}
}

// TestWrongCalls: what is bound is checked against the kernel before it runs.
func TestWrongCalls(t *testing.T) {
	for _, tc := range toolchains(t) {
		k, err := tc.Compile(fixture(t, "basic.metal"), CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m := k.NewMemory("m", 1024)
		defer m.Free()
		params := append(u32s(4), u32s(0)...)
		one := KernelGrid{}
		cases := []struct {
			name, kernel string
			args         []KernelArg
			grid         KernelGrid
			o            KernelOptions
			want         string
		}{
			{"not set", "scale", []KernelArg{{Memory: m}, {}, {Bytes: params}}, one, KernelOptions{}, "buffer y at index 1 is not set"},
			{"too short", "scale", []KernelArg{{Memory: m}, {Memory: m}, {Bytes: params[:4]}}, one, KernelOptions{}, "buffer p at index 2: got 4 bytes, the kernel reads 8"},
			{"misaligned", "scale", []KernelArg{{Memory: m}, {Memory: m, Offset: 2}, {Bytes: params}}, one, KernelOptions{}, "no multiple of 4"},
			{"bytes that are written", "scale", []KernelArg{{Memory: m}, {Bytes: params}, {Bytes: params}}, one, KernelOptions{}, "the kernel may write to it"},
			{"too many threads", "scale", []KernelArg{{Memory: m}, {Memory: m}, {Bytes: params}}, KernelGrid{Threads: [3]int{1025}}, KernelOptions{}, "got 1025 threads in a threadgroup, at most 1024"},
			{"too much threadgroup memory", "row_sum", []KernelArg{{Memory: m}, {Memory: m}, {Bytes: params[:4]}}, KernelGrid{ThreadgroupBytes: 32768}, KernelOptions{}, "bytes of threadgroup memory, at most 32768"},
			{"no hooks", "scale", []KernelArg{{Memory: m}, {Memory: m}, {Bytes: params}}, one, KernelOptions{Check: true}, "compiled without access hooks"},
			{"no kernel", "scales", nil, one, KernelOptions{}, "no kernel named scales"},
			{"constant of another size", "scale", nil, one, KernelOptions{Constants: []KernelConstant{{0, []byte{1, 0}}}}, "function constant doubled: got 2 bytes, want 1"},
		}
		for _, c := range cases {
			if _, err := k.Run(c.kernel, c.args, c.grid, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.want)
			}
		}
		info, args, err := k.Describe("scale")
		if err != nil || info.Synchronises != 0 || len(args) != 3 || args[0].Writable || !args[1].Writable || !args[2].Reference || args[2].ElementBytes != 8 {
			t.Errorf("scale: got %+v %+v %v", info, args, err)
		}
	}
}
