package fullsize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"pond/inference/tinymodel"
)

// Published sizes of the files whose text is made up here; spaces fill them.
const (
	realTokenizerBytes = 19_989_343
	realTemplateBytes  = 7_764
	realMerges         = 248_044 - 256
)

func sideFile(name string, text []byte) *File {
	return &File{Name: name, Bytes: int64(len(text)), head: text}
}

// realSide makes the files beside the weights and the index.
func realSide() ([]*File, error) {
	template, err := padded("chat_template.jinja", []byte(chatTemplate), realTemplateBytes)
	if err != nil {
		return nil, err
	}
	return []*File{
		sideFile("config.json", realConfig()),
		sideFile("generation_config.json", []byte(realGeneration)),
		sideFile("chat_template.jinja", template),
		sideFile("tokenizer_config.json", realTokenizerConfig()),
		{Name: "tokenizer.json", Bytes: realTokenizerBytes, late: realTokenizer}, // a second or more
	}, nil
}

// smallSide makes the files of the small model.
func smallSide() ([]*File, error) {
	config, err := tinymodel.Config(tinymodel.Tiny, tinymodel.Options{})
	if err != nil {
		return nil, err
	}
	var out []*File
	for _, f := range []struct {
		name  string
		value any
	}{{"config.json", config}, {"tokenizer.json", tinymodel.Tokenizer(nil)}} {
		text, err := json.Marshal(f.value)
		if err != nil {
			return nil, fmt.Errorf("fullsize: %w", err)
		}
		out = append(out, sideFile(f.name, text))
	}
	return out, nil
}

// padded fills a text with spaces up to the published size.
func padded(name string, text []byte, lenBytes int) ([]byte, error) {
	if len(text) > lenBytes {
		return nil, fmt.Errorf("fullsize: internal error: %s: got %d bytes, want at most %d", name, len(text), lenBytes)
	}
	return append(text, bytes.Repeat([]byte{' '}, lenBytes-len(text))...), nil
}

// realTokenizer has as many tokens as the published tokenizer, of the published pipeline. The texts are made up: the merges of letters
// into the pairs that come first, then longer ones into words that nobody uses. One in two starts with a space, as in the published one.
func realTokenizer() ([]byte, error) {
	const space = 'Ġ' // of GPT-2's alphabet
	var plain, spaced []string
	for c := 'a'; c <= 'z'; c++ {
		plain = append(plain, string(c))
	}
	seen := map[string]bool{}
	var merges [][2]string
	add := func(list *[]string, a, b string) {
		const longest = 12
		if text := a + b; len(text) <= longest && !seen[text] {
			seen[text] = true
			merges = append(merges, [2]string{a, b})
			*list = append(*list, text)
		}
	}
	for _, letter := range plain[:26] {
		add(&spaced, string(space), letter)
	}
	for x := uint64(1); len(merges) < realMerges; x++ {
		r := mix(x * gamma)
		list := &plain
		if r&1 == 0 {
			list = &spaced
		}
		// The second half is short, else most pairs would be too long.
		const short = 500
		add(list, (*list)[r>>1%(1<<31)%uint64(len(*list))], plain[r>>32%uint64(min(short, len(plain)))])
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(tinymodel.Tokenizer(merges)); err != nil {
		return nil, fmt.Errorf("fullsize: %w", err)
	}
	return padded("tokenizer.json", text.Bytes(), realTokenizerBytes)
}

// realConfig writes config.json as published.
func realConfig() []byte {
	var widths strings.Builder
	for i := range 40 {
		for _, gate := range []string{"gate", "shared_expert_gate"} {
			fmt.Fprintf(&widths, ",\n        \"language_model.model.layers.%d.mlp.%s\": {\n            \"group_size\": 64,\n            \"bits\": 8\n        }", i, gate)
		}
	}
	var types []string
	for i := range 40 {
		kind := "linear"
		if i%4 == 3 {
			kind = "full"
		}
		types = append(types, fmt.Sprintf("            \"%s_attention\"", kind))
	}
	return []byte(strings.NewReplacer("WIDTHS", widths.String(), "LAYERS", strings.Join(types, ",\n")).Replace(realConfigFrame))
}

// realTokenizerConfig writes tokenizer_config.json as published.
func realTokenizerConfig() []byte {
	vision := `"video_token": "<|video_pad|>",
INDENT"vision_bos_token": "<|vision_start|>",
INDENT"vision_eos_token": "<|vision_end|>"`
	audio := `"audio_bos_token": "<|audio_start|>",
INDENT"audio_eos_token": "<|audio_end|>",
INDENT"audio_token": "<|audio_pad|>",`
	at := func(text, indent string) string { return strings.ReplaceAll(text, "INDENT", indent) }
	regex, _ := json.Marshal(tinymodel.Pattern) // a string
	regex = bytes.ReplaceAll(regex, []byte(`\u003c`), []byte("<"))
	return []byte(strings.NewReplacer(
		"OUTERAUDIO", at(audio, "  "), "INNERAUDIO", at(audio, "    "), "OUTERVISION", at(vision, "  "), "INNERVISION", at(vision, "    "), "REGEX", string(regex),
	).Replace(realTokenizerFrame))
}

const realGeneration = `{
    "bos_token_id": 248044,
    "do_sample": true,
    "eos_token_id": [
        248046,
        248044
    ],
    "pad_token_id": 248044,
    "temperature": 1.0,
    "top_k": 20,
    "top_p": 0.95
}
`

const realTokenizerFrame = `{
  "add_prefix_space": false,
  OUTERAUDIO
  "backend": "tokenizers",
  "bos_token": null,
  "clean_up_tokenization_spaces": false,
  "eos_token": "<|im_end|>",
  "errors": "replace",
  "image_token": "<|image_pad|>",
  "is_local": true,
  "model_max_length": 262144,
  "model_specific_special_tokens": {
    INNERAUDIO
    "image_token": "<|image_pad|>",
    INNERVISION
  },
  "pad_token": "<|endoftext|>",
  "pretokenize_regex": REGEX,
  "processor_class": "Qwen3VLProcessor",
  "split_special_tokens": false,
  "tokenizer_class": "TokenizersBackend",
  "unk_token": null,
  OUTERVISION
}
`

// chatTemplate is plain ChatML; Pond renders prompts in Go and reads no template.
const chatTemplate = `{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\n<think>\n' }}
{%- endif %}
`

const realConfigFrame = `{
    "architectures": [
        "Qwen3_5MoeForConditionalGeneration"
    ],
    "eos_token_id": [
        248046,
        248044
    ],
    "image_token_id": 248056,
    "model_type": "qwen3_5_moe",
    "quantization": {
        "group_size": 64,
        "bits": 4,
        "mode": "affine"WIDTHS
    },
    "quantization_config": {
        "group_size": 64,
        "bits": 4,
        "mode": "affine"WIDTHS
    },
    "text_config": {
        "attention_bias": false,
        "attention_dropout": 0.0,
        "attn_output_gate": true,
        "bos_token_id": 248044,
        "dtype": "bfloat16",
        "eos_token_id": 248044,
        "full_attention_interval": 4,
        "head_dim": 256,
        "hidden_act": "silu",
        "hidden_size": 2048,
        "initializer_range": 0.02,
        "layer_types": [
LAYERS
        ],
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_value_head_dim": 128,
        "mamba_ssm_dtype": "float32",
        "max_position_embeddings": 262144,
        "model_type": "qwen3_5_moe_text",
        "moe_intermediate_size": 512,
        "mtp_num_hidden_layers": 1,
        "mtp_use_dedicated_embeddings": false,
        "num_attention_heads": 16,
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 40,
        "num_key_value_heads": 2,
        "output_router_logits": false,
        "pad_token_id": null,
        "partial_rotary_factor": 0.25,
        "rms_norm_eps": 1e-06,
        "rope_parameters": {
            "mrope_interleaved": true,
            "mrope_section": [
                11,
                11,
                10
            ],
            "partial_rotary_factor": 0.25,
            "rope_theta": 10000000,
            "rope_type": "default"
        },
        "router_aux_loss_coef": 0.001,
        "shared_expert_intermediate_size": 512,
        "tie_word_embeddings": false,
        "use_cache": true,
        "vocab_size": 248320
    },
    "tie_word_embeddings": false,
    "transformers_version": "4.57.1",
    "video_token_id": 248057,
    "vision_config": {
        "deepstack_visual_indexes": [],
        "depth": 27,
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_size": 1152,
        "in_channels": 3,
        "initializer_range": 0.02,
        "intermediate_size": 4304,
        "model_type": "qwen3_5_moe",
        "num_heads": 16,
        "num_position_embeddings": 2304,
        "out_hidden_size": 2048,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2
    },
    "vision_end_token_id": 248054,
    "vision_start_token_id": 248053
}`
