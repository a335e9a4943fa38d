package sample

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// slowStop is the reference: the whole text, byte by byte.
func slowStop(text string, stops []string) (emit, matched string) {
	for end := range len(text) + 1 {
		for _, stop := range stops {
			if stop != "" && strings.HasSuffix(text[:end], stop) && len(stop) > len(matched) {
				matched = stop
			}
		}
		if matched != "" {
			return text[:end-len(matched)], matched
		}
	}
	return text, ""
}

// slowHold is how many bytes of the end of text must wait.
func slowHold(text string, stops []string) int {
	for n := len(text); n > 0; n-- {
		for _, stop := range stops {
			if n < len(stop) && strings.HasPrefix(stop, text[len(text)-n:]) {
				return n
			}
		}
	}
	return 0
}

// checkStopper pushes pieces and compares with the reference after each.
func checkStopper(t *testing.T, stops, pieces []string) {
	t.Helper()
	s := NewStopper(stops)
	text, got := "", ""
	for _, piece := range pieces {
		text += piece
		emit, stopped := s.Push(piece)
		got += emit
		want, matched := slowStop(text, stops)
		if matched == "" {
			want = text[:len(text)-slowHold(text, stops)]
		}
		if got != want || stopped != (matched != "") || s.Matched() != matched {
			t.Fatalf("stops %q, pieces %q, after %q: got %q, stopped %v by %q, want %q by %q",
				stops, pieces, text, got, stopped, s.Matched(), want, matched)
		}
	}
	got += s.Flush()
	if want, _ := slowStop(text, stops); got != want {
		t.Fatalf("stops %q, pieces %q: got %q, want %q", stops, pieces, got, want)
	}
	if more := s.Flush(); more != "" {
		t.Fatalf("second Flush: got %q, want nothing", more)
	}
}

func TestStopper(t *testing.T) {
	for _, c := range []struct {
		text  string
		stops []string
		want  string
	}{
		{"one two three", nil, "one two three"},
		{"one two three", []string{""}, "one two three"},
		{"one two three", []string{"two"}, "one "},
		{"one two three", []string{"three", "two"}, "one "},
		{"one two three", []string{"thrice"}, "one two three"},
		{"stop", []string{"stop"}, ""},
		{"aaaaab", []string{"aab"}, "aaa"},
		{"xabc", []string{"abcd", "bc"}, "xa"},                  // the earlier end
		{"xabcd", []string{"bcd", "abcd", "d"}, "x"},            // at one end the longest
		{"ababac", []string{"abac"}, "ab"},                      // a border of the stop string
		{"wait\n\nUser", []string{"\n\nUser:"}, "wait\n\nUser"}, // held, then flushed
		{"schöne Grüße🌍!", []string{"🌍"}, "schöne Grüße"},
		{"é è ê", []string{"ê"}, "é è "},
	} {
		if got, _ := slowStop(c.text, c.stops); got != c.want {
			t.Errorf("reference, stops %q: got %q, want %q", c.stops, got, c.want)
		}
		// Whole, byte by byte, and in three at every pair of borders.
		checkStopper(t, c.stops, []string{c.text})
		checkStopper(t, c.stops, strings.Split(c.text, ""))
		for i := range len(c.text) + 1 {
			for j := i; j <= len(c.text); j++ {
				checkStopper(t, c.stops, []string{c.text[:i], c.text[i:j], "", c.text[j:]})
			}
		}
	}
}

func TestStopperRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "aab"[r.IntN(3)]
		}
		return string(b)
	}
	for range 20_000 {
		var stops, pieces []string
		for range r.IntN(4) {
			stops = append(stops, word(r.IntN(7)))
		}
		for range r.IntN(8) {
			pieces = append(pieces, word(r.IntN(5)))
		}
		checkStopper(t, stops, pieces)
	}
}

func FuzzStopper(f *testing.F) {
	f.Add("one two three", "two", "ee", uint8(3))
	f.Add("ababac", "abac", "", uint8(1))
	f.Add("é🌍ê", "🌍", "ê", uint8(2))
	f.Fuzz(func(t *testing.T, text, first, second string, size uint8) {
		cut := func(s string, n int) string { return s[:min(len(s), n)] } // the reference is slow
		text, first, second = cut(text, 100), cut(first, 30), cut(second, 30)
		stops := []string{first, second}
		var pieces []string
		whole := utf8.ValidString(text) && utf8.ValidString(first) && utf8.ValidString(second)
		for rest := text; rest != ""; {
			n := min(int(size)%8+1, len(rest))
			for whole && n < len(rest) && !utf8.RuneStart(rest[n]) {
				n++
			}
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		checkStopper(t, stops, pieces)
		if whole {
			s := NewStopper(stops)
			for _, piece := range pieces {
				if emit, _ := s.Push(piece); !utf8.ValidString(emit) {
					t.Fatalf("stops %q, pieces %q: got %q, want whole characters", stops, pieces, emit)
				}
			}
		}
	})
}
