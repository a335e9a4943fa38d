"""Compare model.py with transformers' Qwen3_5MoeForCausalLM on random weights, float32, CPU."""
import os
import sys

import torch

import model as M
import shape as S


def hf_state(w):
    """The same weights under transformers' names (norms zero-centred there)."""
    d = {"model.embed_tokens.weight": w["embed"], "lm_head.weight": w["head"], "model.norm.weight": w["norm"] - 1}
    ig = jf = 0
    for i, full in enumerate(S.FULL):
        p = f"model.layers.{i}."
        d[p + "input_layernorm.weight"], d[p + "post_attention_layernorm.weight"] = w["in_norm"][i] - 1, w["post_norm"][i] - 1
        d[p + "mlp.gate.weight"] = w["router"][i]
        d[p + "mlp.experts.gate_up_proj"] = torch.cat([w["eg"][i], w["eu"][i]], 1)
        d[p + "mlp.experts.down_proj"] = w["ed"][i]
        for a, b in (("gate_proj", "sg"), ("up_proj", "su"), ("down_proj", "sd")):
            d[p + f"mlp.shared_expert.{a}.weight"] = w[b][i]
        d[p + "mlp.shared_expert_gate.weight"] = w["sgate"][i]
        if full:
            for a, b in (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("o_proj", "o")):
                d[p + f"self_attn.{a}.weight"] = w[b][jf]
            d[p + "self_attn.q_norm.weight"], d[p + "self_attn.k_norm.weight"] = w["qn"][jf] - 1, w["kn"][jf] - 1
            jf += 1
        else:
            for a, b in (("in_proj_qkv", "qkv"), ("in_proj_z", "z"), ("in_proj_b", "b"), ("in_proj_a", "a"), ("out_proj", "out"), ("norm", "gnorm")):
                d[p + f"linear_attn.{a}.weight"] = w[b][ig]
            d[p + "linear_attn.conv1d.weight"] = w["conv"][ig][:, None, :]
            d[p + "linear_attn.A_log"], d[p + "linear_attn.dt_bias"] = w["A_log"][ig], w["dt_bias"][ig]
            ig += 1
    return d


def hf_model(folder, w):
    from transformers import AutoConfig, Qwen3_5MoeForCausalLM
    c = AutoConfig.from_pretrained(folder).text_config
    c._attn_implementation = "eager"
    with torch.device("meta"):
        m = Qwen3_5MoeForCausalLM(c)
    m = m.to_empty(device="cpu").float()
    for mod in m.modules():
        if hasattr(mod, "inv_freq"):
            inv = S.THETA ** (-torch.arange(0, S.ROTARY, 2).float() / S.ROTARY)
            mod.inv_freq = inv
            if hasattr(mod, "original_inv_freq"):
                mod.original_inv_freq = inv.clone()
    left = m.load_state_dict({k: v.float().contiguous() for k, v in hf_state(w).items()}, strict=False)
    assert not left.missing_keys and not left.unexpected_keys, left
    return m.eval()


def main():
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.manual_seed(1)
    w = M.init("cpu")
    for n in w:
        if "norm" in n or n in ("qn", "kn"):
            w[n] = w[n] + 0.2 * torch.randn_like(w[n])
        elif n not in ("A_log", "dt_bias", "conv"):
            w[n] = w[n] * 2
    assert sum(t.numel() for t in w.values()) == 55687472, sum(t.numel() for t in w.values())
    tok = torch.randint(0, 4096, (1, 256))
    first = torch.zeros(1, 256, dtype=torch.bool)
    first[0, [0, 100, 101, 103, 190]] = True
    pos = torch.tensor([[i - max(s for s in (0, 100, 101, 103, 190) if s <= i) for i in range(256)]])
    with torch.no_grad():
        h, aux = M.forward(w, tok, pos, first, torch.float32)
        mine = h @ w["head"].T
        m = hf_model(sys.argv[1], w)
        for a, b in ((0, 100), (100, 101), (101, 103), (103, 190), (190, 256)):
            ref = m(input_ids=tok[:, a:b]).logits
            print(a, b, "max difference", (ref - mine[:, a:b]).abs().max().item(), "of", ref.abs().max().item())
    print("router loss", float(aux))


if __name__ == "__main__":
    main()
