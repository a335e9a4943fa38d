package grammar

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
)

type types uint8

const (
	typeNull types = 1 << iota
	typeBool
	typeInteger
	typeFraction // a number that is no integer
	typeString
	typeArray
	typeObject
	typeNumber = typeInteger | typeFraction
	typeAny    = 1<<iota - 1
)

// shape is what several schemas together ask of a value.
type shape struct {
	facts    []*jsonNode
	types    types
	declared types       // before a schema without a type was taken to ask for those of its keywords
	enum     []*jsonNode // nil: anything
	required []string

	minLength, maxLength int // characters; maxLength may be unbounded
	patterns, formats    []*jsonNode

	low, high          *big.Rat // nil: none
	lowOpen, highOpen  bool     // the bound itself is not allowed
	multiples          []*jsonNode
	minItems, maxItems int
}

// empty reports whether the schemas contradict each other openly.
func (s *shape) empty() bool { return s.types == 0 || s.enum != nil && len(s.enum) == 0 }

// impossible reports whether no value at all satisfies the schemas, as far as types and lists show.
func (s *shape) impossible() bool { return s.declared == 0 || s.enum != nil && len(s.enum) == 0 }

// keywordTypes says to which types a keyword applies: a schema without a type asks for those of its keywords.
var keywordTypes = map[string]types{
	"properties": typeObject, "required": typeObject, "additionalProperties": typeObject, "minProperties": typeObject, "maxProperties": typeObject,
	"items": typeArray, "prefixItems": typeArray, "minItems": typeArray, "maxItems": typeArray,
	"minLength": typeString, "maxLength": typeString, "pattern": typeString, "format": typeString,
	"minimum": typeNumber, "maximum": typeNumber, "exclusiveMinimum": typeNumber, "exclusiveMaximum": typeNumber, "multipleOf": typeNumber,
}

// merge adds schemas up.
func (d *document) merge(facts []*jsonNode) (*shape, error) {
	s := &shape{facts: facts, types: typeAny, maxLength: unbounded, maxItems: unbounded}
	typed, hints := false, types(0)
	for _, f := range facts {
		if f.kind != '{' {
			continue
		}
		for _, key := range f.keys {
			v := f.vals[key]
			hints |= keywordTypes[key]
			var err error
			switch key {
			case "type":
				typed = true
				var t types
				if t, err = readTypes(v); err == nil {
					s.types &= t
				}
			case "const":
				s.restrict([]*jsonNode{v})
			case "enum":
				if v.kind != '[' {
					return nil, &SchemaError{v.path, "want a list of values"}
				}
				s.restrict(v.items)
			case "minLength":
				err = atLeast(v, &s.minLength)
			case "maxLength":
				err = atMost(v, &s.maxLength)
			case "minItems":
				err = atLeast(v, &s.minItems)
			case "maxItems":
				err = atMost(v, &s.maxItems)
			case "pattern", "format":
				if v.kind != '"' {
					return nil, &SchemaError{v.path, "want a string"}
				}
				if key == "pattern" {
					s.patterns = append(s.patterns, v)
				} else {
					s.formats = append(s.formats, v)
				}
			case "minimum", "exclusiveMinimum":
				err = s.bound(v, key == "exclusiveMinimum", &s.low, &s.lowOpen, 1)
			case "maximum", "exclusiveMaximum":
				err = s.bound(v, key == "exclusiveMaximum", &s.high, &s.highOpen, -1)
			case "multipleOf":
				if r, err := readNumber(v); err != nil || r.Sign() <= 0 {
					return nil, &SchemaError{v.path, "want a number above 0"}
				}
				s.multiples = append(s.multiples, v)
			case "uniqueItems":
				if v.kind != 'f' {
					return nil, &UnsupportedError{f.path, key, ""}
				}
			case "required":
				err = s.require(v)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	s.declared = s.types
	if !typed && hints != 0 && s.enum == nil {
		s.types &= hints
	}
	if s.enum != nil {
		s.enum = keepNodes(s.enum, func(n *jsonNode) bool { return s.allows(n) })
	}
	return s, nil
}

func keepNodes(all []*jsonNode, ok func(*jsonNode) bool) []*jsonNode {
	out := []*jsonNode{}
	for _, n := range all {
		if ok(n) {
			out = append(out, n)
		}
	}
	return out
}

// restrict keeps the values that are listed here too.
func (s *shape) restrict(values []*jsonNode) {
	if s.enum == nil {
		s.enum = append([]*jsonNode{}, values...)
		return
	}
	s.enum = keepNodes(s.enum, func(n *jsonNode) bool {
		return slices.ContainsFunc(values, func(v *jsonNode) bool { return v.literal() == n.literal() })
	})
}

// allows judges a listed value by type, length and bounds.
func (s *shape) allows(n *jsonNode) bool {
	if typeOf(n)&s.types == 0 {
		return false
	}
	switch n.kind {
	case '"':
		chars := len([]rune(n.text))
		return chars >= s.minLength && (s.maxLength == unbounded || chars <= s.maxLength)
	case '0':
		r, err := readNumber(n)
		if err != nil {
			return false
		}
		within := func(bound *big.Rat, open bool, sign int) bool {
			return bound == nil || r.Cmp(bound)*sign > 0 || r.Cmp(bound) == 0 && !open
		}
		return within(s.low, s.lowOpen, 1) && within(s.high, s.highOpen, -1)
	}
	return true
}

func typeOf(n *jsonNode) types {
	switch n.kind {
	case 'n':
		return typeNull
	case 't', 'f':
		return typeBool
	case '"':
		return typeString
	case '[':
		return typeArray
	case '{':
		return typeObject
	}
	if r, err := readNumber(n); err == nil && r.IsInt() {
		return typeInteger
	}
	return typeFraction
}

// literal is a value as it is written in an answer.
func (n *jsonNode) literal() string {
	switch n.kind {
	case 'n':
		return "null"
	case 't':
		return "true"
	case 'f':
		return "false"
	case '0':
		return n.text
	case '"':
		return quote(n.text)
	}
	out := []byte{n.kind}
	for i, item := range n.items {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = append(out, item.literal()...)
	}
	for i, k := range n.keys {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = append(append(append(out, quote(k)...), ": "...), n.vals[k].literal()...)
	}
	return string(append(out, n.kind+2)) // ] is [+2, } is {+2
}

// quote writes a string as the model does: only what must be escaped is.
func quote(s string) string {
	out := []byte{'"'}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r < 0x20:
			out = append(out, escapedControl(byte(r))...)
		default:
			out = append(out, string(r)...)
		}
	}
	return string(append(out, '"'))
}

func readTypes(v *jsonNode) (types, error) {
	names := v.items
	if v.kind == '"' {
		names = []*jsonNode{v}
	}
	var t types
	for _, n := range names {
		switch n.text {
		case "null":
			t |= typeNull
		case "boolean":
			t |= typeBool
		case "integer":
			t |= typeInteger
		case "number":
			t |= typeNumber
		case "string":
			t |= typeString
		case "array":
			t |= typeArray
		case "object":
			t |= typeObject
		default:
			return 0, &SchemaError{n.path, fmt.Sprintf("got type %q, want null, boolean, integer, number, string, array or object", n.text)}
		}
	}
	if t == 0 {
		return 0, &SchemaError{v.path, "want a type or a list of types"}
	}
	return t, nil
}

func readNumber(v *jsonNode) (*big.Rat, error) {
	if v.kind != '0' || len(v.text) > 400 {
		return nil, &SchemaError{v.path, "want a number"}
	}
	if f, err := strconv.ParseFloat(v.text, 64); err != nil || f > 1e300 || f < -1e300 {
		return nil, &SchemaError{v.path, "want a number within 1e300"}
	}
	r, ok := new(big.Rat).SetString(v.text)
	if !ok {
		return nil, &SchemaError{v.path, "want a number"}
	}
	return r, nil
}

func readCount(v *jsonNode) (int, error) {
	r, err := readNumber(v)
	if err != nil || !r.IsInt() || r.Sign() < 0 {
		return 0, &SchemaError{v.path, "want a whole number, at least 0"}
	}
	if !r.Num().IsInt64() || r.Num().Int64() > 1<<30 {
		return 1 << 30, nil
	}
	return int(r.Num().Int64()), nil
}

func atLeast(v *jsonNode, bound *int) error {
	n, err := readCount(v)
	*bound = max(*bound, n)
	return err
}

func atMost(v *jsonNode, bound *int) error {
	n, err := readCount(v)
	if *bound == unbounded || n < *bound {
		*bound = n
	}
	return err
}

// bound tightens one end of a range; sign is 1 for the lower end.
func (s *shape) bound(v *jsonNode, open bool, to **big.Rat, toOpen *bool, sign int) error {
	if v.kind == 't' || v.kind == 'f' { // draft 4: whether minimum itself is excluded
		return &UnsupportedError{v.path, "exclusiveMinimum", "want a number"}
	}
	r, err := readNumber(v)
	if err != nil {
		return err
	}
	switch c := 1; {
	case *to != nil:
		if c = r.Cmp(*to) * sign; c < 0 || c == 0 && !open {
			return nil
		}
		fallthrough
	default:
		*to, *toOpen = r, open
	}
	return nil
}

func (s *shape) require(v *jsonNode) error {
	if v.kind != '[' {
		return &SchemaError{v.path, "want a list of names"}
	}
	for _, n := range v.items {
		if n.kind != '"' {
			return &SchemaError{n.path, "want a name"}
		}
		if !slices.Contains(s.required, n.text) {
			s.required = append(s.required, n.text)
		}
	}
	return nil
}
