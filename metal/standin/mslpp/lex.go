package mslpp

import (
	"fmt"
	"strconv"
	"strings"
)

// kind says what a token is.
type kind uint8

const (
	ident kind = iota
	number
	text // string and character literals
	punct
	line // a whole line of the preprocessor
	end
)

// token is one word of the source with the white space before it. Rewriting changes s, before and dropped; the rest of the text,
// and so every line number, stays as it was.
type token struct {
	kind    kind
	space   string // white space and comments before it, comments as blanks
	s       string
	before  string // inserted in front of s
	dropped bool
	file    string // where the preprocessor says it came from
	line    int
}

// pos is the place of a token, for messages.
func (t token) pos() string { return fmt.Sprintf("%s:%d", t.file, t.line) }

// operators of more than one character, longest first. ">>" is missing on purpose: it closes two template lists as often as it
// shifts, and printed side by side the two characters mean either.
var operators = []string{"<<=", ">>=", "...", "->*", "::", "->", "++", "--", "==", "!=", "<=", ">=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<"}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// lex splits preprocessed source into tokens, following the line markers.
func lex(src, file string) ([]token, error) {
	l := lexer{src: src, file: file, line: 1}
	for {
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		l.out = append(l.out, t)
		if t.kind == end {
			return l.out, nil
		}
	}
}

type lexer struct {
	src  string
	i    int
	file string
	line int
	out  []token
}

// space skips blanks and comments. A comment keeps its line ends, so that lines stay lines.
func (l *lexer) space() (string, error) {
	var b strings.Builder
	for l.i < len(l.src) {
		c := l.src[l.i]
		switch {
		case c == '\n':
			l.line++
			b.WriteByte(c)
			l.i++
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			b.WriteByte(c)
			l.i++
		case strings.HasPrefix(l.src[l.i:], "//"):
			for l.i < len(l.src) && l.src[l.i] != '\n' {
				l.i++
			}
		case strings.HasPrefix(l.src[l.i:], "/*"):
			n := strings.Index(l.src[l.i+2:], "*/")
			if n < 0 {
				return "", fmt.Errorf("%s:%d: error: comment without an end", l.file, l.line)
			}
			comment := l.src[l.i : l.i+n+4]
			lines := strings.Count(comment, "\n")
			b.WriteString(" " + strings.Repeat("\n", lines))
			l.line += lines
			l.i += len(comment)
		default:
			return b.String(), nil
		}
	}
	return b.String(), nil
}

func (l *lexer) next() (token, error) {
	space, err := l.space()
	if err != nil {
		return token{}, err
	}
	t := token{space: space, file: l.file, line: l.line}
	if l.i >= len(l.src) {
		t.kind = end
		return t, nil
	}
	start, c := l.i, l.src[l.i]
	switch {
	case c == '#' && (l.line == 1 && len(l.out) == 0 || strings.Contains(space, "\n") || len(l.out) > 0 && l.out[len(l.out)-1].kind == line):
		n := strings.IndexByte(l.src[l.i:], '\n')
		if n < 0 {
			n = len(l.src) - l.i
		}
		l.i += n
		t.kind = line
		l.marker(l.src[start:l.i])
	case isDigit(c) || c == '.' && l.i+1 < len(l.src) && isDigit(l.src[l.i+1]):
		t.kind = number
		l.number()
	case isWord(c):
		t.kind = ident
		for l.i < len(l.src) && isWord(l.src[l.i]) {
			l.i++
		}
	case c == '"' || c == '\'':
		t.kind = text
		if err := l.quoted(c); err != nil {
			return token{}, err
		}
	default:
		t.kind = punct
		l.i++
		for _, op := range operators {
			if strings.HasPrefix(l.src[start:], op) {
				l.i = start + len(op)
				break
			}
		}
	}
	t.s = l.src[start:l.i]
	return t, nil
}

// marker follows `# 12 "file"` and `#line 12 "file"`: the next line is that line.
func (l *lexer) marker(s string) {
	f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(s, "#")), "line"))
	if len(f) == 0 {
		return
	}
	n, err := strconv.Atoi(f[0])
	if err != nil {
		return // a pragma
	}
	l.line = n - 1 // the line end that follows makes it n
	if i := strings.IndexByte(s, '"'); i >= 0 {
		if name, err := strconv.Unquote(s[i : strings.LastIndexByte(s, '"')+1]); err == nil {
			l.file = name
		}
	}
}

func (l *lexer) number() {
	start := l.i
	hex := strings.HasPrefix(l.src[start:], "0x") || strings.HasPrefix(l.src[start:], "0X")
	for l.i < len(l.src) {
		c := l.src[l.i]
		sign := (c == '+' || c == '-') && l.i > start
		if sign {
			p := l.src[l.i-1] | 0x20
			sign = p == 'p' || p == 'e' && !hex
		}
		if !isWord(c) && c != '.' && c != '\'' && !sign {
			return
		}
		l.i++
	}
}

func (l *lexer) quoted(q byte) error {
	for l.i++; l.i < len(l.src); l.i++ {
		switch l.src[l.i] {
		case '\\':
			l.i++
		case '\n':
			return fmt.Errorf("%s:%d: error: literal without an end", l.file, l.line)
		case q:
			l.i++
			return nil
		}
	}
	return fmt.Errorf("%s:%d: error: literal without an end", l.file, l.line)
}
