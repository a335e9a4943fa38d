package chat

import (
	"encoding/json"
	"strings"
)

// What the parser needs of JSON Schema: the names of a tool's parameters, and one
// type for each.

type typeKind int

const (
	stringType typeKind = iota // also where nothing is declared
	integerType
	numberType
	booleanType
	containerType // an array or object
	looseType     // no type, but properties or items: an array, an object or a string
)

// paramType is the type of a parameter.
type paramType struct {
	kind     typeKind
	nullable bool
}

// toolSchema is a declared function. A nil one declares nothing.
type toolSchema struct {
	params map[string]paramType
	open   bool // parameters beyond params are welcome
}

func (t *toolSchema) declares(key string) bool {
	if t == nil {
		return false
	}
	_, ok := t.params[key]
	return ok
}

// param returns a parameter's type; one that is not declared is a string.
func (t *toolSchema) param(key string) paramType {
	if t == nil {
		return paramType{}
	}
	return t.params[key]
}

// toolSet is the declared functions by name.
type toolSet map[string]*toolSchema

// newToolSet reads tools in OpenAI's form, {"type":"function","function":{…}}, or flat.
func newToolSet(tools []json.RawMessage) toolSet {
	set := toolSet{}
	for _, raw := range tools {
		tool, err := parseJSON(string(raw))
		if err != nil {
			continue
		}
		if f, ok := tool.get("function"); ok {
			tool = f
		}
		name, _ := tool.get("name")
		if name := trim(name.text); name != "" {
			parameters, _ := tool.get("parameters")
			set[name] = newToolSchema(parameters)
		}
	}
	return set
}

func newToolSchema(root jsonValue) *toolSchema {
	t := &toolSchema{params: map[string]paramType{}}
	schema := follow(root, root)
	properties, _ := schema.get("properties")
	for _, m := range properties.members {
		t.params[trim(m.key)] = schemaType(m.value, root, 0)
	}
	more, declared := schema.get("additionalProperties")
	t.open = len(t.params) == 0 || declared && more.text != "false"
	return t
}

// follow resolves a reference within the document, such as "#/$defs/Point".
func follow(v, root jsonValue) jsonValue {
	for range 8 { // a chain longer than this is a loop
		ref, ok := v.get("$ref")
		path, local := strings.CutPrefix(ref.text, "#/")
		if !ok || !local {
			return v
		}
		target := root
		for key := range strings.SplitSeq(path, "/") {
			target, _ = target.get(key)
		}
		v = target
	}
	return v
}

// schemaType reads one parameter's type: the first that is not null.
func schemaType(v, root jsonValue, depth int) paramType {
	v = follow(v, root)
	if depth > 8 {
		return paramType{}
	}
	var t paramType
	if nullable, ok := v.get("nullable"); ok && nullable.text == "true" {
		t.nullable = true
	}
	declared, ok := v.get("type")
	if ok && declared.kind == jsonString {
		declared.items = []jsonValue{declared}
	}
	found := false
	for _, name := range declared.items {
		if name.text == "null" {
			t.nullable = true
		} else if !found {
			t.kind, found = namedType(name.text), true
		}
	}
	if ok {
		return t
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		choices, _ := v.get(key)
		for _, choice := range choices.items {
			choice = follow(choice, root)
			if name, _ := choice.get("type"); name.text == "null" {
				t.nullable = true
				continue
			}
			sub := schemaType(choice, root, depth+1)
			t.nullable = t.nullable || sub.nullable
			if !found {
				t.kind, found = sub.kind, true
			}
		}
		if found {
			return t
		}
	}
	if _, ok := v.get("properties"); ok {
		t.kind = looseType
	} else if _, ok := v.get("items"); ok {
		t.kind = looseType
	} else if values, ok := v.get("enum"); ok {
		t = enumType(values.items, t)
	}
	return t
}

// enumType is the type that all of an enum's values share; null makes it nullable.
func enumType(values []jsonValue, t paramType) paramType {
	found := false
	for _, v := range values {
		kind := stringType
		switch v.kind {
		case jsonNull:
			t.nullable = true
			continue
		case jsonNumber:
			kind = numberType
		case jsonBool:
			kind = booleanType
		}
		if found && kind != t.kind {
			kind = stringType
		}
		t.kind, found = kind, true
	}
	return t
}

// namedType reads a type's name; clients also send the names of their own language.
func namedType(name string) typeKind {
	switch strings.ToLower(name) {
	case "integer", "int":
		return integerType
	case "number", "float":
		return numberType
	case "boolean", "bool":
		return booleanType
	case "array", "object", "list", "dict":
		return containerType
	}
	return stringType
}
