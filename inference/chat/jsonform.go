package chat

import (
	"math"
	"strconv"
	"strings"
)

// jsonForm is how JSON is written.
type jsonForm int

const (
	// pythonForm is json.dumps(x, ensure_ascii=False): ", " and ": " between things,
	// numbers as Python prints them. The prompt uses it, since the model was trained on it.
	pythonForm jsonForm = iota
	// compactForm has no spaces and keeps number literals as they came. Arguments on
	// their way to a client use it, as OpenAI's own do.
	compactForm
)

// appendJSON appends v in the given form. Neither form escapes HTML characters or
// anything beyond ASCII.
func appendJSON(b []byte, v jsonValue, form jsonForm) []byte {
	comma, colon := ", ", ": "
	if form == compactForm {
		comma, colon = ",", ":"
	}
	switch v.kind {
	case jsonNull:
		return append(b, "null"...)
	case jsonBool:
		return append(b, v.text...)
	case jsonNumber:
		if form == compactForm {
			return append(b, v.text...)
		}
		return append(b, pythonNumber(v.text)...)
	case jsonString:
		return appendQuoted(b, v.text)
	case jsonArray:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, comma...)
			}
			b = appendJSON(b, item, form)
		}
		return append(b, ']')
	}
	b = append(b, '{')
	for i, m := range v.members {
		if i > 0 {
			b = append(b, comma...)
		}
		b = appendQuoted(b, m.key)
		b = append(b, colon...)
		b = appendJSON(b, m.value, form)
	}
	return append(b, '}')
}

// appendQuoted appends s as a JSON string.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	b = appendEscaped(b, s)
	return append(b, '"')
}

// appendEscaped appends the inside of a JSON string: only the quote, the backslash
// and control characters below U+0020 are escaped, in Python's spelling.
func appendEscaped(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(b, s[start:]...)
}

// pythonNumber returns a JSON number literal as json.dumps(json.loads(literal))
// prints it: integers of any size unchanged, floats as repr. A literal beyond
// float64 stays as received, where Python would print Infinity, which is not JSON.
func pythonNumber(literal string) string {
	if !strings.ContainsAny(literal, ".eE") {
		if literal == "-0" {
			return "0"
		}
		return literal
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.IsInf(f, 0) {
		return literal
	}
	// repr switches to an exponent below 1e-4 and from 1e16 on.
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
