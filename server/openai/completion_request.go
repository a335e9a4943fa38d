package openai

import (
	"encoding/json"
	"fmt"
	"math"
)

// CompletionRequest is the body of POST /v1/completions.
type CompletionRequest struct {
	Generation
	Prompt string
	Tokens []int32 // instead of Prompt when the client sent token ids
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
	o.refuse(completionRefusals())
	o.finish()
	if r.err != nil {
		return nil, r.err
	}
	req.Ignored = r.names()
	return req, nil
}

// prompt takes a string, a list with one string, a list of token ids, or a list with one such list.
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
			if len(list) > 1 {
				o.report.fail(path, CodeUnsupported, "not implemented: got %d prompts, want one", len(list))
				return
			}
			raw = list[0]
		}
	}
	switch kindOf(raw) {
	case "a string":
		json.Unmarshal(raw, &req.Prompt)
		if req.Prompt == "" {
			o.report.fail(path, CodeInvalidValue, "got an empty string, want text to continue")
		}
	case "a list":
		req.Tokens = o.tokenIDs(raw, path)
	default:
		o.report.fail(path, CodeInvalidType, "got %s, want a string or a list of token ids", kindOf(raw))
	}
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
