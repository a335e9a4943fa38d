package tokenizer

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// nfc returns the Unicode normal form C of s, which is valid UTF-8.
//
// golang.org/x/text/unicode/norm writes the stream-safe variant: behind 30
// combining characters it inserts U+034F. The reference tokenizer does not, so
// text with such a run takes a plain implementation of the standard. Tables are
// those of Go's Unicode version; the reference's (tokenizers 0.23) know no
// combining class for marks of Unicode 11 and later, and so leave several of
// these behind one letter in the order typed.
func nfc(s string) string {
	if ascii(s) {
		return s
	}
	if hasLongRun(s) {
		return nfcPlain(s)
	}
	return norm.NFC.String(s)
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// hasLongRun reports whether norm could insert a character. A character
// decomposes into at most 4, of which at most 3 are combining, so 8 of them
// behind a starter (8*3 + 3) stay below 30.
func hasLongRun(s string) bool {
	const safe = 8
	run := 0
	for p := 0; p < len(s); {
		if s[p] < utf8.RuneSelf {
			run = 0
			p++
			continue
		}
		properties := norm.NFC.PropertiesString(s[p:])
		if properties.BoundaryBefore() {
			run = 0
		} else if run++; run > safe {
			return true
		}
		p += max(properties.Size(), 1)
	}
	return false
}

// nfcPlain decomposes, orders and composes as section 3.11 of the Unicode
// standard says. Pairs are composed by norm, which is safe on two characters.
func nfcPlain(s string) string {
	type char struct {
		r     rune
		class uint8 // canonical combining class
	}
	var decomposed []char
	for _, r := range s {
		for _, d := range norm.NFD.String(string(r)) {
			decomposed = append(decomposed, char{d, norm.NFD.PropertiesString(string(d)).CCC()})
		}
	}
	for i := 0; i < len(decomposed); {
		end := i
		for end < len(decomposed) && decomposed[end].class != 0 {
			end++
		}
		slices.SortStableFunc(decomposed[i:end], func(a, b char) int { return int(a.class) - int(b.class) })
		i = max(end, i+1)
	}

	out := make([]rune, 0, len(decomposed))
	starter, last := -1, uint8(0) // last is the class of the last character of out
	for _, c := range decomposed {
		adjacent := starter >= 0 && starter == len(out)-1
		unblocked := starter >= 0 && last != 0 && last < c.class
		if adjacent || unblocked {
			if joined, ok := compose(out[starter], c.r); ok {
				out[starter] = joined
				continue
			}
		}
		out = append(out, c.r)
		last = c.class
		if c.class == 0 {
			starter = len(out) - 1
		}
	}
	return string(out)
}

// compose returns the character that a followed by b composes to.
func compose(a, b rune) (rune, bool) {
	if b < utf8.RuneSelf || norm.NFC.PropertiesString(string(b)).BoundaryBefore() {
		return 0, false
	}
	joined := norm.NFC.String(string([]rune{a, b}))
	r, size := utf8.DecodeRuneInString(joined)
	return r, size == len(joined)
}
