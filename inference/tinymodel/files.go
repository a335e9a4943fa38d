package tinymodel

// The files beside the weights, in the form of the real checkpoint.

// config returns config.json with the keys and values of the real one, apart from the dimensions and the ids of tokens.
func (d dims) config(specs []spec, o Options) map[string]any {
	layerTypes := make([]string, d.layers)
	for i := range layerTypes {
		layerTypes[i] = "linear_attention"
		if d.full(i) {
			layerTypes[i] = "full_attention"
		}
	}
	quantization := map[string]any{"group_size": o.GroupSize, "bits": 4, "mode": "affine"}
	for _, s := range specs {
		if s.bits != 0 && s.bits != 4 {
			quantization[s.name] = map[string]any{"group_size": o.GroupSize, "bits": s.bits}
		}
	}
	first := d.firstAdded()
	return map[string]any{
		"architectures":       []string{"Qwen3_5MoeForConditionalGeneration"},
		"model_type":          "qwen3_5_moe",
		"eos_token_id":        []int{first + imEnd, first + endOfText},
		"tie_word_embeddings": false,
		"quantization":        quantization,
		"quantization_config": quantization,
		"text_config": map[string]any{
			"model_type":                      "qwen3_5_moe_text",
			"attention_bias":                  false,
			"attention_dropout":               0.0,
			"attn_output_gate":                true,
			"bos_token_id":                    first + endOfText,
			"dtype":                           "bfloat16",
			"eos_token_id":                    first + endOfText,
			"full_attention_interval":         4,
			"head_dim":                        d.headDim,
			"hidden_act":                      "silu",
			"hidden_size":                     d.hidden,
			"initializer_range":               0.02,
			"layer_types":                     layerTypes,
			"linear_conv_kernel_dim":          4,
			"linear_key_head_dim":             d.keyDim,
			"linear_num_key_heads":            d.keyHeads,
			"linear_num_value_heads":          d.valueHeads,
			"linear_value_head_dim":           d.valDim,
			"mamba_ssm_dtype":                 "float32",
			"max_position_embeddings":         262144,
			"moe_intermediate_size":           d.inter,
			"num_attention_heads":             d.heads,
			"num_experts":                     d.experts,
			"num_experts_per_tok":             d.topK,
			"num_hidden_layers":               d.layers,
			"num_key_value_heads":             d.kvHeads,
			"output_router_logits":            false,
			"partial_rotary_factor":           0.25,
			"rms_norm_eps":                    1e-6,
			"router_aux_loss_coef":            0.001,
			"shared_expert_intermediate_size": d.sharedInter,
			"tie_word_embeddings":             false,
			"use_cache":                       true,
			"vocab_size":                      d.vocab,
			"rope_parameters": map[string]any{
				"mrope_interleaved":     true,
				"mrope_section":         d.mropeSection,
				"partial_rotary_factor": 0.25,
				"rope_theta":            10000000,
				"rope_type":             "default",
			},
		},
	}
}

// Positions of the tokens that config.json names in the list of added tokens.
const (
	endOfText = 0
	imEnd     = 2
)

// addedToken is a token that is matched as a whole. Special ones are dropped by decoders that skip special tokens.
type addedToken struct {
	text    string
	special bool
}

// addedTokens returns the real tokenizer's 33 in the order of their ids.
func addedTokens() []addedToken {
	return []addedToken{
		{"<|endoftext|>", true}, {"<|im_start|>", true}, {"<|im_end|>", true},
		{"<|object_ref_start|>", true}, {"<|object_ref_end|>", true}, {"<|box_start|>", true}, {"<|box_end|>", true},
		{"<|quad_start|>", true}, {"<|quad_end|>", true}, {"<|vision_start|>", true}, {"<|vision_end|>", true},
		{"<|vision_pad|>", true}, {"<|image_pad|>", true}, {"<|video_pad|>", true},
		{"<tool_call>", false}, {"</tool_call>", false},
		{"<|fim_prefix|>", false}, {"<|fim_middle|>", false}, {"<|fim_suffix|>", false}, {"<|fim_pad|>", false},
		{"<|repo_name|>", false}, {"<|file_sep|>", false},
		{"<tool_response>", false}, {"</tool_response>", false}, {"<think>", false}, {"</think>", false},
		{"<|audio_start|>", true}, {"<|audio_end|>", true}, {"<tts_pad>", true}, {"<tts_text_bos>", true},
		{"<tts_text_eod>", true}, {"<tts_text_bos_single>", true}, {"<|audio_pad|>", true},
	}
}

// firstAdded is the id of the first added token: the tokenizer has one token for each byte and each merge before.
func (d dims) firstAdded() int { return 256 + d.merges }

// Pattern is how the real tokenizer cuts text before merging.
const Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// chatTemplate is a plain ChatML template for tools that insist on one; Pond renders prompts in Go.
const chatTemplate = `{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\n<think>\n' }}
{%- endif %}
`

// side returns the files beside config.json and the weights.
func (d dims) side() (map[string][]byte, error) {
	first := d.firstAdded()
	out := map[string][]byte{"chat_template.jinja": []byte(chatTemplate)}
	for name, v := range map[string]any{
		"tokenizer.json": Tokenizer(nil),
		"tokenizer_config.json": map[string]any{
			"add_prefix_space": false, "backend": "tokenizers", "bos_token": nil, "clean_up_tokenization_spaces": false,
			"eos_token": "<|im_end|>", "errors": "replace", "model_max_length": 262144, "pad_token": "<|endoftext|>",
			"pretokenize_regex": Pattern, "split_special_tokens": false, "tokenizer_class": "TokenizersBackend",
			"unk_token": nil,
		},
		"generation_config.json": map[string]any{
			"bos_token_id": first + endOfText, "do_sample": true, "eos_token_id": []int{first + imEnd, first + endOfText},
			"pad_token_id": first + endOfText, "temperature": 1.0, "top_k": 20, "top_p": 0.95,
		},
	} {
		text, err := marshal(v)
		if err != nil {
			return nil, err
		}
		out[name] = text
	}
	return out, nil
}

// Tokenizer returns tokenizer.json of the real pipeline, for marshalling: a token for each byte, then one for each merge of two
// texts in GPT-2's alphabet, in order, then the real tokenizer's 33 added tokens.
func Tokenizer(merges [][2]string) map[string]any {
	vocab := map[string]int{}
	for b := range 256 {
		vocab[ByteToken(b)] = b
	}
	for i, m := range merges {
		vocab[m[0]+m[1]] = 256 + i
	}
	var added []any
	for i, t := range addedTokens() {
		added = append(added, map[string]any{
			"id": 256 + len(merges) + i, "content": t.text, "special": t.special,
			"single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
		})
	}
	if merges == nil {
		merges = [][2]string{} // null is not a list
	}
	byteLevel := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}
	return map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil,
		"added_tokens": added,
		"normalizer":   map[string]any{"type": "NFC"},
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{
			map[string]any{"type": "Split", "pattern": map[string]any{"Regex": Pattern}, "behavior": "Isolated", "invert": false},
			byteLevel,
		}},
		"post_processor": byteLevel,
		"decoder":        byteLevel,
		"model": map[string]any{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": "", "end_of_word_suffix": "",
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
			"vocab": vocab, "merges": merges,
		},
	}
}

// ByteToken returns the character by which GPT-2's alphabet writes byte b: printable bytes as themselves, the other 68
// in increasing order from U+0100.
func ByteToken(b int) string {
	printable := func(b int) bool { return b >= 33 && b <= 126 || b >= 161 && b <= 172 || b >= 174 }
	if printable(b) {
		return string(rune(b))
	}
	next := rune(0x100)
	for other := range b {
		if !printable(other) {
			next++
		}
	}
	return string(next)
}
