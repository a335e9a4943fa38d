"""The demo model in plain PyTorch, lean enough for one graph capture: every weight kind is one tensor stacked over the layers,
all experts are computed densely (12 of them; the router's weight is zero for those not chosen), the delta rule in chunks of 64.

forward(w, tok, pos, first) -> (hidden [B, T, D], router loss): `w` holds bf16 weights by name, `first` marks the first token of each document,
at which convolution, recurrence and attention start afresh; `pos` counts from 0 in each document.
"""
import math

import torch
import torch.nn.functional as F

import shape as S

C = 64
NG, NF = S.LAYERS - sum(S.FULL), sum(S.FULL)
KD, VD = S.GDN_K * S.GDN_DIM, S.GDN_V * S.GDN_DIM

# name: (shape, bits in the file: 4, 8, or 16 for a plain bf16 tensor)
WEIGHTS = {
    "embed": ((S.VOCAB, S.HIDDEN), 4), "head": ((S.VOCAB, S.HIDDEN), 4), "norm": ((S.HIDDEN,), 16),
    "in_norm": ((S.LAYERS, S.HIDDEN), 16), "post_norm": ((S.LAYERS, S.HIDDEN), 16), "router": ((S.LAYERS, S.EXPERTS, S.HIDDEN), 8),
    "eg": ((S.LAYERS, S.EXPERTS, S.INNER, S.HIDDEN), 4), "eu": ((S.LAYERS, S.EXPERTS, S.INNER, S.HIDDEN), 4), "ed": ((S.LAYERS, S.EXPERTS, S.HIDDEN, S.INNER), 4),
    "sg": ((S.LAYERS, S.SHARED, S.HIDDEN), 4), "su": ((S.LAYERS, S.SHARED, S.HIDDEN), 4), "sd": ((S.LAYERS, S.HIDDEN, S.SHARED), 4), "sgate": ((S.LAYERS, 1, S.HIDDEN), 8),
    "qkv": ((NG, 2 * KD + VD, S.HIDDEN), 4), "z": ((NG, VD, S.HIDDEN), 4), "b": ((NG, S.GDN_V, S.HIDDEN), 4), "a": ((NG, S.GDN_V, S.HIDDEN), 4),
    "conv": ((NG, 2 * KD + VD, S.CONV), 16), "A_log": ((NG, S.GDN_V), 16), "dt_bias": ((NG, S.GDN_V), 16), "gnorm": ((NG, S.GDN_DIM), 16), "out": ((NG, S.HIDDEN, VD), 4),
    "q": ((NF, 2 * S.HEADS * S.HEAD_DIM, S.HIDDEN), 4), "k": ((NF, S.KV * S.HEAD_DIM, S.HIDDEN), 4), "v": ((NF, S.KV * S.HEAD_DIM, S.HIDDEN), 4),
    "qn": ((NF, S.HEAD_DIM), 16), "kn": ((NF, S.HEAD_DIM), 16), "o": ((NF, S.HIDDEN, S.HEADS * S.HEAD_DIM), 4)}


def init(device, seed=7):
    g = torch.Generator().manual_seed(seed)
    w = {}
    for n, (sh, _) in WEIGHTS.items():
        if "norm" in n or n in ("qn", "kn"):
            t = torch.ones(sh)
        elif n == "A_log":
            t = torch.empty(sh).uniform_(1, 16, generator=g).log()
        elif n == "dt_bias":
            dt = torch.exp(torch.empty(sh).uniform_(math.log(1e-3), math.log(0.1), generator=g))
            t = dt + torch.log(-torch.expm1(-dt))
        elif n == "conv":
            t = torch.empty(sh).uniform_(-0.5, 0.5, generator=g)
        else:
            std = 0.02 if n not in ("ed", "sd", "out", "o") else 0.02 / math.sqrt(2 * S.LAYERS) * 2
            t = torch.randn(sh, generator=g) * (std * (1.0 if n in ("embed", "head") else 1.5))
        w[n] = t.to(device)
    return w


class TriInverse(torch.autograd.Function):
    """(I + A)^-1 for strictly lower A [..., 64, 64], fp32: 16-blocks by products, then merged twice."""

    @staticmethod
    def forward(ctx, a):
        sh, n = a.shape, C
        a = a.reshape(-1, n, n)
        eye = torch.eye(16, device=a.device, dtype=a.dtype)
        d = torch.stack([a[:, i:i + 16, i:i + 16] for i in range(0, n, 16)], 1)
        x, p = eye - d, d @ d
        for i in range(3):
            x = x + x @ p
            if i < 2:
                p = p @ p
        parts = list(x.unbind(1))
        size = 16
        while size < n:
            merged = []
            for i in range(0, len(parts), 2):
                x1, x2, at = parts[i], parts[i + 1], i * size
                off = -(x2 @ a[:, at + size:at + 2 * size, at:at + size] @ x1)
                merged.append(torch.cat([torch.cat([x1, torch.zeros_like(x1)], 2), torch.cat([off, x2], 2)], 1))
            parts, size = merged, size * 2
        x = parts[0].reshape(sh)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        xt = x.transpose(-1, -2)
        return -(xt @ g @ xt).tril(-1)


def l2(x):
    x = x.float()
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def delta_rule(q, k, v, beta, g, mm):
    """q, k [B, H, T, 128] (normalised, q scaled), v [B, H, T, 128], beta, g (log decay) [B, H, T] fp32 -> [B, H, T, 128] in mm's dtype."""
    B, H, T, D = q.shape
    n = T // C
    ch = lambda x: x.reshape(B, H, n, C, *x.shape[3:])
    q, k, v, beta, g = ch(q), ch(k), ch(v), ch(beta), ch(g)
    L = g.cumsum(-1)
    low = torch.ones(C, C, device=q.device, dtype=torch.bool).tril()
    gam = (L[..., :, None] - L[..., None, :]).masked_fill(~low, float("-inf")).exp()
    kb, qb = k.to(mm), q.to(mm)
    A = ((kb @ kb.transpose(-1, -2)).float() * gam * beta[..., None]).tril(-1)
    X = TriInverse.apply(A).to(mm)
    eL = L.exp()
    U = X @ (v * beta[..., None]).to(mm)
    W = X @ (k * (beta * eL)[..., None]).to(mm)
    M = ((qb @ kb.transpose(-1, -2)).float() * gam).to(mm)
    Q = (q * eL[..., None]).to(mm)
    K = (k * (L[..., -1:] - L).exp()[..., None]).to(mm).transpose(-1, -2)
    dec = eL[..., -1][..., None, None]
    st = torch.zeros(B, H, D, v.shape[-1], device=q.device)
    out = []
    for U1, W1, M1, Q1, K1, d1 in zip(U.unbind(2), W.unbind(2), M.unbind(2), Q.unbind(2), K.unbind(2), dec.unbind(2)):
        sb = st.to(mm)
        N1 = U1 - W1 @ sb
        out.append(Q1 @ sb + M1 @ N1)
        st = st * d1 + (K1 @ N1).float()
    return torch.stack(out, 2).reshape(B, H, T, -1)


def gdn(w, i, h, first, mm):
    B, T, _ = h.shape
    u = F.linear(h, w["qkv"][i])
    cw = w["conv"][i]
    c = u * cw[:, 3]
    ok = ~first
    same = ok
    for s in range(1, S.CONV):      # a tap reaches back s tokens only inside the document
        m = torch.zeros_like(first)
        m[:, s:] = same[:, s:]
        c = c + F.pad(u, (0, 0, s, 0))[:, :T] * m[..., None] * cw[:, 3 - s]
        same = torch.cat([same[:, :1] & False, same[:, :-1]], 1) & ok
    c = F.silu(c)
    heads = lambda x, n: x.reshape(B, T, n, S.GDN_DIM).transpose(1, 2)
    q, k, v = c.split([KD, KD, VD], -1)
    r = S.GDN_V // S.GDN_K
    q = (l2(heads(q, S.GDN_K)) * S.GDN_DIM ** -0.5).repeat_interleave(r, 1)
    k = l2(heads(k, S.GDN_K)).repeat_interleave(r, 1)
    beta = F.linear(h, w["b"][i]).float().sigmoid().transpose(1, 2)
    a = F.linear(h, w["a"][i]).float() + w["dt_bias"][i].float()
    g = -(w["A_log"][i].float().exp() * F.softplus(a)).transpose(1, 2)
    g = torch.where(first[:, None], -60.0, g)
    y = delta_rule(q, k, heads(v, S.GDN_V).float(), beta, g, mm).transpose(1, 2)
    y = F.rms_norm(y.to(h.dtype), (S.GDN_DIM,), w["gnorm"][i], S.EPS) * F.silu(F.linear(h, w["z"][i])).view(B, T, S.GDN_V, S.GDN_DIM)
    return F.linear(y.reshape(B, T, VD), w["out"][i])


def rotate(x, cos, sin):
    r, p = x[..., :S.ROTARY].float(), x[..., S.ROTARY:]
    a, b = r.chunk(2, -1)
    return torch.cat([torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype), p], -1)


def attention(w, i, h, rope, mask):
    B, T, _ = h.shape
    q, gate = F.linear(h, w["q"][i]).view(B, T, S.HEADS, 2 * S.HEAD_DIM).chunk(2, -1)
    q = F.rms_norm(q, (S.HEAD_DIM,), w["qn"][i], S.EPS).transpose(1, 2)
    k = F.rms_norm(F.linear(h, w["k"][i]).view(B, T, S.KV, S.HEAD_DIM), (S.HEAD_DIM,), w["kn"][i], S.EPS).transpose(1, 2)
    v = F.linear(h, w["v"][i]).view(B, T, S.KV, S.HEAD_DIM).transpose(1, 2)
    q, k = rotate(q, *rope), rotate(k, *rope)
    r = S.HEADS // S.KV
    y = F.scaled_dot_product_attention(q, k.repeat_interleave(r, 1), v.repeat_interleave(r, 1), mask).transpose(1, 2)
    return F.linear((y * gate.sigmoid()).reshape(B, T, -1), w["o"][i])


def swiglu(g, u, wt):
    """silu(g) * u, each expert's slice times its weight: g, u [N, X * INNER], wt [N, X]."""
    n, x = wt.shape
    return ((F.silu(g) * u).view(n, x, -1) * wt[..., None]).view(n, -1)


def moe(w, i, h):
    B, T, D = h.shape
    x = h.reshape(B * T, D)
    logits = F.linear(x, w["router"][i]).float()
    top, idx = logits.topk(S.TOP_K, -1)
    wt = torch.zeros_like(logits).scatter(1, idx, top.softmax(-1))
    used = torch.zeros_like(logits).scatter(1, idx, 1.0).mean(0)
    aux = S.EXPERTS / S.TOP_K * (used * logits.softmax(-1).mean(0)).sum()
    wt = torch.cat([wt, F.linear(x, w["sgate"][i]).float().sigmoid()], 1).to(h.dtype)
    g = F.linear(x, torch.cat([w["eg"][i].reshape(-1, D), w["sg"][i]]))
    u = F.linear(x, torch.cat([w["eu"][i].reshape(-1, D), w["su"][i]]))
    down = torch.cat([w["ed"][i].transpose(0, 1).reshape(D, -1), w["sd"][i]], 1)
    return F.linear(swiglu(g, u, wt), down).view(B, T, D), aux


def forward(w, tok, pos, first, mm=torch.bfloat16):
    B, T = tok.shape
    w = {n: (t if n in ("embed", "head", "norm") else t.unbind(0)) for n, t in w.items()}
    ang = pos[:, None, :, None].float() * torch.exp(torch.arange(S.ROTARY // 2, device=tok.device) * (-2 * math.log(S.THETA) / S.ROTARY))
    rope = (ang.cos(), ang.sin())
    doc = first.long().cumsum(1)
    mask = (doc[:, :, None] == doc[:, None, :]).tril()[:, None]
    x = F.embedding(tok, w["embed"])
    aux, ig, jf = 0.0, 0, 0
    for i, full in enumerate(S.FULL):
        h = F.rms_norm(x, (S.HIDDEN,), w["in_norm"][i], S.EPS)
        if full:
            x = x + attention(w, jf, h, rope, mask)
            jf += 1
        else:
            x = x + gdn(w, ig, h, first, mm)
            ig += 1
        y, a = moe(w, i, F.rms_norm(x, (S.HIDDEN,), w["post_norm"][i], S.EPS))
        x, aux = x + y, aux + a
    return F.rms_norm(x, (S.HIDDEN,), w["norm"], S.EPS), aux / S.LAYERS


def away(x):
    """Round half away from zero."""
    return torch.trunc(x + torch.copysign(torch.full_like(x, 0.5), x))


def quantise(w, bits):
    """MLX's affine quantiser, groups of 64 along the last axis, fp32. -> q (uint8, like w), scales, biases (bf16, last axis / 64)."""
    g = w.float().reshape(*w.shape[:-1], -1, 64)
    n = 2 ** bits - 1
    hi, lo = g.amax(-1).clamp_min(0), g.amin(-1)
    s = ((hi - lo) / n).clamp_min(1e-7)
    neg = lo.abs() > hi.abs()
    edge = torch.where(neg, lo, hi)
    s = torch.where(neg, s, -s)
    q0 = away(edge / s)
    s = torch.where(q0 != 0, edge / torch.where(q0 != 0, q0, 1.0), s)
    b = torch.where(q0 != 0, edge, 0.0)
    q = away((g - b[..., None]) / s[..., None]).clamp(0, n)
    return q.to(torch.uint8).reshape(w.shape), s.bfloat16(), b.bfloat16()


def dequantise(q, s, b):
    g = q.reshape(*q.shape[:-1], -1, 64).float()
    return (g * s.float()[..., None] + b.float()[..., None]).reshape(q.shape)


@torch.no_grad()
def effective(master, out, fake):
    """Copy the fp32 master weights into the bf16 working ones, through the 4-bit (8-bit) grid when `fake`."""
    for n, t in master.items():
        bits = WEIGHTS[n][1]
        out[n].copy_(dequantise(*quantise(t, bits)) if fake and bits < 16 else t)
