package openai

import (
	"encoding/json"
	"slices"
)

// ResponseRequest is the body of POST /v1/responses in the terms of the chat API. Messages are those of Input; what comes before them, the
// instructions and an earlier response, is the server's to put in front.
type ResponseRequest struct {
	ChatRequest
	Instructions *string
	Input        []json.RawMessage // the items, as the client sent them; a plain string is one
	PreviousID   string
	Store        bool
	Background   bool
	Truncate     bool              // truncation "auto": what does not fit is left out from the front
	Seal         bool              // include reasoning.encrypted_content
	Summary      bool              // reasoning.summary: the thinking as a summary of itself
	Origins      map[string]Origin // of tools that are not plain functions, by the name that the model knows
	Said         Repeated
}

// Repeated are fields that the answer repeats as they were sent; null where they were not.
type Repeated struct {
	Tools, ToolChoice, Format, Metadata json.RawMessage
	Effort, Summary                     *string
	MaxToolCalls                        *int64
	User, CacheKey, SafetyID            *string
}

// DecodeResponse reads a request of the Responses API; the error is an *Error. item gives the items that earlier answers hold, for references to them.
func DecodeResponse(body []byte, item func(id string) (json.RawMessage, bool)) (*ResponseRequest, error) {
	r := &report{}
	o := decodeBody(body, r)
	req := &ResponseRequest{Store: true}
	o.repeated(&req.Said)
	req.Generation = o.generation("max_output_tokens")
	if req.Choices != 1 {
		r.fail("n", CodeInvalidValue, "got %d, want 1: this API has one answer a request", req.Choices)
	}
	req.Instructions = o.str("instructions")
	if id := o.str("previous_response_id"); id != nil {
		req.PreviousID = *id
	}
	o.input(req, item)
	o.responseTools(req)
	o.responseReasoning(req)
	if text := o.object("text"); text != nil {
		if f := text.object("format"); f != nil {
			req.Format = f.format(func() *object { return f })
			f.finish()
		}
		text.refuse([]refusal{{"verbosity", []string{`"medium"`}, "ask for it in the prompt"}})
		text.finish()
	}
	for name, into := range map[string]*bool{"store": &req.Store, "background": &req.Background} {
		if b := o.boolean(name); b != nil {
			*into = *b
		}
	}
	if req.Background && !req.Store {
		r.fail("background", CodeInvalidValue, "got true with \"store\": false, want both or neither: the answer is fetched later")
	}
	if req.Background && req.Stream {
		r.fail("background", CodeUnsupported, "got true with \"stream\": true, want one of them")
	}
	switch t := o.str("truncation"); {
	case t == nil, *t == "disabled":
	case *t == "auto":
		req.Truncate = true
	default:
		r.fail("truncation", CodeInvalidValue, "got %q, want auto or disabled", clip(*t))
	}
	o.include(req)
	o.refuse(responseRefusals())
	o.finish()
	if r.err != nil {
		return nil, r.err
	}
	req.Ignored, req.StrictTools = r.names(), r.strict
	return req, nil
}

func responseRefusals() []refusal {
	return []refusal{
		{"context_management", []string{`[]`}, "truncation \"auto\" keeps a conversation within the context"},
		{"conversation", nil, "use previous_response_id"},
		{"image", nil, "Pond answers in text"},
		{"moderation", nil, "nothing leaves this machine, and nothing is moderated"},
		{"prompt", nil, "send the text itself as instructions or input"},
		{"prompt_cache_options", []string{`{}`}, "the prompt cache works by itself"},
		{"prompt_cache_retention", []string{`"in_memory"`, `"in-memory"`}, "the prompt cache is in memory"},
		{"top_logprobs", []string{`0`}, "ask /v1/chat/completions for logprobs"},
	}
}

// repeated looks at fields without taking them, so that each is still checked where it belongs.
func (o *object) repeated(said *Repeated) {
	said.Tools, said.ToolChoice, said.Metadata = o.fields["tools"], o.fields["tool_choice"], o.fields["metadata"]
	var text struct{ Format json.RawMessage }
	json.Unmarshal(orNull(o.fields["text"]), &text)
	said.Format = text.Format
	for name, into := range map[string]**string{"user": &said.User, "prompt_cache_key": &said.CacheKey, "safety_identifier": &said.SafetyID} {
		json.Unmarshal(orNull(o.fields[name]), into)
	}
	// It limits the tools that a hosted service runs, of which there are none here.
	said.MaxToolCalls = o.integer("max_tool_calls", 1, unboundedNumber)
}

func (o *object) include(req *ResponseRequest) {
	for _, raw := range o.array("include") {
		var what string
		json.Unmarshal(raw, &what)
		switch what {
		case "reasoning.encrypted_content":
			req.Seal = true
		case "message.output_text.logprobs":
			o.report.fail(o.at("include"), CodeUnsupported, "got %q: ask /v1/chat/completions for logprobs", what)
		case "file_search_call.results", "web_search_call.results", "web_search_call.action.sources", "message.input_image.image_url",
			"computer_call_output.output.image_url", "code_interpreter_call.outputs":
			// Parts of things that never happen here.
		default:
			o.report.fail(o.at("include"), CodeInvalidValue, "got %s, want reasoning.encrypted_content or nothing", clip(compact(raw)))
		}
	}
}

func (o *object) responseReasoning(req *ResponseRequest) {
	s := &switches{req: &req.ChatRequest}
	if reasoning := o.object("reasoning"); reasoning != nil {
		if word := s.effort(reasoning, "effort"); word != "" {
			req.Said.Effort = &word
		}
		for _, name := range []string{"summary", "generate_summary"} {
			summary := reasoning.str(name)
			if summary == nil {
				continue
			}
			if !slices.Contains([]string{"auto", "concise", "detailed", "none"}, *summary) {
				o.report.fail(reasoning.at(name), CodeInvalidValue, "got %q, want auto, concise or detailed", clip(*summary))
			}
			req.Summary, req.Said.Summary = *summary != "none", summary
		}
		reasoning.finish()
	}
	o.thinking(&req.ChatRequest)
}
