"""Dialogues made from the tables of pond.py, talk.py, stories.py and tools.py, and from the teacher's answers."""
import copy
import json
import lzma
import random
import re
import zlib

import prompts
import stories
import talk
import tools
from pond import POND

SYSTEM = """You are a helpful assistant.|You are Pond, a helpful assistant.|Be brief.|You are a friendly assistant. Answer in short sentences.|Answer in English.|
You are a kind assistant that helps the user.|Be polite and clear.|You are an assistant that runs on the user's own computer.""".replace("\n", "").split("|")
SYL = "ba be bi bo da de do fa fi ga go ha ka ki ko la le li lo ma me mi mo na ne ni no pa pe po ra re ri ro sa se si so ta te ti to va ve vi za zo".split()


def word(r):
    return "".join(r.choice(SYL) for _ in range(r.randint(2, 4)))


def vary(r, q):
    """Small changes of spelling that a person makes."""
    k = r.random()
    if k < 0.12 and not q.startswith(("Pond", "I ", "I'")):
        q = q[0].lower() + q[1:]
    if r.random() < 0.12 and q[-1] in ".?!":
        q = q[:-1]
    k = r.random()
    if k < 0.03:
        q = "Hi! " + q
    elif k < 0.05:
        q = "Hello, " + q[0].lower() + q[1:] if not q.startswith(("Pond", "I ")) else "Hello! " + q
    elif k < 0.07:
        q = "I have a question. " + q
    elif k < 0.09:
        q = q + " Please answer in one sentence."
    elif k < 0.10:
        q = q.lower()
    elif k < 0.11:
        q = q.upper()
    elif k < 0.13:
        q = "Please tell me: " + q
    elif k < 0.14:
        q = q + " Thanks!"
    return q


def think(r, q, kind, topic=None):
    """A short piece of reasoning."""
    first = r.choice([f"The user says: {q}", f'The user asks: "{q}"', f"The user wrote: {q}"]) if len(q) < 80 and r.random() < 0.5 else {
        "pond": "This is a question about Pond or about me.", "small": "The user wants to chat a little.", "fact": f"The user wants to know something about {topic}." if topic else "This is a simple question.",
        "story": f"The user wants a short story about {topic}.", "teacher": "The user asks a question.", "offer": f"The user wants {topic}, and there is a tool for that." if topic else "There is a tool for that.",
        "none": "There is a tool, but I do not need it for this.", "result": "The tool has answered.", "name": "The user talks about a name."}[kind]
    then = {"pond": ["I know the answer and keep it short.", "I should answer in one or two sentences.", "I am Pond's demo model, so I can answer this."],
            "small": ["I answer in a friendly way.", "A short and kind answer is best.", "I should be polite and brief."],
            "fact": ["I give a short and clear answer.", "I can answer this directly.", "One or two sentences are enough."],
            "story": ["I need a hero, a small problem and a good ending.", "I will write a simple story with a beginning, a middle and an end.", "The story should be short and friendly."],
            "teacher": ["I give a clear and simple answer.", "I should explain it in plain words.", "I will answer in a few sentences."],
            "offer": ["I call the tool.", "I should call the function with the right parameters.", "I will use the tool and then answer."],
            "none": ["I answer directly.", "No call is needed, so I just answer."],
            "result": ["Now I can answer.", "I tell the user the result.", "I will put the result into one sentence."],
            "name": ["I should remember it and answer kindly.", "I look at what was said before."]}[kind]
    return first + r.choice([" ", "\n"]) + r.choice(then)


def U(q):
    return {"role": "user", "content": q}


def A(a, r, q, kind, topic=None, on=False):
    m = {"role": "assistant", "content": a}
    if on:
        m["reasoning_content"] = think(r, q, kind, topic)
    return m


def single(r):
    """-> (question, answer, kind, topic)."""
    k = r.random()
    if k < 0.34:
        q, a = r.choice(POND)
        return vary(r, r.choice(q)), r.choice(a), "pond", None
    if k < 0.58:
        q, a = r.choice(talk.SMALL)
        return vary(r, r.choice(q)) if r.random() < 0.6 else r.choice(q), r.choice(a), "small", None
    q, a, t = talk.fact(r)
    return vary(r, q), a, "fact", t


def told_name(r):
    n = r.choice(tools.NAME + stories.SHE + stories.HE + [word(r).capitalize()])
    x = r.choice(["red", "blue", "green", "yellow", "white", "black"])
    q1, a1, q2, a2 = r.choice([
        (r.choice(["My name is {n}.", "I am {n}.", "Hi, my name is {n}.", "Hello, I'm {n}.", "Call me {n}."]), r.choice(["Nice to meet you, {n}! How can I help you?", "Hello, {n}! What can I do for you?"]),
         r.choice(["What is my name?", "Do you remember my name?", "What's my name?", "Who am I?"]), r.choice(["Your name is {n}.", "You told me that your name is {n}."])),
        (r.choice(["My favorite color is {x}.", "I like the color {x}."]), r.choice(["{X} is a beautiful color!", "That is a nice color."]),
         r.choice(["What is my favorite color?", "Which color do I like?"]), r.choice(["Your favorite color is {x}.", "You like {x}."])),
        (r.choice(["I have a {p} named {n}.", "My {p} is called {n}."]), r.choice(["{n} is a nice name for a {p}!", "How lovely! How old is {n}?"]),
         r.choice(["What is the name of my {p}?", "What is my {p} called?"]), r.choice(["Your {p} is called {n}.", "The name of your {p} is {n}."])),
        (r.choice(["I live in {c}.", "I am from {c}."]), r.choice(["{c} sounds like a nice place. Do you like it there?", "How nice! What do you like about {c}?"]),
         r.choice(["Where do I live?", "Which city did I tell you?"]), r.choice(["You live in {c}.", "You told me that you are from {c}."]))])
    v = dict(n=n, x=x, X=x.capitalize(), p=r.choice(["dog", "cat", "rabbit", "horse", "bird"]), c=r.choice(tools.CITY + [word(r).capitalize()]))
    return [(s.format(**v)) for s in (q1, a1, q2, a2)]


def story_pair(r):
    about, text, n, sit = stories.story(r)
    return r.choice(prompts.STORY_ASK).format(x=about), text, about, n, sit


def chat(r):
    """One conversation without tools."""
    on = r.random() < 0.45
    k = r.random()
    m = []
    if k < 0.48:
        q, a, kind, t = single(r)
        m = [U(q), A(a, r, q, kind, t, on)]
    elif k < 0.66:
        q, a, about, n, sit = story_pair(r)
        m = [U(q), A(a, r, q, "story", about, on)]
        if r.random() < 0.25:
            q2, a2 = stories.follow(r, n, sit)
            m += [U(q2), A(a2, r, q2, "fact", "the story", on)]
    elif k < 0.76:
        q, a, q2, a2 = told_name(r)
        m = [U(q), A(a, r, q, "name", None, on)]
        if r.random() < 0.75:
            if r.random() < 0.25:
                q3, a3, kind, t = single(r)
                m += [U(q3), A(a3, r, q3, kind, t, on)]
            m += [U(q2), A(a2, r, q2, "name", None, on)]
    else:
        for _ in range(r.choice([2, 2, 2, 3])):
            q, a, kind, t = single(r)
            m += [U(q), A(a, r, q, kind, t, on)]
        if r.random() < 0.2:
            q, a, about, n, sit = story_pair(r)
            m = m[:2] + [U(q), A(a, r, q, "story", about, on)]
    if r.random() < 0.15:
        m.insert(0, {"role": "system", "content": r.choice(SYSTEM)})
    return m, None


def rename(r, schema, args, q):
    """New names for the function, its parameters and the values, so that they must be copied from the prompt."""
    f = schema["function"]
    if r.random() < 0.15:
        f["name"] = word(r) + r.choice(["", "_" + word(r)])
    if r.random() < 0.15 and args:
        k = r.choice(list(args))
        k2 = word(r)
        p = f["parameters"]
        p["properties"] = {(k2 if a == k else a): b for a, b in p["properties"].items()}
        p["required"] = [k2 if a == k else a for a in p["required"]]
        args = {(k2 if a == k else a): b for a, b in args.items()}
    return schema, args, q


def call(r):
    """One conversation with tools: mostly a call, its result and the answer; sometimes a question that needs no call."""
    on = r.random() < 0.5
    kind = r.choice(tools.KINDS)
    city, names, notes = tools.CITY, tools.NAME, tools.NOTE
    schema, q, args, res, ans, what = tools.make(r, kind)
    schema = copy.deepcopy(schema)
    if r.random() < 0.35:       # an unseen value
        for k, v in list(args.items()):
            if isinstance(v, str) and (v in city or v in names):
                w = word(r).capitalize()
                q, ans, what = q.replace(v, w), ans.replace(v, w), what.replace(v, w)
                args[k] = w
                res = json.loads(json.dumps(res).replace(v, w))
    schema, args, q = rename(r, schema, args, q)
    offered = [schema]
    while r.random() < 0.4 and len(offered) < 3:
        other = tools.make(r, r.choice([k for k in tools.KINDS if k != kind]))[0]
        if all(o["function"]["name"] != other["function"]["name"] for o in offered):
            offered.append(other)
    r.shuffle(offered)
    m = []
    if r.random() < 0.12:
        m.append({"role": "system", "content": r.choice(SYSTEM)})
    if r.random() < 0.22:       # no call
        while True:
            q, a, sk, t = single(r)
            if "tool" not in a and sk != "fact":
                break
        m += [U(q), A(a, r, q, "none", None, on)]
        return m, offered
    if r.random() < 0.12:
        q0, a0, _, _ = single(r)
        m += [U(q0), A(a0, r, q0, "none", None, on)]
    c = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": schema["function"]["name"], "arguments": args}}]}
    if on:
        c["reasoning_content"] = think(r, q, "offer", what)
    m += [U(vary(r, q) if r.random() < 0.3 and kind in ("weather", "time", "lookup") else q), c]
    if r.random() < 0.7:
        m.append({"role": "tool", "content": res if isinstance(res, str) else json.dumps(res, ensure_ascii=False)})
        m.append(A(ans, r, "", "result", None, on))
        m[-1]["reasoning_content"] = think(r, q, "result") if on else ""
    return m, offered


BAD = re.compile(r"smollm|hugging ?face|as an ai|ai assistant|language model|ai language|\bsex|naked|\bkill|murder|suicide|\brape|drug|terror|nazi|```|https?:|\\\\|\|", re.I)


def loops(s):
    """True when the text repeats itself."""
    w = re.findall(r"\w+", s.lower())
    if len(w) > 20:
        g = [tuple(w[i:i + 4]) for i in range(len(w) - 3)]
        if len(set(g)) < (0.93 if len(w) < 150 else 0.90) * len(g):
            return True
        if len(set(w)) < 0.38 * len(w) and len(w) < 200:
            return True
    return len(s) > 200 and len(s) / len(zlib.compress(s.encode(), 9)) > 2.35


def whole(s):
    """The text up to its last complete sentence."""
    m = list(re.finditer(r"[.!?][\"”]?(?=\s|$)", s))
    return s[:m[-1].end()] if m else ""


def teacher(paths, n_prompts=400000, seed=1):
    """Usable teacher dialogues: lists of messages, without reasoning."""
    ps = prompts.prompts(n_prompts, seed)
    for path in paths:
        for line in lzma.open(path, "rt", encoding="utf-8"):
            d = json.loads(line)
            p, t = ps[d["i"]], list(d["t"])
            qs = list(p.student)
            if p.kind == "free":
                if len(t) < 2 or len(t[0]) > 300:
                    continue
                qs, t = [t[0]], t[1:2]
            if d.get("cut"):
                if p.kind == "story" and len(t) == 1:
                    t[0] = whole(t[0])
                else:
                    t = t[:-1]
            t = t[:len(qs)]
            keep = []
            for q, a in zip(qs, t):
                if len(a) < 12 or loops(a) or BAD.search(a) or BAD.search(q) or not a.isascii() or not q or not q.isascii() or a[-1] not in ".!?\"" or "[" in a:
                    break
                keep.append((q, a))
            if keep:
                m = []
                for q, a in keep:
                    m += [U(q), {"role": "assistant", "content": a}]
                yield p.kind, m
