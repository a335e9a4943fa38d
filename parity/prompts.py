"""The prompts and texts that both references run, so that their records speak of the same tokens."""

import json
import os

from tokenizers import Tokenizer

GOLDEN_PROMPT = [21, 190, 44, 9, 162]  # specification 8.2
HELDOUT_TOKENS = 193  # 192 positions with a next token

# Conversations for the demo model: thinking off and on, two turns, a system turn, characters beyond ASCII.
CONVERSATIONS = [
    {"name": "hello", "thinking": False, "messages": [{"role": "user", "content": "Hello! How are you today?"}]},
    {"name": "story", "thinking": False, "messages": [{"role": "user", "content": "Write a short story about a frog."}]},
    {"name": "pond", "thinking": True, "messages": [{"role": "user", "content": "What is Pond?"}]},
    {
        "name": "two turns",
        "thinking": False,
        "messages": [
            {"role": "user", "content": "My name is Anna."},
            {"role": "assistant", "content": "Nice to meet you, Anna!"},
            {"role": "user", "content": "What is my name?"},
        ],
    },
    {
        "name": "system",
        "thinking": True,
        "messages": [
            {"role": "system", "content": "You are a helpful assistant. Answer in one sentence."},
            {"role": "user", "content": "Why is the sky blue?"},
        ],
    },
    {"name": "list", "thinking": False, "messages": [{"role": "user", "content": "Name three fruits."}]},
    {"name": "unicode", "thinking": False, "messages": [{"role": "user", "content": "Café, naïve, 中文, 👩‍💻: what are these?"}]},
    {"name": "goodbye", "thinking": False, "messages": [{"role": "user", "content": "Thank you, that is all. Goodbye!"}]},
]


def tokenizer(directory):
    """The directory's own tokenizer.json, run by Hugging Face's tokenizers."""
    return Tokenizer.from_file(os.path.join(directory, "tokenizer.json"))


def render(directory, conversation):
    """The conversation through the directory's chat template, run by jinja2 as transformers does."""
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def fail(message):
        raise ValueError(message)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    env.globals["raise_exception"] = fail
    env.filters["tojson"] = lambda x, **kw: json.dumps(x, ensure_ascii=False)
    with open(os.path.join(directory, "chat_template.jinja"), encoding="utf-8") as f:
        template = env.from_string(f.read())
    return template.render(
        messages=conversation["messages"], add_generation_prompt=True, enable_thinking=conversation["thinking"]
    )


def demo_prompts(directory):
    """All conversations as token ids: [{name, thinking, messages, prompt}]."""
    t = tokenizer(directory)
    return [{**c, "prompt": t.encode(render(directory, c), add_special_tokens=False).ids} for c in CONVERSATIONS]


def heldout(directory):
    """The first HELDOUT_TOKENS ids of heldout.txt, a text that the demo model was not trained on."""
    with open(os.path.join(directory, "heldout.txt"), encoding="utf-8", newline="") as f:
        ids = tokenizer(directory).encode(f.read(), add_special_tokens=False).ids
    if len(ids) < HELDOUT_TOKENS:
        raise ValueError(f"heldout.txt: got {len(ids)} tokens, want at least {HELDOUT_TOKENS}")
    return ids[:HELDOUT_TOKENS]
