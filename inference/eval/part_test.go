package eval

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"pond/inference"
)

func trace(values ...step) *Trace { return &Trace{Executor: "made up", steps: values} }

func TestParting(t *testing.T) {
	a := trace(step{"embed", "x", true, []float32{1, 1}}, step{"layers.0.gdn.in", "y", false, []float32{2, 2}}, step{"layers.0.gdn.out", "x", true, []float32{3, 3}})
	same, err := Compare(a, a)
	if err != nil {
		t.Fatal(err)
	}
	if good, bad := Parting(same, 1e-9); good != -1 || bad != -1 {
		t.Errorf("equal: got %d, %d, want no parting", good, bad)
	}
	b := trace(a.steps[0], step{"layers.0.gdn.in", "y", false, []float32{2, 2.2}}, step{"layers.0.gdn.out", "x", true, []float32{3, float32(math.NaN())}})
	ds, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if good, bad := Parting(ds, 0.01); good != 0 || bad != 1 {
		t.Errorf("got %d, %d, want 0, 1: parts at the input projection, good until the embedding", good, bad)
	}
	if want := 0.2 / math.Sqrt(8); math.Abs(ds[1].Relative-want) > 1e-6 || ds[1].At != 1 {
		t.Errorf("got a difference of %v at %d, want %v at 1", ds[1].Relative, ds[1].At, want)
	}
	if ds[2].Relative != math.MaxFloat64 {
		t.Errorf("NaN: got %v, want no agreement", ds[2].Relative)
	}
	if _, err := Compare(a, trace(a.steps[:2]...)); err == nil {
		t.Error("another plan: got no error")
	}
}

func TestBetween(t *testing.T) {
	order := []string{"embed", "in", "step", "out", "next"}
	for _, c := range []struct {
		from, to string
		want     []string
	}{{"embed", "out", []string{"in", "step", "out"}}, {"", "in", []string{"embed", "in"}}} {
		keep := Between(c.from, c.to)
		var got []string
		for _, d := range order {
			if keep(d) {
				got = append(got, d)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q to %q: got %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

// Eight bits part from float32 in the first layer, and the taps of the real plan say at a dispatch of that layer; sixteen do not part at all.
func TestTapsOfTwoExecutors(t *testing.T) {
	ids := demoReference(t).Positions.Tokens[:16]
	take := func(x inference.Executor) *Trace {
		tr, err := TakeTrace(context.Background(), openDemo(t, x), ids, func(string) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	exact := take(inference.HostExact)
	streams := 0
	for _, s := range exact.steps {
		if s.stream {
			streams++
		}
	}
	if want := 1 + 2*8; streams != want {
		t.Errorf("got %d taps of the stream, want %d: the embedding and two a layer", streams, want)
	}
	ds, err := Compare(exact, take(inference.Host))
	if err != nil {
		t.Fatal(err)
	}
	if _, bad := Parting(ds, 0.01); bad >= 0 {
		t.Errorf("sixteen bits part at %s by %g, want nowhere", ds[bad].Dispatch, ds[bad].Relative)
	}
	if ds, err = Compare(exact, take(inference.HostInt8)); err != nil {
		t.Fatal(err)
	}
	if _, bad := Parting(ds, 0.001); bad < 0 || !strings.HasPrefix(ds[bad].Dispatch, "layers.0.") {
		t.Errorf("eight bits: got parting %d, want one in layer 0", bad)
	}
}
