package tokenizer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestLoadRefuses(t *testing.T) {
	object := func(v any) map[string]any { return v.(map[string]any) }
	pre := func(f map[string]any, i int) map[string]any {
		return object(object(f["pre_tokenizer"])["pretokenizers"].([]any)[i])
	}
	setRegex := func(f map[string]any, regex string) { pre(f, 0)["pattern"] = map[string]any{"Regex": regex} }
	vocab := func(f map[string]any) map[string]any { return object(object(f["model"])["vocab"]) }
	added := func(f map[string]any, i int) map[string]any { return object(f["added_tokens"].([]any)[i]) }
	addMerge := func(f map[string]any, left, right string) {
		m := object(f["model"])
		m["merges"] = append(m["merges"].([]any), []any{left, right})
	}
	for name, c := range map[string]struct {
		change func(f map[string]any)
		want   string // in the error
	}{
		"no model":           {func(f map[string]any) { delete(f, "model") }, `model: got type none, want "BPE"`},
		"another model":      {func(f map[string]any) { object(f["model"])["type"] = "Unigram" }, `model: got type "Unigram", want "BPE"`},
		"dropout":            {func(f map[string]any) { object(f["model"])["dropout"] = 0.1 }, "model.dropout: got 0.1, want null"},
		"unknown token":      {func(f map[string]any) { object(f["model"])["unk_token"] = "<unk>" }, `model.unk_token: got "<unk>", want null`},
		"prefix":             {func(f map[string]any) { object(f["model"])["continuing_subword_prefix"] = "##" }, `got "##", want none`},
		"suffix":             {func(f map[string]any) { object(f["model"])["end_of_word_suffix"] = "</w>" }, `got "</w>", want none`},
		"byte fallback":      {func(f map[string]any) { object(f["model"])["byte_fallback"] = true }, "got true, want false"},
		"truncation":         {func(f map[string]any) { f["truncation"] = map[string]any{"max_length": 512} }, `truncation: got {"max_length":512}, want null`},
		"padding":            {func(f map[string]any) { f["padding"] = map[string]any{"pad_id": 0} }, "padding: got"},
		"no normalizer":      {func(f map[string]any) { f["normalizer"] = nil }, "normalizer: got none, want NFC"},
		"another normalizer": {func(f map[string]any) { object(f["normalizer"])["type"] = "NFKC" }, "normalizer: got NFKC, want NFC"},
		"no decoder":         {func(f map[string]any) { delete(f, "decoder") }, "decoder: got none, want ByteLevel"},
		"template processor": {func(f map[string]any) { f["post_processor"] = map[string]any{"type": "TemplateProcessing"} }, "post_processor: got TemplateProcessing"},
		"no pre-tokenizer":   {func(f map[string]any) { f["pre_tokenizer"] = nil }, "pre_tokenizer: got none, want a Sequence of Split and ByteLevel"},
		"empty sequence":     {func(f map[string]any) { object(f["pre_tokenizer"])["pretokenizers"] = []any{} }, "got a Sequence of nothing, want"},
		"split alone": {func(f map[string]any) {
			object(f["pre_tokenizer"])["pretokenizers"] = []any{pre(f, 0)}
		}, "got a Sequence of Split, want a Sequence of Split and ByteLevel"},
		"regex without marks": {func(f map[string]any) { setRegex(f, strings.ReplaceAll(Pattern, `\p{M}`, "")) }, `without \p{M}`},
		"another regex":       {func(f map[string]any) { setRegex(f, strings.Replace(Pattern, `\p{N}|`, `\p{N}{1,3}|`, 1)) }, `{1,3}| ?`},
		"string pattern":      {func(f map[string]any) { pre(f, 0)["pattern"] = map[string]any{"String": " "} }, "got pattern map[String: ], want a Regex"},
		"behavior":            {func(f map[string]any) { pre(f, 0)["behavior"] = "Removed" }, `got behavior "Removed", want "Isolated"`},
		"invert":              {func(f map[string]any) { pre(f, 0)["invert"] = true }, "got invert true, want false"},
		"prefix space":        {func(f map[string]any) { pre(f, 1)["add_prefix_space"] = true }, "got add_prefix_space true, want false"},
		"regex of ByteLevel":  {func(f map[string]any) { delete(pre(f, 1), "use_regex") }, "got use_regex true, want false"},

		"id out of range":    {func(f map[string]any) { vocab(f)["Ġthe"] = 5000 }, `token "Ġthe": got id 5000, want one below 2133`},
		"negative id":        {func(f map[string]any) { vocab(f)["Ġthe"] = -1 }, "got id -1, want one below"},
		"duplicate id":       {func(f map[string]any) { vocab(f)["Ġthe"] = 5 }, "want one"},
		"huge id":            {func(f map[string]any) { added(f, 0)["id"] = 1 << 40 }, "got id 1099511627776, want one below"},
		"fraction":           {func(f map[string]any) { vocab(f)["Ġthe"] = 1.5 }, "got id 1.5"},
		"string id":          {func(f map[string]any) { vocab(f)["Ġthe"] = "7" }, "want an integer"},
		"empty token":        {func(f map[string]any) { vocab(f)[""] = 2133 }, "got an empty text"},
		"outside alphabet":   {func(f map[string]any) { vocab(f)["中"] = 2133 }, `got the character '中', want only the byte alphabet`},
		"byte missing":       {func(f map[string]any) { delete(vocab(f), "!"); vocab(f)["ĠĠĠĠĠĠĠĠĠ!"] = 0 }, "got no token for the byte 0x21"},
		"added twice":        {func(f map[string]any) { f["added_tokens"] = append(f["added_tokens"].([]any), added(f, 0)) }, `"<|endoftext|>": got two entries, want one`},
		"added collides":     {func(f map[string]any) { added(f, 0)["id"] = 300 }, "id 300: got tokens"},
		"added moved":        {func(f map[string]any) { vocab(f)["<think>"] = 2132 }, `added token "<think>": got id 2124, want 2132 as in model.vocab`},
		"added strips":       {func(f map[string]any) { added(f, 1)["lstrip"] = true }, `added token "<|im_start|>": got single_word false, lstrip true`},
		"added normalized":   {func(f map[string]any) { added(f, 1)["normalized"] = true }, "normalized true, want false for each"},
		"added empty":        {func(f map[string]any) { added(f, 1)["content"] = "" }, "got an empty text"},
		"unknown merge part": {func(f map[string]any) { addMerge(f, "qqqq", "t") }, `got "qqqq" and "t", want base tokens that make one: "qqqq" is not in model.vocab`},
		"unknown merge":      {func(f map[string]any) { addMerge(f, "Q", "Q") }, `"QQ" is not in model.vocab`},
		"merge twice": {func(f map[string]any) {
			first := object(f["model"])["merges"].([]any)[0].([]any)
			addMerge(f, first[0].(string), first[1].(string))
		}, "a second time, want each pair once"},
		"merge to an added token": {func(f map[string]any) {
			// "<|" and "x" would make the added token <|x out of text.
			vocab(f)["<|x"] = 2133
			f["added_tokens"] = append(f["added_tokens"].([]any), map[string]any{"id": 2133, "content": "<|x"})
			addMerge(f, "<|", "x")
		}, `"<|x" is an added token`},
		"merge of one":   {func(f map[string]any) { object(f["model"])["merges"] = []any{[]any{"a"}} }, "got 1 tokens, want 2"},
		"merge of three": {func(f map[string]any) { object(f["model"])["merges"] = []any{[]any{"a", "b", "c"}} }, "got 3 tokens, want 2"},
		"merge string":   {func(f map[string]any) { object(f["model"])["merges"] = []any{"ab"} }, `got "ab", want two tokens`},
		"merge number":   {func(f map[string]any) { object(f["model"])["merges"] = []any{7} }, "want a pair of tokens"},
		"merges object":  {func(f map[string]any) { object(f["model"])["merges"] = map[string]any{} }, "model.merges: got {}, want an array"},
		"vocab array":    {func(f map[string]any) { object(f["model"])["vocab"] = []any{"a"} }, "want an object"},
	} {
		t.Run(name, func(t *testing.T) {
			var f map[string]any
			d := json.NewDecoder(bytes.NewReader(readFile(t, "testdata/small.json")))
			d.UseNumber()
			if err := d.Decode(&f); err != nil {
				t.Fatal(err)
			}
			c.change(f)
			file, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Load(file)
			if err == nil {
				t.Fatalf("Load: got no error, want one with %q", c.want)
			}
			if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "tokenizer.json: ") {
				t.Errorf("Load: got error %q, want one with %q", err, c.want)
			}
		})
	}
}

func TestLoadRefusesText(t *testing.T) {
	file := string(readFile(t, "testdata/small.json"))
	for name, c := range map[string][2]string{
		"empty":           {"", "unexpected end of JSON input"},
		"truncated":       {file[:len(file)/2], "unexpected end of JSON input"},
		"not an object":   {"[]", "got array, want a JSON object"},
		"null":            {"null", "got type none"},
		"key twice":       {strings.Replace(file, `"vocab":{`, `"vocab":{"!":0,`, 1), `got token "!" twice`},
		"key escaped":     {strings.Replace(file, `"vocab":{`, `"vocab":{"\u0021":0,`, 1), `got token "!" twice`},
		"half surrogate":  {strings.Replace(file, `"vocab":{`, `"vocab":{"\ud800":2133,`, 1), "want only the byte alphabet"},
		"id with letters": {strings.Replace(file, `"vocab":{`, `"vocab":{"zzz":true,`, 1), "want an integer"},
	} {
		if _, err := Load([]byte(c[0])); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: got error %v, want one with %q", name, err, c[1])
		}
	}
}

// Upstream writes merges as "a b", re-serialised copies as ["a", "b"], with and
// without indentation.
func TestLoadForms(t *testing.T) {
	original := readFile(t, "testdata/small.json")
	want := small(t)
	var f map[string]any
	if err := json.Unmarshal(original, &f); err != nil {
		t.Fatal(err)
	}
	model := f["model"].(map[string]any)
	for i, pair := range model["merges"].([]any) {
		pair := pair.([]any)
		model["merges"].([]any)[i] = pair[0].(string) + " " + pair[1].(string)
	}
	f["post_processor"] = nil
	strung, err := json.MarshalIndent(f, "", "  ") // escapes < and > as well
	if err != nil {
		t.Fatal(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, original, "\r\n", "\t"); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{"strings": strung, "indented": indented.Bytes()} {
		got := load(t, file)
		if !slices.Equal(got.merges.slots, want.merges.slots) || !bytes.Equal(got.arena, want.arena) ||
			!slices.Equal(got.offsets, want.offsets) || !slices.Equal(got.added, want.added) {
			t.Errorf("%s: tables differ from the original file's", name)
		}
	}
}

// An added token may stand in model.vocab as well, at the same id. Text must
// not reach it, not even with ignore_merges.
func TestAddedTokenInVocab(t *testing.T) {
	file := string(readFile(t, "testdata/small.json"))
	file = strings.Replace(file, `"vocab":{`, `"vocab":{"zqz":2133,`, 1)
	file = strings.Replace(file, `"added_tokens":[`, `"added_tokens":[{"id":2133,"content":"zqz"},`, 1)
	for _, ignore := range []string{"false", "true"} {
		tk := load(t, []byte(strings.Replace(file, `"ignore_merges":false`, `"ignore_merges":`+ignore, 1)))
		if got := tk.Encode("zqz"); slices.ContainsFunc(got, tk.Added) {
			t.Errorf("ignore_merges %s: Encode: got %v with an added token", ignore, got)
		}
		if got := tk.EncodeSpecial("zqz"); !slices.Equal(got, []int32{2133}) {
			t.Errorf("ignore_merges %s: EncodeSpecial: got %v, want [2133]", ignore, got)
		}
	}
}

func TestByteAlphabet(t *testing.T) {
	alphabet := newByteAlphabet()
	if len(alphabet) != 256 {
		t.Fatalf("got %d characters, want 256", len(alphabet))
	}
	for r, want := range map[rune]byte{'!': '!', '~': '~', 'Ġ': ' ', 'Ċ': '\n', 'Ā': 0, 'ġ': 0x7f, '¡': 0xa1, 'Ń': 0xad, '®': 0xae, 'ÿ': 0xff} {
		if got, ok := alphabet[r]; !ok || got != want {
			t.Errorf("byte of %q: got 0x%02x %v, want 0x%02x", r, got, ok, want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0,"\u0062":1},"merges":["a b",["a","b"]]}}`))
	f.Add([]byte(`{"model":{"vocab":{"a" : 1 },"merges":[ [ "a" , "b" ] ]}}`))
	f.Add(readFile(f, "testdata/small.json"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if tk, err := Load(file); err == nil && tk.Decode(tk.Encode("a\n\xff")) != "a\n\ufffd" {
			t.Fatal("a loaded file does not give text back")
		}
	})
}
