package inspect

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ParsePlist reads an XML property list whose outermost value is a dictionary. Values are string, bool, int64, float64, []byte, []any and
// map[string]any. Keys that come twice are an error, as plutil has it.
func ParsePlist(text []byte) (map[string]any, error) {
	d := xml.NewDecoder(bytes.NewReader(text))
	root, err := nextStart(d)
	if err != nil {
		return nil, err
	}
	if root == nil || root.Name.Local != "plist" {
		return nil, errors.New("got no plist element, want one")
	}
	first, err := nextStart(d)
	if err != nil {
		return nil, err
	}
	if first == nil || first.Name.Local != "dict" {
		return nil, errors.New("got no dict in the plist, want one")
	}
	dict, err := parseDict(d)
	if err != nil {
		return nil, err
	}
	for { // to the end of the file, so that it is well formed
		if _, err := d.Token(); err == io.EOF {
			return dict, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// nextStart is the next element, or nil where the present one ends.
func nextStart(d *xml.Decoder) (*xml.StartElement, error) {
	for {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			return &t, nil
		case xml.EndElement:
			return nil, nil
		case xml.CharData:
			if strings.TrimSpace(string(t)) != "" {
				return nil, fmt.Errorf("got text %q between elements", t)
			}
		}
	}
}

func parseDict(d *xml.Decoder) (map[string]any, error) {
	dict := map[string]any{}
	for {
		start, err := nextStart(d)
		if err != nil || start == nil {
			return dict, err
		}
		if start.Name.Local != "key" {
			return nil, fmt.Errorf("got <%s>, want <key>", start.Name.Local)
		}
		var key string
		if err := d.DecodeElement(&key, start); err != nil {
			return nil, err
		}
		if _, twice := dict[key]; twice {
			return nil, fmt.Errorf("%s: got it twice", key)
		}
		value, err := nextStart(d)
		if err != nil {
			return nil, err
		}
		if value == nil {
			return nil, fmt.Errorf("%s: got no value", key)
		}
		if dict[key], err = parseValue(d, value); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
}

func parseValue(d *xml.Decoder, start *xml.StartElement) (any, error) {
	switch start.Name.Local {
	case "dict":
		return parseDict(d)
	case "array":
		list := []any{}
		for {
			next, err := nextStart(d)
			if err != nil || next == nil {
				return list, err
			}
			v, err := parseValue(d, next)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
	}
	var text string
	if err := d.DecodeElement(&text, start); err != nil {
		return nil, err
	}
	switch start.Name.Local {
	case "string":
		return text, nil
	case "true", "false":
		return start.Name.Local == "true", nil
	case "integer":
		return strconv.ParseInt(text, 10, 64)
	case "real":
		return strconv.ParseFloat(text, 64)
	case "data":
		return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	}
	return nil, fmt.Errorf("got <%s>, want a value", start.Name.Local)
}
