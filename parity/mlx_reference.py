"""Reference tokens from mlx-lm on the Linux CPU, into mlx.json.

    python mlx_reference.py try DIR                # loads a directory, prints tokens for the golden prompt
    python mlx_reference.py record OUT [DEMO_DIR]  # tiny, kernel-true and the demo directory

mlx-lm opens the 4-bit directory itself: its configuration, its tensor names and packing, its tokenizer and its chat
template. That is what this record proves. How it is run (`RUNS`):

* float32: the model's floats (scales, biases, norms, and so the activations) set to float32. The 4-bit codes and the
  format stay as they are, and no rounding noise is left.
* wide: bfloat16 as mlx-lm computes by default, but each quantised product is summed in float32 and rounded once, as
  MLX's Metal kernels do.
* bfloat16: as it comes. On this CPU MLX sums quantised products in bfloat16 itself, which `noise` measures.

The gap of the two best logits is recorded at every step.
"""

import contextlib
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
RUNS = {"float32": mx.float32, "wide": mx.bfloat16, "bfloat16": mx.bfloat16}


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


@contextlib.contextmanager
def wide_products():
    """Quantised products in float32, rounded once to the type of x."""
    plain = {"quantized_matmul": mx.quantized_matmul, "gather_qmm": mx.gather_qmm}

    def widened(product):
        def call(x, w, scales, biases=None, **options):
            wide = product(x.astype(mx.float32), w, scales.astype(mx.float32), biases.astype(mx.float32), **options)
            return wide.astype(x.dtype)

        return call

    for name, product in plain.items():
        setattr(mx, name, widened(product))
    try:
        yield
    finally:
        for name, product in plain.items():
            setattr(mx, name, product)


def noise():
    """Relative error of MLX's own bfloat16 quantised product on this CPU, and that of rounding its result once."""
    mx.random.seed(1)
    w, scales, biases = mx.quantize(mx.random.normal((256, 512)), 64, 4)
    scales, biases = scales.astype(mx.bfloat16), biases.astype(mx.bfloat16)
    x = mx.random.normal((64, 512)).astype(mx.bfloat16)
    as_it_comes = mx.quantized_matmul(x, w, scales, biases, group_size=64, bits=4)
    with wide_products():
        rounded = mx.quantized_matmul(x, w, scales, biases, group_size=64, bits=4)
    exact = mx.quantized_matmul(
        x.astype(mx.float32), w, scales.astype(mx.float32), biases.astype(mx.float32), group_size=64, bits=4
    )
    error = lambda y: round(float(mx.sqrt(mx.mean((y.astype(mx.float32) - exact) ** 2) / mx.mean(exact**2)).item()), 6)
    return {"as it comes": error(as_it_comes), "rounded once": error(rounded)}


def run(directory, prompts, names):
    """Each prompt with its greedy tokens and gaps for the named RUNS, and the hash of the directory's tensors."""
    out = [dict(p) for p in prompts]
    for name in names:
        model, _ = load_model(Path(directory))
        model.set_dtype(RUNS[name])
        with wide_products() if name == "wide" else contextlib.nullcontext():
            for p in out:
                p[name] = greedy(model, p["prompt"], STEPS)
    return {"sha256": goldenmodel.sha256(goldenmodel.read_dir(directory)[1]), "greedy": out}


def record_golden(kind):
    """A golden model, written to a directory by goldenmodel and opened by mlx-lm; float32 only, its weights are random."""
    with tempfile.TemporaryDirectory() as d:
        goldenmodel.write(d, kind)
        return run(d, [{"name": "golden", "prompt": GOLDEN_PROMPT}], ["float32"])


def record_demo(directory):
    """The demo directory as it lies in the repository; its prompts must be the same ids through mlx-lm's own tokenizer."""
    _, tokenizer = mlx_lm.load(directory)
    prompts = demo_prompts(directory)
    for p in prompts:
        ids = tokenizer.apply_chat_template(p["messages"], add_generation_prompt=True, enable_thinking=p["thinking"])
        if list(ids) != p["prompt"]:
            raise SystemExit(f"prompt {p['name']}: mlx-lm's tokenizer got {list(ids)}, want {p['prompt']}")
    return run(directory, prompts, RUNS)


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
        "relative error of a bfloat16 quantised product": noise(),
        "models": models,
    }
    with open(args[1], "w") as f:
        f.write(layout(out) + "\n")
    for kind, m in models.items():
        print(f"{kind}: {m['sha256'][:12]}")
        for p in m["greedy"]:
            exact = p["float32"]
            print(f"  {p['name']}: smallest float32 gap {min(exact['gaps'])}")
            for name in list(RUNS)[1:]:
                at = next((i for i in range(STEPS) if name in p and exact["tokens"][i] != p[name]["tokens"][i]), None)
                if at is not None:
                    print(f"    {name} parts from it at step {at}, float32 gap {exact['gaps'][at]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
