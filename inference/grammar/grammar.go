// Package grammar holds an answer to a form: a JSON schema, any JSON object, or calls of the tools that a request offers.
//
// It compiles the form to an automaton over bytes with a stack, and says for each state of it which tokens of a vocabulary may
// come next, as a bit mask. It knows bytes, tokens and schemas; not models, not prompts, not sampling.
//
// Start at Compile for schemas; Matcher is one answer on its way.
package grammar

import (
	"encoding/json"
	"fmt"
)

// Format is the form of an answer's content. The zero value is free text.
type Format struct {
	grammar *Grammar
}

// IsText reports whether the format asks for nothing.
func (f Format) IsText() bool { return f.grammar == nil }

// Grammar is the form itself; nil for free text.
func (f Format) Grammar() *Grammar { return f.grammar }

// UnsupportedError says which keyword of a schema cannot be held to. Nothing was generated; a server answers it with status 400.
type UnsupportedError struct {
	Path    string // JSON pointer into the schema, such as "/properties/age"; "" for its root
	Keyword string
	Message string // what is wanted instead; may be empty
}

func (e *UnsupportedError) Error() string {
	s := fmt.Sprintf("schema%s: keyword %q is not supported", pathText(e.Path), e.Keyword)
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// SchemaError says what is wrong with a schema.
type SchemaError struct {
	Path    string // JSON pointer into the schema
	Message string // got and want
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("schema%s: %s", pathText(e.Path), e.Message)
}

func pathText(path string) string {
	if path == "" {
		return ""
	}
	return " at " + path
}

// JSONObject is any JSON object.
func JSONObject() Format {
	g, err := Compile([]byte(`{"type":"object"}`))
	if err != nil {
		panic("grammar: internal error: " + err.Error())
	}
	return Format{grammar: g}
}

// Schema is the form that a JSON schema describes. strict reads it as OpenAI's strict mode does: an object holds the properties
// that its schema names, and no others. A keyword that cannot be held to is an *UnsupportedError, a schema that is none a
// *SchemaError.
func Schema(schema json.RawMessage, strict bool) (Format, error) {
	g, err := compile(schema, strict)
	if err != nil {
		return Format{}, err
	}
	return Format{grammar: g}, nil
}

// Grammar is a compiled form. It does not change, and any number of answers may use it at the same time.
type Grammar struct {
	key   string
	build func(*Vocabulary) (*network, stateID)
}

// Key tells grammars apart: of two with the same key one stands for the other.
func (g *Grammar) Key() string { return g.key }

// Compile compiles a JSON schema, drafts 7 to 2020-12.
func Compile(schema []byte) (*Grammar, error) { return compile(schema, false) }

func compile(schema []byte, strict bool) (*Grammar, error) {
	doc, err := parseDocument(schema)
	if err != nil {
		return nil, err
	}
	doc.strict = strict
	b := newBuilder(newNetwork(), doc)
	root := b.rule([]*jsonNode{doc.root})
	if b.err == nil && b.full {
		b.err = &UnsupportedError{Keyword: "maxLength", Message: "the schema is too large, want smaller bounds or fewer properties"}
	}
	if b.err != nil {
		return nil, b.err
	}
	if !b.trim(root) {
		return nil, &SchemaError{Message: "no value can satisfy it"}
	}
	return &Grammar{key: fmt.Sprintf("schema %v ", strict) + string(schema), build: func(*Vocabulary) (*network, stateID) { return b.network, root }}, nil
}
