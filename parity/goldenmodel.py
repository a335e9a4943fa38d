"""Golden models and MLX 4-bit checkpoints, read and written with numpy alone.

Two things live here, both written from the published format and sharing no code with the Go program:

* the deterministic weights of the `tiny` and `kernel-true` golden models (SplitMix64 streams named by tensor, MLX affine
  quantisation, group 64), checked against the SHA-256 values that the specification states;
* a reader of any MLX 4-bit directory (index file or single file, raw safetensors headers of any length, so tensors may lie
  at odd offsets) that gives every module back as dense float32.

    python goldenmodel.py check                 # rebuild both golden models, compare the hashes
    python goldenmodel.py write tiny DIR        # write a directory that mlx-lm and Pond can open
    python goldenmodel.py sha DIR               # the hash of a directory's tensors

Start with `modules`, which lists every tensor of a shape, then `stream` and `quantise`.
"""

import hashlib
import json
import math
import mmap
import os
import struct
import sys
from dataclasses import dataclass

import numpy as np

GROUP = 64
PREFIX = "language_model.model."


@dataclass(frozen=True)
class Shape:
    """Every dimension that the tensor list depends on."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    mrope_section: tuple
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    experts: int
    top_k: int
    inter: int
    shared_inter: int
    vocab: int
    interval: int = 4
    taps: int = 4

    def attention(self, i):
        """Layer i is full attention (the others are gated delta nets)."""
        return (i + 1) % self.interval == 0

    @property
    def conv_dim(self):
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim


SHAPES = {
    "tiny": Shape(128, 4, 8, 2, 32, (2, 1, 1), 2, 4, 32, 32, 16, 4, 64, 64, 320),
    "kernel-true": Shape(512, 4, 4, 2, 256, (11, 11, 10), 2, 4, 128, 128, 16, 8, 512, 512, 512),
    # The shape of the demo model. Only its real, trained directory counts; random weights in this shape find format faults.
    "demo-shape": Shape(512, 8, 4, 2, 256, (11, 11, 10), 2, 4, 128, 128, 12, 4, 256, 256, 4096),
}

# SHA-256 over all tensors' raw bytes, concatenated in byte-wise name order (specification, sections 8.1 and 8.2).
GOLDEN_SHA256 = {
    "tiny": "538613067c90416b2780d6fe7770ac71a99949ae14f364edd0fee4d6232df01b",
    "kernel-true": "0dddc8226e0b28102e7fc76775a2be88ee289f988b282a34f177670fe62e6351",
}


def modules(s):
    """All modules of a shape: (name without .weight, dense shape, bits); bits 0 is an unquantised tensor's full name."""
    out = [(PREFIX + "embed_tokens", (s.vocab, s.hidden), 4), ("language_model.lm_head", (s.vocab, s.hidden), 4)]
    out.append((PREFIX + "norm.weight", (s.hidden,), 0))
    key, value = s.key_heads * s.key_dim, s.value_heads * s.value_dim
    for i in range(s.layers):
        p = f"{PREFIX}layers.{i}."
        out.append((p + "input_layernorm.weight", (s.hidden,), 0))
        out.append((p + "post_attention_layernorm.weight", (s.hidden,), 0))
        if s.attention(i):
            a = p + "self_attn."
            out.append((a + "q_proj", (2 * s.heads * s.head_dim, s.hidden), 4))
            out.append((a + "k_proj", (s.kv_heads * s.head_dim, s.hidden), 4))
            out.append((a + "v_proj", (s.kv_heads * s.head_dim, s.hidden), 4))
            out.append((a + "o_proj", (s.hidden, s.heads * s.head_dim), 4))
            out.append((a + "q_norm.weight", (s.head_dim,), 0))
            out.append((a + "k_norm.weight", (s.head_dim,), 0))
        else:
            a = p + "linear_attn."
            out.append((a + "in_proj_qkv", (2 * key + value, s.hidden), 4))
            out.append((a + "in_proj_z", (value, s.hidden), 4))
            out.append((a + "in_proj_b", (s.value_heads, s.hidden), 4))
            out.append((a + "in_proj_a", (s.value_heads, s.hidden), 4))
            out.append((a + "out_proj", (s.hidden, value), 4))
            out.append((a + "conv1d.weight", (s.conv_dim, s.taps, 1), 0))
            out.append((a + "A_log", (s.value_heads,), 0))
            out.append((a + "dt_bias", (s.value_heads,), 0))
            out.append((a + "norm.weight", (s.value_dim,), 0))
        m = p + "mlp."
        out.append((m + "gate", (s.experts, s.hidden), 8))
        out.append((m + "shared_expert_gate", (1, s.hidden), 8))
        for kind, inter, stack in (("shared_expert.", s.shared_inter, ()), ("switch_mlp.", s.inter, (s.experts,))):
            out.append((m + kind + "gate_proj", stack + (inter, s.hidden), 4))
            out.append((m + kind + "up_proj", stack + (inter, s.hidden), 4))
            out.append((m + kind + "down_proj", stack + (s.hidden, inter), 4))
    return out


def stream(name, count):
    """`count` uniform numbers in [0, 1): SplitMix64 seeded with the FNV-1a hash of the name, top 24 bits."""
    seed = 0xCBF29CE484222325
    for c in name.encode():
        seed = ((seed ^ c) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float64) / (1 << 24)


def to_bf16(x):
    """float32 -> the 16 stored bits, round to nearest even (finite input)."""
    u = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((u + np.uint32(0x7FFF) + ((u >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def from_bf16(bits):
    """The 16 stored bits -> float32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def dense(name, shape):
    """The golden float values of one tensor, already rounded to bf16, as float32."""
    if name.endswith("A_log"):
        off, amp = 0.5, 1.5
    elif name.endswith("dt_bias"):
        off, amp = 0.0, 1.0
    elif name.endswith("norm.weight"):
        off, amp = 1.0, 0.25
    elif name.endswith("conv1d.weight"):
        off, amp = 0.0, 0.5
    elif name.endswith("embed_tokens.weight"):
        off, amp = 0.0, 1.0
    else:
        off, amp = 0.0, math.sqrt(3.0 / shape[-1])
        if name.endswith("mlp.gate.weight"):
            amp = 3.0 * amp
    v = off + amp * (2.0 * stream(name, math.prod(shape)) - 1.0)
    return from_bf16(to_bf16(v.astype(np.float32))).reshape(shape)


def quantise(w, bits):
    """MLX affine quantisation, group 64 along the last axis: (codes u32, scales bf16 bits, biases bf16 bits)."""
    half_away = lambda x: np.sign(x) * np.floor(np.abs(x) + np.float32(0.5))
    f, n = np.float32, np.float32((1 << bits) - 1)
    g = w.astype(f).reshape(w.shape[:-1] + (w.shape[-1] // GROUP, GROUP))
    hi, lo = np.maximum(g.max(-1), f(0)), g.min(-1)
    s = np.maximum((hi - lo) / n, f(1e-7))
    side = np.abs(lo) > np.abs(hi)
    s = np.where(side, s, -s)
    edge = np.where(side, lo, hi)
    q0 = half_away(edge / s)
    zero = q0 == 0
    s = np.where(zero, s, edge / np.where(zero, f(1), q0)).astype(f)
    b = np.where(zero, f(0), edge).astype(f)
    q = np.clip(half_away((g - b[..., None]) / s[..., None]), 0, n).astype(np.uint32)
    per = 32 // bits
    q = q.reshape(w.shape[:-1] + (w.shape[-1] // per, per))
    words = np.bitwise_or.reduce(q << (np.arange(per, dtype=np.uint32) * np.uint32(bits)), axis=-1)
    return words.astype("<u4"), to_bf16(s), to_bf16(b)


def golden(kind):
    """All stored tensors of a golden model: name -> (dtype, shape, bytes)."""
    out = {}
    for name, shape, bits in modules(SHAPES[kind]):
        if bits == 0:
            out[name] = ("BF16", shape, to_bf16(dense(name, shape)).astype("<u2").tobytes())
            continue
        words, scales, biases = quantise(dense(name + ".weight", shape), bits)
        out[name + ".weight"] = ("U32", words.shape, words.tobytes())
        out[name + ".scales"] = ("BF16", scales.shape, scales.astype("<u2").tobytes())
        out[name + ".biases"] = ("BF16", biases.shape, biases.astype("<u2").tobytes())
    return out


def sha256(tensors):
    """Identity of a model: SHA-256 over all tensors' bytes in byte-wise name order, independent of files and headers."""
    h = hashlib.sha256()
    for name in sorted(tensors, key=str.encode):
        h.update(tensors[name][2])
    return h.hexdigest()


def text_config(s):
    """The text configuration (config.json, text_config) of a shape."""
    return {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "attn_output_gate": True,
        "bos_token_id": None,
        "dtype": "bfloat16",
        "eos_token_id": None,
        "full_attention_interval": s.interval,
        "head_dim": s.head_dim,
        "hidden_act": "silu",
        "hidden_size": s.hidden,
        "initializer_range": 0.02,
        "layer_types": ["full_attention" if s.attention(i) else "linear_attention" for i in range(s.layers)],
        "linear_conv_kernel_dim": s.taps,
        "linear_key_head_dim": s.key_dim,
        "linear_num_key_heads": s.key_heads,
        "linear_num_value_heads": s.value_heads,
        "linear_value_head_dim": s.value_dim,
        "mamba_ssm_dtype": "float32",
        "max_position_embeddings": 262144,
        "model_type": "qwen3_5_moe_text",
        "moe_intermediate_size": s.inter,
        "num_attention_heads": s.heads,
        "num_experts": s.experts,
        "num_experts_per_tok": s.top_k,
        "num_hidden_layers": s.layers,
        "num_key_value_heads": s.kv_heads,
        "output_router_logits": False,
        "pad_token_id": None,
        "partial_rotary_factor": 0.25,
        "rms_norm_eps": 1e-06,
        "rope_parameters": {
            "mrope_interleaved": True,
            "mrope_section": list(s.mrope_section),
            "partial_rotary_factor": 0.25,
            "rope_theta": 10000000,
            "rope_type": "default",
        },
        "shared_expert_intermediate_size": s.shared_inter,
        "tie_word_embeddings": False,
        "use_cache": True,
        "vocab_size": s.vocab,
    }


def config(s):
    """config.json of a shape: text_config plus the quantisation block with its 8-bit routers and shared gates."""
    quant = {"group_size": GROUP, "bits": 4, "mode": "affine"}
    for i in range(s.layers):
        for m in ("gate", "shared_expert_gate"):
            quant[f"{PREFIX}layers.{i}.mlp.{m}"] = {"group_size": GROUP, "bits": 8}
    return {
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "model_type": "qwen3_5_moe",
        "quantization": quant,
        "quantization_config": quant,
        "text_config": text_config(s),
        "tie_word_embeddings": False,
    }


def write(directory, kind):
    """Writes config.json and model.safetensors (header unpadded, as MLX writes it). No tokenizer: prompts are ids."""
    tensors = golden(kind)
    os.makedirs(directory, exist_ok=True)
    header, at = {"__metadata__": {"format": "mlx"}}, 0
    for name in sorted(tensors, key=str.encode):
        dtype, shape, data = tensors[name]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    with open(os.path.join(directory, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(tensors, key=str.encode):
            f.write(tensors[name][2])
    with open(os.path.join(directory, "config.json"), "w") as f:
        json.dump(config(SHAPES[kind]), f, indent=4)


def read_safetensors(path):
    """One file: name -> (dtype, shape, bytes view). The header may have any length, so nothing is aligned."""
    with open(path, "rb") as f:
        data = memoryview(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ))
    (length,) = struct.unpack("<Q", data[:8])
    header, base = json.loads(bytes(data[8 : 8 + length])), 8 + length
    out = {}
    for name, t in header.items():
        if name == "__metadata__":
            continue
        lo, hi = t["data_offsets"]
        width = {"U32": 4, "F32": 4, "BF16": 2, "F16": 2}[t["dtype"]]
        if hi - lo != width * math.prod(t["shape"]) or base + hi > len(data):
            raise ValueError(f"{path}: {name}: got {hi - lo} bytes at {lo}, want {t['dtype']} {t['shape']} inside the file")
        out[name] = (t["dtype"], tuple(t["shape"]), data[base + lo : base + hi])
    return out


def read_dir(directory):
    """A checkpoint directory: (config, tensors). Vision tensors are left out, everything else is kept."""
    with open(os.path.join(directory, "config.json")) as f:
        cfg = json.load(f)
    index = os.path.join(directory, "model.safetensors.index.json")
    files = ["model.safetensors"]
    if os.path.exists(index):
        with open(index) as f:
            files = sorted(set(json.load(f)["weight_map"].values()))
    tensors = {}
    for name in files:
        tensors.update(read_safetensors(os.path.join(directory, name)))
    return cfg, {k: v for k, v in tensors.items() if not k.startswith("vision_tower.")}


def array(t):
    """A stored tensor as a numpy array: U32 as uint32, floats as float32."""
    dtype, shape, data = t
    if dtype == "BF16":
        return from_bf16(np.frombuffer(data, "<u2")).reshape(shape)
    return np.frombuffer(data, {"U32": "<u4", "F32": "<f4", "F16": "<f2"}[dtype]).reshape(shape).astype(
        np.uint32 if dtype == "U32" else np.float32
    )


def dequantise(words, scales, biases, bits):
    """w = scale*q + bias with the stored scale and bias, in float32."""
    per = 32 // bits
    shift = np.arange(per, dtype=np.uint32) * np.uint32(bits)
    q = (words[..., None] >> shift) & np.uint32((1 << bits) - 1)
    q = q.reshape(words.shape[:-1] + (scales.shape[-1], GROUP)).astype(np.float32)
    w = scales[..., None] * q + biases[..., None]
    return w.reshape(words.shape[:-1] + (words.shape[-1] * per,))


def load_dense(cfg, tensors):
    """All weights as dense float32: dense tensor name -> array. Bits per module come from the quantisation block."""
    quant, out = cfg["quantization"], {}
    if quant["group_size"] != GROUP:
        raise ValueError(f"group_size: got {quant['group_size']}, want {GROUP}")
    for name, t in tensors.items():
        if name.endswith((".scales", ".biases")):
            continue
        module = name.removesuffix(".weight")
        if module + ".scales" not in tensors:
            out[name] = array(t)
            continue
        bits = quant.get(module, quant)["bits"]
        out[name] = dequantise(array(t), array(tensors[module + ".scales"]), array(tensors[module + ".biases"]), bits)
    return out


def check():
    """Rebuilds both golden models and compares their hashes with the specification; False when one differs."""
    good = True
    for kind, want in GOLDEN_SHA256.items():
        got = sha256(golden(kind))
        good = good and got == want
        print(f"{kind}: got {got}, want {want}: {'equal' if got == want else 'DIFFERENT'}")
    return good


def main(args):
    if args[:1] == ["check"]:
        return 0 if check() else 1
    if args[:1] == ["write"] and len(args) == 3:
        write(args[2], args[1])
        return 0
    if args[:1] == ["sha"] and len(args) == 2:
        print(sha256(read_dir(args[1])[1]))
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
