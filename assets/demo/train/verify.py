"""Check the written files with code that shares nothing with model.py: read the safetensors by hand, dequantise, load transformers'
Qwen3_5MoeForCausalLM in float32, answer the cases of evaluate.py greedily and measure held-out perplexity.

    python verify.py --model DIR --out verify-report.json [--cases name,name] [--tokens 200]
"""
import argparse
import hashlib
import json
import os
import struct
import time

import numpy as np
import torch

import evaluate


def read_dir(folder):
    """-> {name: (dtype, shape, bytes)} over all files of the index."""
    index = json.load(open(os.path.join(folder, "model.safetensors.index.json")))
    out, total = {}, 0
    for f in sorted(set(index["weight_map"].values())):
        raw = open(os.path.join(folder, f), "rb").read()
        n, = struct.unpack("<Q", raw[:8])
        head = json.loads(raw[8:8 + n])
        assert raw[8 + n - 1:8 + n] == b"}", f"{f}: padded header"
        for name, d in head.items():
            if name == "__metadata__":
                continue
            a, b = d["data_offsets"]
            assert index["weight_map"][name] == f, name
            out[name] = (d["dtype"], d["shape"], raw[8 + n + a:8 + n + b])
            total += b - a
    assert total == index["metadata"]["total_size"] == 31401312, total
    assert set(out) == set(index["weight_map"])
    return out


def bf16(raw, shape):
    return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)


def dense(t, config):
    """-> {module.weight: float32 array}"""
    out = {}
    q = config["quantization"]
    for name, (dt, shape, raw) in t.items():
        if name.endswith((".scales", ".biases")):
            continue
        if dt == "BF16":
            out[name] = bf16(raw, shape)
            continue
        mod = name[:-len(".weight")]
        bits = q.get(mod, q)["bits"]
        words = np.frombuffer(raw, "<u4").reshape(shape)
        vals = (words[..., None] >> (np.arange(32 // bits, dtype=np.uint32) * bits)) & (2 ** bits - 1)
        vals = vals.reshape(*shape[:-1], -1, 64).astype(np.float32)
        s, b = (bf16(t[mod + e][2], t[mod + e][1])[..., None] for e in (".scales", ".biases"))
        out[name] = (vals * s + b).reshape(*shape[:-1], -1)
    return out


def to_transformers(d):
    out = {}
    for name, w in d.items():
        n = name.replace("language_model.model.", "model.").replace("language_model.lm_head", "lm_head")
        if n.endswith(("layernorm.weight", "q_norm.weight", "k_norm.weight")) or n == "model.norm.weight":
            w = w - 1
        elif n.endswith("conv1d.weight"):
            w = w.transpose(0, 2, 1)
        elif ".switch_mlp.up_proj" in n:
            continue
        elif ".switch_mlp.gate_proj" in n:
            w = np.concatenate([w, d[name.replace("gate_proj", "up_proj")]], 1)
            n = n.replace("switch_mlp.gate_proj.weight", "experts.gate_up_proj")
        elif ".switch_mlp.down_proj" in n:
            n = n.replace("switch_mlp.down_proj.weight", "experts.down_proj")
        out[n] = torch.from_numpy(np.ascontiguousarray(w))
    return out


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--model", required=True)
    a.add_argument("--out", required=True)
    a.add_argument("--cases", default="")
    a.add_argument("--tokens", type=int, default=220)
    a.add_argument("--windows", type=int, default=16)
    o = a.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    from transformers import AutoConfig, AutoTokenizer, Qwen3_5MoeForCausalLM
    t0 = time.time()
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False
    config = json.load(open(os.path.join(o.model, "config.json")))
    state = to_transformers(dense(read_dir(o.model), config))
    c = AutoConfig.from_pretrained(o.model).text_config
    c.dtype = torch.float32
    m = Qwen3_5MoeForCausalLM(c).float()
    left = m.load_state_dict(state, strict=False)
    assert not left.missing_keys and not left.unexpected_keys, left
    m = m.eval().to(dev)
    tok = AutoTokenizer.from_pretrained(o.model)
    print(f"loaded in {time.time() - t0:.0f} s on {dev}, {sum(p.numel() for p in m.parameters())} parameters", flush=True)
    answers = []
    for name, msgs, tools, on in evaluate.cases():
        if o.cases and name not in o.cases.split(","):
            continue
        prompt = tok.apply_chat_template(msgs, tools=tools, add_generation_prompt=True, enable_thinking=on, tokenize=False)
        ids = tok(prompt, return_tensors="pt")["input_ids"].to(dev)
        with torch.no_grad():
            y = m.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=o.tokens, do_sample=False, eos_token_id=config["eos_token_id"], pad_token_id=config["eos_token_id"][1])
        new = y[0, ids.shape[1]:].tolist()
        answers.append({"case": name, "thinking": on, "tools": bool(tools), "user": msgs[-1]["content"], "prompt_tokens": ids.shape[1], "output": tok.decode(new, skip_special_tokens=False), "ids": new})
        print(json.dumps({k: v for k, v in answers[-1].items() if k != "ids"}, ensure_ascii=False), flush=True)
    ids = tok(open(os.path.join(o.model, "heldout.txt"), encoding="utf-8").read())["input_ids"]
    nll = n = 0
    for i in range(o.windows):
        x = torch.tensor([ids[i * 1024:(i + 1) * 1024]], device=dev)
        with torch.no_grad():
            lg = m(input_ids=x).logits.float()
        nll += torch.nn.functional.cross_entropy(lg[0, :-1], x[0, 1:], reduction="sum").item()
        n += 1023
    ppl = round(float(np.exp(nll / n)), 4) if n else None
    print(f"held-out perplexity {ppl} over {n} tokens; {time.time() - t0:.0f} s")
    sums = {f: hashlib.sha256(open(os.path.join(o.model, f), "rb").read()).hexdigest() for f in sorted(os.listdir(o.model)) if os.path.isfile(os.path.join(o.model, f)) and f != "report.json"}
    json.dump({"by": "transformers Qwen3_5MoeForCausalLM, float32, " + dev, "answers": answers, "q4_perplexity": ppl, "tokens": n, "sha256": sums}, open(o.out, "w"), indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
