package chat

import (
	"strings"
	"testing"
)

// BenchmarkParser streams answers of about 200 KB in pieces of four bytes, some of
// them built to be held back for long.
func BenchmarkParser(b *testing.B) {
	html := strings.Repeat("<p class=\"x\">text & more</p>\n", 7000)
	open := "<tool_call>\n<function=save_file>\n<parameter=body>\n"
	for _, bb := range []struct{ name, text string }{
		{"content", html},
		{"argument", open + html + closed},
		{"prose-behind-call", open + closed + html},
		{"closers-in-argument", open + strings.Repeat("</parameter>\n</tool_call>\n", 8000) + closed},
		{"container", "<tool_call>\n<function=typed>\n<parameter=o>\n" + strings.Repeat("{\"a</b>\":", 20000) + closed},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.text)))
			b.ReportAllocs()
			for b.Loop() {
				p := NewParser(ParserOptions{Tools: testTools})
				for rest := bb.text; rest != ""; {
					n := min(4, len(rest))
					p.Push(rest[:n])
					rest = rest[n:]
				}
				p.Close(EndStop)
			}
		})
	}
}
