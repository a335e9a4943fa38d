package openai

import "encoding/json"

// Generation holds the fields that every generating endpoint shares.
type Generation struct {
	Model        string // "" when absent
	Sampling     Sampling
	MaxTokens    int // 0 when absent
	Stop         []string
	Stream       bool
	IncludeUsage bool
	Logprobs     bool
	TopLogprobs  int      // 0 to 20
	Ignored      []string // paths of fields that have no effect, sorted: those nobody knows, and wishes that Pond cannot grant
}

// ChatRequest is the body of POST /v1/chat/completions.
type ChatRequest struct {
	Generation
	Messages         []Message
	Tools            []json.RawMessage // empty when tool_choice is "none"
	Thinking         *bool             // nil when the client left it to the server
	PreserveThinking bool
}

// DecodeChat reads a chat request; the error is an *Error.
func DecodeChat(body []byte) (*ChatRequest, error) {
	r := &report{}
	o := decodeBody(body, r)
	req := &ChatRequest{}
	req.Generation = o.generation("max_completion_tokens", "max_tokens")
	req.Messages = o.messages()
	req.Tools = o.tools()
	o.toolChoice(req)
	o.thinking(req)
	o.chatLogprobs(req)
	o.refuse(chatRefusals())
	o.finish()
	if r.err != nil {
		return nil, r.err
	}
	req.Ignored = r.names()
	return req, nil
}

func (o *object) generation(limits ...string) Generation {
	var g Generation
	if model := o.str("model"); model != nil {
		g.Model = *model
	}
	g.Sampling = o.sampling()
	g.MaxTokens = o.maxTokens(limits...)
	g.Stop = o.stops()
	g.Stream, g.IncludeUsage = o.stream()
	o.takeHints()
	o.refuse(sharedRefusals())
	return g
}

func (o *object) chatLogprobs(req *ChatRequest) {
	if b := o.boolean("logprobs"); b != nil {
		req.Logprobs = *b
	}
	top := o.integer("top_logprobs", 0, maxTopLogprobs)
	if top == nil {
		return
	}
	if *top > 0 && !req.Logprobs {
		o.report.fail(o.at("top_logprobs"), CodeInvalidValue, "got %d without logprobs, want \"logprobs\": true with it", *top)
	}
	req.TopLogprobs = int(*top)
}

// toolChoice implements auto (the model decides) and none (the tools are not shown to it). How many calls the model makes is its own affair:
// OpenAI's helpers ask for one at a time as a matter of course, so the wish is taken and named as ignored.
func (o *object) toolChoice(req *ChatRequest) {
	if parallel := o.boolean("parallel_tool_calls"); parallel != nil && !*parallel && len(req.Tools) > 0 {
		o.report.ignore(o.at("parallel_tool_calls"))
	}
	raw, ok := o.take("tool_choice")
	if !ok {
		return
	}
	switch choice := compact(raw); choice {
	case `"auto"`:
	case `"none"`:
		req.Tools = nil
	case `"required"`:
		o.report.fail(o.at("tool_choice"), CodeUnsupported, "not implemented: got \"required\", want \"auto\" or \"none\"")
	default:
		if kind := kindOf(raw); kind != "an object" {
			o.report.fail(o.at("tool_choice"), CodeInvalidValue, "got %s, want \"auto\" or \"none\"", clip(choice))
			return
		}
		o.report.fail(o.at("tool_choice"), CodeUnsupported, "not implemented: got a named tool, want \"auto\" or \"none\"")
	}
}

// thinking takes the four places where clients switch thinking. Two that contradict each other are refused: no order of
// precedence would be the one that the client had in mind. Every effort but none turns it on; there are no budgets, so any but high is
// named as ignored.
func (o *object) thinking(req *ChatRequest) {
	var from string
	set := func(path string, on *bool) {
		if on == nil {
			return
		}
		if req.Thinking != nil && *req.Thinking != *on {
			o.report.fail(path, CodeInvalidValue, "contradicts %s: one turns thinking on and the other off", from)
		}
		req.Thinking, from = on, path
	}
	preserve := func(b *bool) {
		if b != nil {
			req.PreserveThinking = *b
		}
	}
	if effort := o.str("reasoning_effort"); effort != nil {
		on := *effort != "none"
		switch *effort {
		case "none", "high":
			set(o.at("reasoning_effort"), &on)
		case "minimal", "low", "medium", "xhigh", "max":
			set(o.at("reasoning_effort"), &on)
			o.report.ignore(o.at("reasoning_effort"))
		default:
			o.report.fail(o.at("reasoning_effort"), CodeInvalidValue, "got %q, want none, minimal, low, medium, high, xhigh or max", clip(*effort))
		}
	}
	set(o.at("enable_thinking"), o.boolean("enable_thinking"))
	preserve(o.boolean("preserve_thinking"))
	if kwargs := o.object("chat_template_kwargs"); kwargs != nil {
		set(kwargs.at("enable_thinking"), kwargs.boolean("enable_thinking"))
		preserve(kwargs.boolean("preserve_thinking"))
		kwargs.refuse([]refusal{
			{"add_generation_prompt", []string{`true`}, ""},
			{"add_vision_id", []string{`false`}, "Pond reads text only"},
		})
		kwargs.finish()
	}
}
