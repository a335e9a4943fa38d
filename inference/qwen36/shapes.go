package qwen36

import "fmt"

// ShapeNames lists the shapes that Named knows: the published model, the demo model that ships, and the two golden models.
func ShapeNames() []string { return []string{"real", "demo", "kernel-true", "tiny"} }

// Named returns a shape by name, for plans that are inspected without weights (spec 8, the table of models).
func Named(name string) (Shape, error) {
	s := Shape{
		Interval: 4, Heads: 4, KVHeads: 2, HeadDim: 256, RotaryDim: 64, RopeTheta: 1e7,
		KeyHeads: 2, ValueHeads: 4, KeyDim: 128, ValueDim: 128, ConvTaps: 4, Hidden: 512,
		RMSEps: 1e-6, MaxContext: 262_144, GroupSize: 64,
	}
	switch name {
	case "real":
		s.Hidden, s.Layers, s.Vocab, s.IDs = 2048, 40, 248_320, 248_077
		s.Heads, s.KeyHeads, s.ValueHeads = 16, 16, 32
		s.Experts, s.TopK, s.Inter, s.SharedInter = 256, 8, 512, 512
	case "demo":
		s.Layers, s.Vocab = 8, 4096
		s.Experts, s.TopK, s.Inter, s.SharedInter = 12, 4, 256, 256
	case "kernel-true":
		s.Layers, s.Vocab = 4, 512
		s.Experts, s.TopK, s.Inter, s.SharedInter = 16, 8, 512, 512
	case "tiny":
		s.Hidden, s.Layers, s.Vocab = 128, 4, 320
		s.Heads, s.HeadDim, s.RotaryDim = 8, 32, 8
		s.KeyDim, s.ValueDim = 32, 32
		s.Experts, s.TopK, s.Inter, s.SharedInter = 16, 4, 64, 64
	default:
		return Shape{}, fmt.Errorf("shape: got %q, want one of %v", name, ShapeNames())
	}
	return s, nil
}
