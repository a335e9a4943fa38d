package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// jsonNode is a value of a schema's JSON, with its members in the order in which they were written.
type jsonNode struct {
	id    int
	path  string // JSON pointer
	kind  byte   // one of n t f 0 " [ {: null, true, false, a number, a string, an array, an object
	text  string // of a string; literal of a number
	items []*jsonNode
	keys  []string
	vals  map[string]*jsonNode
}

func (n *jsonNode) get(key string) *jsonNode { return n.vals[key] }

// document is a schema with its references.
type document struct {
	root   *jsonNode
	count  int
	strict bool
}

// What a schema may be at most: far beyond what anybody writes, and short of what would take long or deep recursion to read.
const (
	maxSchema = 1 << 20 // bytes
	maxNested = 200     // levels of its JSON
	maxChain  = 100     // references and combinators between one value and what is said of it
)

func parseDocument(schema []byte) (*document, error) {
	if len(schema) > maxSchema {
		return nil, &SchemaError{Message: fmt.Sprintf("got %d bytes, want at most %d", len(schema), maxSchema)}
	}
	d := &document{}
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	root, err := d.parse(dec, "", maxNested)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("got more behind its end")
		}
	}
	if err != nil {
		return nil, &SchemaError{Message: fmt.Sprintf("got text that is not JSON, want a JSON schema: %v", err)}
	}
	d.root = root
	return d, nil
}

func (d *document) parse(dec *json.Decoder, path string, levels int) (*jsonNode, error) {
	if levels == 0 {
		return nil, fmt.Errorf("got more than %d levels", maxNested)
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	n := &jsonNode{id: d.count, path: path}
	d.count++
	switch t := t.(type) {
	case nil:
		n.kind = 'n'
	case bool:
		n.kind = 'f'
		if t {
			n.kind = 't'
		}
	case json.Number:
		n.kind, n.text = '0', t.String()
	case string:
		n.kind, n.text = '"', t
	case json.Delim:
		n.kind = byte(t)
		n.vals = map[string]*jsonNode{}
		for i := 0; dec.More(); i++ {
			if t == '[' {
				item, err := d.parse(dec, path+"/"+strconv.Itoa(i), levels-1)
				if err != nil {
					return nil, err
				}
				n.items = append(n.items, item)
				continue
			}
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			name := key.(string)
			v, err := d.parse(dec, path+"/"+pointerEscape(name), levels-1)
			if err != nil {
				return nil, err
			}
			if n.vals[name] == nil {
				n.keys = append(n.keys, name)
			}
			n.vals[name] = v
		}
		if _, err := dec.Token(); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func pointerEscape(s string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(s) }

// resolve follows a reference within the document.
func (d *document) resolve(n *jsonNode) (*jsonNode, error) {
	ref := n.get("$ref")
	if ref.kind != '"' {
		return nil, &SchemaError{ref.path, "got a $ref that is no string"}
	}
	pointer, local := strings.CutPrefix(ref.text, "#")
	if !local {
		return nil, &UnsupportedError{n.path, "$ref", fmt.Sprintf("got %q, want a reference into the same schema, such as #/$defs/name", ref.text)}
	}
	if p, err := url.PathUnescape(pointer); err == nil {
		pointer = p
	}
	at := d.root
	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		if at = d.anchor(d.root, pointer); at == nil {
			return nil, &SchemaError{ref.path, fmt.Sprintf("got %q, want a reference to something that the schema holds", ref.text)}
		}
		return at, nil
	}
	for _, part := range strings.Split(pointer, "/")[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		var next *jsonNode
		switch at.kind {
		case '{':
			next = at.get(part)
		case '[':
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(at.items) {
				next = at.items[i]
			}
		}
		if next == nil {
			return nil, &SchemaError{ref.path, fmt.Sprintf("got %q, want a reference to something that the schema holds", ref.text)}
		}
		at = next
	}
	return at, nil
}

func (d *document) anchor(n *jsonNode, name string) *jsonNode {
	if a := n.get("$anchor"); n.kind == '{' && a != nil && a.text == name {
		return n
	}
	for _, k := range n.keys {
		if found := d.anchor(n.vals[k], name); found != nil {
			return found
		}
	}
	for _, i := range n.items {
		if found := d.anchor(i, name); found != nil {
			return found
		}
	}
	return nil
}

// Keywords that say nothing about what is valid, and those that are held to. Any other is refused by name.
var (
	annotations = []string{
		"$schema", "$id", "id", "$comment", "$defs", "definitions", "$anchor", "$vocabulary", "title", "description", "default", "example", "examples",
		"deprecated", "readOnly", "writeOnly", "discriminator", "externalDocs", "xml", "nullable", "contentEncoding", "contentMediaType", "contentSchema", "strict",
	}
	assertions = []string{
		"$ref", "allOf", "anyOf", "oneOf", "type", "enum", "const",
		"minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"properties", "required", "additionalProperties", "minProperties", "maxProperties",
		"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems",
	}
)

func (d *document) check(n *jsonNode) error {
	switch n.kind {
	case 't', 'f':
		return nil
	case '{':
	default:
		return &SchemaError{n.path, "want a schema: an object, true or false"}
	}
	for _, key := range n.keys {
		if !slices.Contains(assertions, key) && !slices.Contains(annotations, key) && !strings.HasPrefix(key, "x-") {
			return &UnsupportedError{n.path, key, ""}
		}
	}
	return nil
}

// maxAlternatives bounds what anyOf within allOf within anyOf multiplies to.
const maxAlternatives = 256

// alternatives spells a schema out: a value is valid if for one of the lists it satisfies all of the list's schemas, of which $ref and the
// combinators count no more. within holds the schemas being spelled out, since one that comes back to itself adds no value of its own.
func (d *document) alternatives(conj []*jsonNode, within []*jsonNode) ([][]*jsonNode, error) {
	out := [][]*jsonNode{nil}
	for _, n := range conj {
		alts, err := d.spell(n, within)
		if err != nil {
			return nil, err
		}
		if len(out)*len(alts) > maxAlternatives {
			return nil, &UnsupportedError{n.path, "anyOf", fmt.Sprintf("want at most %d combinations", maxAlternatives)}
		}
		var product [][]*jsonNode
		for _, a := range out {
			for _, b := range alts {
				product = append(product, union(a, b))
			}
		}
		out = product
	}
	return out, nil
}

func union(a, b []*jsonNode) []*jsonNode {
	out := slices.Clone(a)
	for _, n := range b {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func (d *document) spell(n *jsonNode, within []*jsonNode) ([][]*jsonNode, error) {
	if slices.Contains(within, n) {
		return nil, nil
	}
	if len(within) == maxChain {
		return nil, &UnsupportedError{n.path, "$ref", fmt.Sprintf("want a chain of at most %d references and combinators", maxChain)}
	}
	if err := d.check(n); err != nil {
		return nil, err
	}
	if n.kind == 'f' {
		return nil, nil
	}
	within = append(slices.Clip(within), n)
	all := [][]*jsonNode{{n}}
	and := func(alts [][]*jsonNode) error {
		if len(all)*len(alts) > maxAlternatives {
			return &UnsupportedError{n.path, "anyOf", fmt.Sprintf("want at most %d combinations", maxAlternatives)}
		}
		var product [][]*jsonNode
		for _, a := range all {
			for _, b := range alts {
				product = append(product, union(a, b))
			}
		}
		all = product
		return nil
	}
	if n.get("$ref") != nil {
		target, err := d.resolve(n)
		if err != nil {
			return nil, err
		}
		alts, err := d.spell(target, within)
		if err != nil {
			return nil, err
		}
		if err := and(alts); err != nil {
			return nil, err
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list := n.get(key)
		if list == nil {
			continue
		}
		if list.kind != '[' || len(list.items) == 0 {
			return nil, &SchemaError{list.path, "want a list of at least one schema"}
		}
		var either [][]*jsonNode
		var each [][][]*jsonNode
		for _, item := range list.items {
			alts, err := d.spell(item, within)
			if err != nil {
				return nil, err
			}
			if key == "allOf" {
				if err := and(alts); err != nil {
					return nil, err
				}
				continue
			}
			either = append(either, alts...)
			each = append(each, alts)
		}
		if key == "oneOf" {
			if err := d.exclusive(list, each); err != nil {
				return nil, err
			}
		}
		if key != "allOf" {
			if err := and(either); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// exclusive refuses a oneOf of which two could hold at once.
func (d *document) exclusive(list *jsonNode, each [][][]*jsonNode) error {
	for i := range each {
		for j := range i {
			for _, a := range each[i] {
				for _, b := range each[j] {
					apart, err := d.disjoint(a, b)
					if err != nil {
						return err
					}
					if !apart {
						return &UnsupportedError{strings.TrimSuffix(list.path, "/oneOf"), "oneOf", fmt.Sprintf("alternatives %d and %d may hold at once; want anyOf, or a const or type that tells them apart", j, i)}
					}
				}
			}
		}
	}
	return nil
}

// disjoint reports whether no value satisfies both, as far as types, constants and a common required property with different constants show.
func (d *document) disjoint(a, b []*jsonNode) (bool, error) {
	sa, err := d.merge(a)
	if err != nil {
		return false, err
	}
	sb, err := d.merge(b)
	if err != nil {
		return false, err
	}
	if sa.declared&sb.declared == 0 {
		return true, nil
	}
	both, err := d.merge(union(a, b))
	if err != nil {
		return false, err
	}
	if both.impossible() {
		return true, nil
	}
	if both.declared != typeObject {
		return false, nil
	}
	for _, name := range sa.required {
		pa, pb := propertyOf(a, name), propertyOf(b, name)
		if !slices.Contains(sb.required, name) || pa == nil || pb == nil {
			continue
		}
		la, err := d.alternatives([]*jsonNode{pa}, nil)
		if err != nil {
			return false, err
		}
		lb, err := d.alternatives([]*jsonNode{pb}, nil)
		if err != nil {
			return false, err
		}
		apart := true
		for _, x := range la {
			for _, y := range lb {
				s, err := d.merge(union(x, y))
				if err != nil {
					return false, err
				}
				apart = apart && s.impossible()
			}
		}
		if apart {
			return true, nil
		}
	}
	return false, nil
}

func propertyOf(facts []*jsonNode, name string) *jsonNode {
	for _, f := range facts {
		if p := f.get("properties"); p != nil && p.get(name) != nil {
			return p.get(name)
		}
	}
	return nil
}
