package qwen36

import (
	"math"
	"testing"

	"pond/inference/checkpoint"
	"pond/inference/tinymodel"
	"pond/metal/host"
)

// openModel writes a golden model, loads it strictly and places it on the host.
func openModel(t testing.TB, kind tinymodel.Kind, context int) (*Model, *Weights) {
	t.Helper()
	gen, err := tinymodel.Generate(kind)
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := gen.FS()
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.OpenFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return placeModel(t, c, context)
}

func placeModel(t testing.TB, c *checkpoint.Checkpoint, context int) (*Model, *Weights) {
	t.Helper()
	cfg, err := c.File("config.json")
	if err != nil {
		t.Fatal(err)
	}
	s, q, err := ParseConfig(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := LoadWeights(c, s, q)
	if err != nil {
		t.Fatal(err)
	}
	dev := host.Open(2)
	t.Cleanup(func() { dev.Close(); c.Close() })
	m, err := NewModel(dev, c, s, context)
	if err != nil {
		t.Fatal(err)
	}
	return m, w
}

func newSequence(t testing.TB, m *Model) *Sequence {
	t.Helper()
	q, err := m.NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func best(v []float32) int32 {
	top := 0
	for i, x := range v {
		if x > v[top] {
			top = i
		}
	}
	return int32(top)
}

// greedy continues a prompt for n tokens, token by token.
func greedy(t testing.TB, q *Sequence, prompt []int32, n int) []int32 {
	t.Helper()
	var out []int32
	var logits []float32
	var err error
	for _, id := range prompt {
		if logits, err = q.Token(id); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		out = append(out, best(logits))
		if logits, err = q.Token(out[len(out)-1]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestGreedyEqualsSpec(t *testing.T) {
	for _, c := range []struct {
		kind tinymodel.Kind
		want []int32
	}{
		{tinymodel.Tiny, []int32{267, 0, 145, 311, 299}},
		{tinymodel.KernelTrue, []int32{162, 51, 460, 276, 411, 41, 246, 79, 199, 117, 8, 71, 183}},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			m, _ := openModel(t, c.kind, 64)
			got := greedy(t, newSequence(t, m), goldenPrompt(), len(c.want))
			for i := range c.want {
				if got[i] != c.want[i] {
					t.Fatalf("got %v, want %v", got, c.want)
				}
			}
		})
	}
}

func sameBits(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}
