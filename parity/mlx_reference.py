"""Reference tokens from mlx-lm on the Linux CPU, into mlx.json.

    python mlx_reference.py try DIR                # loads a directory, prints tokens for the golden prompt
    python mlx_reference.py record OUT [DEMO_DIR]  # tiny, kernel-true and the demo directory

mlx-lm opens the 4-bit directory itself: its configuration, its tensor names and packing, its tokenizer and its chat
template. That is what this record proves. Each prompt runs twice: in bfloat16, as mlx-lm computes by default, and with the
model's floats (scales, biases, norms, and so the activations) set to float32, which leaves the 4-bit codes and the format
untouched and takes the rounding noise away. The gap of the two best logits is recorded at every step.
"""

import os
import platform
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import mlx.core as mx
import mlx_lm
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model

import goldenmodel
from layout import layout
from prompts import GOLDEN_PROMPT, demo_prompts

STEPS = 32
PRECISIONS = {"bfloat16": mx.bfloat16, "float32": mx.float32}


def greedy(model, prompt, steps):
    """`steps` greedy tokens (end tokens do not stop it), and the gap of the two best logits at each."""
    cache, feed, tokens, gaps = make_prompt_cache(model), list(prompt), [], []
    for _ in range(steps):
        logits = model(mx.array([feed]), cache=cache)[0, -1].astype(mx.float32)
        best = mx.sort(logits)[-2:].tolist()
        tokens.append(int(mx.argmax(logits).item()))
        gaps.append(round(best[1] - best[0], 6))
        feed = tokens[-1:]
    return {"tokens": tokens, "gaps": gaps}


def run(directory, prompts):
    """Each prompt with its greedy tokens and gaps in both precisions, and the hash of the directory's tensors."""
    out = [dict(p) for p in prompts]
    for name, dtype in PRECISIONS.items():
        model, _ = load_model(Path(directory))
        model.set_dtype(dtype)
        for p in out:
            p[name] = greedy(model, p["prompt"], STEPS)
    return {"sha256": goldenmodel.sha256(goldenmodel.read_dir(directory)[1]), "greedy": out}


def record_golden(kind):
    """A golden model, written to a directory by goldenmodel and opened by mlx-lm."""
    with tempfile.TemporaryDirectory() as d:
        goldenmodel.write(d, kind)
        return run(d, [{"name": "golden", "prompt": GOLDEN_PROMPT}])


def record_demo(directory):
    """The demo directory as it lies in the repository; its prompts must be the same ids through mlx-lm's own tokenizer."""
    _, tokenizer = mlx_lm.load(directory)
    prompts = demo_prompts(directory)
    for p in prompts:
        ids = tokenizer.apply_chat_template(p["messages"], add_generation_prompt=True, enable_thinking=p["thinking"])
        if list(ids) != p["prompt"]:
            raise SystemExit(f"prompt {p['name']}: mlx-lm's tokenizer got {list(ids)}, want {p['prompt']}")
    return run(directory, prompts)


def main(args):
    mx.set_default_device(mx.cpu)
    if args[:1] == ["try"] and len(args) == 2:
        model, _ = load_model(Path(args[1]))
        print(greedy(model, GOLDEN_PROMPT, 16))
        return 0
    if args[:1] != ["record"] or len(args) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    models = {kind: record_golden(kind) for kind in goldenmodel.GOLDEN_SHA256}
    if len(args) == 3:
        models["demo"] = record_demo(os.path.abspath(args[2]))
    out = {
        "source": "mlx-lm on the CPU, opening the 4-bit directory as it lies on disk",
        "command": "parity/run.sh mlx",
        "packages": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("mlx", "mlx-cpu", "mlx-lm", "transformers", "tokenizers")},
        },
        "models": models,
    }
    with open(args[1], "w") as f:
        f.write(layout(out) + "\n")
    for kind, m in models.items():
        print(f"{kind}: {m['sha256'][:12]}")
        for p in m["greedy"]:
            a, b = p["float32"], p["bfloat16"]
            at = next((i for i in range(STEPS) if a["tokens"][i] != b["tokens"][i]), None)
            parted = "same tokens" if at is None else f"part at step {at}, float32 gap {a['gaps'][at]}"
            print(f"  {p['name']}: float32 and bfloat16: {parted}; smallest float32 gap {min(a['gaps'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
