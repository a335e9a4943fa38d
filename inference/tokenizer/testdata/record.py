"""Makes small.json and golden.jsonl, the record of a tokenizer that is not ours.

    pip install tokenizers==0.23.3
    python3 record.py

small.json is a byte-level BPE of the same pipeline as the real model's (spec:
NFC, the split pattern, ByteLevel), trained here on the text below, with the
33 added tokens at the end. golden.jsonl holds what Hugging Face `tokenizers`
makes of strings drawn at random from hard alphabets. One JSON array a line:

    ["e", text, ids]         encode, added tokens recognised
    ["w", text, ids]         the same with ignore_merges true
    ["d", [ids], text]       decode, added tokens kept

Strings hold only code points that are assigned in Unicode 14 (Python 3.11's
unicodedata): Go's unicode package is at 15, the regex engine of `tokenizers`
(Oniguruma) at another version, and characters assigned in between would be
letters to one and unassigned to the other. Its NFC has older tables again:
marks it has no combining class for (Unicode 11 and later) are left out too.
"""

import json
import random
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
ADDED = """<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|>
<|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|> <tool_call>
</tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|> <tool_response>
</tool_response> <think> </think> <|audio_start|> <|audio_end|> <tts_pad> <tts_text_bos> <tts_text_eod>
<tts_text_bos_single> <|audio_pad|>""".split()
PLAIN = {"<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>",
         "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"}

rng = random.Random(11)


def train():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    text = [__doc__, open(__file__).read(), PATTERN] + [
        "I'm sure that they're right, we've seen it, he'd say so; that's what you'll get. IT'S, DON'T, THEY'RE.",
        "The quick brown fox jumps over the lazy dog while the other dogs sleep in the shade of the old house.",
        "Sphinx of black quartz, judge my vow. How are you today? Write a short story about the sea and the wind.",
        "Voix ambiguë d'un cœur qui, au zéphyr, préfère les jattes de kiwis. Ça va très bien, où êtes-vous allé ?",
        "Zwölf große Boxkämpfer jagen Viktor quer über den Sylter Deich. Fünf Straßen, schöne Häuser, größer.",
        "El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia. ¿Dónde está el niño? ¡Mañana será mejor!",
        "Съешь же ещё этих мягких французских булок, да выпей чаю. Привет, как дела? Хорошо, спасибо, друзья.",
        "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Καλημέρα σας, τι κάνετε; Πού είναι το σπίτι;",
        "नमस्ते दुनिया, आप कैसे हैं? हिन्दी में लिखा हुआ पाठ। क्षत्रिय विद्यार्थी।",
        "สวัสดีครับ ผมชื่ออเล็กซ์ วันนี้อากาศดีมาก", "السلام عليكم، كيف حالك اليوم؟ هٰذَا نَصٌّ مُشَكَّل.",
        "שלום עולם, מה שלומך היום? טֶקְסְט מְנֻקָּד.", "你好，世界！今天是个好天气，我们去公园散步吧。人工智能改变世界。",
        "こんにちは世界。今日はいい天気ですね。カタカナとひらがな、漢字。", "안녕하세요 세계! 오늘 날씨가 좋네요. 한국어 문장입니다.",
        "👩‍💻 👨‍👩‍👧‍👦 🎉🎊 🇩🇪🇫🇷 👍🏽 ❤️ ☀️ 🌍", "def f(x: int) -> str:\n    return f\"{x=}\"\n\n\tif (a == b) { return 0; }\r\n\r\n",
        "x = [1, 2, 3]; y = {\"key\": \"value\", \"n\": 1234567890}\n    for i in range(10):\n        print(i)\n",
    ] * 3
    t.train_from_iterator(text, trainers.BpeTrainer(
        vocab_size=2100, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_tokens([AddedToken(a, normalized=False, special=a not in PLAIN) for a in ADDED])
    return t


def assigned(lo, hi):
    return [chr(c) for c in range(lo, hi + 1) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]


def same_nfc(c):
    """Whether `tokenizers` orders and composes c as Unicode 14 does."""
    nfc = normalizers.NFC().normalize_str
    probes = [c, "a\u0316" + c, "a\u0301" + c, "a" + c + "\u0334", "a" + c + "\u0316", "a" + c + "\u0301"]
    return all(nfc(p) == unicodedata.normalize("NFC", p) for p in probes)


EVERYTHING = assigned(0, 0x10FFFF - 0x20000)
EVERYTHING = [c for c in EVERYTHING if unicodedata.category(c) != "Co"]
LEFT_OUT = [c for c in EVERYTHING if not same_nfc(c)]
EVERYTHING = sorted(set(EVERYTHING) - set(LEFT_OUT))
BY_CATEGORY = {}
for c in EVERYTHING:
    BY_CATEGORY.setdefault(unicodedata.category(c), []).append(c)
WHITE = list(" \t\n\r\v\f\x85\xa0\u1680\u2000\u2003\u200a\u2028\u2029\u202f\u205f\u3000") + ["  ", "\r\n", "\n\n", "   "]
WORDS = ["the", "that", "I", "Straße", "été", "мир", "你好", "한국", "สวัสดี", "नमस्ते", "x1", "_y", "2026", "don't", "HTTP"]
CONTRACTIONS = [a + b for a in ["'", "’", "''", " '"] for b in
                ["s", "S", "t", "T", "re", "RE", "rE", "ve", "m", "M", "ll", "LL", "lL", "l", "d", "D", "r", "\u017f", "ß", "st"]]
MARKS = [c for k in ("Mn", "Mc", "Me") for c in BY_CATEGORY[k]]
COMPOSING = list("aeiounEAO") + [chr(c) for c in range(0x300, 0x346)] + list("\u1100\u1161\u11a8\uac00\u0958\u212b\u2126\u1e9b\u0344\u0f73\u0b94\u0bc6\u0bd7\U0001109a\U000110ba")
EMOJI = list("👩💻👨👧👦🎉👍🏽❤☀🌍🏳🌈🇩🇪") + ["\u200d", "\ufe0f", "\u20e3", "👩\u200d💻", "❤️"]
CODE = list("(){}[]<>=+-*/\\|&^%$#@!~`\"';:,.?_") + ["\n", "\t", "    ", "0", "9", "x", "->", "</", "//"]
LOOKALIKE = ["<", ">", "|", "im", "think", "/", "<|im_", "start|>", "<|im_end|", "<tool", "_call>", "<tts_text_bos", "_single>"]
ALPHABETS = [WHITE + WORDS, WHITE, CONTRACTIONS + WORDS + WHITE[:4], MARKS + WORDS + [" "], COMPOSING, EMOJI + [" ", "a", "1"],
             CODE, CODE + WORDS, EVERYTHING, None, LOOKALIKE + ADDED + WORDS, ADDED + ["é", "e\u0301", " ", "\n", "\u0338"]]


def draw():
    alphabet = rng.choice(ALPHABETS)
    n = rng.randint(1, 12)
    if alphabet is None:  # one category after the other, all equally likely
        return "".join(rng.choice(BY_CATEGORY[rng.choice(sorted(BY_CATEGORY))]) for _ in range(n))
    return "".join(rng.choice(alphabet) for _ in range(n))


def main():
    t = train()
    t.save("small.json", pretty=False)
    whole = json.loads(t.to_str())
    whole["model"]["ignore_merges"] = True
    whole = Tokenizer.from_str(json.dumps(whole))
    with open("golden.jsonl", "w", encoding="utf-8", newline="\n") as f:
        def put(*row):
            f.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")

        fixed = ["", "a" * 300, "ab" * 200, "a" + "\u0301" * 40 + "b", "e" + "\u0327\u0301" * 25, "\u1161" * 40, " " * 70 + "x", "=" * 200,
                 "<think>\u0338x", "bye<|im_end|>\n<|im_start|>system\nYou are a pirate", "\ufb1d\u0f77\u0f79 \u0340\u0341\u0374\u037e"]
        for text in fixed + [draw() for _ in range(2600)]:
            put("e", text, t.encode(text).ids)
        for _ in range(150):
            text = draw()
            put("w", text, whole.encode(text).ids)
        total = t.get_vocab_size()
        for _ in range(500):
            ids = []
            for _ in range(rng.randint(1, 8)):
                pick = rng.random()
                if pick < 0.6:  # single bytes: mostly invalid UTF-8
                    ids.append(rng.randrange(256))
                elif pick < 0.9:
                    ids.append(rng.randrange(total))
                else:  # a character cut somewhere
                    cut = t.encode(rng.choice("éď你🎉🌍\u0915")).ids
                    ids += cut[: rng.randint(1, len(cut))]
            put("d", ids, t.decode(ids, skip_special_tokens=False))
    print("left out", len(LEFT_OUT), "marks:", " ".join("%04X" % ord(c) for c in LEFT_OUT))
    print("tokens", total, "python", sys.version.split()[0], "unicodedata", unicodedata.unidata_version)


if __name__ == "__main__":
    main()
