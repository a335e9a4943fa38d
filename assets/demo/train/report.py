"""Join the figures of train.py, data.py and verify.py into report.json."""
import argparse
import json
import os


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--run", required=True)
    a.add_argument("--rows", required=True)
    a.add_argument("--out", required=True)
    a.add_argument("--note", default="")
    o = a.parse_args()
    load = lambda p: json.load(open(p, encoding="utf-8"))
    t, v, mix = load(os.path.join(o.run, "train-report.json")), load(os.path.join(o.run, "verify-report.json")), load(o.rows + ".json")
    tokens = sum(m["tokens"] for m in mix.values())
    for m in mix.values():
        m["share_of_tokens"] = round(m["tokens"] / tokens, 4)
    t["training"]["loss"] = t["training"]["loss"][::4] + t["training"]["loss"][-1:]
    out = {
        "what": "pond-demo, a smoke-test model of Qwen3.6-35B-A3B's architecture", "parameters": 55687472, "tensor_bytes": 31401312,
        "heldout": {**t["heldout"], "q4_perplexity_transformers": v["q4_perplexity"], "q4_perplexity_transformers_tokens": v["tokens"]},
        "training": t["training"], "data": {"mix": mix, "tokens_an_epoch": tokens, "loss_weights": "1 for answers, 0.2 for other chat text, 0 for tool headers"},
        "check": {"by": v["by"], "answers": v["answers"]}, "answers_model_py_bf16": t["samples_trainer"], "sha256": v["sha256"]}
    if o.note:
        out["note"] = o.note
    with open(o.out, "w", encoding="utf-8") as f:
        json.dump(out, f, indent=1, ensure_ascii=False)
        f.write("\n")


if __name__ == "__main__":
    main()
