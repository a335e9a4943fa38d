package console

import (
	"strings"
	"testing"
)

// TestKeysSurviveAnySplit: a terminal's bytes come in pieces, and every way to cut them means the same keys.
func TestKeysSurviveAnySplit(t *testing.T) {
	const in = "é\x1b[A\x1b[200~a\r\nb\t\x1b[201~\x1b[1;5D\x7f水\r"
	plain := func(out string) string { return strings.NewReplacer(pasteStart, "", pasteEnd, "").Replace(out) }
	const want = "é\x1b[Aa␊b␉\x1b[1;3D\x7f水\r"
	for i := range len(in) + 1 {
		var k keys
		got := plain(string(k.push([]byte(in[:i]))) + string(k.push([]byte(in[i:]))))
		if got != want {
			t.Errorf("cut at %d: got %q, want %q", i, got, want)
		}
	}
}

// TestKeysLeaveOut: what the editor does not know never becomes text, and Ctrl-C is the way out of a paste without an end.
func TestKeysLeaveOut(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[15~":                "",
		"\x1bOP":                  "",
		"\x1b[\x03":               "\x1c",
		"\x1bx":                   pasteStart + "x" + pasteEnd,
		"\xff\xc3(":               pasteStart + "(" + pasteEnd,
		"\t\x00":                  "",
		pasteStart + "a\x03\r":    pasteStart + "a" + pasteEnd + "\x1c\r",
		pasteStart + "a\x1b[31mb": pasteStart + "ab" + pasteEnd,
	} {
		var k keys
		if got := string(k.push([]byte(in))); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
