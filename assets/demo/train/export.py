"""Write the 4-bit files in MLX's layout: model-0000N-of-0000M.safetensors (headers without padding) and the index."""
import hashlib
import json
import os
import struct

import torch

import model as M
import shape as S

LIMIT = 15_900_000


def tensors(w):
    """-> [(name, dtype, shape, bytes)] in the order of the published writer."""
    out = []

    def raw(t):
        return t.contiguous().view(torch.uint8).cpu().numpy().tobytes()

    def plain(name, t):
        t = t.to(torch.bfloat16)
        out.append((name, "BF16", list(t.shape), raw(t)))

    def quant(name, t, bits):
        q, s, b = M.quantise(t, bits)
        per = 32 // bits
        q = q.reshape(*q.shape[:-1], -1, per).to(torch.int64)
        word = (q << (torch.arange(per, device=q.device) * bits)).sum(-1)
        word = torch.where(word >= 2 ** 31, word - 2 ** 32, word).to(torch.int32)
        out.append((name + ".weight", "U32", list(word.shape), raw(word)))
        out.append((name + ".scales", "BF16", list(s.shape), raw(s)))
        out.append((name + ".biases", "BF16", list(b.shape), raw(b)))

    P = "language_model.model."
    quant(P + "embed_tokens", w["embed"], 4)
    ig = jf = 0
    for i, full in enumerate(S.FULL):
        L = f"{P}layers.{i}."
        if full:
            for a, b in (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("o_proj", "o")):
                quant(f"{L}self_attn.{a}", w[b][jf], 4)
            plain(f"{L}self_attn.q_norm.weight", w["qn"][jf])
            plain(f"{L}self_attn.k_norm.weight", w["kn"][jf])
            jf += 1
        else:
            A = L + "linear_attn."
            plain(A + "conv1d.weight", w["conv"][ig][..., None])
            for a, b in (("in_proj_qkv", "qkv"), ("in_proj_z", "z"), ("in_proj_b", "b"), ("in_proj_a", "a")):
                quant(A + a, w[b][ig], 4)
            plain(A + "dt_bias", w["dt_bias"][ig])
            plain(A + "A_log", w["A_log"][ig])
            plain(A + "norm.weight", w["gnorm"][ig])
            quant(A + "out_proj", w["out"][ig], 4)
            ig += 1
        plain(L + "input_layernorm.weight", w["in_norm"][i])
        plain(L + "post_attention_layernorm.weight", w["post_norm"][i])
        quant(L + "mlp.gate", w["router"][i], 8)
        for a, b in (("gate_proj", "eg"), ("up_proj", "eu"), ("down_proj", "ed")):
            quant(f"{L}mlp.switch_mlp.{a}", w[b][i], 4)
        for a, b in (("gate_proj", "sg"), ("down_proj", "sd"), ("up_proj", "su")):
            quant(f"{L}mlp.shared_expert.{a}", w[b][i], 4)
        quant(L + "mlp.shared_expert_gate", w["sgate"][i], 8)
    plain(P + "norm.weight", w["norm"])
    quant("language_model.lm_head", w["head"], 4)
    return out


@torch.no_grad()
def write(folder, w):
    """-> {file name: {"bytes", "sha256"}}"""
    parts, size = [[]], 0
    all_tensors = tensors(w)
    for t in all_tensors:
        if size + len(t[3]) > LIMIT - 64 * 1024:
            parts.append([])
            size = 0
        parts[-1].append(t)
        size += len(t[3])
    total = sum(len(t[3]) for t in all_tensors)
    assert total == 31401312, f"tensor bytes: got {total}, want 31401312"
    index, files = {}, {}
    for n, part in enumerate(parts, 1):
        name = f"model-{n:05d}-of-{len(parts):05d}.safetensors"
        header, at = {}, 0
        for t in part:
            header[t[0]] = {"dtype": t[1], "shape": t[2], "data_offsets": [at, at + len(t[3])]}
            at += len(t[3])
            index[t[0]] = name
        meta = {"__metadata__": {"format": "mlx"}, **dict(sorted(header.items()))}
        js = json.dumps(meta, separators=(",", ":")).encode()
        if (8 + len(js)) % 4 == 0:      # keep the data unaligned, as in three of the four published shards
            js = json.dumps({**meta, "__metadata__": {"format": "mlx", "n": str(n)}}, separators=(",", ":")).encode()
        data = struct.pack("<Q", len(js)) + js + b"".join(t[3] for t in part)
        assert len(data) <= 16_000_000 and (8 + len(js)) % 4, (name, len(data), len(js))
        open(os.path.join(folder, name), "wb").write(data)
        files[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    js = json.dumps({"metadata": {"total_size": total}, "weight_map": dict(sorted(index.items()))}, indent=4) + "\n"
    open(os.path.join(folder, "model.safetensors.index.json"), "w").write(js)
    files["model.safetensors.index.json"] = {"bytes": len(js), "sha256": hashlib.sha256(js.encode()).hexdigest()}
    return files
