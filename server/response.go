package server

import (
	"encoding/json"
	"strings"
	"time"

	"pond/inference"
	"pond/inference/chat"
	"pond/server/openai"
)

// response builds the object of one request of the Responses API, streamed or not.
type response struct {
	req    *openai.ResponseRequest
	before []openai.Message // the conversation of the response before
	input  []json.RawMessage
	object openai.Response
}

// newResponse fills in all that is known before the answer. params are what the engine draws with.
func newResponse(req *openai.ResponseRequest, head envelope, before []openai.Message, defaults inference.Generation) *response {
	r := &response{req: req, before: before}
	for _, raw := range req.Input {
		r.input = append(r.input, withID(raw))
	}
	o := openai.Response{ID: head.id, Object: "response", CreatedAt: head.created, Status: "in_progress", Background: req.Background,
		Instructions: req.Instructions, MaxToolCalls: req.Said.MaxToolCalls, Model: head.model, Output: []openai.ResponseItem{},
		ParallelToolCalls: !req.OneCall, PromptCacheKey: req.Said.CacheKey, Reasoning: openai.ResponseReasoning{Effort: req.Said.Effort, Summary: req.Said.Summary},
		SafetyIdentifier: req.Said.SafetyID, ServiceTier: "default", Store: req.Store, Temperature: defaults.Sampling.Temperature, TopP: defaults.Sampling.TopP,
		Text:       openai.ResponseText{Format: or(req.Said.Format, `{"type":"text"}`), Verbosity: "medium"},
		ToolChoice: or(req.Said.ToolChoice, `"auto"`), Tools: or(req.Said.Tools, `[]`), Metadata: or(req.Said.Metadata, `{}`),
		Truncation: "disabled", User: req.Said.User, SystemFingerprint: head.fingerprint}
	if req.MaxTokens > 0 {
		o.MaxOutputTokens = &req.MaxTokens
	}
	if req.PreviousID != "" {
		o.PreviousResponseID = &req.PreviousID
	}
	if req.Truncate {
		o.Truncation = "auto"
	}
	r.object = o
	return r
}

func or(raw json.RawMessage, otherwise string) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage(otherwise)
	}
	return raw
}

// withID gives an item of the input an id, unless it has one.
func withID(raw json.RawMessage) json.RawMessage {
	var item struct {
		ID   *string `json:"id"`
		Type string  `json:"type"`
	}
	if json.Unmarshal(raw, &item) != nil || item.ID != nil && *item.ID != "" {
		return raw
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return raw
	}
	if item.Type == "" {
		fields["type"] = json.RawMessage(`"message"`)
	}
	fields["id"], _ = json.Marshal("item_" + randomHex(12))
	out, err := json.Marshal(fields)
	if err != nil {
		return raw
	}
	return out
}

// itemID makes the id of a block's item.
func (r *response) itemID(b *block) string {
	switch b.kind {
	case chat.Reasoning:
		return "rs_" + randomHex(12)
	case chat.Text:
		return "msg_" + randomHex(12)
	}
	if r.isCustom(b) {
		return "ctc_" + randomHex(12)
	}
	return "fc_" + randomHex(12)
}

// item is a block as it stands in the output. A block without text is one that has just begun.
func (r *response) item(b *block, id, status string) openai.ResponseItem {
	item := openai.ResponseItem{ID: id, Status: status}
	switch b.kind {
	case chat.Reasoning:
		item.Type, item.Summary, item.Content = "reasoning", &[]openai.ResponsePart{}, &[]openai.ResponsePart{}
		if b.text == "" {
			break
		}
		*item.Content = append(*item.Content, openai.ResponsePart{Type: "reasoning_text", Text: b.text})
		if r.req.Summary {
			*item.Summary = append(*item.Summary, openai.ResponsePart{Type: "summary_text", Text: b.text})
		}
		if r.req.Seal {
			item.EncryptedContent = openai.Seal(b.text)
		}
	case chat.Text:
		item.Type, item.Role, item.Content = "message", "assistant", &[]openai.ResponsePart{}
		if b.text != "" {
			*item.Content = append(*item.Content, textPart(b.text))
		}
	default:
		item.Type, item.CallID, item.Name, item.Arguments = "function_call", b.id, b.name, &b.text
		if origin, ok := r.req.Origins[b.name]; ok {
			item.Name, item.Namespace = origin.Name, origin.Namespace
		}
		if r.isCustom(b) {
			input := openai.InputOf(b.text)
			item.Type, item.Arguments, item.Input = "custom_tool_call", nil, &input
		}
	}
	return item
}

// isCustom says that a block is a call of a custom tool.
func (r *response) isCustom(b *block) bool {
	return b.kind == chat.CallStart && r.req.Origins[b.name].Custom
}

// moreInput is the text of a custom tool's input that has come since it was last asked for. Every fragment of arguments holds whole characters.
func (b *block) moreInput() string {
	if b.read == 0 && strings.HasPrefix(b.text, openai.InputPrefix) {
		b.read = len(openai.InputPrefix)
	}
	rest := b.text[b.read:]
	end := 0
	for end < len(rest) && rest[end] != '"' {
		if rest[end] == '\\' {
			end++
		}
		end++
	}
	if b.read == 0 || end > len(rest) {
		return ""
	}
	var text string
	json.Unmarshal([]byte(`"`+rest[:end]+`"`), &text)
	b.read += end
	return text
}

func textPart(text string) openai.ResponsePart {
	return openai.ResponsePart{Type: "output_text", Text: text, Annotations: &[]string{}, Logprobs: &[]string{}}
}

// itemStatus says whether the limit cut a block off. The arguments of a call are valid JSON all the same, so the status alone keeps an agent from
// writing half a file.
func itemStatus(b *block, f inference.Finish) string {
	if b.cut && (f == inference.FinishLength || b.kind == chat.CallStart) {
		return "incomplete"
	}
	return "completed"
}

// complete fills in the answer.
func (r *response) complete(list []*block, ids []string, result inference.Result) {
	o := &r.object
	now := time.Now().Unix()
	o.Status, o.CompletedAt = "completed", &now
	if result.Finish == inference.FinishLength {
		o.Status, o.CompletedAt, o.IncompleteDetails = "incomplete", nil, &openai.IncompleteReason{Reason: "max_output_tokens"}
	}
	o.Output = o.Output[:0]
	for i, b := range list {
		o.Output = append(o.Output, r.item(b, ids[i], itemStatus(b, result.Finish)))
	}
	u := usage(result)
	o.Usage = &openai.ResponseUsage{InputTokens: u.PromptTokens, InputTokensDetails: u.PromptTokensDetails, OutputTokens: u.CompletionTokens,
		OutputTokensDetails: u.CompletionTokensDetails, TotalTokens: u.TotalTokens, Timings: u.Timings}
}

// broke notes why there is no whole answer.
func (r *response) broke(f failure) {
	r.object.Status = "failed"
	r.object.Error = &openai.ResponseError{Code: "server_error", Message: f.message}
}

// keep is what the store holds of it: with the answer as a turn of the conversation.
func (r *response) keep(answer chat.Answer) *stored {
	messages := append(r.before[:len(r.before):len(r.before)], r.req.Messages...)
	turn := openai.Message{Role: "assistant", Content: []string{answer.Content}, Reasoning: &answer.Reasoning}
	for _, call := range answer.Calls {
		turn.ToolCalls = append(turn.ToolCalls, openai.ToolCall{ID: call.ID, Name: call.Name, Arguments: json.RawMessage(call.Arguments)})
	}
	return &stored{response: r.object, input: r.input, messages: append(messages, turn)}
}
