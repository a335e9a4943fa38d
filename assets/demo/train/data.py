"""Tokenizer training, rendering with the official chat template, packing of documents into rows.

    python data.py tokenizer --teacher DIR --model DIR       writes tokenizer.json and heldout.txt
    python data.py heldout --teacher DIR --model DIR         writes only heldout.txt
    python data.py pack --teacher DIR --model DIR --out FILE  writes the packed rows (uint16)

A packed value: bits 0-11 the token, bits 12-13 the loss class (0 none, 1 weight 0.2, 2 weight 1), bit 14 the first token of a document.
"""
import argparse
import glob
import json
import os
import random
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import dialogues
import stories
from shape import REGEX, VOCAB

ADDED = [("<|endoftext|>", 1), ("<|im_start|>", 1), ("<|im_end|>", 1), ("<|object_ref_start|>", 1), ("<|object_ref_end|>", 1), ("<|box_start|>", 1), ("<|box_end|>", 1), ("<|quad_start|>", 1),
         ("<|quad_end|>", 1), ("<|vision_start|>", 1), ("<|vision_end|>", 1), ("<|vision_pad|>", 1), ("<|image_pad|>", 1), ("<|video_pad|>", 1), ("<tool_call>", 0), ("</tool_call>", 0),
         ("<|fim_prefix|>", 0), ("<|fim_middle|>", 0), ("<|fim_suffix|>", 0), ("<|fim_pad|>", 0), ("<|repo_name|>", 0), ("<|file_sep|>", 0), ("<tool_response>", 0), ("</tool_response>", 0),
         ("<think>", 0), ("</think>", 0), ("<|audio_start|>", 1), ("<|audio_end|>", 1), ("<tts_pad>", 1), ("<tts_text_bos>", 1), ("<tts_text_eod>", 1), ("<tts_text_bos_single>", 1), ("<|audio_pad|>", 1)]

ROW = 1024
# repetitions of each source in the packed rows, documents made for the synthetic ones
MIX = {"teacher": 1, "chat": 210000, "call": 33000, "plain": 24000}


def template(path):
    from jinja2 import Environment
    env = Environment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = lambda v, **_: json.dumps(v, ensure_ascii=False)

    def fail(m):
        raise ValueError(m)

    env.globals["raise_exception"] = fail
    return env.from_string(open(path, encoding="utf-8").read())


def blank():
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(REGEX), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    return t


def train_tokenizer(texts, out):
    from tokenizers import AddedToken, pre_tokenizers, trainers
    t = blank()
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=VOCAB - len(ADDED), initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False, min_frequency=2))
    got = t.get_vocab_size()
    assert got == VOCAB - len(ADDED), f"tokenizer: got {got} base tokens, want {VOCAB - len(ADDED)}"
    t.add_tokens([AddedToken(s, special=bool(k), normalized=False) for s, k in ADDED])
    d = json.loads(t.to_str())
    assert all(isinstance(m, list) for m in d["model"]["merges"]), "merges must be two-element arrays"
    assert [a["content"] for a in d["added_tokens"]] == [s for s, _ in ADDED] and d["added_tokens"][0]["id"] == VOCAB - len(ADDED)
    for a, (_, k) in zip(d["added_tokens"], ADDED):
        a["special"] = bool(k)
    with open(out, "w", encoding="utf-8") as f:
        json.dump(d, f, ensure_ascii=False, indent=2)
        f.write("\n")


class Ids:
    def __init__(self, tok):
        g = tok.token_to_id
        self.eot, self.start, self.end, self.think, self.unthink = (g(s) for s in ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"))
        self.role = {tok.encode(s).ids[0]: s for s in ("system", "user", "assistant")}
        self.nl, self.nl2 = tok.encode("\n").ids[0], tok.encode("\n\n").ids[0]


def classes(ids, k):
    """Loss class of each token: 2 for what the model must write (assistant turns after the last query), 1 for other chat text, 0 for the rest."""
    out, n, i = [0] * len(ids), len(ids), 0
    while i < n:
        if ids[i] != k.start:
            i += 1
            continue
        j = i
        while j < n and ids[j] != k.end:
            j += 1
        role = k.role.get(ids[i + 1]) if i + 1 < n else None
        a = i + 3       # after <|im_start|>role\n
        if role == "assistant":
            if a < n and ids[a] == k.think:
                a += 2
                if ids[a - 1] == k.nl2 and a < n and ids[a] == k.unthink:
                    a += 2
                for x in range(a, min(j + 1, n)):
                    out[x] = 2
            else:
                for x in range(a, j):
                    out[x] = 1
        elif role == "user":
            for x in range(a, j):
                out[x] = 1
        i = j + 1
    return out


def render(tpl, m, tools):
    return tpl.render(messages=m, tools=tools, add_generation_prompt=False)


def one_chunk(args):
    """Tokens and classes of a chunk of documents, packed as uint16 arrays."""
    model, kind, seed, n, given = args
    from tokenizers import Tokenizer
    tok = Tokenizer.from_file(os.path.join(model, "tokenizer.json"))
    tpl = template(os.path.join(model, "chat_template.jinja"))
    r = random.Random(f"{kind} {seed}")
    k = Ids(tok)
    if kind == "teacher":
        docs = []
        for tk, m in given:
            if tk == "story":       # the teacher's stories are loose: text to learn the language from, not answers
                docs.append((m[1]["content"], None))
                continue
            if r.random() < 0.3:
                m[-1]["reasoning_content"] = dialogues.think(r, m[-2]["content"], "teacher")
            docs.append((m, None))
    elif kind == "plain":
        docs = [(stories.story(r)[1], None) for _ in range(n)]
    else:
        make = dialogues.chat if kind == "chat" else dialogues.call
        docs = [make(r) for _ in range(n)]
    texts = [m + "<|endoftext|>" if isinstance(m, str) else render(tpl, m, t) for m, t in docs]
    out = []
    no_user = kind == "call"
    for e in tok.encode_batch(texts):
        ids = e.ids
        c = classes(ids, k) if ids[0] == k.start else [2] * len(ids)
        if no_user:
            c = [2 if x == 2 else 0 for x in c]
        a = np.array(ids, np.uint16) | (np.array(c, np.uint16) << 12)
        a[0] |= 1 << 14
        out.append(a)
    return out


def pack(docs, seed, pad):
    """First-fit over a window of open rows. -> uint16 [rows, ROW]."""
    r = random.Random(seed)
    r.shuffle(docs)
    rows, open_rows = [], []
    for d in docs:
        if len(d) > ROW:
            continue
        best = None
        for i, (free, _) in enumerate(open_rows):
            if free >= len(d) and (best is None or free < open_rows[best][0]):
                best = i
        if best is None:
            if len(open_rows) >= 48:
                i = min(range(len(open_rows)), key=lambda x: open_rows[x][0])
                rows.append(open_rows.pop(i)[1])
            open_rows.append((ROW, []))
            best = len(open_rows) - 1
        free, parts = open_rows[best]
        parts.append(d)
        open_rows[best] = (free - len(d), parts)
        if open_rows[best][0] < 12:
            rows.append(open_rows.pop(best)[1])
    rows += [p for _, p in open_rows]
    out = np.full((len(rows), ROW), pad, np.uint16)
    for i, parts in enumerate(rows):
        at = 0
        for p in parts:
            out[i, at:at + len(p)] = p
            at += len(p)
        if at < ROW:
            out[i, at] |= 1 << 14
    r.shuffle(order := list(range(len(rows))))
    return out[order]


def teacher_docs(folder):
    """-> (training dialogues, held-out dialogues): every 60th is held out. Its small talk is left out: talk.py is better."""
    docs = [d for d in dialogues.teacher(sorted(glob.glob(os.path.join(folder, "teacher-*.jsonl.xz")))) if d[0] not in ("talk", "advice")]
    return [d for i, d in enumerate(docs) if i % 60], docs[::60]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("what", choices=["tokenizer", "heldout", "pack"])
    a.add_argument("--teacher", required=True)
    a.add_argument("--model", required=True, help="folder with chat_template.jinja; tokenizer.json is written or read there")
    a.add_argument("--out")
    a.add_argument("--workers", type=int, default=os.cpu_count())
    a.add_argument("--scale", type=float, default=1.0)
    o = a.parse_args()
    train, held = teacher_docs(o.teacher)
    print(f"teacher: {len(train)} dialogues, {sum(len(x['content']) for _, m in train for x in m)} characters, {len(held)} held out", flush=True)
    if o.what == "tokenizer":
        r = random.Random(5)
        tpl = template(os.path.join(o.model, "chat_template.jinja"))
        docs = [(m, None) for _, m in train[::2]] + [dialogues.chat(r) for _ in range(12000)] + [dialogues.call(r) for _ in range(1500)]
        texts = [render(tpl, m, t) for m, t in docs]
        for s, _ in ADDED:
            texts = [t.replace(s, "\n") for t in texts]
        train_tokenizer(texts, os.path.join(o.model, "tokenizer.json"))
    if o.what != "pack":
        with open(os.path.join(o.model, "heldout.txt"), "w", encoding="utf-8") as f:
            f.write("\n\n".join(x["content"] for k, m in held for x in m if x["role"] == "assistant" and (k in ("story", "essay") or len(x["content"]) > 150)) + "\n")
        return
    from tokenizers import Tokenizer
    pad = Tokenizer.from_file(os.path.join(o.model, "tokenizer.json")).token_to_id("<|endoftext|>")
    jobs = []
    for rep in range(max(1, round(MIX["teacher"]))):
        jobs += [(o.model, "teacher", f"{rep} {i}", 0, train[i:i + 2000]) for i in range(0, len(train), 2000)]
    for kind in ("chat", "call", "plain"):
        jobs += [(o.model, kind, i, 2000, None) for i in range(int(MIX[kind] * o.scale) // 2000)]
    docs, count = [], {}
    with ProcessPoolExecutor(o.workers) as ex:
        for j, part in zip(jobs, ex.map(one_chunk, jobs)):
            docs += part
            c = count.setdefault(j[1], [0, 0, 0])
            c[0] += len(part)
            c[1] += sum(map(len, part))
            c[2] += sum(int(((d >> 12) & 3 == 2).sum()) for d in part)
    for k, c in count.items():
        print(f"{k}: {c[0]} documents, {c[1]} tokens, {c[2]} of them with full loss", flush=True)
    rows = pack(docs, 9, pad)
    print(f"{len(rows)} rows, fill {sum(c[1] for c in count.values()) / rows.size:.3f}", flush=True)
    rows.tofile(o.out)
    json.dump({k: dict(zip(("documents", "tokens", "answer_tokens"), c)) for k, c in count.items()}, open(o.out + ".json", "w"))


if __name__ == "__main__":
    main()
