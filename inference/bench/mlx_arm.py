"""One arm of `pond bench --against mlx-lm`: mlx-lm's own generate_step over the synthetic prompt, in this fresh process.

    mlx_arm.py MODEL '{"context": 256, "intervals": 64, "vocab": 248077}'

Prints one line of JSON, the sample of inference/bench/bench.go. Inside the clock is what mlx-lm's generate does for each token, its log-probabilities
over the whole vocabulary among it; loading, tokenizing and text are outside. Needs Apple Silicon and mlx-lm.
"""

import importlib.metadata
import json
import sys
import time


def prompt(n, vocab):
    return [(i * 2654435761 % 2**32) % vocab for i in range(n)]


def digest(ids):
    """FNV-1a, 64 bits, over each id as 4 bytes little endian."""
    h = 0xCBF29CE484222325
    for i in ids:
        for b in int(i).to_bytes(4, "little"):
            h = ((h ^ b) * 0x100000001B3) % 2**64
    return f"{h:016x}"


def run(model, step, ids, intervals):
    """(prefill seconds, seconds between tokens, tokens); the generator computes one step ahead by itself, as in production."""
    import mlx.core as mx

    times, tokens = [], []
    begun = time.perf_counter()
    for token, _ in step(mx.array(ids), model, max_tokens=intervals + 1):
        times.append(time.perf_counter())
        tokens.append(int(token))
    if len(tokens) != intervals + 1:
        raise SystemExit(f"mlx-lm: got {len(tokens)} tokens, want {intervals + 1}")
    return times[0] - begun, [b - a for a, b in zip(times, times[1:])], tokens


def main():
    directory, arm = sys.argv[1], json.loads(sys.argv[2])
    from mlx_lm import load
    from mlx_lm.generate import generate_step

    begun = time.perf_counter()
    model, _ = load(directory)
    loaded = time.perf_counter() - begun
    ids = prompt(arm["context"], arm["vocab"])
    run(model, generate_step, ids, 2)
    prefill, intervals, tokens = run(model, generate_step, ids, arm["intervals"])
    versions = {p: importlib.metadata.version(p) for p in ("mlx", "mlx-lm")}
    print(json.dumps({"executor": "mlx-lm on the GPU", "prefill_s": prefill, "intervals_s": intervals, "digest": digest(tokens),
                      "load_s": loaded, "versions": versions}))


if __name__ == "__main__":
    main()
