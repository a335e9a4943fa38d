package standin

import (
	"fmt"
	"strings"
	"testing"
)

// faultLine is the line of the word FAULT in a kernel of faults.metal.
func faultLine(t *testing.T, source, kernel string) int {
	t.Helper()
	inside := false
	for i, l := range strings.Split(source, "\n") {
		if strings.HasPrefix(l, "kernel ") {
			inside = strings.Contains(l, " "+kernel+"(")
		}
		if inside && strings.Contains(l, "// FAULT") {
			return i // the first line is the #line marker
		}
	}
	t.Fatalf("no FAULT in %s", kernel)
	return 0
}

// TestPlantedFaults runs kernels with one mistake each and expects a report that says what and where.
func TestPlantedFaults(t *testing.T) {
	const inCheck, always = true, false
	cases := []struct {
		kernel, want string
		onlyChecked  bool
	}{
		{"missing_barrier", "race on threadgroup memory s: a thread reads what another thread wrote without a barrier between", inCheck},
		{"missing_second_barrier", "race on threadgroup memory s: a thread writes what another thread read without a barrier between", inCheck},
		{"near_overrun", "out of bounds: buffer x, byte 1024 of 1024, thread 127 of threadgroup 1", always},
		{"far_overrun", "out of bounds: buffer x, byte 8192 of 1024", always},
		{"overrun_by_store", "out of bounds: buffer y, byte 1024 of 1024, thread 127 of threadgroup 1", always},
		{"threadgroup_overrun", "out of bounds of", inCheck},
		{"unwritten_threadgroup", "load of threadgroup memory that nobody wrote: s", inCheck},
		{"unwritten_device", "load of memory that nobody wrote: buffer x, byte 1000 of 1024", inCheck},
		{"divergent_barrier", "threads of one threadgroup wait at different threadgroup_barriers", always},
		{"early_return", "threadgroup_barrier after some threads have returned", inCheck},
		{"race_between_threadgroups", "race on buffer y: a thread reads what a thread of another threadgroup wrote", inCheck},
		{"race_between_threads", "race on buffer y: a thread writes what a thread of the same threadgroup wrote", inCheck},
		{"divergent_simd", "simdgroup operation with lanes 000fffff of ffffffff only", inCheck},
		{"too_deep", "stack overflow", always},
		{"part_of_a_simdgroup", "simdgroup", inCheck},
		{"private_overrun", "index out of bounds of an array", inCheck},
		{"unaligned_vector", "vector that is not aligned", inCheck},
	}
	source := fixture(t, "faults.metal")
	for name, tc := range toolchains(t) {
		for _, checked := range []bool{true, false} {
			k, err := tc.Compile(source, CompileOptions{Checked: checked})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				if c.onlyChecked && !checked || !tc.clang && (c.kernel == "private_overrun" || c.kernel == "unaligned_vector") {
					continue // the last two are clang's
				}
				t.Run(fmt.Sprintf("%s/checked=%v/%s", name, checked, c.kernel), func(t *testing.T) {
					x, y := k.NewMemory("x", 1024), k.NewMemory("y", 1024)
					defer x.Free()
					defer y.Free()
					if c.kernel == "unwritten_device" {
						x.Unwritten(1000, 24)
					}
					grid := KernelGrid{Groups: [3]int{1}, Threads: [3]int{256}}
					if strings.Contains(c.want, "threadgroup 1") || strings.HasPrefix(c.kernel, "race_between_threadgroups") {
						grid = KernelGrid{Groups: [3]int{2}, Threads: [3]int{128}}
					}
					_, err := k.Run(c.kernel, []KernelArg{{Memory: x}, {Memory: y}}, grid, KernelOptions{Check: checked})
					if err == nil {
						t.Fatal("got no error")
					}
					where := ""
					if c.kernel != "too_deep" {
						where = fmt.Sprintf("faults.metal:%d: ", faultLine(t, source, c.kernel))
					}
					if got := err.Error(); !strings.Contains(got, c.want) || !strings.Contains(got, where) {
						t.Errorf("got %q, want %q at %q", got, c.want, where)
					}
					// The device goes on after a fault.
					if _, err := k.Run("copy", []KernelArg{{Memory: x}, {Memory: y}}, KernelGrid{Groups: [3]int{1}, Threads: [3]int{250}}, KernelOptions{}); err != nil {
						t.Errorf("the next dispatch: %v", err)
					}
				})
			}
		}
	}
}

// TestFirstFault: of several threadgroups that leave a buffer, the first is named, however many workers run them and whichever comes there first.
func TestFirstFault(t *testing.T) {
	source := fixture(t, "faults.metal")
	for _, tc := range toolchains(t) {
		k, err := tc.Compile(source, CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		x, y := k.NewMemory("x", 1024), k.NewMemory("y", 1024)
		for workers := 1; workers <= 4; workers++ {
			_, err := k.Run("slow_overrun", []KernelArg{{Memory: x}, {Memory: y}}, KernelGrid{Groups: [3]int{64}, Threads: [3]int{1}}, KernelOptions{Workers: workers})
			want := fmt.Sprintf("slow_overrun: faults.metal:%d: access out of bounds: buffer y, byte 1024 of 1024, thread 0 of threadgroup 4", faultLine(t, source, "slow_overrun"))
			if err == nil || err.Error() != want {
				t.Errorf("%d workers: got %v, want %q", workers, err, want)
			}
		}
		x.Free()
		y.Free()
	}
}

// TestMissingBarrierBetweenDispatches: what one dispatch writes, another of the same level must not touch.
func TestMissingBarrierBetweenDispatches(t *testing.T) {
	for _, tc := range toolchains(t) {
		k, err := tc.Compile(fixture(t, "faults.metal"), CompileOptions{Checked: true})
		if err != nil {
			t.Fatal(err)
		}
		a, b, c := k.NewMemory("a", 1024), k.NewMemory("b", 1024), k.NewMemory("c", 1024)
		grid := KernelGrid{Groups: [3]int{2}, Threads: [3]int{128}}
		run := func(from, to *Memory, group uint64) error {
			_, err := k.Run("copy", []KernelArg{{Memory: from}, {Memory: to}}, grid, KernelOptions{Check: true, Group: group})
			return err
		}
		if err := run(a, b, 1); err != nil {
			t.Fatal(err)
		}
		if err := run(b, c, 2); err != nil {
			t.Errorf("with a barrier between: %v", err)
		}
		want := "race on buffer c: this dispatch reads what copy wrote, without a barrier between the two dispatches"
		if err := run(c, a, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without a barrier: got %v, want %q", err, want)
		}
		if err := run(a, b, 3); err != nil {
			t.Fatal(err)
		}
		if err := run(a, c, 3); err != nil {
			t.Errorf("two readers of one buffer: %v", err)
		}
		if _, err := k.Run("simd_barrier_suffices", []KernelArg{{Memory: a}, {Memory: b}}, KernelGrid{Groups: [3]int{1}, Threads: [3]int{256}}, KernelOptions{Check: true}); err != nil {
			t.Errorf("a simdgroup_barrier orders the lanes of a simdgroup: %v", err)
		}
		a.Free()
		b.Free()
		c.Free()
	}
}
