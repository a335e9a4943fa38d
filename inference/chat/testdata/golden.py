"""Records golden.jsonl.gz and numbers.json with the official chat template.

usage: python3 golden.py path/to/chat_template.jinja     (needs jinja2; recorded with 3.1.6)

The template is chat_template.jinja of mlx-community/Qwen3.6-35B-A3B-4bit, revision
38740b847e4cb78f352aba30aa41c76e08e6eb46 (Apache-2.0), 7764 bytes, SHA-256
e84f32a23fdda27689f868aa4a1a5621f41133e51a48d7f3efcbea2839574259. It is rendered
with the settings of HF transformers: a sandboxed environment, trim_blocks,
lstrip_blocks, and tojson = json.dumps without ASCII escapes. Each line of golden.jsonl.gz is {name, conversation, prompt}; prompt is
null where the template raises. All conversations are made here, from a fixed seed.
"""
import gzip
import hashlib
import io
import json
import random
import struct
import sys

import jinja2
import jinja2.sandbox

here = __file__.rsplit("/", 1)[0] if "/" in __file__ else "."


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def load(path):
    source = open(path, "rb").read()
    print("template sha256", hashlib.sha256(source).hexdigest())
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    return env.from_string(source.decode())


def render(template, c):
    # The wire sends JSON: what the template sees is what json.loads makes of it.
    c = json.loads(json.dumps(c))
    try:
        return template.render(add_generation_prompt=True, **c)
    except jinja2.exceptions.TemplateError:
        return None


ADD = {"type": "function", "function": {"name": "add", "description": "Añade <a> & b", "parameters": {
    "type": "object", "properties": {"a": {"type": "number"}, "opts": {"type": "object"}}, "required": ["a"]}}}


def call(name, arguments):
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


def examples():
    u = lambda s: {"role": "user", "content": s}
    e5 = [u("go"),
          {"role": "assistant", "content": "Calling.", "reasoning_content": "plan", "tool_calls": [
              call("add", {"a": 1.5, "opts": {"deep": [1, True, None]}, "note": "x\ny"}), call("add", {})]},
          {"role": "tool", "content": " r1 \n"}, {"role": "tool", "content": "r2"}]
    e6 = e5 + [{"role": "assistant", "content": "Done.", "reasoning_content": "sum"}, u("thanks")]
    e3 = [u("Q1"), {"role": "assistant", "content": "A1", "reasoning_content": "R1"}, u("Q2")]
    e3t = [u("Q1"), {"role": "assistant", "content": "<think>\nR1\n</think>\n\nA1"}, u("Q2")]
    parts = [{"type": "text", "text": "2+2"}, {"type": "text", "text": "=?"}]
    return [
        ("E1", {"messages": [u("Hi")]}),
        ("E2", {"messages": [{"role": "system", "content": "  Be brief.\n"}, u(parts)], "enable_thinking": False}),
        ("E3", {"messages": e3}),
        ("E3 preserved", {"messages": e3, "preserve_thinking": True}),
        ("E3 tags", {"messages": e3t}),
        ("E3 tags preserved", {"messages": e3t, "preserve_thinking": True}),
        ("E4", {"messages": [u("go")], "tools": [ADD]}),
        ("E5", {"messages": e5, "tools": [ADD]}),
        ("E6", {"messages": e6, "tools": [ADD], "enable_thinking": False}),
        ("E6 preserved", {"messages": e6, "tools": [ADD], "enable_thinking": False, "preserve_thinking": True}),
        ("blank system", {"messages": [{"role": "system", "content": ""}, u("x")]}),
        ("blank system with tools", {"messages": [{"role": "system", "content": " \n"}, u("x")], "tools": [ADD]}),
        ("ends with assistant", {"messages": [u("x"), {"role": "assistant", "content": "y"}]}),
        ("thinking null", {"messages": [u("x")], "enable_thinking": None}),
        ("hand-made tool response", {"messages": [u("x"), {"role": "assistant", "content": "y", "reasoning_content": "r"},
                                                  u("<tool_response>\nz\n</tool_response>")]}),
        ("argument forms", {"messages": [u("x"), {"role": "assistant", "content": None, "tool_calls": [
            call("f", {"a": 1e-6, "b": 1.0, "c": False, "d": None, "e": 12345678901234567890, "f": -0.0})]}]}),
        ("tool message first", {"messages": [{"role": "tool", "content": "r"}, u("x")]}),
        ("only system", {"messages": [{"role": "system", "content": "x"}]}),
        ("only assistant", {"messages": [{"role": "assistant", "content": "x"}]}),
        ("unknown role", {"messages": [u("x"), {"role": "critic", "content": "x"}]}),
        ("no messages", {"messages": []}),
    ]


WORDS = ("the of river stone Añade naïve Größe Ōsaka 東京 你好世界 привет שלום مرحبا नमस्ते 🙂 👩‍👩‍👧‍👦 🇳🇴 e\u0301 \u2028 \u00a0 "
         "code if(x<y) a&b \"quoted\" it's C:\\path 100% {} [1,2] <b> </b> #tag \ufeff \u200b \u3000 \u0085").split(" ")
TAGS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<|im_start|>",
        "<|im_end|>", "<|endoftext|>", "</parameter>", "<function=f>", "</function>", "<parameter=a>"]
SPACES = [" ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2028", "\x1c", "\x1f", "\x0b", "\u0085"]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def text(self, most=12):
        r, out = self.r, []
        for _ in range(r.randrange(most + 1)):
            out.append(r.choice(TAGS) if r.random() < 0.06 else r.choice(WORDS))
            out.append(" " if r.random() < 0.8 else r.choice(SPACES))
        s = "".join(out)
        if r.random() < 0.5:
            s = s.strip()
        if r.random() < 0.2:
            s = r.choice(SPACES) + s + r.choice(SPACES)
        return s

    def content(self):
        r = self.r
        if r.random() < 0.25:
            return [{"type": "text", "text": self.text(5)} for _ in range(r.randrange(4))]
        return self.text()

    def number(self):
        r = self.r
        return r.choice([
            0, -1, r.randrange(100), r.randrange(-2**63, 2**63), 2**64, 10**25, 1.0, -0.0, 1e-6, 1e16, 1.5e300,
            r.random(), r.uniform(-1e6, 1e6), float(r.randrange(10**9)), r.random() * 10.0**r.randrange(-20, 25)])

    def value(self, depth=3):
        r = self.r
        k = r.randrange(8 if depth else 5)
        if k == 0:
            return self.number()
        if k == 1:
            return r.choice([True, False, None])
        if k < 5:
            return self.text(6) + r.choice(["", "\b\f\x01\x7f", "\"\\/", "\u2028\u2029"])
        if k == 5:
            return [self.value(depth - 1) for _ in range(r.randrange(4))]
        return {self.key(): self.value(depth - 1) for _ in range(r.randrange(5))}

    def key(self):
        return self.r.choice(["a", "b", "city", "path", "zip_code", "Größe", "名前", "x y", "q\"", "<k>", ""])

    def tool(self):
        r = self.r
        props = {}
        for _ in range(r.randrange(5)):
            p = {"type": r.choice(["string", "integer", "number", "boolean", "object", "array", ["string", "null"]])}
            if r.random() < 0.5:
                p["description"] = self.text(6)
            if r.random() < 0.3:
                p["enum"] = [self.value(1) for _ in range(3)]
            if r.random() < 0.2:
                p["minimum"] = self.number()
            props[self.key()] = p
        f = {"name": r.choice(["get_weather", "save_file", "f"]), "description": self.text(),
             "parameters": {"type": "object", "properties": props, "required": list(props)[:1]}}
        if r.random() < 0.3:
            f["strict"] = True
        items = list(f.items())
        if r.random() < 0.3:
            r.shuffle(items)
        f = dict(items)
        return f if r.random() < 0.1 else {"type": "function", "function": f}

    def assistant(self):
        r = self.r
        m = {"role": "assistant", "content": self.content() if r.random() < 0.8 else None}
        k = r.random()
        if k < 0.4:
            m["reasoning_content"] = self.text()
        elif k < 0.6:
            m["content"] = "<think>\n" + self.text() + "\n</think>\n\n" + self.text()
        if r.random() < 0.4:
            m["tool_calls"] = []
            for _ in range(r.randrange(1, 4)):
                args = {self.key(): self.value() for _ in range(r.randrange(4))}
                m["tool_calls"].append(call(r.choice(["get_weather", "save_file", "f"]), args))
        return m

    def conversation(self):
        r, c = self.r, {}
        messages = []
        if r.random() < 0.5:
            messages.append({"role": "system", "content": self.content()})
        for _ in range(r.randrange(1, 8)):
            k = r.random()
            if k < 0.45:
                messages.append({"role": "user", "content": self.content()})
            elif k < 0.5:
                messages.append({"role": "user", "content": "<tool_response>\n" + self.text() + "\n</tool_response>"})
            elif k < 0.8:
                messages.append(self.assistant())
            else:
                for _ in range(r.randrange(1, 4)):
                    messages.append({"role": "tool", "content": self.content(), "tool_call_id": "call_1"})
        c["messages"] = messages
        if r.random() < 0.4:
            c["tools"] = [self.tool() for _ in range(r.randrange(4))]
        if r.random() < 0.5:
            c["enable_thinking"] = r.choice([True, False, None])
        if r.random() < 0.4:
            c["preserve_thinking"] = r.choice([True, False])
        return c


def numbers(r):
    literals = ["0", "-0", "-0.0", "1.0", "1E5", "1e5", "1e-6", "1e16", "1e15", "9999999999999998.0", "123456789012345678",
                "0.0001", "0.00001", "1e22", "1e21", "5e-324", "1.7976931348623157e308", "1e-400", "0.1234567890123456789",
                "18446744073709551616", "100", "1.10", "-2.50e+3", "12345678901234567890.0", "3.0000000000000004"]
    for _ in range(200):
        f = struct.unpack("<d", struct.pack("<Q", r.getrandbits(64)))[0]
        if f == f and abs(f) != float("inf"):
            literals.append("%.17g" % f)
        literals.append("%.*e" % (r.randrange(18), r.uniform(-10, 10) * 10.0**r.randrange(-8, 20)))
    return [[s, json.dumps(json.loads(s))] for s in literals]


def main():
    template = load(sys.argv[1])
    rows = [{"name": n, "conversation": c, "prompt": render(template, c)} for n, c in examples()]
    maker, made, refused = Maker(36), 0, 0
    while made < 300:
        c = maker.conversation()
        prompt = render(template, c)
        if prompt is None:
            refused += 1
            if refused > 20:
                continue
        else:
            made += 1
        rows.append({"name": "generated %d" % (made + refused), "conversation": c, "prompt": prompt})
    raw = io.BytesIO()
    with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, compresslevel=9) as z:
        for row in rows:
            z.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
    open(here + "/golden.jsonl.gz", "wb").write(raw.getvalue())
    with open(here + "/numbers.json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(p) for p in numbers(random.Random(36))) + "\n]\n")
    print(len(rows), "rows,", made, "rendered,", len(raw.getvalue()), "bytes")
    for row in rows[:10]:
        p = row["prompt"].encode()
        print(row["name"], len(p), hashlib.sha256(p).hexdigest()[:16])


if __name__ == "__main__":
    main()
