package inference

import (
	"context"
	"testing"
)

func TestSelfTestOfTheHostMatches(t *testing.T) {
	for _, x := range []Executor{Host, HostExact, HostInt8} {
		t.Run(string(x), func(t *testing.T) { selfTestMatches(t, x) })
	}
}

func selfTestMatches(t *testing.T, x Executor) {
	t.Helper()
	r, err := SelfTest(context.Background(), x)
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Differing(); len(d) > 0 {
		t.Errorf("got differences %v of the host from its references", d)
	}
	used := 0
	for _, k := range r.Kernels {
		if k.Dispatches > 0 {
			used++
		} else {
			t.Logf("%s is not used", k.Kernel)
		}
	}
	const otherCache = 8 // of types that the executor does not keep, and products in parts, which only a GPU has
	const unfused = 6    // kernels that no plan as shipped has
	if used < len(r.Kernels)-otherCache-unfused {
		t.Errorf("got %d kernels tried, want all but %d of %d", used, otherCache+unfused, len(r.Kernels))
	}
}
