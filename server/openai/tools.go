package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ToolChoice says whether the model must, may or must not call a tool. The zero value leaves it to the model.
type ToolChoice struct {
	Mode ToolMode
	Name string // of ToolNamed
}

// ToolMode is the kind of a ToolChoice.
type ToolMode string

// The kinds of a ToolChoice.
const (
	ToolAuto     ToolMode = ""
	ToolNone     ToolMode = "none"
	ToolRequired ToolMode = "required"
	ToolNamed    ToolMode = "named"
)

// tools takes the list of tools; each stays as received, because the template shows the model its keys in their own order.
func (o *object) tools() []json.RawMessage {
	list := o.array("tools")
	for i, raw := range list {
		t := openObject(raw, fmt.Sprintf("%s[%d]", o.at("tools"), i), o.report)
		if t == nil {
			return nil
		}
		t.checkTool()
	}
	return list
}

func (o *object) checkTool() {
	o.toolType()
	f := o.object("function")
	if f == nil {
		o.report.fail(o.at("function"), CodeMissing, "missing: want an object with name, description and parameters")
		return
	}
	f.checkFunction("parameters")
}

// toolType takes the type of a tool, which must be a function: whatever a hosted service would run, nobody runs here.
func (o *object) toolType() {
	switch kind := o.str("type"); {
	case kind == nil:
		o.report.fail(o.at("type"), CodeMissing, "missing: want \"function\"")
	case *kind != "function":
		o.report.fail(o.at("type"), CodeUnsupported, "got %q, want \"function\": Pond runs no tools itself, so give the model a function and run it where you are", clip(*kind))
	}
}

// checkFunction checks the fields of a function; parameters is the name of its schema.
func (o *object) checkFunction(parameters string) {
	if name := o.str("name"); name == nil || strings.TrimSpace(*name) == "" {
		o.report.fail(o.at("name"), CodeMissing, "missing: want the function's name")
	} else if strings.ContainsAny(*name, "<>\r\n") {
		// The model writes <function=NAME>: such a name could not be read back.
		o.report.fail(o.at("name"), CodeInvalidValue, "got %q, want a name without angle brackets and line ends", clip(*name))
	}
	o.str("description")
	o.object(parameters)
	if strict := o.boolean("strict"); strict != nil && *strict {
		o.report.strict = true
	}
}

// toolChoice takes tool_choice and parallel_tool_calls of the chat API.
func (o *object) toolChoice(req *ChatRequest) {
	if parallel := o.boolean("parallel_tool_calls"); parallel != nil {
		req.OneCall = !*parallel
	}
	o.chooseTool(req, func(choice *object) *object { return choice.object("function") }, func(choice *object) *object { return choice.object("allowed_tools") })
}

// chooseTool takes tool_choice. named and allowed give, of the object form, what holds a function's name and what holds mode and tools.
func (o *object) chooseTool(req *ChatRequest, named, allowed func(*object) *object) {
	path := o.at("tool_choice")
	raw, ok := o.take("tool_choice")
	if !ok {
		return
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		o.toolMode(req, path, word)
		return
	}
	if kindOf(raw) != "an object" {
		o.report.fail(path, CodeInvalidValue, "got %s, want none, auto, required or an object that names a function", clip(compact(raw)))
		return
	}
	choice := openObject(raw, path, o.report)
	if choice == nil {
		return
	}
	switch kind := choice.str("type"); {
	case kind == nil:
		o.report.fail(choice.at("type"), CodeMissing, "missing: want \"function\" or \"allowed_tools\"")
	case *kind == "function", *kind == "custom" && named(choice) == choice:
		holder := named(choice)
		if holder == nil {
			o.report.fail(choice.at("function"), CodeMissing, "missing: want an object with the function's name")
			return
		}
		if name := holder.str("name"); name != nil && *name != "" {
			req.ToolChoice = ToolChoice{ToolNamed, *name}
		}
		o.checkNamed(req, holder.at("name"))
	case *kind == "allowed_tools":
		if holder := allowed(choice); holder != nil {
			o.allowTools(req, holder, named)
		} else {
			o.report.fail(choice.at("allowed_tools"), CodeMissing, "missing: want an object with mode and tools")
		}
	default:
		o.report.fail(choice.at("type"), CodeUnsupported, "got %q, want \"function\" or \"allowed_tools\"", clip(*kind))
	}
}

// toolMode takes one of the three words. With none the model still sees the tools, so that the prompt stays the one that the cache knows.
func (o *object) toolMode(req *ChatRequest, path, word string) {
	switch word {
	case "auto":
	case "none":
		req.ToolChoice.Mode = ToolNone
	case "required":
		if len(req.Tools) == 0 {
			o.report.fail(path, CodeInvalidValue, "got \"required\" without tools, want at least one tool")
		}
		req.ToolChoice.Mode = ToolRequired
	default:
		o.report.fail(path, CodeInvalidValue, "got %q, want none, auto, required or an object that names a function", clip(word))
	}
}

func (o *object) checkNamed(req *ChatRequest, path string) {
	name := req.ToolChoice.Name
	switch {
	case name == "":
		o.report.fail(path, CodeMissing, "missing: want the name of one of the tools")
	case !slices.ContainsFunc(req.Tools, func(t json.RawMessage) bool { return toolName(t) == name }):
		o.report.fail(path, CodeInvalidValue, "got %q, want the name of one of the tools", clip(name))
	}
}

// allowTools leaves only the tools that the request allows in the prompt.
func (o *object) allowTools(req *ChatRequest, choice *object, named func(*object) *object) {
	var kept []json.RawMessage
	for i, raw := range choice.array("tools") {
		t := openObject(raw, fmt.Sprintf("%s[%d]", choice.at("tools"), i), o.report)
		if t == nil {
			return
		}
		t.toolType()
		holder := named(t)
		if holder == nil {
			holder = t
		}
		name := holder.str("name")
		if name == nil {
			o.report.fail(holder.at("name"), CodeMissing, "missing: want the name of one of the tools")
			return
		}
		at := slices.IndexFunc(req.Tools, func(t json.RawMessage) bool { return toolName(t) == *name })
		if at < 0 {
			o.report.fail(holder.at("name"), CodeInvalidValue, "got %q, want the name of one of the tools", clip(*name))
			return
		}
		kept = append(kept, req.Tools[at])
	}
	req.Tools = kept
	mode := "auto"
	if m := choice.str("mode"); m != nil {
		mode = *m
	}
	o.toolMode(req, choice.at("mode"), mode)
}

// toolName reads the name of a tool that was checked before.
func toolName(tool json.RawMessage) string {
	var t struct{ Function struct{ Name string } }
	json.Unmarshal(tool, &t)
	return t.Function.Name
}
