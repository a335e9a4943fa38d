package chat

import (
	"math"
	"strconv"
	"strings"
)

// Coercion: a value arrives as text and leaves as JSON of the declared type. What
// does not parse stays the string it is: a wrong argument that the client can see is
// better than a lost call.

// coerce returns a value in its type. ok is false where the parameter is left out: an
// empty value of a type that is not string means "unset" to the model.
func coerce(t paramType, text string) (v jsonValue, ok bool) {
	str := jsonValue{kind: jsonString, text: text}
	bare := trim(text)
	if t.nullable && (strings.EqualFold(bare, "null") || strings.EqualFold(bare, "none")) {
		return jsonValue{kind: jsonNull}, true
	}
	if t.kind == stringType {
		return str, true
	}
	if bare == "" {
		return jsonValue{}, false
	}
	switch t.kind {
	case integerType, numberType:
		if literal, ok := coerceNumber(bare, t.kind == integerType); ok {
			return jsonValue{kind: jsonNumber, text: literal}, true
		}
	case booleanType:
		if lower := strings.ToLower(bare); lower == "true" || lower == "false" {
			return jsonValue{kind: jsonBool, text: lower}, true
		}
	case containerType, looseType:
		if v, ok := coerceContainer(bare, t.kind == looseType); ok {
			return v, true
		}
	}
	return str, true
}

// coerceNumber returns a number's JSON literal. Integers of any size keep their
// digits; 3.0 is 3, also where fractions are allowed.
func coerceNumber(s string, whole bool) (string, bool) {
	sign := ""
	digits := strings.TrimPrefix(s, "+")
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		sign, digits = "-", rest
	}
	if !plainNumber(digits) {
		return "", false
	}
	before, after, _ := strings.Cut(digits, ".")
	if !strings.ContainsAny(digits, "eE") && strings.Trim(after, "0") == "" {
		before = strings.TrimLeft(before, "0")
		if before == "" {
			return "0", true
		}
		return sign + before, true
	}
	f, err := strconv.ParseFloat(sign+digits, 64)
	if err != nil {
		return "", false
	}
	// Beyond 2^53 not every integer is a float64: digits would be invented.
	if f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return strconv.FormatInt(int64(f), 10), true
	}
	if whole {
		return "", false
	}
	literal := sign + digits
	if n, ok := numberLen(literal); !ok || n != len(literal) {
		literal = pythonNumber(strconv.FormatFloat(f, 'e', -1, 64))
	}
	return literal, true
}

// plainNumber accepts decimal digits with a point and an exponent, and nothing of
// what strconv accepts besides: no hexadecimal, underscores, infinities.
func plainNumber(s string) bool {
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], strings.TrimLeft(s[i+1:], "+-")
		if len(s[i+1:])-len(exponent) > 1 || !allDigits(exponent) || exponent == "" {
			return false
		}
	}
	before, after, _ := strings.Cut(mantissa, ".")
	return before+after != "" && allDigits(before) && allDigits(after)
}

func allDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// coerceContainer reads an array or object: as JSON, or as the Python literal that a
// model may write instead. A string of JSON was encoded twice and is decoded again.
// Any JSON is taken as it is, unless loose: then only arrays and objects are.
func coerceContainer(s string, loose bool) (jsonValue, bool) {
	read := parseJSON
	v, err := read(s)
	if err != nil && !loose {
		read = parseLiteral
		v, err = read(s)
	}
	if err != nil {
		return v, false
	}
	if v.kind == jsonString {
		if v, err = parseJSON(v.text); err != nil && !loose {
			v, err = parseLiteral(v.text)
		}
		if err != nil || v.kind != jsonArray && v.kind != jsonObject {
			return v, false
		}
	}
	if loose && v.kind != jsonArray && v.kind != jsonObject {
		return v, false
	}
	return v, true
}
