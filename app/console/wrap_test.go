package console

import (
	"context"
	"strings"
	"testing"

	"pond/inference/chat"
)

// TestWordsAreNotBrokenAtTheEdge: the terminal cut words in two where its line ended. However the text comes, lines break between words.
func TestWordsAreNotBrokenAtTheEdge(t *testing.T) {
	for text, want := range map[string]string{
		"the quick brown fox jumps":   "the quick\nbrown fox\njumps",
		"a\n  indented line here":     "a\n  indented\nline here",
		"0123456789abcdef gh":         "012345678\n9abcdef\ngh",
		"水水水水水水":                      "水水水水\n水水",
		"one  two\n\nthree four five": "one  two\n\nthree\nfour five",
	} {
		for step := 1; step <= len([]rune(text)); step++ {
			var out strings.Builder
			w := &wrapper{out: &out, width: 10}
			for rest := []rune(text); len(rest) > 0; rest = rest[min(step, len(rest)):] {
				w.write(string(rest[:min(step, len(rest))]))
			}
			w.flush()
			if out.String() != want {
				t.Errorf("in pieces of %d: got %q, want %q", step, out.String(), want)
			}
		}
	}
}

// TestWrappingIsForPeople: a pipe gets the text as the model wrote it; on a terminal the last word is not forgotten.
func TestWrappingIsForPeople(t *testing.T) {
	ask := (&scripted{events: [][]chat.Event{{{Kind: chat.Reasoning, Text: "many words to think"}}, {{Kind: chat.Text, Text: "many words to say"}}}}).ask
	for terminal, want := range map[bool]string{true: "many\nwords to\nsay\n", false: "many words to say\n"} {
		var out, notes strings.Builder
		s := &Session{Out: &out, Notes: &notes, Terminal: terminal, Columns: func() int { return 9 }, Ask: ask}
		if err := s.Once(context.Background(), "x"); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("terminal %v: got %q, want %q", terminal, out.String(), want)
		}
		if terminal && !strings.HasPrefix(notes.String(), "many\nwords to\nthink\n") {
			t.Errorf("thinking: got %q", notes.String())
		}
	}
}
