"""Reference numbers from transformers' Qwen3_5MoeForCausalLM, float32 on the CPU, into transformers.json.

    python transformers_reference.py check                   # tiny and kernel-true against the specification's goldens
    python transformers_reference.py record OUT [DEMO_DIR]   # both, and the demo model, after the same check

The stored 4-bit weights are dequantised to float32 and put under transformers' own names; nothing of transformers is
changed, apart from the second half of `check`. Attention and experts run in their plain ("eager") form.

What is recorded for each model: greedy tokens for given prompts with the gap between the two best logits at each step,
and over 193 given tokens the best id, that gap and the log-probability of the token that follows, at 192 positions.
"""

import contextlib
import os
import platform
import sys

import numpy as np
import torch
import transformers
from transformers import DynamicCache, Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe as modeling

import goldenmodel
from layout import layout
from prompts import GOLDEN_PROMPT, HELDOUT_TOKENS, demo_prompts, heldout

STEPS = 64
PROMPTS = 4  # of the demo prompts, the first ones

# Specification 8.2: greedy continuation of GOLDEN_PROMPT, and for tiny the five best logits of every position.
GOLDEN_TOKENS = {
    "tiny": [267, 0, 145, 311, 299],
    "kernel-true": [162, 51, 460, 276, 411, 41, 246, 79, 199, 117, 8, 71, 183],
}
TINY_TOP5 = [
    {123: 3.983502, 219: 2.567795, 304: 2.481704, 307: 2.431457, 288: 2.262400},
    {94: 3.394385, 217: 2.916079, 39: 2.664572, 166: 2.526759, 35: 2.520964},
    {281: 2.703176, 156: 2.510133, 290: 2.417176, 106: 2.370835, 240: 2.261265},
    {64: 2.814329, 265: 2.798443, 34: 2.741530, 306: 2.704448, 79: 2.448906},
    {267: 2.898778, 97: 2.723936, 58: 2.546614, 308: 2.128968, 192: 2.014527},
    {0: 2.891908, 154: 2.624713, 235: 2.550997, 120: 2.528831, 152: 2.504555},
    {145: 3.885027, 24: 3.099915, 248: 2.960925, 4: 2.614812, 253: 2.527164},
    {311: 3.162448, 292: 2.781354, 307: 2.478378, 123: 2.471832, 289: 2.468203},
    {299: 3.329389, 229: 2.786111, 232: 2.414887, 23: 2.344730, 196: 2.119194},
]
TINY_SQUARES = [321.0411, 340.9572, 304.9176, 349.3044, 347.9938, 305.2657, 391.9505, 368.1120, 349.6562]


def rename(cfg, dense):
    """MLX names and layouts -> transformers' state dict (float32 tensors).

    Norms: the MLX converter stored 1 + w, transformers multiplies by 1 + w, so 1 is taken off again; the gated norm of
    linear_attn is stored as it is in both. conv1d: [channels, taps, 1] -> [channels, 1, taps]. Experts: gate and up are
    stacked as [experts, 2*inter, hidden], gate first.
    """
    state = {}
    for name, w in dense.items():
        new = name.removeprefix("language_model.")
        if name.endswith(("layernorm.weight", "q_norm.weight", "k_norm.weight", "model.norm.weight")):
            w = w - np.float32(1)
        elif name.endswith("conv1d.weight"):
            w = np.moveaxis(w, 2, 1)
        elif ".switch_mlp." in name:
            if name.endswith("up_proj.weight"):
                continue  # taken with gate_proj
            if name.endswith("gate_proj.weight"):
                w = np.concatenate([w, dense[name.replace("gate_proj", "up_proj")]], axis=1)
            new = new.replace("switch_mlp.gate_proj.weight", "experts.gate_up_proj")
            new = new.replace("switch_mlp.down_proj.weight", "experts.down_proj")
        state[new] = torch.from_numpy(np.array(w, dtype=np.float32))
    return state


def build(cfg, tensors):
    """The model in float32, every weight set, none left over (strict)."""
    text = dict(cfg["text_config"])
    text.pop("dtype", None)
    config = Qwen3_5MoeTextConfig(**text)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    torch.set_default_dtype(torch.float32)
    model = Qwen3_5MoeForCausalLM(config)
    model.load_state_dict(rename(cfg, goldenmodel.load_dense(cfg, tensors)), strict=True)
    return model.eval()


def gap(logits):
    """Difference of the two best logits of each row."""
    best = torch.topk(logits, 2, dim=-1).values
    return best[..., 0] - best[..., 1]


@torch.no_grad()
def greedy(model, prompt, steps):
    """`steps` greedy tokens with cache (end tokens do not stop it): (tokens, gaps, logits of every position fed)."""
    cache = DynamicCache(config=model.config)
    feed, tokens, gaps, seen = list(prompt), [], [], []
    for _ in range(steps):
        logits = model(torch.tensor([feed]), past_key_values=cache, use_cache=True).logits[0].float()
        seen.append(logits)
        tokens.append(int(logits[-1].argmax()))
        gaps.append(round(float(gap(logits[-1])), 6))
        feed = tokens[-1:]
    return tokens, gaps, torch.cat(seen)


@torch.no_grad()
def positions(model, ids):
    """Best id, gap and log-probability of the next token at each position of ids but the last, in one pass."""
    logits = model(torch.tensor([ids]), use_cache=False).logits[0, :-1].double()
    logprob = torch.log_softmax(logits, -1)[torch.arange(len(ids) - 1), torch.tensor(ids[1:])]
    return {
        "tokens": ids,
        "perplexity": float(torch.exp(-logprob.mean())),
        "top1": logits.argmax(-1).tolist(),
        "gaps": [round(x, 6) for x in gap(logits).tolist()],
        "logprobs": [round(x, 6) for x in logprob.tolist()],
    }


@contextlib.contextmanager
def scaled_epsilon():
    """l2 normalisation with epsilon scaled by the head width, the older mlx-lm form the goldens were computed with."""
    plain = modeling.l2norm

    def l2norm(x, dim=-1, eps=1e-6):
        return plain(x, dim=dim, eps=eps * x.shape[dim])

    modeling.l2norm = l2norm
    try:
        yield
    finally:
        modeling.l2norm = plain


def check(model, kind):
    """Compares a golden model with the specification, once unchanged (tokens) and once with its epsilon (logits too)."""
    want = GOLDEN_TOKENS[kind]
    got, _, _ = greedy(model, GOLDEN_PROMPT, len(want))
    if got != want:
        raise SystemExit(f"{kind}: transformers as it is: got tokens {got}, want {want}")
    print(f"{kind}: transformers as it is: tokens equal")
    with scaled_epsilon():
        got, gaps, logits = greedy(model, GOLDEN_PROMPT, len(want))
    if got != want:
        raise SystemExit(f"{kind}: with the goldens' epsilon: got tokens {got}, want {want}")
    worst = 0.0
    if kind == "tiny":
        for pos, row in enumerate(TINY_TOP5):
            order = torch.topk(logits[pos], 5).indices.tolist()
            if order != list(row):
                raise SystemExit(f"tiny: position {pos}: got best ids {order}, want {list(row)}")
            worst = max([worst] + [abs(float(logits[pos, i]) - v) for i, v in row.items()])
            squares = float((logits[pos].double() ** 2).sum())
            if abs(squares - TINY_SQUARES[pos]) > 1e-2:
                raise SystemExit(f"tiny: position {pos}: got sum of squares {squares}, want {TINY_SQUARES[pos]}")
        if worst > 1e-3:
            raise SystemExit(f"tiny: logits differ by {worst}, want at most 1e-3")
    more = f", worst logit difference {worst:.2g}" if kind == "tiny" else ""
    print(f"{kind}: with the goldens' epsilon: tokens equal, smallest gap {min(gaps)}{more}")


def record_golden(kind):
    """One golden model's record, after its check."""
    tensors = goldenmodel.golden(kind)
    sha = goldenmodel.sha256(tensors)
    if sha != goldenmodel.GOLDEN_SHA256[kind]:
        raise SystemExit(f"{kind}: got weights {sha}, want {goldenmodel.GOLDEN_SHA256[kind]}")
    shape = goldenmodel.SHAPES[kind]
    model = build(goldenmodel.config(shape), tensors)
    check(model, kind)
    tokens, gaps, _ = greedy(model, GOLDEN_PROMPT, STEPS)
    # Any ids do; these are drawn from the stream of the name below, over all rows of the head.
    ids = (goldenmodel.stream("parity positions " + kind, HELDOUT_TOKENS) * shape.vocab).astype(int).tolist()
    return {
        "sha256": sha,
        "greedy": [{"name": "golden", "prompt": GOLDEN_PROMPT, "tokens": tokens, "gaps": gaps}],
        "positions": positions(model, ids),
    }


def record_demo(directory):
    """The demo model's record."""
    cfg, tensors = goldenmodel.read_dir(directory)
    model = build(cfg, tensors)
    runs = []
    for p in demo_prompts(directory)[:PROMPTS]:
        tokens, gaps, _ = greedy(model, p["prompt"], STEPS)
        runs.append({**p, "tokens": tokens, "gaps": gaps})
    return {"sha256": goldenmodel.sha256(tensors), "greedy": runs, "positions": positions(model, heldout(directory))}


def main(args):
    torch.set_num_threads(int(os.environ.get("PARITY_THREADS", "1")))
    transformers.logging.set_verbosity_error()  # it warns at length that its plain PyTorch forms run, which is the point
    if args[:1] == ["check"]:
        for kind in GOLDEN_TOKENS:
            tensors = goldenmodel.golden(kind)
            check(build(goldenmodel.config(goldenmodel.SHAPES[kind]), tensors), kind)
        return 0
    if args[:1] != ["record"] or len(args) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    models = {kind: record_golden(kind) for kind in GOLDEN_TOKENS}
    if len(args) == 3:
        models["demo"] = record_demo(args[2])
    out = {
        "source": "transformers Qwen3_5MoeForCausalLM, float32, CPU, eager attention and experts",
        "command": "parity/run.sh transformers",
        "packages": {
            "python": platform.python_version(),
            "torch": torch.__version__.split("+")[0],
            "transformers": transformers.__version__,
            "numpy": np.__version__,
        },
        "models": models,
    }
    with open(args[1], "w") as f:
        f.write(layout(out) + "\n")
    for kind, m in models.items():
        print(f"{kind}: {m['sha256'][:12]}, perplexity {m['positions']['perplexity']:.4f}, "
              f"smallest greedy gap {min(min(r['gaps']) for r in m['greedy'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
