package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// Pattern is the only split pattern that this package implements, as
// tokenizer.json writes it. Each match is one pre-token; matches cover the
// whole text.
const Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// class is what the pattern needs to know of a character.
type class uint8

const (
	letter  class = 1 << iota // \p{L} or \p{M}
	number                    // \p{N}
	space                     // \s, the White_Space property
	newline                   // CR or LF, which are space as well
)

// classTable holds the class of every code point, from the tables of Go's
// unicode package (its Version). One flat array: a lookup is one load, and the
// operating system gives memory only to the parts in use.
type classTable [unicode.MaxRune + 1]class

func newClassTable() *classTable {
	t := new(classTable)
	t.mark(unicode.L, letter)
	t.mark(unicode.M, letter)
	t.mark(unicode.N, number)
	t.mark(unicode.White_Space, space)
	t['\r'] |= newline
	t['\n'] |= newline
	return t
}

func (t *classTable) mark(ranges *unicode.RangeTable, c class) {
	for _, r := range ranges.R16 {
		for u := int(r.Lo); u <= int(r.Hi); u += int(r.Stride) {
			t[u] |= c
		}
	}
	for _, r := range ranges.R32 {
		for u := int(r.Lo); u <= int(r.Hi); u += int(r.Stride) {
			t[u] |= c
		}
	}
}

// at returns the class and the length in bytes of the character at s[p].
func (t *classTable) at(s string, p int) (class, int) {
	if b := s[p]; b < utf8.RuneSelf {
		return t[b], 1
	}
	r, size := utf8.DecodeRuneInString(s[p:])
	return t[r], size
}

// next returns the end of the pre-token that starts at s[p], p < len(s). The
// result does not depend on what stands before p. Rules are tried in the order
// of the pattern's alternatives.
func (t *classTable) next(s string, p int) int {
	if s[p] == '\'' {
		if n := contraction(s[p+1:]); n > 0 {
			return p + 1 + n
		}
	}
	c, size := t.at(s, p)
	if c&letter != 0 {
		return t.run(s, p+size)
	}
	if c&number != 0 {
		return p + size // each digit is a pre-token of its own
	}
	after := p + size
	if after < len(s) && c&newline == 0 {
		// One character before a word belongs to the word: a blank, a bracket.
		following, followingSize := t.at(s, after)
		if following&letter != 0 {
			return t.run(s, after+followingSize)
		}
		if s[p] == ' ' && following == 0 {
			return t.symbols(s, after+followingSize)
		}
	}
	if c == 0 {
		return t.symbols(s, after)
	}
	return t.blanks(s, p)
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the
// start of s, the apostrophe already read, and 0 for none. Case folding makes
// U+017F, the long s, an s as well.
func contraction(s string) int {
	if len(s) == 0 {
		return 0
	}
	const lower = 0x20
	switch s[0] | lower {
	case 's', 't', 'm', 'd':
		return 1
	case 'r', 'v':
		if len(s) > 1 && s[1]|lower == 'e' {
			return 2
		}
	case 'l':
		if len(s) > 1 && s[1]|lower == 'l' {
			return 2
		}
	}
	if len(s) > 1 && s[:2] == "\u017f" {
		return 2
	}
	return 0
}

// run returns the end of the letters and marks from s[p] on.
func (t *classTable) run(s string, p int) int {
	for p < len(s) {
		c, size := t.at(s, p)
		if c&letter == 0 {
			break
		}
		p += size
	}
	return p
}

// symbols returns the end of the characters without a class from s[p] on, and
// of the line ends directly behind them.
func (t *classTable) symbols(s string, p int) int {
	for p < len(s) {
		c, size := t.at(s, p)
		if c != 0 {
			break
		}
		p += size
	}
	for p < len(s) && (s[p] == '\r' || s[p] == '\n') {
		p++
	}
	return p
}

// blanks splits a run of white space that starts at s[p]: through its last
// line end; else all of it where the text ends with it; else all but its last
// character, which goes to the word behind, unless it is the only one.
func (t *classTable) blanks(s string, p int) int {
	end, last, afterNewline := p, p, 0
	for end < len(s) {
		c, size := t.at(s, end)
		if c&space == 0 {
			break
		}
		last = end
		end += size
		if c&newline != 0 {
			afterNewline = end
		}
	}
	switch {
	case afterNewline > 0:
		return afterNewline
	case end == len(s) || last == p:
		return end
	default:
		return last
	}
}
