package qwen36

import (
	"testing"

	"pond/inference/tinymodel"

	"github.com/google/go-cmp/cmp"
)

// A shape by name is the one that the model's own configuration gives.
func TestNamedShapes(t *testing.T) {
	want := map[string]Shape{"real": realShape()}
	_, _, want["tiny"] = goldenModel(t, tinymodel.Tiny)
	_, _, want["kernel-true"] = goldenModel(t, tinymodel.KernelTrue)
	_, _, want["demo"] = goldenModel(t, tinymodel.DemoShaped)
	for _, name := range ShapeNames() {
		got, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		w := want[name]
		got.IDs, got.EOS, w.EOS = 0, nil, nil // known with a tokenizer only
		got.MaxContext = w.MaxContext
		if d := cmp.Diff(w, got); d != "" {
			t.Errorf("%s (-config +named):\n%s", name, d)
		}
	}
	if _, err := Named("big"); err == nil {
		t.Error("an unknown name: got no error")
	}
}
