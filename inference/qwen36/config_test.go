package qwen36

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pond/inference/checkpoint"
	"pond/inference/tinymodel"
)

// publishedFile reads a small file of the real checkpoint. The repository carries no copies: POND_SPEC_FILES names a
// folder with them, and a shared folder beside the repository is looked at too.
func publishedFile(t testing.TB, name string) []byte {
	t.Helper()
	dir := os.Getenv("POND_SPEC_FILES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "spec", "files")
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Skipf("%s of the published checkpoint is not here: %v", name, err)
	}
	return data
}

// realShape is the published model's; the spelling is independent of the reader's.
func realShape() Shape {
	return Shape{
		Hidden: 2048, Layers: 40, Interval: 4, Vocab: 248320,
		Heads: 16, KVHeads: 2, HeadDim: 256, RotaryDim: 64, RopeTheta: 1e7,
		KeyHeads: 16, ValueHeads: 32, KeyDim: 128, ValueDim: 128, ConvTaps: 4,
		Experts: 256, TopK: 8, Inter: 512, SharedInter: 512,
		RMSEps: 1e-6, MaxContext: 262144, EOS: []int32{248046, 248044}, GroupSize: 64,
	}
}

func TestParsePublishedConfig(t *testing.T) {
	s, q, err := ParseConfig(publishedFile(t, "config.json"), publishedFile(t, "generation_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if want := realShape(); !reflect.DeepEqual(s, want) {
		t.Errorf("got\n%+v\nwant\n%+v", s, want)
	}
	if len(q.Modules) != 80 || q.BitsOf("language_model.model.layers.39.mlp.gate") != 8 || q.BitsOf("language_model.lm_head") != 4 {
		t.Errorf("quantization: got %+v, want 4 bits and 8 for 80 gates", q)
	}
}

// TestWantedOfPublishedModel compares the wanted names with the published index: exactly its text tensors.
func TestWantedOfPublishedModel(t *testing.T) {
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(publishedFile(t, "model.safetensors.index.json"), &index); err != nil {
		t.Fatal(err)
	}
	_, q, err := ParseConfig(publishedFile(t, "config.json"), nil)
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{}
	for _, w := range Wanted(realShape(), q) {
		wanted[w.Name] = true
		if _, ok := index.WeightMap[w.Name]; !ok {
			t.Errorf("wanted %s: got no such name in the published index", w.Name)
		}
	}
	vision := 0
	for name := range index.WeightMap {
		switch {
		case strings.HasPrefix(name, visionPrefix):
			vision++
		case !wanted[name]:
			t.Errorf("published %s: nobody wants it", name)
		}
	}
	if vision != 333 {
		t.Errorf("vision tensors: got %d, want 333", vision)
	}
}

// TestWantedBytes needs no files: counts and bytes of the real model's text part, and some of its shapes.
func TestWantedBytes(t *testing.T) {
	q := Quantization{GroupSize: 64, Bits: 4, Modules: map[string]int{}}
	for i := range 40 {
		layer := fmt.Sprintf("language_model.model.layers.%d", i)
		q.Modules[layer+".mlp.gate"] = 8
		q.Modules[layer+".mlp.shared_expert_gate"] = 8
	}
	wanted := Wanted(realShape(), q)
	var lenBytes int64
	for _, w := range wanted {
		lenBytes += w.Bytes()
	}
	if len(wanted) != 1757 || lenBytes != 19_508_787_456 {
		t.Errorf("got %d tensors of %d bytes, want 1757 of 19508787456", len(wanted), lenBytes)
	}
	for name, want := range map[string][]int{
		"language_model.model.embed_tokens.weight":                          {248320, 256},
		"language_model.model.layers.20.linear_attn.in_proj_qkv.scales":     {8192, 32},
		"language_model.model.layers.0.linear_attn.conv1d.weight":           {8192, 4, 1},
		"language_model.model.layers.3.self_attn.q_proj.weight":             {8192, 256},
		"language_model.model.layers.3.self_attn.o_proj.weight":             {2048, 512},
		"language_model.model.layers.39.mlp.gate.weight":                    {256, 512},
		"language_model.model.layers.39.mlp.shared_expert_gate.biases":      {1, 32},
		"language_model.model.layers.39.mlp.switch_mlp.down_proj.weight":    {256, 2048, 64},
		"language_model.model.layers.39.mlp.shared_expert.down_proj.biases": {2048, 8},
	} {
		i := slices.IndexFunc(wanted, func(w Want) bool { return w.Name == name })
		if i < 0 || !slices.Equal(wanted[i].Shape, want) {
			t.Errorf("%s: want it with shape %d", name, want)
		}
	}
}

func TestParseGoldenConfigs(t *testing.T) {
	tiny := Shape{
		Hidden: 128, Layers: 4, Interval: 4, Vocab: 320, Heads: 8, KVHeads: 2, HeadDim: 32, RotaryDim: 8, RopeTheta: 1e7,
		KeyHeads: 2, ValueHeads: 4, KeyDim: 32, ValueDim: 32, ConvTaps: 4, Experts: 16, TopK: 4, Inter: 64, SharedInter: 64,
		RMSEps: 1e-6, MaxContext: 262144, EOS: []int32{258, 256}, GroupSize: 64,
	}
	kernelTrue, demo := tiny, tiny
	kernelTrue.Hidden, kernelTrue.Vocab, kernelTrue.Heads, kernelTrue.HeadDim, kernelTrue.RotaryDim = 512, 512, 4, 256, 64
	kernelTrue.KeyDim, kernelTrue.ValueDim, kernelTrue.TopK, kernelTrue.Inter, kernelTrue.SharedInter = 128, 128, 8, 512, 512
	demo = kernelTrue
	demo.Layers, demo.Vocab, demo.Experts, demo.TopK, demo.Inter, demo.SharedInter = 8, 4096, 12, 4, 256, 256
	for kind, want := range map[tinymodel.Kind]Shape{tinymodel.Tiny: tiny, tinymodel.KernelTrue: kernelTrue, tinymodel.DemoShaped: demo} {
		t.Run(kind.String(), func(t *testing.T) {
			base, err := tinymodel.Config(kind, tinymodel.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, q, err := ParseConfig(changedConfig(t, base, nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%+v\nwant\n%+v", got, want)
			}
			if want := 2 * got.Layers; len(q.Modules) != want {
				t.Errorf("modules of 8 bits: got %d, want %d", len(q.Modules), want)
			}
		})
	}
}

// TestDemoModel reads the demo model's own configuration, and its weights by name.
func TestDemoModel(t *testing.T) {
	dir := filepath.Join("..", "..", "assets", "demo")
	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Skipf("the demo model is not here: %v", err)
	}
	generation, err := os.ReadFile(filepath.Join(dir, "generation_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	s, q, err := ParseConfig(config, generation)
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the demo model's weights are not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := LoadWeights(c, s, q); err != nil {
		t.Error(err)
	}
}

// tinyConfig returns the tiny model's configuration with changes made by set, whose paths have the form a/b/c; a nil
// value removes the key, and null is written as json.RawMessage("null").
func tinyConfig(t testing.TB, set map[string]any) []byte {
	t.Helper()
	base, err := tinymodel.Config(tinymodel.Tiny, tinymodel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return changedConfig(t, base, set)
}

func changedConfig(t testing.TB, base map[string]any, set map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil { // a copy: both quantization blocks of base are one map
		t.Fatal(err)
	}
	for path, value := range set {
		at := config
		keys := strings.Split(path, "/")
		for _, key := range keys[:len(keys)-1] {
			at = at[key].(map[string]any)
		}
		if value == nil {
			delete(at, keys[len(keys)-1])
		} else {
			at[keys[len(keys)-1]] = value
		}
	}
	if text, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestParseConfigAccepts(t *testing.T) {
	null := json.RawMessage("null")
	for name, set := range map[string]map[string]any{
		"as it is": {},
		"keys with one possible value left out": {
			"text_config/attention_bias": nil, "text_config/attn_output_gate": nil, "text_config/hidden_act": nil,
			"text_config/tie_word_embeddings": nil, "tie_word_embeddings": nil, "text_config/mamba_ssm_dtype": nil, "text_config/dtype": nil,
		},
		"the same by null":                 {"text_config/rope_scaling": null, "text_config/sliding_window": null, "text_config/norm_topk_prob": null},
		"normalised top-k spelt out":       {"text_config/norm_topk_prob": true, "text_config/mlp_only_layers": []int{}, "text_config/decoder_sparse_step": 1},
		"layer types without interval":     {"text_config/full_attention_interval": nil},
		"interval without layer types":     {"text_config/layer_types": nil},
		"rotary factor in either place":    {"text_config/rope_parameters/partial_rotary_factor": nil},
		"rotary factor in the other place": {"text_config/partial_rotary_factor": nil},
		"one quantization block":           {"quantization": nil},
		"the other block":                  {"quantization_config": nil},
		"mode left out":                    {"quantization/mode": nil},
		"override that says the default":   {"quantization/language_model.lm_head": map[string]any{"bits": 4, "group_size": 64}},
		"override in the vision tower":     {"quantization/vision_tower.merger": map[string]any{"bits": 8}, "quantization_config": nil},
		"unknown keys":                     {"text_config/router_jitter": 0.5, "vision_config": map[string]any{"depth": 27}},
	} {
		t.Run(name, func(t *testing.T) {
			want, wantQ, err := ParseConfig(tinyConfig(t, nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, q, err := ParseConfig(tinyConfig(t, set), nil)
			if err != nil {
				t.Fatal(err)
			}
			delete(q.Modules, "vision_tower.merger")
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(q, wantQ) {
				t.Errorf("got %+v %+v, want %+v %+v", got, q, want, wantQ)
			}
		})
	}
	// The ids that end an answer: generation_config.json first, one id or several.
	for text, want := range map[string][]int32{`{"eos_token_id":7}`: {7}, `{"eos_token_id":[9,8]}`: {9, 8}, `{}`: {258, 256}} {
		if s, _, err := ParseConfig(tinyConfig(t, nil), []byte(text)); err != nil || !slices.Equal(s.EOS, want) {
			t.Errorf("generation_config.json %s: got %d, error %v, want %d", text, s.EOS, err, want)
		}
	}
}

func TestParseConfigErrors(t *testing.T) {
	const gate = "language_model.model.layers.0.mlp.gate"
	types := func(a ...string) []string { return a }
	for _, c := range []struct {
		path  string
		value any // nil removes the key
		want  string
	}{
		{"architectures", []string{"Qwen3MoeForCausalLM"}, `config.json: architectures: got ["Qwen3MoeForCausalLM"], want ["Qwen3_5MoeForConditionalGeneration"]`},
		{"architectures", nil, `config.json: architectures: got nothing, want`},
		{"model_type", "qwen3_next", `config.json: model_type: got "qwen3_next", want "qwen3_5_moe"`},
		{"tie_word_embeddings", true, `config.json: tie_word_embeddings: got true, want false`},
		{"text_config", nil, `config.json: text_config: got nothing, want an object`},
		{"text_config", 7, `config.json: text_config: got 7, want an object`},
		{"text_config/model_type", "qwen3_5_text", `config.json: text_config.model_type: got "qwen3_5_text", want "qwen3_5_moe_text"`},
		{"text_config/attention_bias", true, `text_config.attention_bias: got true, want false`},
		{"text_config/attn_output_gate", false, `text_config.attn_output_gate: got false, want true`},
		{"text_config/hidden_act", "gelu", `text_config.hidden_act: got "gelu", want "silu"`},
		{"text_config/norm_topk_prob", false, `text_config.norm_topk_prob: got false, want true`},
		{"text_config/tie_word_embeddings", true, `text_config.tie_word_embeddings: got true, want false`},
		{"text_config/mamba_ssm_dtype", "bfloat16", `text_config.mamba_ssm_dtype: got "bfloat16", want "float32"`},
		{"text_config/dtype", "float16", `text_config.dtype: got "float16", want "bfloat16"`},
		{"text_config/mlp_only_layers", []int{0}, `text_config.mlp_only_layers: got [0], want []`},
		{"text_config/decoder_sparse_step", 2, `text_config.decoder_sparse_step: got 2, want 1`},
		{"text_config/sliding_window", 4096, `text_config.sliding_window: got 4096, want null`},
		{"text_config/rope_scaling", map[string]any{"type": "yarn"}, `text_config.rope_scaling: got {"type":"yarn"}, want null`},
		{"text_config/rope_parameters/rope_type", "yarn", `text_config.rope_parameters.rope_type: got "yarn", want "default"`},
		{"text_config/rope_parameters", nil, `text_config.rope_parameters: got nothing, want an object`},
		{"text_config/rope_parameters/rope_theta", nil, `rope_theta: got nothing, want a number above 0`},
		{"text_config/rope_parameters/rope_theta", -1, `rope_theta: got -1, want a number above 0`},
		{"text_config/rope_theta", 10000, `text_config.rope_theta: got 10000, want 10000000`},
		{"text_config/partial_rotary_factor", 0.5, `text_config.partial_rotary_factor: got 0.5, want 0.25`},
		{"text_config/rope_parameters/mrope_section", []int{1, 1, 1}, `mrope_section: got [1,1,1], want sections that sum to 4`},
		{"text_config/linear_conv_kernel_dim", 3, `text_config.linear_conv_kernel_dim: got 3, want 4`},
		{"text_config/hidden_size", nil, `text_config.hidden_size: got nothing, want a whole number from 1`},
		{"text_config/hidden_size", 0, `text_config.hidden_size: got 0, want a whole number from 1`},
		{"text_config/hidden_size", -128, `text_config.hidden_size: got -128, want`},
		{"text_config/hidden_size", 128.5, `text_config.hidden_size: got 128.5, want`},
		{"text_config/hidden_size", "128", `text_config.hidden_size: got "128", want`},
		{"text_config/hidden_size", 1 << 40, `text_config.hidden_size: got 1099511627776, want`},
		{"text_config/hidden_size", json.RawMessage("null"), `text_config.hidden_size: got null, want`},
		{"text_config/hidden_size", 96, `text_config.hidden_size: got 96, want a multiple of 64`},
		{"text_config/num_hidden_layers", 6, `text_config.layer_types: got ["linear_attention"`},
		{"text_config/num_hidden_layers", 1 << 20, `text_config.num_hidden_layers: got 1048576, want a whole number from 1 to 4096`},
		{"text_config/layer_types", types("linear_attention", "linear_attention", "full_attention", "full_attention"), `text_config.layer_types[2]: got "full_attention", want "linear_attention"`},
		{"text_config/layer_types", types("linear_attention", "linear_attention", "linear_attention", "sliding_attention"), `text_config.layer_types[3]: got "sliding_attention", want "full_attention"`},
		{"text_config/full_attention_interval", 2, `text_config.layer_types[1]: got "linear_attention", want "full_attention"`},
		{"text_config/num_key_value_heads", 3, `text_config.num_attention_heads: got 8, want a multiple of 3`},
		{"text_config/linear_num_key_heads", 3, `text_config.linear_num_value_heads: got 4, want a multiple of 3`},
		{"text_config/linear_key_head_dim", 48, `text_config.linear_key_head_dim: got 48, want a multiple of 32`},
		{"text_config/linear_value_head_dim", 8, `linear_num_value_heads * linear_value_head_dim: got 32, want a multiple of 64`},
		{"text_config/moe_intermediate_size", 100, `text_config.moe_intermediate_size: got 100, want a multiple of 64`},
		{"text_config/shared_expert_intermediate_size", 32, `text_config.shared_expert_intermediate_size: got 32, want a multiple of 64`},
		{"text_config/num_experts_per_tok", 17, `text_config.num_experts_per_tok: got 17, want at most the 16 experts`},
		{"text_config/rms_norm_eps", 0, `text_config.rms_norm_eps: got 0, want a number above 0`},
		{"eos_token_id", 320, `config.json: eos_token_id: got 320, want ids from 0 to 319`},
		{"eos_token_id", []int{}, `config.json: eos_token_id: got [], want an id or a list of ids`},
		{"eos_token_id", nil, `config.json: eos_token_id: got nothing, want an id or a list of ids`},
		{"quantization/group_size", 32, `config.json: quantization.group_size: got 32, want 64`},
		{"quantization/bits", 8, `config.json: quantization.bits: got 8, want 4`},
		{"quantization/bits", 3, `config.json: quantization.bits: got 3, want 4`},
		{"quantization/mode", "mxfp4", `config.json: quantization.mode: got "mxfp4", want "affine"`},
		{"quantization/quant_method", "awq", `config.json: quantization.quant_method: got "awq", want group_size, bits, mode or a module`},
		{"quantization/" + gate, false, gate + `: got false, want group_size, bits, mode or a module`},
		{"quantization/" + gate + "/bits", 6, gate + `.bits: got 6, want 4 or 8`},
		{"quantization/" + gate + "/bits", nil, gate + `.bits: got nothing, want`},
		{"quantization/" + gate + "/group_size", 128, gate + `.group_size: got 128, want 64`},
		{"quantization/" + gate + "/mode", "nvfp4", gate + `.mode: got "nvfp4", want "affine"`},
		{"quantization/" + gate, nil, `config.json: quantization_config: got other widths than quantization, want the same in both`},
		{"quantization_config/mode", "nvfp4", `config.json: quantization_config.mode: got "nvfp4", want "affine"`},
	} {
		t.Run(c.path, func(t *testing.T) {
			s, q, err := ParseConfig(tinyConfig(t, map[string]any{c.path: c.value}), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%s = %v: got error\n%v\nwant\n%s", c.path, c.value, err, c.want)
			}
			if !reflect.DeepEqual(s, Shape{}) || !reflect.DeepEqual(q, Quantization{}) {
				t.Errorf("got values beside the error, want none")
			}
		})
	}
	for _, c := range []struct {
		set  map[string]any
		want string
	}{
		{map[string]any{"quantization": nil, "quantization_config": nil}, `config.json: quantization: got nothing, want an object`},
		{map[string]any{"text_config/layer_types": nil, "text_config/full_attention_interval": nil}, `full_attention_interval: got nothing`},
		{map[string]any{"text_config/layer_types": types("linear_attention", "linear_attention", "linear_attention", "linear_attention"), "text_config/full_attention_interval": nil}, `layer_types`},
		{map[string]any{"text_config/partial_rotary_factor": 0.3, "text_config/rope_parameters/partial_rotary_factor": 0.3}, `partial_rotary_factor: got 0.3, want an even number of the 32 dims`},
		{map[string]any{"quantization/language_model.model.layers.9.mlp.gate": map[string]any{"bits": 8}, "quantization_config": nil}, `quantization.language_model.model.layers.9.mlp.gate: got 8 bits for it, want a linear module`},
	} {
		if _, _, err := ParseConfig(tinyConfig(t, c.set), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got error\n%v\nwant\n%s", c.set, err, c.want)
		}
	}
	for text, want := range map[string]string{"": "config.json: the JSON text ends too early, want a JSON object", "null": "config.json: got null", "[]": "config.json: got array, want a JSON object", "{": "config.json: the JSON text ends too early, want a JSON object"} {
		if _, _, err := ParseConfig([]byte(text), nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("config %q: got error %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{"x": "generation_config.json: got no JSON at byte 1: ", `{"eos_token_id":-1}`: "generation_config.json: eos_token_id: got -1"} {
		if _, _, err := ParseConfig(tinyConfig(t, nil), []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("generation_config %q: got error %v, want %s", text, err, want)
		}
	}
}

// FuzzParseConfig looks for panics and for shapes that break the rules that everything else relies on.
func FuzzParseConfig(f *testing.F) {
	f.Add(tinyConfig(f, nil), []byte(`{"eos_token_id":[258,256]}`))
	f.Add(tinyConfig(f, map[string]any{"text_config/layer_types": nil, "quantization": nil}), []byte(`{}`))
	f.Add([]byte(`{"text_config":{"rope_parameters":null,"layer_types":[null]},"quantization":{"x":{}}}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, config, generation []byte) {
		s, q, err := ParseConfig(config, generation)
		if err != nil {
			if text := err.Error(); !strings.HasPrefix(text, "config.json: ") && !strings.HasPrefix(text, "generation_config.json: ") {
				t.Errorf("got error %v, want the file's name first", err)
			}
			return
		}
		if s.Layers%s.Interval != 0 || s.Heads%s.KVHeads != 0 || s.ValueHeads%s.KeyHeads != 0 || s.TopK > s.Experts ||
			s.RotaryDim%2 != 0 || s.RotaryDim < 2 || s.RotaryDim > s.HeadDim || s.Hidden%64 != 0 || q.GroupSize != 64 || len(s.EOS) == 0 {
			t.Errorf("got %+v %+v, want it refused", s, q)
		}
	})
}
