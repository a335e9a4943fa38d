package ui

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fyne.io/fyne/v2/widget"
)

// words writes leaves as text, for comparing.
func words(leaves []leaf) string {
	var lines []string
	for _, l := range leaves {
		text := ""
		for _, s := range l.spans {
			switch s := s.(type) {
			case *widget.HyperlinkSegment:
				text += "<" + s.Text + "|" + s.URL.String() + ">"
			case *widget.TextSegment:
				switch {
				case s.Style.TextStyle.Monospace:
					text += "`" + s.Text + "`"
				case s.Style.TextStyle.Bold && l.kind != heading:
					text += "B(" + s.Text + ")"
				case s.Style.TextStyle.Italic:
					text += "I(" + s.Text + ")"
				default:
					text += s.Text
				}
			}
		}
		if l.table != nil {
			text = fmt.Sprintf("table %dx%d", len(l.table.rows), len(l.table.align))
		}
		if l.kind == codeLeaf {
			text = "code:" + l.code
		}
		lines = append(lines, strings.Repeat("  ", l.indent)+strings.Repeat(">", l.quote)+strings.Repeat("#", l.level)+l.marker+text)
	}
	return strings.Join(lines, "\n")
}

func TestMarkdown(t *testing.T) {
	for source, want := range map[string]string{
		"# A *b* `c`":                     "#A I(b) `c`",
		"a **b**\nc\\*d &amp; e":          "a B(b) c*d & e",
		"- a\n  1. b\n  2. c\n- [x] d":    "  •a\n    1.b\n    2.c\n  •[x] d",
		"7. seven\n8. eight":              "  7.seven\n  8.eight",
		"> q\n> > r":                      ">q\n>>r",
		"a <b>bold</b> & <i>":             "a <b>bold</b> & <i>",
		"<div>\nkept\n</div>":             "<div>\nkept\n</div>",
		"![cat](http://x/c.png)":          "<cat|http://x/c.png>",
		"[bad](javascript:alert)":         "bad (javascript:alert)",
		"[local](file:///etc/passwd)":     "local (file:///etc/passwd)",
		"<https://a.b/c>":                 "<https://a.b/c|https://a.b/c>",
		"[a]: http://x":                   "[a]: http://x",
		"| a | b |\n|---|--:|\n| 1 | 2 |": "table 2x2",
		"$2+2=4$":                         "$2+2=4$",
		"line  \nbreak":                   "line\nbreak",
		"-":                               "  • ",
	} {
		if got := words(parseMarkdown(source)); got != want {
			t.Errorf("%q: got\n%s\nwant\n%s", source, got, want)
		}
	}
	wide := parseMarkdown("|" + strings.Repeat(" h |", 3000) + "\n|" + strings.Repeat("---|", 3000) + "\n|" + strings.Repeat(" 1 |", 3000))
	if len(wide) != 1 || wide[0].kind != codeLeaf || strings.Count(wide[0].code, " h |") != 3000 {
		t.Errorf("a table of 3,000 columns: got %d leaves of kind %v", len(wide), wide[0].kind)
	}
}

// TestAnyTextIsMarkdown: what a model writes never breaks the window, and keeps its words.
func TestAnyTextIsMarkdown(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		source := randomText(r)
		got := words(parseMarkdown(source))
		if a, b := strings.Count(got, "你好"), strings.Count(source, "你好"); a < b && !strings.Contains(source, "[a]:") && !strings.Contains(source, "```") && !strings.Contains(source, "~~~~") && !strings.Contains(source, "|") {
			t.Fatalf("%q: got %q", source, got)
		}
	}
}
