"""Records the reference that `pond eval --reference` compares with, by mlx-lm on a Mac: inference/eval/FORMAT.md is the file.

    python3 parity/record_mlx.py MODEL TEXT OUT [--positions 192] [--name qwen3.6-35b-a3b]

MODEL is the folder of a published 4-bit checkpoint, TEXT a file in UTF-8 that the model was not trained on, OUT the JSON to write. Needs
mlx-lm (pip install mlx-lm) and the memory of the model. The weights are named by a digest over every byte, which takes a minute for 20 GB.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import struct


def tensors(directory):
    """Name -> (file, offset, length) of every tensor in the directory's safetensors files, the format's 8-byte length and JSON header."""
    found = {}
    for name in sorted(os.listdir(directory)):
        if not name.endswith(".safetensors"):
            continue
        path = os.path.join(directory, name)
        with open(path, "rb") as f:
            (length,) = struct.unpack("<Q", f.read(8))
            header = json.loads(f.read(length))
        for tensor, entry in header.items():
            if tensor == "__metadata__":
                continue
            if tensor in found:
                raise SystemExit(f"{tensor}: got it in {found[tensor][0]} and {path}, want it once")
            begin, end = entry["data_offsets"]
            found[tensor] = (path, 8 + length + begin, end - begin)
    if not found:
        raise SystemExit(f"{directory}: got no tensors, want a folder with safetensors files")
    return found


def digest(directory):
    """SHA-256 over all tensors' bytes, tensors in byte-wise order of their names."""
    h = hashlib.sha256()
    found = tensors(directory)
    for name in sorted(found, key=lambda n: n.encode()):
        path, offset, left = found[name]
        with open(path, "rb") as f:
            f.seek(offset)
            while left:
                part = f.read(min(left, 16 << 20))
                if not part:
                    raise SystemExit(f"{path}: ends within {name}")
                h.update(part)
                left -= len(part)
    return h.hexdigest()


def positions(directory, text, n):
    """What the model holds at the first n positions of text, in one pass; softmax in float32."""
    import mlx.core as mx
    from mlx_lm import load

    model, tokenizer = load(directory)
    ids = tokenizer.encode(text, add_special_tokens=False)[: n + 1]
    if len(ids) < n + 1:
        raise SystemExit(f"text: got {len(ids)} tokens, want at least {n + 1}")
    logits = model(mx.array([ids]))[0, :-1].astype(mx.float32)
    logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
    following = mx.take_along_axis(logprobs, mx.array(ids[1:])[:, None], axis=-1)[:, 0]
    best = mx.sort(logits, axis=-1)
    mean = -following.mean().item()
    return {
        "tokens": ids,
        "perplexity": float(mx.exp(mx.array(mean)).item()),
        "top1": mx.argmax(logits, axis=-1).tolist(),
        "gaps": [round(x, 6) for x in (best[:, -1] - best[:, -2]).tolist()],
        "logprobs": [round(x, 6) for x in following.tolist()],
    }


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("text")
    p.add_argument("out")
    p.add_argument("--positions", type=int, default=192)
    p.add_argument("--name", default="qwen3.6-35b-a3b")
    a = p.parse_args()
    with open(a.text, encoding="utf-8", newline="") as f:
        text = f.read()
    record = {
        "source": "mlx-lm as it comes, one pass",
        "command": f"parity/record_mlx.py MODEL TEXT OUT --positions {a.positions}",
        "packages": {"python": platform.python_version(), **{x: importlib.metadata.version(x) for x in ("mlx", "mlx-lm")}},
        "models": {a.name: {"sha256": digest(a.model), "positions": positions(a.model, text, a.positions)}},
    }
    with open(a.out + ".new", "w") as f:
        json.dump(record, f)
        f.write("\n")
    os.replace(a.out + ".new", a.out)
    print(f"{a.out}: perplexity {record['models'][a.name]['positions']['perplexity']:.4f} over {a.positions} positions")


if __name__ == "__main__":
    main()
