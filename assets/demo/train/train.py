"""Train the demo model, make it 4-bit, measure it and write its files.

    python train.py --rows rows.bin --model DIR --out DIR --seconds 900

The learning rate follows the clock: the run always ends in time. Matrices are trained with Muon, the rest with AdamW; the last part of the
run computes with the weights rounded to the 4-bit grid (straight-through), so that the shipped weights are the trained ones.
"""
import argparse
import json
import os
import time

import numpy as np
import torch
import torch.nn.functional as F

import evaluate
import export
import model as M
import shape as S

MUON = {"eg", "eu", "ed", "sg", "su", "sd", "qkv", "z", "out", "q", "k", "v", "o"}
WEIGHT = (0.0, 0.2, 1.0)


def unpack(v, table):
    """uint16 rows -> token, position in its document, first-of-document, loss weight of the next token, next token."""
    v = v.int()
    tok, cls, first = (v & 4095).long(), (v >> 12 & 3).long(), (v >> 14 & 1).bool()
    first[:, 0] = True
    t = torch.arange(v.shape[1], device=v.device)[None]
    pos = t - torch.where(first, t, 0).cummax(1).values
    wt = table[cls] * ~first
    return tok, pos, first, F.pad(wt[:, 1:], (0, 1)), F.pad(tok[:, 1:], (0, 1))


def newton_schulz(g):
    x = g.bfloat16()
    flip = x.shape[-2] > x.shape[-1]
    if flip:
        x = x.transpose(-1, -2)
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.transpose(-1, -2)
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
    return x.transpose(-1, -2) if flip else x


class Optimiser:
    def __init__(self, master):
        self.master, self.t = master, 0
        self.m = {n: torch.zeros_like(p) for n, p in master.items()}
        self.v = {n: torch.zeros_like(p) for n, p in master.items() if n not in MUON}

    @torch.no_grad()
    def step(self, work, lr):
        self.t += 1
        for n, p in self.master.items():
            g = work[n].grad.float()
            m = self.m[n]
            if n in MUON:
                m.mul_(0.95).add_(g)
                u = newton_schulz(g.add_(m, alpha=0.95))
                p.mul_(1 - lr * 0.1).add_(u.float(), alpha=-lr * 0.2 * max(p.shape[-2:]) ** 0.5)
            else:
                v = self.v[n]
                m.lerp_(g, 0.1)
                v.lerp_(g.square(), 0.02)
                u = (m / (1 - 0.9 ** self.t)) / ((v / (1 - 0.98 ** self.t)).sqrt() + 1e-8)
                if M.WEIGHTS[n][1] < 16:
                    p.mul_(1 - lr * 0.02)
                p.add_(u, alpha=-lr * (0.3 if n in ("A_log", "dt_bias", "router", "sgate") else 1.0))


def rate(p, peak):
    """Learning rate at progress p of 1: warm-up, constant, linear decay."""
    if p < 0.02:
        return peak * max(p, 1e-4) / 0.02
    return peak if p < 0.4 else peak * max(0.01, (1 - p) / 0.6)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--rows", required=True)
    a.add_argument("--model", required=True)
    a.add_argument("--out", required=True)
    a.add_argument("--seconds", type=float, default=900)
    a.add_argument("--batch", type=int, default=64)
    a.add_argument("--lr", type=float, default=3e-3)
    a.add_argument("--quantised-from", type=float, default=0.72, dest="qat")
    a.add_argument("--compile", action="store_true")
    a.add_argument("--smoke", action="store_true", help="only measure the speed")
    o = a.parse_args()
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(11)
    begin = time.time()
    rows = torch.from_numpy(np.fromfile(o.rows, np.uint16).reshape(-1, 1024).astype(np.int32)).to(dev)
    print(f"{len(rows)} rows of 1024, loaded in {time.time() - begin:.0f} s", flush=True)
    if o.compile:
        M.swiglu, M.l2, M.rotate = (torch.compile(f) for f in (M.swiglu, M.l2, M.rotate))
    master = M.init(dev)
    work = {n: t.bfloat16().requires_grad_() for n, t in master.items()}
    for t in work.values():
        t.grad = torch.zeros_like(t)
    opt = Optimiser(master)
    table = torch.tensor(WEIGHT, device=dev)
    batch = torch.zeros(o.batch, 1024, dtype=torch.int32, device=dev)
    loss_out, aux_out = torch.zeros((), device=dev), torch.zeros((), device=dev)

    def work_step():
        for t in work.values():
            t.grad.zero_()
        tok, pos, first, wt, nxt = unpack(batch, table)
        h, aux = M.forward(work, tok, pos, first)
        logits = F.linear(h, work["head"])
        ce = F.cross_entropy(logits.view(-1, S.VOCAB).float(), nxt.view(-1), reduction="none")
        loss = (ce * wt.view(-1)).sum() / wt.sum().clamp_min(1)
        (loss + 0.01 * aux).backward()
        loss_out.copy_(loss.detach())
        aux_out.copy_(aux.detach())

    batch.copy_(rows[:o.batch])
    if dev == "cuda":
        st = torch.cuda.Stream()
        st.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(st):
            for _ in range(3):
                work_step()
        torch.cuda.current_stream().wait_stream(st)
        print(f"warm after {time.time() - begin:.0f} s, {torch.cuda.max_memory_allocated() / 2**30:.0f} GiB", flush=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work_step()
        step = graph.replay
    else:
        step = work_step
    print(f"ready after {time.time() - begin:.0f} s", flush=True)
    t0 = last = time.time()
    n, at, epoch, perm, log, lastn = 0, 0, 0, torch.randperm(len(rows), device=dev), [], 0
    while True:
        p = (time.time() - t0) / o.seconds
        if p >= 1:
            break
        if at + o.batch > len(rows):
            at, epoch, perm = 0, epoch + 1, torch.randperm(len(rows), device=dev)
        batch.copy_(rows[perm[at:at + o.batch]])
        at += o.batch
        M.effective(master, work, p >= o.qat)
        step()
        opt.step(work, rate(p, o.lr))
        n += 1
        if n % 10 == 0:
            l = loss_out.item()
            if n % 100 == 0:
                now = time.time()
                print(f"step {n} epoch {epoch} p {p:.3f} loss {l:.3f} router {aux_out.item():.3f} {(n - lastn) * o.batch * 1024 / (now - last):.0f} tokens/s", flush=True)
                log.append((n, round(p, 4), round(l, 4)))
                last, lastn = now, n
                assert l == l, "the loss is not a number"
    took = time.time() - t0
    tokens = n * o.batch * 1024
    print(f"{n} steps, {tokens} tokens, {took:.0f} s", flush=True)
    if o.smoke:
        return
    del step
    if dev == "cuda":
        del graph
        torch.cuda.empty_cache()
    os.makedirs(o.out, exist_ok=True)
    torch.save({k: v.cpu() for k, v in master.items()}, os.path.join(o.out, "master.pt"))
    files = export.write(o.out, master)
    report = {"training": {"tokens": tokens, "steps": n, "rows": len(rows), "epochs": round(n * o.batch / len(rows), 2), "seconds": round(took), "batch_tokens": o.batch * 1024, "peak_lr": o.lr,
                           "quantised_from": o.qat, "loss": log, "device": torch.cuda.get_device_name() if dev == "cuda" else "cpu"}, "files": files}
    report["heldout"] = evaluate.perplexities(master, o.model, dev)
    print(json.dumps(report["heldout"]), flush=True)
    report["samples_trainer"] = evaluate.samples(master, o.model, dev)
    for s in report["samples_trainer"]:
        print(json.dumps(s, ensure_ascii=False), flush=True)
    json.dump(report, open(os.path.join(o.out, "train-report.json"), "w"), indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
