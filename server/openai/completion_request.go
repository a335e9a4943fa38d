package openai

import (
	"encoding/json"
	"fmt"
	"math"
)

// CompletionRequest is the body of POST /v1/completions.
type CompletionRequest struct {
	Generation
	Prompts []Prompt // one or more
	Echo    bool     // the answers begin with their prompts
}

// Prompt is a text to continue.
type Prompt struct {
	Text   string
	Tokens []int32 // instead of Text when the client sent token ids
}

// DecodeCompletion reads a completion request; the error is an *Error.
//
// The hosted API stops after 16 tokens when max_tokens is absent; Pond uses the same default here as for chat.
func DecodeCompletion(body []byte) (*CompletionRequest, error) {
	r := &report{}
	o := decodeBody(body, r)
	req := &CompletionRequest{}
	req.Generation = o.generation("max_tokens")
	o.prompt(req)
	// Here logprobs is a count; 0 still asks for the chosen tokens.
	if n := o.integer("logprobs", 0, maxTopLogprobs); n != nil {
		req.Logprobs, req.TopLogprobs = true, int(*n)
	}
	if echo := o.boolean("echo"); echo != nil {
		req.Echo = *echo
	}
	if n := len(req.Prompts) * req.Choices; n > maxChoices {
		r.fail("n", CodeInvalidValue, "got %d for each of %d prompts, want at most %d answers in all", req.Choices, len(req.Prompts), maxChoices)
	}
	o.refuse(completionRefusals())
	o.finish()
	if r.err != nil {
		return nil, r.err
	}
	req.Ignored = r.names()
	return req, nil
}

// prompt takes a string, a list of token ids, or a list of either.
func (o *object) prompt(req *CompletionRequest) {
	path := o.at("prompt")
	raw, ok := o.take("prompt")
	if !ok {
		o.report.fail(path, CodeMissing, "missing: want a string or a list of token ids")
		return
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		if len(list) == 0 {
			o.report.fail(path, CodeInvalidValue, "got an empty list, want a string or token ids")
			return
		}
		switch kindOf(list[0]) {
		case "a string", "a list":
			if len(list) > maxChoices {
				o.report.fail(path, CodeInvalidValue, "got %d prompts, want at most %d", len(list), maxChoices)
				return
			}
			for i, raw := range list {
				at := path
				if len(list) > 1 {
					at = fmt.Sprintf("%s[%d]", path, i)
				}
				req.Prompts = append(req.Prompts, o.onePrompt(raw, at))
			}
			return
		}
	}
	req.Prompts = []Prompt{o.onePrompt(raw, path)}
}

func (o *object) onePrompt(raw json.RawMessage, path string) Prompt {
	var p Prompt
	switch kindOf(raw) {
	case "a string":
		json.Unmarshal(raw, &p.Text)
		if p.Text == "" {
			o.report.fail(path, CodeInvalidValue, "got an empty string, want text to continue")
		}
	case "a list":
		p.Tokens = o.tokenIDs(raw, path)
	default:
		o.report.fail(path, CodeInvalidType, "got %s, want a string or a list of token ids", kindOf(raw))
	}
	return p
}

func (o *object) tokenIDs(raw json.RawMessage, path string) []int32 {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		o.report.fail(path, CodeInvalidValue, "got %s, want token ids", clip(compact(raw)))
		return nil
	}
	ids := make([]int32, len(list))
	for i, raw := range list {
		id, ok := parseInteger(raw)
		if !ok || id < 0 || id > math.MaxInt32 {
			o.report.fail(fmt.Sprintf("%s[%d]", path, i), CodeInvalidType, "got %s, want a token id", clip(compact(raw)))
			return nil
		}
		ids[i] = int32(id)
	}
	return ids
}
