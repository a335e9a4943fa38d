package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Invariants of decoding:
//
//   - fields are taken by exact name; what nobody took by the end is unknown and reported by finish;
//   - the first error wins and later ones are dropped, so that the order of the checks in the code is the order a client sees;
//   - after an error every method returns its zero value and the caller may go on: the result is thrown away.

// report collects what one decoding has to say.
type report struct {
	err     *Error
	ignored []string
	strict  bool // a tool is
}

func (r *report) fail(param, code, format string, args ...any) {
	if r.err == nil {
		r.err = errorf(param, code, format, args...)
	}
}

// ignore notes a field that has no effect.
func (r *report) ignore(path string) { r.ignored = append(r.ignored, path) }

// object is one JSON object whose fields are taken one by one.
type object struct {
	path   string // "" for the body itself
	fields map[string]json.RawMessage
	report *report
}

// decodeBody reads the request body as one JSON object.
func decodeBody(body []byte, r *report) *object {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	o := &object{report: r}
	if !utf8.Valid(body) {
		r.fail("", CodeInvalidJSON, "the body is not UTF-8")
		return o
	}
	if len(bytes.TrimSpace(body)) == 0 {
		r.fail("", CodeInvalidJSON, "the body is empty, want a JSON object")
		return o
	}
	if err := json.Unmarshal(body, &o.fields); err != nil {
		var syntax *json.SyntaxError
		switch {
		case errors.As(err, &syntax):
			r.fail("", CodeInvalidJSON, "the body is not valid JSON: %v (byte %d of %d)", err, syntax.Offset, len(body))
		default:
			r.fail("", CodeInvalidType, "the body: got %s, want a JSON object", kindOf(body))
		}
	} else if o.fields == nil {
		r.fail("", CodeInvalidType, "the body: got null, want a JSON object")
	}
	return o
}

// at gives the path of a field.
func (o *object) at(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// take removes a field and returns it; null and absent are the same.
func (o *object) take(name string) (json.RawMessage, bool) {
	raw, ok := o.fields[name]
	delete(o.fields, name)
	if !ok || isNull(raw) {
		return nil, false
	}
	return raw, true
}

// finish reports the fields that nobody took.
func (o *object) finish() {
	for name, raw := range o.fields {
		if !isNull(raw) {
			o.report.ignore(o.at(name))
		}
	}
}

// names returns the sorted paths of ignored fields, each once.
func (r *report) names() []string {
	slices.Sort(r.ignored)
	return slices.Compact(r.ignored)
}

func (o *object) str(name string) *string {
	raw, ok := o.take(name)
	if !ok {
		return nil
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		o.report.fail(o.at(name), CodeInvalidType, "got %s, want a string", kindOf(raw))
		return nil
	}
	return &s
}

func (o *object) boolean(name string) *bool {
	raw, ok := o.take(name)
	if !ok {
		return nil
	}
	var b bool
	if json.Unmarshal(raw, &b) != nil {
		o.report.fail(o.at(name), CodeInvalidType, "got %s, want true or false", kindOf(raw))
		return nil
	}
	return &b
}

// number takes a number in [low, high].
func (o *object) number(name string, low, high float64) *float64 {
	raw, ok := o.take(name)
	if !ok {
		return nil
	}
	f, ok := parseNumber(raw)
	if !ok {
		o.report.fail(o.at(name), CodeInvalidType, "got %s, want a number", kindOf(raw))
		return nil
	}
	if !(f >= low && f <= high) {
		o.report.fail(o.at(name), CodeInvalidValue, "got %s, want %s", clip(string(raw)), span(low, high))
		return nil
	}
	return &f
}

// integer takes a whole number in [low, high]; 3.0 and 3e0 are whole.
func (o *object) integer(name string, low, high int64) *int64 {
	raw, ok := o.take(name)
	if !ok {
		return nil
	}
	if _, isNumber := parseNumber(raw); !isNumber {
		o.report.fail(o.at(name), CodeInvalidType, "got %s, want a whole number", kindOf(raw))
		return nil
	}
	i, ok := parseInteger(raw)
	switch {
	case !ok:
		o.report.fail(o.at(name), CodeInvalidType, "got %s, want a whole number", clip(string(raw)))
	case i < low || i > high:
		o.report.fail(o.at(name), CodeInvalidValue, "got %d, want %s", i, span(float64(low), float64(high)))
	default:
		return &i
	}
	return nil
}

// object takes a nested object; nil when absent or wrong.
func (o *object) object(name string) *object {
	raw, ok := o.take(name)
	if !ok {
		return nil
	}
	return openObject(raw, o.at(name), o.report)
}

// array takes a list; nil when absent or wrong, empty but not nil for [].
func (o *object) array(name string) []json.RawMessage {
	raw, ok := o.take(name)
	if !ok {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		o.report.fail(o.at(name), CodeInvalidType, "got %s, want a list", kindOf(raw))
		return nil
	}
	return list
}

func openObject(raw json.RawMessage, path string, r *report) *object {
	o := &object{path: path, report: r}
	if err := json.Unmarshal(raw, &o.fields); err != nil || o.fields == nil {
		r.fail(path, CodeInvalidType, "got %s, want an object", kindOf(raw))
		return nil
	}
	return o
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// kindOf names the kind of a JSON value for an error sentence.
func kindOf(raw []byte) string {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "the number " + clip(string(raw))
}

func parseNumber(raw json.RawMessage) (float64, bool) {
	text := string(bytes.TrimSpace(raw))
	if text == "" || (text[0] != '-' && (text[0] < '0' || text[0] > '9')) {
		return 0, false
	}
	// A literal such as 1e999 is a number, only too large: infinity then fails the range check with the right sentence.
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange)
}

func parseInteger(raw json.RawMessage) (int64, bool) {
	text := string(bytes.TrimSpace(raw))
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, true
	}
	// Beyond 2^53 a float does not say which whole number was meant.
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

func span(low, high float64) string {
	unbounded := float64(math.MaxInt64)
	switch {
	case low <= -unbounded && high >= unbounded:
		return "a whole number of 64 bits"
	case high >= unbounded:
		return fmt.Sprintf("at least %v", low)
	}
	return fmt.Sprintf("%v to %v", low, high)
}

// clip keeps a quoted piece of the request short enough for an error sentence.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
