"""A GGUF file of the shape of Qwen3.6-35B-A3B (architecture qwen35moe) with made-up weights, for measuring a peer on the sizes that Pond has.

Weights are pieces of a seeded pool of blocks with random signs, cut at random places: a matrix has mean near zero and deviation 1/sqrt(width), so
activations stay finite. Only the standard library is used.
"""
import json
import math
import os
import random
import struct

F32, Q4_0, Q4_K = 0, 2, 12
# ggml's blocks: weights in one, bytes of one.
BLOCKS = {F32: (1, 4), Q4_0: (32, 18), Q4_K: (256, 144)}
ALIGNMENT = 32

SHAPE = dict(layers=40, hidden=2048, vocab=248320, heads=16, kv_heads=2, head_dim=256, rotary=64, experts=256, used=8, inter=512, shared=512,
             interval=4, key_heads=16, value_heads=32, key_dim=128, conv=4, context=262144)

# The demo model's, whose tokenizer goes with it so that both servers cut a prompt alike.
DEMO = dict(layers=8, hidden=512, vocab=4096, heads=4, kv_heads=2, head_dim=256, rotary=64, experts=12, used=4, inter=256, shared=256,
            interval=4, key_heads=2, value_heads=4, key_dim=128, conv=4, context=32768)


def size_of(dims, kind):
    weights, size = BLOCKS[kind]
    assert dims[0] % weights == 0, (dims, kind)
    return math.prod(dims) // weights * size


def tensors(s, kind):
    """(name, dims with the input width first, type, spread) of every tensor; spread None means ones."""
    d, keys, values = s["hidden"], s["key_heads"] * s["key_dim"], s["value_heads"] * s["key_dim"]
    yield "token_embd.weight", (d, s["vocab"]), kind, 0.02
    for i in range(s["layers"]):
        def matrix(name, width, *rows, of=kind):
            return f"blk.{i}.{name}.weight", (width, *rows), of, width ** -0.5

        def vector(name, n, spread=None):
            return f"blk.{i}.{name}", (n,), F32, spread
        yield vector("attn_norm.weight", d)
        yield vector("post_attention_norm.weight", d)
        if (i + 1) % s["interval"] == 0:
            yield matrix("attn_q", d, 2 * s["heads"] * s["head_dim"])
            yield matrix("attn_k", d, s["kv_heads"] * s["head_dim"])
            yield matrix("attn_v", d, s["kv_heads"] * s["head_dim"])
            yield matrix("attn_output", s["heads"] * s["head_dim"], d)
            yield vector("attn_q_norm.weight", s["head_dim"])
            yield vector("attn_k_norm.weight", s["head_dim"])
        else:
            yield matrix("attn_qkv", d, 2 * keys + values)
            yield matrix("attn_gate", d, values)
            yield f"blk.{i}.ssm_conv1d.weight", (s["conv"], 2 * keys + values), F32, 0.3
            yield vector("ssm_dt.bias", s["value_heads"], 0.5)
            yield vector("ssm_a", s["value_heads"], -1.0)  # negative: the logarithm was taken and the sign is in it
            yield matrix("ssm_beta", d, s["value_heads"])
            yield matrix("ssm_alpha", d, s["value_heads"])
            yield vector("ssm_norm.weight", s["key_dim"])
            yield matrix("ssm_out", values, d)
        yield matrix("ffn_gate_inp", d, s["experts"], of=F32)
        yield matrix("ffn_gate_exps", d, s["inter"], s["experts"])
        yield matrix("ffn_up_exps", d, s["inter"], s["experts"])
        yield matrix("ffn_down_exps", s["inter"], d, s["experts"])
        yield vector("ffn_gate_inp_shexp.weight", d, 0.02)
        yield matrix("ffn_gate_shexp", d, s["shared"])
        yield matrix("ffn_up_shexp", d, s["shared"])
        yield matrix("ffn_down_shexp", s["shared"], d)
    yield "output_norm.weight", (d,), F32, None
    yield "output.weight", (d, s["vocab"]), kind, d ** -0.5


def text(x):
    return struct.pack("<Q", len(x.encode())) + x.encode()


def entry(key, value):
    """One metadata entry; its GGUF type follows from the Python type."""
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    if isinstance(value, float):
        return text(key) + struct.pack("<If", 6, value)
    if isinstance(value, int):
        return text(key) + struct.pack("<II", 4, value)
    if isinstance(value[0], str):
        return text(key) + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
    return text(key) + struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)


def made_up(s):
    """Tokens, their types and merges that only count: nothing is ever written with them."""
    return [f"t{i}" for i in range(s["vocab"] - 1)] + ["<|end|>"], [1] * (s["vocab"] - 1) + [3], ["t 1"], s["vocab"] - 1


def published(s, path):
    """Tokens, their types and merges of a tokenizer.json; rows beyond are unused."""
    with open(path, encoding="utf-8") as f:
        t = json.load(f)
    names, kinds = [f"<unused {i}>" for i in range(s["vocab"])], [5] * s["vocab"]
    for name, i in t["model"]["vocab"].items():
        names[i], kinds[i] = name, 1
    for a in t["added_tokens"]:
        names[a["id"]], kinds[a["id"]] = a["content"], 3
    merges = [m if isinstance(m, str) else " ".join(m) for m in t["model"]["merges"]]
    return names, kinds, merges, names.index("<|im_end|>")


def metadata(s, tokenizer):
    arch = "qwen35moe."
    vocabulary, kinds, merges, end = tokenizer
    return [entry("general.architecture", "qwen35moe"), entry("general.name", "made up"), entry("general.quantization_version", 2)] + [
        entry(arch + k, v) for k, v in {
            "block_count": s["layers"], "context_length": s["context"], "embedding_length": s["hidden"], "feed_forward_length": s["inter"],
            "attention.head_count": s["heads"], "attention.head_count_kv": s["kv_heads"], "attention.key_length": s["head_dim"],
            "attention.value_length": s["head_dim"], "rope.dimension_count": s["rotary"], "expert_count": s["experts"],
            "expert_used_count": s["used"], "expert_feed_forward_length": s["inter"], "expert_shared_feed_forward_length": s["shared"],
            "ssm.conv_kernel": s["conv"], "ssm.state_size": s["key_dim"], "ssm.group_count": s["key_heads"],
            "ssm.time_step_rank": s["value_heads"], "ssm.inner_size": s["value_heads"] * s["key_dim"],
            "full_attention_interval": s["interval"], "vocab_size": s["vocab"], "attention.layer_norm_rms_epsilon": 1e-6,
            "rope.freq_base": 1e7, "rope.dimension_sections": [11, 11, 10, 0]}.items()] + [
        entry("tokenizer.ggml.model", "gpt2"), entry("tokenizer.ggml.pre", "qwen2"), entry("tokenizer.ggml.tokens", vocabulary),
        entry("tokenizer.ggml.token_type", kinds), entry("tokenizer.ggml.merges", merges), entry("tokenizer.ggml.eos_token_id", end)]


def block(kind, spread, rng):
    half = struct.Struct("<e")
    size = rng.choice((-1, 1)) * spread * rng.uniform(0.7, 1.3)
    if kind == F32:
        return struct.pack("<f", rng.gauss(0, spread) if spread > 0 else rng.uniform(-4, -0.1))
    if kind == Q4_0:  # nibbles less 8 have deviation 4.6
        return half.pack(size / 4.6) + rng.randbytes(16)
    return half.pack(size / 258) + half.pack(7.5 * size / 258) + rng.randbytes(140)  # 6-bit scales times nibbles


def write(path, kind, shape=SHAPE, seed=1, tokenizer=None):
    """Writes the file and returns the bytes of weights that one decoded token reads. Tokenizer is a tokenizer.json; None makes one up."""
    rng = random.Random(seed)
    plan = list(tensors(shape, kind))
    meta = metadata(shape, published(shape, tokenizer) if tokenizer else made_up(shape))
    infos, at, active = b"", 0, 0
    for name, dims, of, _ in plan:
        infos += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, of, at)
        n = size_of(dims, of)
        at += -(-n // ALIGNMENT) * ALIGNMENT
        if name == "token_embd.weight":
            active += size_of(dims[:1], of)
        elif "_exps." in name:
            active += n * shape["used"] // shape["experts"]
        else:
            active += n
    head = b"GGUF" + struct.pack("<IQQ", 3, len(plan), len(meta)) + b"".join(meta) + infos
    head += bytes(-len(head) % ALIGNMENT)
    pools = {}
    with open(path, "wb", buffering=0) as f:
        f.write(head)
        for _, dims, of, spread in plan:
            left = n = size_of(dims, of)
            if spread is None:
                f.write(struct.pack("<f", 1.0) * dims[0])
            else:
                size = BLOCKS[of][1]
                if (of, spread) not in pools:
                    count = min(40009, (8 << 20) // size)
                    pools[of, spread] = memoryview(b"".join(block(of, spread, rng) for _ in range(count)) * (16 if of != F32 else 1))
                pool = pools[of, spread]
                while left:
                    start = rng.randrange(len(pool) // size // 2) * size
                    piece = pool[start:start + left]
                    f.write(piece)
                    left -= len(piece)
            f.write(bytes(-n % ALIGNMENT))
    if os.path.getsize(path) != len(head) + at:
        raise OSError(f"{path}: got {os.path.getsize(path)} bytes, want {len(head) + at}")
    return active
