package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"pond/server/openai"
)

// The document is one, each route stands in it, and each of its paths is a route.
func TestOpenAPI(t *testing.T) {
	c := jsonschema.NewCompiler()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(openapiDocument))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("http://pond/openapi.json", document); err != nil {
		t.Fatal(err)
	}
	shape, err := c.Compile("testdata/openapi/schema.json") // the standard's own, from spec.openapis.org
	if err != nil {
		t.Fatal(err)
	}
	if err := shape.Validate(document); err != nil {
		t.Errorf("not an OpenAPI 3.1 document: %v", err)
	}
	for name := range document.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any) {
		if _, err := c.Compile("http://pond/openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("schema %s: %v", name, err)
		}
	}
	var shown struct {
		Paths map[string]map[string]struct {
			OperationID string            `json:"operationId"`
			Security    []json.RawMessage `json:"security"`
		}
	}
	// Parameters of a path stand among its methods; the shape above does not fit them, and nobody asks for them here.
	var loose struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(openapiDocument), &loose); err != nil {
		t.Fatal(err)
	}
	for _, methods := range loose.Paths {
		delete(methods, "parameters")
	}
	text, _ := json.Marshal(loose)
	if err := json.Unmarshal(text, &shown); err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for _, r := range (&Server{}).routes() {
		path := strings.Replace(r.path, ":id", "{id}", 1)
		key := strings.ToLower(r.method)
		served[key+" "+path] = true
		op, ok := shown.Paths[path][key]
		switch {
		case !ok:
			t.Errorf("%s %s is served and not documented", r.method, path)
		case (op.Security != nil && len(op.Security) == 0) != r.open:
			t.Errorf("%s %s: the document says without a key %v, the route %v", r.method, path, op.Security != nil, r.open)
		}
	}
	names := map[string]string{}
	for path, methods := range shown.Paths {
		for method, op := range methods {
			if !served[method+" "+path] {
				t.Errorf("%s %s is documented and not served", method, path)
			}
			if before := names[op.OperationID]; op.OperationID == "" || before != "" {
				t.Errorf("%s %s: got the operation id %q, which %s has", method, path, op.OperationID, before)
			}
			names[op.OperationID] = path
		}
	}
}

// Each documented field of the two chat APIs is one that the decoder knows.
func TestOpenAPIFields(t *testing.T) {
	var d struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]json.RawMessage }
		}
	}
	if err := json.Unmarshal([]byte(openapiDocument), &d); err != nil {
		t.Fatal(err)
	}
	for schema, decode := range map[string]func(field string) ([]string, error){
		"ChatRequest": func(field string) ([]string, error) {
			req, err := openai.DecodeChat([]byte(`{"messages":[{"role":"user","content":"x"}],` + field + `}`))
			if err != nil {
				return nil, err
			}
			return req.Ignored, nil
		},
		"CompletionRequest": func(field string) ([]string, error) {
			req, err := openai.DecodeCompletion([]byte(`{"prompt":"x",` + field + `}`))
			if err != nil {
				return nil, err
			}
			return req.Ignored, nil
		},
		"ResponseRequest": func(field string) ([]string, error) {
			req, err := openai.DecodeResponse([]byte(`{"input":"x",`+field+`}`), nil)
			if err != nil {
				return nil, err
			}
			return req.Ignored, nil
		},
		"MessagesRequest": func(field string) ([]string, error) {
			req, err := openai.DecodeMessages([]byte(`{"messages":[{"role":"user","content":"x"}],`+field+`}`), true)
			if err != nil {
				return nil, err
			}
			return req.Ignored, nil
		},
	} {
		for name := range d.Components.Schemas[schema].Properties {
			if name == "messages" || name == "prompt" || name == "input" {
				continue
			}
			// A value of the wrong type: who knows the field refuses it, or has a place for it.
			if ignored, err := decode(`"` + name + `":[[7]]`); err == nil && len(ignored) > 0 {
				t.Errorf("%s.%s is documented and the decoder does not know it", schema, name)
			}
		}
	}
}
