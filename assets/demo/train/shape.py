"""The demo model's shape, and the small files beside its weights (config.json and others, in the layout of the published checkpoint).

    python shape.py DIR      needs DIR/tokenizer.json
"""
import json
import os
import sys

HIDDEN, LAYERS, INTERVAL = 512, 8, 4
HEADS, KV, HEAD_DIM, ROTARY = 4, 2, 256, 64
GDN_K, GDN_V, GDN_DIM, CONV = 2, 4, 128, 4
EXPERTS, TOP_K, INNER, SHARED = 12, 4, 256, 256
VOCAB, THETA, EPS = 4096, 10000000, 1e-6
FULL = [(i + 1) % INTERVAL == 0 for i in range(LAYERS)]

REGEX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def text_config(ids):
    return {
        "attention_bias": False, "attention_dropout": 0.0, "attn_output_gate": True, "bos_token_id": ids["<|endoftext|>"], "dtype": "bfloat16", "eos_token_id": ids["<|endoftext|>"],
        "full_attention_interval": INTERVAL, "head_dim": HEAD_DIM, "hidden_act": "silu", "hidden_size": HIDDEN, "initializer_range": 0.02,
        "layer_types": ["full_attention" if f else "linear_attention" for f in FULL], "linear_conv_kernel_dim": CONV, "linear_key_head_dim": GDN_DIM, "linear_num_key_heads": GDN_K,
        "linear_num_value_heads": GDN_V, "linear_value_head_dim": GDN_DIM, "mamba_ssm_dtype": "float32", "max_position_embeddings": 262144, "model_type": "qwen3_5_moe_text",
        "moe_intermediate_size": INNER, "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False, "num_attention_heads": HEADS, "num_experts": EXPERTS, "num_experts_per_tok": TOP_K,
        "num_hidden_layers": LAYERS, "num_key_value_heads": KV, "output_router_logits": False, "pad_token_id": None, "partial_rotary_factor": ROTARY / HEAD_DIM, "rms_norm_eps": EPS,
        "rope_parameters": {"mrope_interleaved": True, "mrope_section": [11, 11, 10], "partial_rotary_factor": ROTARY / HEAD_DIM, "rope_theta": THETA, "rope_type": "default"},
        "router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": SHARED, "tie_word_embeddings": False, "use_cache": True, "vocab_size": VOCAB}


def write(folder):
    tok = json.load(open(os.path.join(folder, "tokenizer.json"), encoding="utf-8"))
    ids = {a["content"]: a["id"] for a in tok["added_tokens"]}
    quant = {"group_size": 64, "bits": 4, "mode": "affine"}
    for i in range(LAYERS):
        for m in ("gate", "shared_expert_gate"):
            quant[f"language_model.model.layers.{i}.mlp.{m}"] = {"group_size": 64, "bits": 8}
    config = {
        "architectures": ["Qwen3_5MoeForConditionalGeneration"], "eos_token_id": [ids["<|im_end|>"], ids["<|endoftext|>"]], "image_token_id": ids["<|image_pad|>"], "model_type": "qwen3_5_moe",
        "quantization": quant, "quantization_config": quant, "text_config": text_config(ids), "tie_word_embeddings": False, "transformers_version": "4.57.1", "video_token_id": ids["<|video_pad|>"],
        "vision_end_token_id": ids["<|vision_end|>"], "vision_start_token_id": ids["<|vision_start|>"]}
    generation = {"bos_token_id": ids["<|endoftext|>"], "do_sample": True, "eos_token_id": [ids["<|im_end|>"], ids["<|endoftext|>"]], "pad_token_id": ids["<|endoftext|>"], "temperature": 1.0, "top_k": 20,
                  "top_p": 0.95}
    special = {"audio_bos_token": "<|audio_start|>", "audio_eos_token": "<|audio_end|>", "audio_token": "<|audio_pad|>", "image_token": "<|image_pad|>", "video_token": "<|video_pad|>",
               "vision_bos_token": "<|vision_start|>", "vision_eos_token": "<|vision_end|>"}
    tcfg = {"add_prefix_space": False, "audio_bos_token": "<|audio_start|>", "audio_eos_token": "<|audio_end|>", "audio_token": "<|audio_pad|>", "backend": "tokenizers", "bos_token": None,
            "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>", "errors": "replace", "image_token": "<|image_pad|>", "is_local": True, "model_max_length": 262144,
            "model_specific_special_tokens": special, "pad_token": "<|endoftext|>", "pretokenize_regex": REGEX, "split_special_tokens": False, "tokenizer_class": "TokenizersBackend",
            "unk_token": None, "video_token": "<|video_pad|>", "vision_bos_token": "<|vision_start|>", "vision_eos_token": "<|vision_end|>",
            "added_tokens_decoder": {str(a["id"]): {k: a[k] for k in ("content", "lstrip", "normalized", "rstrip", "single_word", "special")} for a in tok["added_tokens"]}}
    for name, d in (("config.json", config), ("generation_config.json", generation), ("tokenizer_config.json", dict(sorted(tcfg.items())))):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(d, f, indent=4 if name != "tokenizer_config.json" else 2, ensure_ascii=False)
            f.write("\n")


if __name__ == "__main__":
    write(sys.argv[1])
