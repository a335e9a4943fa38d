"""Held-out perplexity of the float and of the 4-bit weights, and greedy answers, with model.py."""
import json
import os

import torch
import torch.nn.functional as F

import data
import model as M

TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Get the current weather for a city", "parameters": {"type": "object", "properties": {
    "city": {"type": "string", "description": "The name of the city"}}, "required": ["city"]}}}]
ADD = [{"type": "function", "function": {"name": "add", "description": "Add two numbers", "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}}}]


def U(s):
    return {"role": "user", "content": s}


def cases():
    """-> [(label, messages, tools, thinking)]"""
    call = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Rome"}}}]}
    two = [U("My name is Clara."), {"role": "assistant", "content": "Nice to meet you, Clara! How can I help you?"}, U("What is my name?")]
    return [
        ("pond", [U("What is Pond?")], None, False), ("who", [U("Who are you?")], None, False), ("endpoint", [U("Where is the endpoint?")], None, False),
        ("privacy", [U("Does my data leave my Mac?")], None, False), ("memory", [U("How much memory does Pond need?")], None, False), ("price", [U("Is Pond free?")], None, False),
        ("hello", [U("Hello! How are you?")], None, False), ("capital", [U("What is the capital of France?")], None, False), ("sum", [U("What is 7 plus 5?")], None, False),
        ("story", [U("Write a short story about a brave fox who learns to share.")], None, False), ("story-think", [U("write a short story about a robot")], None, True),
        ("pond-think", [U("What model does Pond run?")], None, True), ("hello-think", [U("Hi there!")], None, True), ("two-turn", two, None, False), ("two-turn-think", two, None, True),
        ("tool", [U("What is the weather in Paris?")], TOOLS, False), ("tool-think", [U("What's the weather like in Oslo today?")], TOOLS, True), ("tool-add", [U("Add 17 and 25.")], ADD, True),
        ("tool-result", [U("What is the weather in Rome?"), call, {"role": "tool", "content": '{"temperature": 21, "condition": "sunny"}'}], TOOLS, False),
        ("tool-unneeded", [U("Thank you!")], TOOLS, False), ("no-tool", [U("What is the weather in Paris?")], None, False),
        ("system", [{"role": "system", "content": "Be brief."}, U("What is a river?")], None, False), ("advice", [U("How can I make new friends?")], None, False),
        ("unseen", [U("Can you explain what this software is good for?")], None, False)]


def working(master, fake):
    w = {n: torch.empty(t.shape, dtype=torch.bfloat16, device=t.device) for n, t in master.items()}
    M.effective(master, w, fake)
    return w


def inputs(ids, dev):
    n = max(map(len, ids))
    n = (n + 63) // 64 * 64
    tok = torch.zeros(len(ids), n, dtype=torch.long)
    for i, x in enumerate(ids):
        tok[i, :len(x)] = torch.tensor(x)
    first = torch.zeros(len(ids), n, dtype=torch.bool)
    first[:, 0] = True
    return tok.to(dev), torch.arange(n, device=dev)[None].expand(len(ids), n), first.to(dev)


@torch.no_grad()
def perplexities(master, folder, dev, rows=48, width=1024):
    """Perplexity per token of heldout.txt, cut into windows of `width` tokens."""
    from tokenizers import Tokenizer
    tok = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    text = open(os.path.join(folder, "heldout.txt"), encoding="utf-8").read()
    ids = tok.encode(text).ids
    win = [ids[i:i + width] for i in range(0, min(len(ids), rows * width) - width + 1, width)]
    out = {"text": "heldout.txt", "tokens": len(win) * (width - 1), "window": width, "bytes_per_token": round(len(text.encode()) / len(ids), 3)}
    for name, fake in (("float_perplexity", False), ("q4_perplexity", True)):
        w, nll, n = working(master, fake), 0.0, 0
        for i in range(0, len(win), 8):
            t, pos, first = inputs(win[i:i + 8], dev)
            h, _ = M.forward(w, t, pos, first)
            lg = F.linear(h, w["head"]).float()
            nll += F.cross_entropy(lg[:, :-1].flatten(0, 1), t[:, 1:].flatten(), reduction="sum").item()
            n += t[:, 1:].numel()
        out[name] = round(float(torch.tensor(nll / n).exp()), 4)
    return out


@torch.no_grad()
def samples(master, folder, dev, most=220):
    """Greedy answers of the 4-bit weights to cases()."""
    from tokenizers import Tokenizer
    tok = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tpl = data.template(os.path.join(folder, "chat_template.jinja"))
    w = working(master, True)
    ends = {tok.token_to_id("<|im_end|>"), tok.token_to_id("<|endoftext|>")}
    cs = cases()
    ids = [tok.encode(tpl.render(messages=m, tools=t, add_generation_prompt=True, enable_thinking=th)).ids for _, m, t, th in cs]
    start = [len(x) for x in ids]
    live = [i for i in range(len(ids))]
    for _ in range(most):
        t, pos, first = inputs([ids[i] for i in live], dev)
        h, _ = M.forward(w, t, pos, first)
        at = torch.tensor([len(ids[i]) - 1 for i in live], device=dev)
        nxt = F.linear(h[torch.arange(len(live), device=dev), at], w["head"]).float().argmax(-1).tolist()
        for i, x in zip(live, nxt):
            ids[i].append(x)
        live = [i for i in live if ids[i][-1] not in ends]
        if not live:
            break
    return [{"case": c[0], "thinking": c[3], "tools": bool(c[2]), "user": c[1][-1]["content"], "output": tok.decode(x[s:], skip_special_tokens=False), "tokens": len(x) - s} for c, x, s in zip(cs, ids, start)]


if __name__ == "__main__":
    print(json.dumps([c[0] for c in cases()]))
