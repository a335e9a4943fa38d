package ui

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// split cuts a text that arrives in pieces of the given sizes.
func split(text string, sizes func() int) []block {
	var s splitter
	var out []block
	for at := 0; at < len(text); {
		at = min(len(text), at+sizes())
		closed, _ := s.update(text[:at], false)
		out = append(out, closed...)
	}
	closed, open := s.update(text, true)
	if open != nil {
		panic("open at the end")
	}
	return append(out, closed...)
}

func TestBlocks(t *testing.T) {
	const text = "Hello.\nStill here.\n\n# Title\n\n1. one:\n   ```go\n   x := 1\n     y := 2\n   ```\n2. two\n\n   more of two\n\nafter\n\n~~~\n```\n~~~\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\nopen"
	var got []string
	for _, b := range split(text, func() int { return 1 }) {
		got = append(got, fmt.Sprintf("%v %s %q", b.code, b.language, b.text))
	}
	want := []string{
		`false  "Hello.\nStill here."`, `false  "# Title"`, `false  "1. one:"`, `true go "x := 1\n  y := 2"`, `false  "2. two\n\n   more of two"`, `false  "after"`,
		"true  \"```\"", `false  "| a | b |\n|---|---|\n| 1 | 2 |"`, `true  "open"`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// pieces are what random texts are made of: all that has a meaning in Markdown, and what has none.
func pieces() []string {
	return []string{
		"word ", "\n", "\n\n", "```", "```go\n", "~~~~\n", "`", "*", "**", "_", "# ", "## ", "- ", "  - ", "1. ", "12) ", "> ", "| a | b |\n", "|---|:-:|\n", "|", "<div>", "<!--",
		"[x](http://a.b)", "![i](file:///etc/passwd)", "[", "](", "\\", "\\*", "&amp;", "&#0;", "&bogus;", "$2+2=4$", "\t", "    code\n", "---\n", "===\n", "[a]: http://x\n", "- [ ] ", "~~",
		"é", "你好", "👩‍👩‍👧", "\u202e", "\x00", "\x7f", "\xff", "\r\n", strings.Repeat("x", 300), strings.Repeat("| c ", 40) + "\n", "<https://a.b>", "http://", "javascript:", "\u0301",
	}
}

func randomText(r *rand.Rand) string {
	p := pieces()
	var b strings.Builder
	for range r.IntN(60) {
		b.WriteString(p[r.IntN(len(p))])
	}
	return b.String()
}

// TestBlocksDoNotDependOnHowTheTextArrives and hold all of its words.
func TestBlocksDoNotDependOnHowTheTextArrives(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 1500 {
		text := randomText(r)
		whole := split(text, func() int { return len(text) })
		for _, sizes := range []func() int{func() int { return 1 }, func() int { return 1 + r.IntN(20) }} {
			got := split(text, sizes)
			if fmt.Sprint(got) != fmt.Sprint(whole) {
				t.Fatalf("round %d: %q\ngot  %+v\nwant %+v", round, text, got, whole)
			}
		}
		joined := ""
		for _, b := range whole {
			joined += b.text
		}
		if got, want := strings.Count(joined, "word"), strings.Count(text, "word")-fenceWords(text); got < want {
			t.Fatalf("round %d: %q: got %d words, want %d, in %+v", round, text, got, want, whole)
		}
	}
}

// fenceWords counts the words that may stand behind a fence, as the name of a language.
func fenceWords(text string) (n int) {
	for line := range strings.SplitSeq(text, "\n") {
		if fence, _ := openingFence(line); fence != "" {
			n += strings.Count(line, "word")
		}
	}
	return n
}

func TestLongBlocksAreCut(t *testing.T) {
	for name, text := range map[string]string{
		"a line":      strings.Repeat("x", 1<<20),
		"a paragraph": strings.Repeat("some words of a line\n", 20000),
		"code":        "```c\n" + strings.Repeat("int x = 1;\n", 50000) + "```\n",
		"a code line": "```\n" + strings.Repeat("é", 200000),
		"a list":      strings.Repeat("- item\n", 20000),
		"a table":     "| a | b |\n|---|---|\n" + strings.Repeat("| 1 | 2 |\n", 20000),
	} {
		blocks := split(text, func() int { return 30000 })
		joined := 0
		for _, b := range blocks {
			if len(b.text) > 2*max(proseBytes, codeBytes) {
				t.Errorf("%s: got a block of %d bytes", name, len(b.text))
			}
			joined += len(b.text)
		}
		if joined < len(text)*9/10 {
			t.Errorf("%s: got %d of %d bytes", name, joined, len(text))
		}
		if name == "a table" && !strings.HasPrefix(blocks[3].text, "| a | b |\n|---|---|\n| 1") {
			t.Errorf("the fourth piece of a table: got %.40q", blocks[3].text)
		}
	}
}
