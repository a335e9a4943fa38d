package qwen36

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pond/inference/tinymodel"
)

// loadChanged writes a changed model, opens it and loads its weights; config changes are as in tinyConfig.
func loadChanged(t *testing.T, m *tinymodel.Model, set map[string]any) (*Weights, error) {
	t.Helper()
	c := openGenerated(t, m)
	s, q, err := ParseConfig(changedConfig(t, m.Config, set), nil)
	if err != nil {
		return nil, err
	}
	return LoadWeights(c, s, q)
}

func generate(t *testing.T, o tinymodel.Options) *tinymodel.Model {
	t.Helper()
	m, err := tinymodel.GenerateWith(tinymodel.Tiny, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLoadWeights reads every field back by the name that it must have.
func TestLoadWeights(t *testing.T) {
	c, w, s := goldenModel(t, tinymodel.Tiny)
	if len(w.Layers) != s.Layers || w.SkippedTensors != 0 {
		t.Fatalf("got %d layers and %d skipped tensors, want %d and none", len(w.Layers), w.SkippedTensors, s.Layers)
	}
	l0, l3 := w.Layers[0], w.Layers[3]
	if l0.GDN == nil || l0.Attention != nil || l3.Attention == nil || l3.GDN != nil {
		t.Fatal("got the wrong mixers in layers 0 and 3, want gdn and attention")
	}
	const p = "language_model.model.layers."
	for module, l := range map[string]Linear{
		"language_model.lm_head":            w.Head,
		"language_model.model.embed_tokens": w.Embed,
		p + "0.linear_attn.in_proj_qkv":     l0.GDN.QKV,
		p + "0.linear_attn.in_proj_a":       l0.GDN.A,
		p + "0.linear_attn.in_proj_b":       l0.GDN.B,
		p + "0.mlp.gate":                    l0.MoE.Router,
		p + "0.mlp.shared_expert_gate":      l0.MoE.SharedGate,
		p + "0.mlp.shared_expert.gate_proj": l0.MoE.SharedGateProj,
		p + "0.mlp.shared_expert.up_proj":   l0.MoE.SharedUp,
		p + "0.mlp.shared_expert.down_proj": l0.MoE.SharedDown,
		p + "3.mlp.switch_mlp.gate_proj":    l3.MoE.Gate,
		p + "3.mlp.switch_mlp.up_proj":      l3.MoE.Up,
		p + "3.mlp.switch_mlp.down_proj":    l3.MoE.Down,
		p + "3.self_attn.k_proj":            l3.Attention.K,
		p + "3.self_attn.v_proj":            l3.Attention.V,
	} {
		if l.Module != module || l.Codes.Name != module+".weight" || l.Scales.Name != module+".scales" || l.Biases.Name != module+".biases" {
			t.Errorf("%s: got %s with %s, %s, %s", module, l.Module, l.Codes.Name, l.Scales.Name, l.Biases.Name)
		}
		if got, want := len(l.Codes.Data), l.Stack*l.Rows*l.K*l.Bits/8; got != want {
			t.Errorf("%s: got %d bytes of codes, want %d by its dimensions", module, got, want)
		}
	}
	if got := l3.MoE.Down; got.Stack != s.Experts || got.Rows != s.Hidden || got.K != s.Inter || got.Bits != 4 {
		t.Errorf("down: got %d x [%d, %d] of %d bits, want %d x [%d, %d] of 4", got.Stack, got.Rows, got.K, got.Bits, s.Experts, s.Hidden, s.Inter)
	}
	wanted := Wanted(s, Quantization{GroupSize: 64, Bits: 4})
	if got := c.Names(); len(got) != len(wanted) {
		t.Errorf("got %d tensors in the file, want the wanted %d", len(got), len(wanted))
	}
}

// TestWrongQuantisation is the case "a quantised model loads cleanly and speaks nonsense": mixed or foreign forms are
// refused by the name of the tensor.
func TestWrongQuantisation(t *testing.T) {
	const gate = "language_model.model.layers.0.mlp.gate"
	const kProj = "language_model.model.layers.3.self_attn.k_proj"
	t.Run("a: gates of 8 bits, as declared", func(t *testing.T) {
		w, err := loadChanged(t, generate(t, tinymodel.Options{}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Layers[0].MoE.Router.Bits; got != 8 {
			t.Errorf("router: got %d bits, want 8", got)
		}
	})
	for _, c := range []struct {
		name   string
		model  tinymodel.Options
		change func(*tinymodel.Model)
		set    map[string]any
		want   string
	}{
		{
			name: "b: the gate's override removed from the config",
			set:  map[string]any{"quantization/" + gate: nil, "quantization_config/" + gate: nil},
			want: gate + ".weight: got U32 [16 32], want U32 [16 16]: packed with 8 bits a weight, config.json declares 4",
		},
		{
			name:  "a gate of 4 bits under an override of 8",
			model: tinymodel.Options{Bits: map[string]int{gate: 4}},
			set: map[string]any{
				"quantization/" + gate:        map[string]any{"group_size": 64, "bits": 8},
				"quantization_config/" + gate: map[string]any{"group_size": 64, "bits": 8},
			},
			want: gate + ".weight: got U32 [16 16], want U32 [16 32]: packed with 4 bits a weight, config.json declares 8",
		},
		{
			name:  "a gate of 4 bits, declared so",
			model: tinymodel.Options{Bits: map[string]int{gate: 4}},
			want:  gate + ".weight: got 4 bits a weight, want 8, the width computed there",
		},
		{
			name:  "a projection of 8 bits, declared so",
			model: tinymodel.Options{Bits: map[string]int{kProj: 8}},
			want:  kProj + ".weight: got 8 bits a weight, want 4, the width computed there",
		},
		{
			name:  "a projection of 8 bits, not declared",
			model: tinymodel.Options{Bits: map[string]int{kProj: 8}},
			set:   map[string]any{"quantization/" + kProj: nil, "quantization_config/" + kProj: nil},
			want:  kProj + ".weight: got U32 [64 32], want U32 [64 16]: packed with 8 bits a weight, config.json declares 4",
		},
		{
			name:  "c: groups of 32, declared so",
			model: tinymodel.Options{GroupSize: 32},
			want:  "config.json: quantization.group_size: got 32, want 64",
		},
		{
			name:  "c: groups of 32 under a config that says 64",
			model: tinymodel.Options{GroupSize: 32},
			change: func(m *tinymodel.Model) {
				good, err := tinymodel.Config(tinymodel.Tiny, tinymodel.Options{})
				if err != nil {
					panic(err)
				}
				m.Config = good
			},
			want: "language_model.model.embed_tokens.scales: got BF16 [320 4], want BF16 [320 2]",
		},
		{
			name:   "d: biases missing",
			change: func(m *tinymodel.Model) { m.Drop(kProj + ".biases") },
			want:   kProj + ".biases: missing, want BF16 [64 2]",
		},
		{
			name: "e: NVFP4, in groups of 16 with one byte of scale and no bias",
			change: func(m *tinymodel.Model) {
				x := m.Find(kProj + ".scales")
				x.DType, x.Shape, x.Data = "U8", []int{64, 8}, make([]byte, 64*8)
				m.Drop(kProj + ".biases")
			},
			want: kProj + ".scales: got U8 [64 8], want BF16 [64 2]",
		},
		{
			name: "e: NVFP4 by the names of other converters",
			change: func(m *tinymodel.Model) {
				x := m.Find(kProj + ".weight")
				x.DType, x.Shape = "F4", []int{64, 128}
			},
			want: kProj + ".weight: got F4 [64 128], want U32 [64 16]",
		},
		{
			name:   "e: NVFP4, declared so",
			change: func(*tinymodel.Model) {},
			set:    map[string]any{"quantization/mode": "nvfp4"},
			want:   `config.json: quantization.mode: got "nvfp4", want "affine"`,
		},
		{
			name:   "scales in half precision",
			change: func(m *tinymodel.Model) { m.Find(kProj + ".scales").DType = "F16" },
			want:   kProj + ".scales: got F16 [64 2], want BF16 [64 2]",
		},
		{
			name: "weights not quantised",
			change: func(m *tinymodel.Model) {
				x := m.Find(kProj + ".weight")
				x.DType, x.Shape, x.Data = "BF16", []int{64, 128}, make([]byte, 2*64*128)
			},
			want: kProj + ".weight: got BF16 [64 128], want U32 [64 16]",
		},
		{
			name: "a projection of another model",
			change: func(m *tinymodel.Model) {
				x := m.Find(kProj + ".weight")
				x.Shape, x.Data = []int{128, 16}, make([]byte, 4*128*16)
			},
			want: kProj + ".weight: got U32 [128 16], want U32 [64 16]",
		},
		{
			name: "convolution in upstream's layout",
			change: func(m *tinymodel.Model) {
				m.Find("language_model.model.layers.0.linear_attn.conv1d.weight").Shape = []int{256, 1, 4}
			},
			want: "language_model.model.layers.0.linear_attn.conv1d.weight: got BF16 [256 1 4], want BF16 [256 4 1]",
		},
		{
			name: "norms in upstream's form",
			change: func(m *tinymodel.Model) {
				x := m.Find("language_model.model.norm.weight")
				for i := 0; i < len(x.Data); i += 2 {
					v := math.Float32frombits(uint32(binary.LittleEndian.Uint16(x.Data[i:]))<<16) - 1
					binary.LittleEndian.PutUint16(x.Data[i:], uint16(math.Float32bits(v)>>16))
				}
			},
			want: "language_model.model.norm.weight: got a mean of",
		},
		{
			name: "norms that are no numbers",
			change: func(m *tinymodel.Model) {
				binary.LittleEndian.PutUint16(m.Find("language_model.model.norm.weight").Data, 0x7fc0)
			},
			want: "model.safetensors: language_model.model.norm.weight: element 0: got NaN, want a number: the file is damaged",
		},
		{
			name: "an infinite decay",
			change: func(m *tinymodel.Model) {
				binary.LittleEndian.PutUint16(m.Find("language_model.model.layers.1.linear_attn.A_log").Data[2:], 0xff80)
			},
			want: "language_model.model.layers.1.linear_attn.A_log: element 1: got an infinity, want a number",
		},
		{
			name: "random bytes among the scales",
			change: func(m *tinymodel.Model) {
				data := m.Find("language_model.model.layers.2.mlp.switch_mlp.up_proj.scales").Data
				r := rand.New(rand.NewPCG(1, 2))
				for i := range data[len(data)/4 : len(data)/2] {
					data[len(data)/4+i] = byte(r.Uint32())
				}
			},
			want: "language_model.model.layers.2.mlp.switch_mlp.up_proj.scales: element ",
		},
		{
			name: "left-over tensors",
			change: func(m *tinymodel.Model) {
				for _, name := range []string{"mtp.fc.weight", "language_model.model.layers.4.mlp.gate.bias", "mtp.norm.weight", "mtp.x", "vision_tower.x"} {
					m.Tensors = append(m.Tensors, tinymodel.Tensor{Name: name, DType: "BF16", Shape: []int{1}, Data: []byte{0, 0}})
				}
			},
			want: "left-over tensors: got 4 that the model has no place for, want none: language_model.model.layers.4.mlp.gate.bias, mtp.fc.weight, mtp.norm.weight, ...",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := generate(t, c.model)
			if c.change != nil {
				c.change(m)
			}
			w, err := loadChanged(t, m, c.set)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error\n%v\nwant\n%s", err, c.want)
			}
			if w != nil {
				t.Error("got weights beside the error, want none")
			}
		})
	}
}

// TestEveryTensorIsNeeded drops each tensor of the tiny model in turn: the error names it.
func TestEveryTensorIsNeeded(t *testing.T) {
	m := generate(t, tinymodel.Options{})
	config := changedConfig(t, m.Config, nil)
	s, q, err := ParseConfig(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Clone(m.Tensors)
	for i, dropped := range all {
		m.Tensors = slices.Delete(slices.Clone(all), i, i+1)
		c := openGenerated(t, m)
		if _, err := LoadWeights(c, s, q); err == nil || !strings.HasPrefix(err.Error(), dropped.Name+": missing, want ") {
			t.Errorf("without %s: got error %v", dropped.Name, err)
		}
		c.Close()
	}
}

func TestVisionTowerIsSkipped(t *testing.T) {
	m := generate(t, tinymodel.Options{})
	m.Tensors = append(m.Tensors,
		tinymodel.Tensor{Name: "vision_tower.patch_embed.proj.bias", DType: "BF16", Shape: []int{3}, Data: make([]byte, 6)},
		tinymodel.Tensor{Name: "vision_tower.pos_embed.weight", DType: "BF16", Shape: []int{2, 2}, Data: make([]byte, 8)})
	w, err := loadChanged(t, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if w.SkippedTensors != 2 || w.SkippedBytes != 14 {
		t.Errorf("skipped: got %d tensors of %d bytes, want 2 of 14", w.SkippedTensors, w.SkippedBytes)
	}
}

// TestSplitTriple loads a module whose biases lie in another file than its weights, and computes the golden tokens.
func TestSplitTriple(t *testing.T) {
	m := generate(t, tinymodel.Options{})
	m.SplitAfter = "language_model.model.layers.1.linear_attn.in_proj_qkv.scales"
	_, w, s := loadModel(t, m)
	if l := w.Layers[1].GDN.QKV; l.Scales.File == l.Biases.File {
		t.Errorf("got scales and biases both in %s, want two files", l.Scales.File)
	}
	if got, _ := newOracle(w, s).greedy(goldenPrompt(), len(goldenTiny())); !slices.Equal(got, goldenTiny()) {
		t.Errorf("greedy tokens: got %d, want %d", got, goldenTiny())
	}
}
