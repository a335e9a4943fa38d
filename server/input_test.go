package server

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pond/server/openai"
)

// FuzzMoreInput: the text of a custom tool's input comes whole, whatever the pieces in which its arguments are written, and nothing comes twice. A piece holds
// whole characters, escaped or not, as the parser of the model's text gives them.
func FuzzMoreInput(f *testing.F) {
	f.Add("", uint64(0))
	f.Add("a \"quoted\" \\ line\n", uint64(0x5555))
	f.Add("\\\\\"", ^uint64(0))
	f.Add("日本語 🐸 \u2028 <b>", uint64(3))
	f.Fuzz(func(t *testing.T, text string, cuts uint64) {
		if !utf8.ValidString(text) {
			return
		}
		b := &block{}
		var got strings.Builder
		add := func(piece string) {
			b.text += piece
			if cuts&1 != 0 {
				got.WriteString(b.moreInput())
			}
			cuts = cuts>>1 | cuts<<63
		}
		for _, c := range openai.InputPrefix {
			add(string(c))
		}
		for _, c := range text {
			escaped, err := json.Marshal(string(c))
			if err != nil {
				t.Fatal(err)
			}
			add(string(escaped[1 : len(escaped)-1]))
		}
		add(`"`)
		add(`}`)
		got.WriteString(b.moreInput())
		got.WriteString(b.moreInput())
		if got.String() != text || openai.InputOf(b.text) != text {
			t.Errorf("got %q in pieces and %q whole, want %q", got.String(), openai.InputOf(b.text), text)
		}
	})
}
