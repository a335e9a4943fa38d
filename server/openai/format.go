package openai

import "encoding/json"

// Format is what the text of an answer must be. The zero value is free text.
type Format struct {
	Kind   FormatKind
	Name   string          // of the schema, for the answer that repeats the request
	Schema json.RawMessage // of FormatSchema: as received, because a value's keys come in the schema's order
	Strict bool
	Path   string // of the schema in the request, for errors about it
}

// FormatKind is the type of a Format on the wire.
type FormatKind string

// The kinds of a Format.
const (
	FormatText   FormatKind = ""
	FormatObject FormatKind = "json_object"
	FormatSchema FormatKind = "json_schema"
)

// responseFormat takes the chat API's form, which nests the schema one level deeper than the others.
func (o *object) responseFormat() Format {
	f := o.object("response_format")
	if f == nil {
		return Format{}
	}
	defer f.finish()
	return f.format(func() *object {
		inner := f.object("json_schema")
		if inner == nil {
			f.report.fail(f.at("json_schema"), CodeMissing, "missing: want an object with name and schema")
		}
		return inner
	})
}

// format reads the type of o; schema gives the object that holds the fields of a schema.
func (o *object) format(schema func() *object) Format {
	kind := o.str("type")
	switch {
	case kind == nil:
		o.report.fail(o.at("type"), CodeMissing, "missing: want text, json_object or json_schema")
	case *kind == "text":
	case *kind == string(FormatObject):
		return Format{Kind: FormatObject}
	case *kind == string(FormatSchema):
		if holder := schema(); holder != nil {
			return holder.schema()
		}
	default:
		o.report.fail(o.at("type"), CodeInvalidValue, "got %q, want text, json_object or json_schema", clip(*kind))
	}
	return Format{}
}

// schema reads the fields of one schema. Nobody shows its description to the model, so that is named as ignored.
func (o *object) schema() Format {
	f := Format{Kind: FormatSchema, Path: o.at("schema")}
	if name := o.str("name"); name != nil {
		f.Name = *name
	}
	if description := o.str("description"); description != nil {
		o.report.ignore(o.at("description"))
	}
	if strict := o.boolean("strict"); strict != nil {
		f.Strict = *strict
	}
	raw, ok := o.take("schema")
	switch {
	case !ok:
		o.report.fail(f.Path, CodeMissing, "missing: want a JSON schema")
	case kindOf(raw) != "an object":
		o.report.fail(f.Path, CodeInvalidType, "got %s, want a JSON schema, which is an object", kindOf(raw))
	}
	f.Schema = raw
	o.finish()
	return f
}
