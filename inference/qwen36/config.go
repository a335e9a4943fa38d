package qwen36

// What config.json must say. The rules:
//
//   - A key that changes the mathematics is either a dimension of Shape or must have the one value that this package
//     computes; anything else is an error with the key's path, what was got and what is wanted.
//   - A key that may be absent has, when absent, the value that the reference implementations take.
//   - A key of training or of the vision tower is not looked at, nor is one that is not known here.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pond/inference/checkpoint"
)

// Bounds of what a configuration may ask for, far above the real model, so that products of dimensions stay exact.
const (
	maxDim    = 1 << 24
	maxLayers = 1 << 12
)

// maxShownBytes is how much of a wrong value an error shows.
const maxShownBytes = 60

// gdnTaps is the one width of the causal convolution that the kernels compute.
const gdnTaps = 4

// Quantization is how the linear modules are stored: MLX's affine mode, one scale and bias for GroupSize weights.
type Quantization struct {
	GroupSize int
	Bits      int            // default width of a weight
	Modules   map[string]int // widths of the modules that differ from the default, by module path
}

// BitsOf returns the width of a weight in the module.
func (q Quantization) BitsOf(module string) int {
	if bits, ok := q.Modules[module]; ok {
		return bits
	}
	return q.Bits
}

// ParseConfig reads config.json, and generation_config.json for the ids that end an answer (nil: those of config.json).
// Any architecture, dimension or quantisation that this package does not compute is an error that names the key, what
// it says and what is wanted.
func ParseConfig(configJSON, generationJSON []byte) (Shape, Quantization, error) {
	s, q, err := parseConfig(configJSON, generationJSON)
	if err != nil {
		return Shape{}, Quantization{}, err
	}
	return s, q, nil
}

func parseConfig(configJSON, generationJSON []byte) (s Shape, q Quantization, err error) {
	r := &configReader{}
	top := r.parse("config.json", configJSON)
	top.equal("architectures", []any{"Qwen3_5MoeForConditionalGeneration"})
	top.equal("model_type", "qwen3_5_moe")
	top.equalOrAbsent("tie_word_embeddings", false)

	text := top.object("text_config")
	text.equal("model_type", "qwen3_5_moe_text")
	text.equalOrAbsent("attention_bias", false)
	text.equalOrAbsent("attn_output_gate", true)
	text.equalOrAbsent("hidden_act", "silu")
	text.equalOrAbsent("norm_topk_prob", true)
	text.equalOrAbsent("tie_word_embeddings", false)
	text.equalOrAbsent("mamba_ssm_dtype", "float32")
	text.equalOrAbsent("dtype", "bfloat16")
	text.equalOrAbsent("torch_dtype", "bfloat16")
	text.equalOrAbsent("decoder_sparse_step", 1.0)
	text.equalOrAbsent("mlp_only_layers", []any{})
	text.equalOrAbsent("use_sliding_window", false)
	text.equalOrAbsent("sliding_window", nil)
	text.equalOrAbsent("rope_scaling", nil)
	text.equal("linear_conv_kernel_dim", float64(gdnTaps))

	s.Hidden = text.dimension("hidden_size", maxDim)
	s.Layers = text.dimension("num_hidden_layers", maxLayers)
	s.Interval = text.interval(s.Layers)
	s.Vocab = text.dimension("vocab_size", maxDim)
	s.Heads = text.dimension("num_attention_heads", maxDim)
	s.KVHeads = text.dimension("num_key_value_heads", maxDim)
	s.HeadDim = text.dimension("head_dim", maxDim)
	s.RotaryDim, s.RopeTheta = text.rope(s.HeadDim)
	s.KeyHeads = text.dimension("linear_num_key_heads", maxDim)
	s.ValueHeads = text.dimension("linear_num_value_heads", maxDim)
	s.KeyDim = text.dimension("linear_key_head_dim", maxDim)
	s.ValueDim = text.dimension("linear_value_head_dim", maxDim)
	s.ConvTaps = gdnTaps
	s.Experts = text.dimension("num_experts", maxDim)
	s.TopK = text.dimension("num_experts_per_tok", maxDim)
	s.Inter = text.dimension("moe_intermediate_size", maxDim)
	s.SharedInter = text.dimension("shared_expert_intermediate_size", maxDim)
	s.RMSEps = text.positive("rms_norm_eps")
	s.MaxContext = text.dimension("max_position_embeddings", math.MaxInt32)

	q = top.quantization()
	s.GroupSize = q.GroupSize

	end := top
	if generationJSON != nil {
		if g := r.parse("generation_config.json", generationJSON); g.has("eos_token_id") {
			end = g
		}
	}
	s.EOS = end.ids("eos_token_id", s.Vocab)

	if r.err != nil {
		return s, q, r.err
	}
	if err := s.check(); err != nil {
		return s, q, fmt.Errorf("config.json: %w", err)
	}
	return s, q, q.check(s)
}

// check tests what dimensions must have in common.
func (s Shape) check() error {
	for _, c := range []struct {
		what    string
		n, unit int
		because string
	}{
		{"hidden_size", s.Hidden, s.GroupSize, "a scale covers 64 weights of one row"},
		{"linear_num_value_heads * linear_value_head_dim", s.ValueWidth(), s.GroupSize, "a scale covers 64 weights of one row"},
		{"num_attention_heads * head_dim", s.QWidth(), s.GroupSize, "a scale covers 64 weights of one row"},
		{"moe_intermediate_size", s.Inter, s.GroupSize, "a scale covers 64 weights of one row"},
		{"shared_expert_intermediate_size", s.SharedInter, s.GroupSize, "a scale covers 64 weights of one row"},
		{"linear_num_value_heads", s.ValueHeads, s.KeyHeads, "value heads share key heads evenly"},
		{"num_attention_heads", s.Heads, s.KVHeads, "query heads share key heads evenly"},
		{"linear_key_head_dim", s.KeyDim, 32, "a simdgroup reads a key head whole"},
		{"num_hidden_layers", s.Layers, s.Interval, "every interval ends with full attention"},
	} {
		if c.n%c.unit != 0 {
			return fmt.Errorf("text_config.%s: got %d, want a multiple of %d: %s", c.what, c.n, c.unit, c.because)
		}
	}
	if s.TopK > s.Experts {
		return fmt.Errorf("text_config.num_experts_per_tok: got %d, want at most the %d experts", s.TopK, s.Experts)
	}
	return nil
}

// check refuses a width for a module that the model does not have: it would be a misspelt one that keeps the default.
func (q Quantization) check(s Shape) error {
	if len(q.Modules) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, w := range Wanted(s, q) {
		if w.Module != "" {
			known[w.Module] = true
		}
	}
	for _, module := range slices.Sorted(maps.Keys(q.Modules)) {
		if !known[module] && !strings.HasPrefix(module, visionPrefix) {
			return fmt.Errorf("config.json: quantization.%s: got %d bits for it, want a linear module of the model", module, q.Modules[module])
		}
	}
	return nil
}

// configReader keeps the first error, so that reading reads like a list.
type configReader struct{ err error }

// configObject is one JSON object and the path that leads to it.
type configObject struct {
	r      *configReader
	path   string // "config.json: text_config." ; keys are appended
	fields map[string]json.RawMessage
}

func (r *configReader) parse(file string, text []byte) configObject {
	o := configObject{r: r, path: file + ": "}
	fields, err := checkpoint.Object(text)
	if err != nil {
		r.errorf("%s: %w", file, err)
	}
	o.fields = fields
	return o
}

func (o configObject) fail(key, want string) {
	if o.r.err != nil {
		return
	}
	got := "nothing"
	if raw, ok := o.fields[key]; ok {
		var flat bytes.Buffer
		if json.Compact(&flat, raw) != nil {
			flat.Write(raw)
		}
		got = flat.String()
		if len(got) > maxShownBytes {
			got = strings.ToValidUTF8(got[:maxShownBytes], "") + "..."
		}
	}
	o.r.err = fmt.Errorf("%s%s: got %s, want %s", o.path, key, got, want)
}

func (o configObject) has(key string) bool {
	raw, ok := o.fields[key]
	return ok && string(raw) != "null"
}

func (o configObject) object(key string) configObject {
	inner := configObject{r: o.r, path: o.path + key + "."}
	if err := json.Unmarshal(o.fields[key], &inner.fields); err != nil || inner.fields == nil {
		o.fail(key, "an object")
	}
	return inner
}

// equal demands the value want, given as encoding/json decodes it: a string, bool, float64, nil or []any of them.
func (o configObject) equal(key string, want any) {
	var got any
	if err := json.Unmarshal(o.fields[key], &got); err != nil || !sameJSON(got, want) {
		text, _ := json.Marshal(want) // a literal of this file
		o.fail(key, string(text))
	}
}

// equalOrAbsent is equal for a key that may be missing or null.
func (o configObject) equalOrAbsent(key string, want any) {
	if o.has(key) {
		o.equal(key, want)
	}
}

func sameJSON(a, b any) bool {
	listA, isA := a.([]any)
	listB, isB := b.([]any)
	if isA || isB {
		return isA && isB && slices.EqualFunc(listA, listB, sameJSON)
	}
	if _, isObject := a.(map[string]any); isObject {
		return false
	}
	return a == b
}

// dimension reads a whole number from 1 to limit. On an error it returns 1, which divides and is divided by everything.
func (o configObject) dimension(key string, limit int) int {
	var n *int
	if err := json.Unmarshal(o.fields[key], &n); err != nil || n == nil || *n < 1 || *n > limit {
		o.fail(key, fmt.Sprintf("a whole number from 1 to %d", limit))
		return 1
	}
	return *n
}

// positive reads a number above 0.
func (o configObject) positive(key string) float64 {
	var v *float64
	if err := json.Unmarshal(o.fields[key], &v); err != nil || v == nil || *v <= 0 {
		o.fail(key, "a number above 0")
		return 1
	}
	return *v
}

// interval reads the pattern of layers: layer_types, full_attention_interval, or both when they agree.
func (o configObject) interval(layers int) int {
	interval := 0
	if o.has("full_attention_interval") || !o.has("layer_types") {
		interval = o.dimension("full_attention_interval", maxLayers)
	}
	if !o.has("layer_types") {
		return interval
	}
	var types []string
	if err := json.Unmarshal(o.fields["layer_types"], &types); err != nil || len(types) != layers {
		o.fail("layer_types", fmt.Sprintf("%d names, one for each layer", layers))
		return max(interval, 1)
	}
	if interval == 0 {
		interval = slices.Index(types, "full_attention") + 1
		if interval == 0 {
			o.fail("layer_types", "a full_attention layer at the end of every interval")
			return 1
		}
	}
	for i, got := range types {
		want := "linear_attention"
		if (i+1)%interval == 0 {
			want = "full_attention"
		}
		if got != want {
			o.r.errorf("%slayer_types[%d]: got %q, want %q: every layer number %d is full attention", o.path, i, got, want, interval)
			break
		}
	}
	return interval
}

func (r *configReader) errorf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// rope reads the rotary embedding: plain, with the first dims of a head rotated. The sections of the three-axis form are
// checked and then not used: in text all three positions are equal, which is the plain form.
func (o configObject) rope(headDim int) (rotaryDim int, theta float64) {
	p := o.object("rope_parameters")
	p.equalOrAbsent("rope_type", "default")
	p.equalOrAbsent("type", "default")
	theta = p.positive("rope_theta")
	if o.has("rope_theta") {
		o.equal("rope_theta", theta)
	}
	at := p
	if !p.has("partial_rotary_factor") {
		at = o
	}
	factor := at.positive("partial_rotary_factor")
	if o.has("partial_rotary_factor") {
		o.equal("partial_rotary_factor", factor)
	}
	exact := factor * float64(headDim)
	if factor > 1 || exact != math.Trunc(exact) || int(exact)%2 != 0 {
		at.fail("partial_rotary_factor", fmt.Sprintf("an even number of the %d dims of a head", headDim))
		return 2, theta
	}
	rotaryDim = int(exact)
	if p.has("mrope_section") {
		var section []int
		sum := 0
		err := json.Unmarshal(p.fields["mrope_section"], &section)
		for _, n := range section {
			sum += n
		}
		if err != nil || sum != rotaryDim/2 {
			p.fail("mrope_section", fmt.Sprintf("sections that sum to %d, half the rotary dims", rotaryDim/2))
		}
	}
	return rotaryDim, theta
}

// ids reads one id or a list of ids below vocab.
func (o configObject) ids(key string, vocab int) []int32 {
	raw := o.fields[key]
	var list []*int32
	if err := json.Unmarshal(raw, &list); err != nil {
		var one *int32
		if err := json.Unmarshal(raw, &one); err == nil {
			list = []*int32{one}
		}
	}
	out := make([]int32, 0, len(list))
	for _, id := range list {
		if id == nil || *id < 0 || int(*id) >= vocab {
			o.fail(key, fmt.Sprintf("ids from 0 to %d", vocab-1))
			return nil
		}
		out = append(out, *id)
	}
	if len(out) == 0 {
		o.fail(key, "an id or a list of ids")
	}
	return out
}

// quantization reads the block under its two names, which say the same where both are there.
func (o configObject) quantization() Quantization {
	const name, copyName = "quantization", "quantization_config"
	if !o.has(name) && o.has(copyName) {
		return o.object(copyName).quantizationBlock()
	}
	q := o.object(name).quantizationBlock()
	if o.has(copyName) {
		other := o.object(copyName).quantizationBlock()
		if !maps.Equal(q.Modules, other.Modules) { // defaults can only be equal: one value of each is accepted
			o.r.errorf("%s%s: got other widths than %s, want the same in both", o.path, copyName, name)
		}
	}
	return q
}

func (o configObject) quantizationBlock() Quantization {
	q := Quantization{GroupSize: 64, Bits: 4, Modules: map[string]int{}}
	o.equal("group_size", 64.0)
	o.equal("bits", 4.0)
	o.equalOrAbsent("mode", "affine")
	for _, key := range slices.Sorted(maps.Keys(o.fields)) {
		switch key {
		case "group_size", "bits", "mode":
			continue
		}
		if !strings.HasPrefix(string(o.fields[key]), "{") {
			o.fail(key, "group_size, bits, mode or a module with an object of these")
			continue
		}
		module := o.object(key)
		module.equalOrAbsent("group_size", 64.0)
		module.equalOrAbsent("mode", "affine")
		bits := module.dimension("bits", 32)
		if bits != 4 && bits != 8 {
			module.fail("bits", "4 or 8")
		}
		if bits != q.Bits {
			q.Modules[key] = bits
		}
	}
	return q
}
