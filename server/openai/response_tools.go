package openai

import (
	"encoding/json"
	"strings"
)

// Tools of the Responses API. The model knows functions only, so:
//
//   - a function of a namespace gets a name that has the namespace in it, and its calls get both back;
//   - a custom tool becomes a function with one free string, input, and its calls become custom_tool_call items. A grammar for it is shown to the
//     model and named as ignored, since no answer is held to it;
//   - search, pictures and the search for tools are what agents offer without being asked to, wherever they connect: they are left out and named
//     as ignored, for a model that never uses them has kept to the request. Other hosted tools are refused.

// Origin is what a tool was before it became a function of the chat API.
type Origin struct {
	Name, Namespace string
	Custom          bool
}

// customInput is the only parameter of a custom tool.
const customInput = "input"

// responseTools takes tools in their flat form.
func (o *object) responseTools(req *ResponseRequest) {
	req.Origins = map[string]Origin{}
	plain := map[string]bool{} // names of functions that are what they were
	for i, raw := range o.array("tools") {
		t := openObject(raw, indexed(o.at("tools"), i), o.report)
		if t == nil {
			return
		}
		t.responseTool(req, "", plain)
		if o.report.err != nil {
			return
		}
	}
	if parallel := o.boolean("parallel_tool_calls"); parallel != nil {
		req.OneCall = !*parallel
	}
	itself := func(choice *object) *object { return choice }
	o.chooseTool(&req.ChatRequest, itself, itself)
}

func (o *object) responseTool(req *ResponseRequest, namespace string, plain map[string]bool) {
	var kind string
	json.Unmarshal(orNull(o.fields["type"]), &kind)
	switch {
	case isUnasked(kind):
		o.report.ignore(o.path)
		return
	case kind == "namespace" && namespace == "":
		o.take("type")
		name := o.textOf("name")
		o.str("description")
		for i, raw := range o.array("tools") {
			t := openObject(raw, indexed(o.at("tools"), i), o.report)
			if t == nil {
				return
			}
			t.responseTool(req, name, plain)
		}
		o.finish()
		return
	case kind == "custom":
		o.take("type")
		o.customTool()
	default:
		o.toolType()
	}
	var name string
	json.Unmarshal(orNull(o.fields["name"]), &name)
	known := qualified(namespace, name)
	changed := known != name || kind == "custom"
	// A call of the model's could be of either. Two plain functions of one name are the client's own matter, as in the chat API.
	if _, twice := req.Origins[known]; twice || changed && plain[known] {
		o.report.fail(o.at("name"), CodeInvalidValue, "got %q a second time, want names that differ, also from the functions of namespaces, which the model knows as NAMESPACE__NAME", clip(name))
	}
	if !changed {
		plain[known] = true
	} else {
		req.Origins[known] = Origin{Name: name, Namespace: namespace, Custom: kind == "custom"}
		o.fields["name"], _ = json.Marshal(known)
	}
	if o.report.err == nil {
		req.Tools = append(req.Tools, o.flatTool("parameters"))
		o.take("defer_loading") // all tools are loaded
		o.finish()
	}
}

// isUnasked says that agents offer a hosted tool on their own.
func isUnasked(kind string) bool {
	return strings.HasPrefix(kind, "web_search") || kind == "image_generation" || kind == "tool_search"
}

// qualified is the name by which the model knows a function of a namespace.
func qualified(namespace, name string) string {
	if namespace == "" || name == "" {
		return name
	}
	return strings.TrimRight(namespace, "_") + "__" + name
}

// customTool gives a custom tool the parameters of a function.
func (o *object) customTool() {
	says := "the whole input, as free text"
	if f := o.object("format"); f != nil {
		switch kind := f.textOf("type"); kind {
		case "text":
		case "grammar":
			says += ", in the form of this " + f.textOf("syntax") + " grammar:\n" + f.textOf("definition")
			o.report.ignore(f.path)
		default:
			o.report.fail(f.at("type"), CodeInvalidValue, "got %q, want text or grammar", clip(kind))
		}
		f.finish()
	}
	description, _ := json.Marshal(says)
	o.fields["parameters"] = json.RawMessage(`{"type":"object","properties":{"` + customInput + `":{"type":"string","description":` + string(description) + `}},"required":["` + customInput + `"]}`)
}

// customArguments are the arguments of the function that a custom tool became.
func customArguments(input string) json.RawMessage {
	text, _ := json.Marshal(map[string]string{customInput: input})
	quoted, _ := json.Marshal(string(text))
	return quoted
}

// InputPrefix is what comes before the text of a custom tool's input in the arguments of a call.
const InputPrefix = `{"` + customInput + `":"`

// InputOf gives the input of a custom tool from the arguments of a call.
func InputOf(arguments string) string {
	var fields map[string]any
	json.Unmarshal([]byte(arguments), &fields)
	text, _ := fields[customInput].(string)
	return text
}
