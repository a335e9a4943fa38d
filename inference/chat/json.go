package chat

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSON here is read into an ordered tree and written by hand, because
// encoding/json can do neither half: its maps forget key order, its float64 loses
// integers above 2^53, and its writer escapes what the template does not.

// maxDepth bounds nesting, so that a hostile schema cannot exhaust the stack.
// Python's own limit, which the official template runs under, is near 1000.
const maxDepth = 512

type jsonKind int

const (
	jsonNull jsonKind = iota
	jsonBool
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

func (k jsonKind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// jsonValue is one JSON value.
type jsonValue struct {
	kind    jsonKind
	text    string       // jsonString: decoded; jsonNumber, jsonBool: the literal
	items   []jsonValue  // jsonArray
	members []jsonMember // jsonObject: in the order received, keys unique
}

type jsonMember struct {
	key   string
	value jsonValue
}

// get returns the value at key of an object.
func (v jsonValue) get(key string) (jsonValue, bool) {
	for _, m := range v.members {
		if m.key == key {
			return m.value, true
		}
	}
	return jsonValue{}, false
}

// parseJSON reads one JSON document (RFC 8259). A repeated key keeps its first
// place and takes its last value, as in Python. Invalid UTF-8 and lone surrogates
// become U+FFFD.
func parseJSON(s string) (jsonValue, error) {
	return (&jsonReader{s: s}).document()
}

// parseLiteral reads what a model writes where it should have written JSON: JSON or
// a Python literal (single quotes, True, None, tuples, trailing commas, raw
// newlines in strings).
func parseLiteral(s string) (jsonValue, error) {
	return (&jsonReader{s: s, python: true}).document()
}

type jsonReader struct {
	s      string
	i      int // next byte of s
	depth  int
	python bool // accept Python literals too
}

var (
	errDepth = fmt.Errorf("nested deeper than %d levels", maxDepth)
	errEnd   = errors.New("unexpected end of JSON")
)

func (r *jsonReader) errorf(format string, args ...any) error {
	return fmt.Errorf(format+" at byte %d", append(args, r.i)...)
}

func (r *jsonReader) document() (jsonValue, error) {
	v, err := r.value()
	if err != nil {
		return jsonValue{}, err
	}
	if r.space(); r.i < len(r.s) {
		return jsonValue{}, r.errorf("unexpected %q after the value", r.here())
	}
	return v, nil
}

// here returns the character at the reading position, for messages.
func (r *jsonReader) here() string {
	_, n := utf8.DecodeRuneInString(r.s[r.i:])
	return r.s[r.i : r.i+n]
}

func (r *jsonReader) space() {
	for r.i < len(r.s) {
		switch r.s[r.i] {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return
		}
	}
}

func (r *jsonReader) value() (jsonValue, error) {
	r.space()
	if r.i == len(r.s) {
		return jsonValue{}, errEnd
	}
	switch c := r.s[r.i]; {
	case c == '{':
		return r.object()
	case c == '[':
		return r.array(']')
	case c == '(' && r.python:
		return r.array(')')
	case c == '"' || c == '\'' && r.python:
		s, err := r.str(c)
		return jsonValue{kind: jsonString, text: s}, err
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	}
	return r.word()
}

func (r *jsonReader) word() (jsonValue, error) {
	words := []struct {
		text   string
		value  jsonValue
		python bool
	}{
		{"true", jsonValue{kind: jsonBool, text: "true"}, false},
		{"false", jsonValue{kind: jsonBool, text: "false"}, false},
		{"null", jsonValue{kind: jsonNull}, false},
		{"True", jsonValue{kind: jsonBool, text: "true"}, true},
		{"False", jsonValue{kind: jsonBool, text: "false"}, true},
		{"None", jsonValue{kind: jsonNull}, true},
	}
	for _, w := range words {
		if (!w.python || r.python) && strings.HasPrefix(r.s[r.i:], w.text) {
			r.i += len(w.text)
			return w.value, nil
		}
	}
	return jsonValue{}, r.errorf("unexpected %q", r.here())
}

func (r *jsonReader) number() (jsonValue, error) {
	n, ok := numberLen(r.s[r.i:])
	if !ok {
		return jsonValue{}, r.errorf("malformed number")
	}
	v := jsonValue{kind: jsonNumber, text: r.s[r.i : r.i+n]}
	r.i += n
	return v, nil
}

// numberLen returns the length of the JSON number that s starts with.
func numberLen(s string) (int, bool) {
	i := 0
	digits := func() bool {
		start := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(s) && s[i] == '-' {
		i++
	}
	if i < len(s) && s[i] == '0' {
		i++ // a leading zero stands alone
	} else if !digits() {
		return 0, false
	}
	if i < len(s) && s[i] == '.' {
		i++
		if !digits() {
			return 0, false
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if !digits() {
			return 0, false
		}
	}
	return i, true
}

func (r *jsonReader) enter() error {
	if r.depth++; r.depth > maxDepth {
		return errDepth
	}
	r.i++
	return nil
}

// next reads the separator after a member: more says that another follows.
func (r *jsonReader) next(end byte) (more bool, err error) {
	r.space()
	if r.i == len(r.s) {
		return false, errEnd
	}
	switch r.s[r.i] {
	case end:
		r.i++
		r.depth--
		return false, nil
	case ',':
		r.i++
		r.space()
		if r.python && r.i < len(r.s) && r.s[r.i] == end {
			r.i++
			r.depth--
			return false, nil
		}
		return true, nil
	}
	return false, r.errorf("got %q, want ',' or %q", r.here(), string(end))
}

// empty reads the end of a container that has no members.
func (r *jsonReader) empty(end byte) bool {
	r.space()
	if r.i < len(r.s) && r.s[r.i] == end {
		r.i++
		r.depth--
		return true
	}
	return false
}

func (r *jsonReader) array(end byte) (jsonValue, error) {
	v := jsonValue{kind: jsonArray}
	if err := r.enter(); err != nil {
		return v, err
	}
	if r.empty(end) {
		return v, nil
	}
	for {
		item, err := r.value()
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
		if more, err := r.next(end); !more {
			return v, err
		}
	}
}

func (r *jsonReader) object() (jsonValue, error) {
	v := jsonValue{kind: jsonObject}
	if err := r.enter(); err != nil {
		return v, err
	}
	if r.empty('}') {
		return v, nil
	}
	var place map[string]int // key to its index; made when an object has several
	for {
		r.space()
		if r.i == len(r.s) {
			return v, errEnd
		}
		quote := r.s[r.i]
		if quote != '"' && (quote != '\'' || !r.python) {
			return v, r.errorf("got %q, want a quoted key", r.here())
		}
		key, err := r.str(quote)
		if err != nil {
			return v, err
		}
		if r.space(); r.i == len(r.s) {
			return v, errEnd
		}
		if r.s[r.i] != ':' {
			return v, r.errorf("got %q, want ':'", r.here())
		}
		r.i++
		value, err := r.value()
		if err != nil {
			return v, err
		}
		if at, ok := place[key]; ok {
			v.members[at].value = value
		} else {
			if place == nil {
				place = make(map[string]int)
			}
			place[key] = len(v.members)
			v.members = append(v.members, jsonMember{key, value})
		}
		if more, err := r.next('}'); !more {
			return v, err
		}
	}
}

// str reads a string that opens and closes with quote.
func (r *jsonReader) str(quote byte) (string, error) {
	r.i++
	var b strings.Builder
	for start := r.i; ; {
		if r.i == len(r.s) {
			return "", errEnd
		}
		switch c := r.s[r.i]; {
		case c == quote:
			b.WriteString(r.s[start:r.i])
			r.i++
			return strings.ToValidUTF8(b.String(), "\uFFFD"), nil
		case c == '\\':
			b.WriteString(r.s[start:r.i])
			if err := r.escape(&b); err != nil {
				return "", err
			}
			start = r.i
		case c < ' ' && !r.python:
			return "", r.errorf("control character %q in a string", c)
		default:
			r.i++
		}
	}
}

func (r *jsonReader) escape(b *strings.Builder) error {
	r.i++
	if r.i == len(r.s) {
		return errEnd
	}
	c := r.s[r.i]
	r.i++
	switch c {
	case '"', '\\', '/':
		b.WriteByte(c)
	case 'b':
		b.WriteByte('\b')
	case 'f':
		b.WriteByte('\f')
	case 'n':
		b.WriteByte('\n')
	case 'r':
		b.WriteByte('\r')
	case 't':
		b.WriteByte('\t')
	case 'u':
		u, err := r.hex(4)
		if err != nil {
			return err
		}
		if u >= 0xD800 && u < 0xDC00 && strings.HasPrefix(r.s[r.i:], `\u`) {
			save := r.i
			r.i += 2
			low, err := r.hex(4)
			if err != nil {
				return err
			}
			if low >= 0xDC00 && low < 0xE000 {
				u = (u-0xD800)<<10 + (low - 0xDC00) + 0x10000
			} else {
				r.i = save // not the other half: it is read as a character of its own
			}
		}
		b.WriteRune(u) // a lone surrogate is written as U+FFFD
	case '\'', 'x':
		if !r.python {
			return r.errorf("unknown escape \\%c", c)
		}
		if c == '\'' {
			b.WriteByte(c)
			break
		}
		u, err := r.hex(2)
		if err != nil {
			return err
		}
		b.WriteRune(u)
	default:
		if !r.python {
			return r.errorf("unknown escape %q", `\`+string(rune(c)))
		}
		b.WriteByte('\\') // Python keeps what it does not know
		r.i--
	}
	return nil
}

func (r *jsonReader) hex(n int) (rune, error) {
	if len(r.s)-r.i < n {
		return 0, errEnd
	}
	u, err := strconv.ParseUint(r.s[r.i:r.i+n], 16, 32)
	if err != nil {
		return 0, r.errorf("malformed escape %q", r.s[r.i:r.i+n])
	}
	r.i += n
	return rune(u), nil
}
