package inference

import (
	"context"
	"testing"
)

func TestSelfTestOfTheHostMatches(t *testing.T) {
	r, err := SelfTest(context.Background(), Host)
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Differing(); len(d) > 0 {
		t.Errorf("got differences %v of the host from itself", d)
	}
	used := 0
	for _, k := range r.Kernels {
		if k.Dispatches > 0 {
			used++
		} else {
			t.Logf("%s is not used", k.Kernel)
		}
	}
	if used < len(r.Kernels)-2 {
		t.Errorf("got %d kernels tried, want nearly all of %d", used, len(r.Kernels))
	}
}
