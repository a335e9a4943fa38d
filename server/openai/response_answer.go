package openai

import "encoding/json"

// Response is the answer of the Responses API.
type Response struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"` // "response"
	CreatedAt          int64             `json:"created_at"`
	CompletedAt        *int64            `json:"completed_at"`
	Status             string            `json:"status"` // queued, in_progress, completed, incomplete, failed, cancelled
	Background         bool              `json:"background"`
	Error              *ResponseError    `json:"error"`
	IncompleteDetails  *IncompleteReason `json:"incomplete_details"`
	Instructions       *string           `json:"instructions"`
	MaxOutputTokens    *int              `json:"max_output_tokens"`
	MaxToolCalls       *int64            `json:"max_tool_calls"`
	Model              string            `json:"model"`
	Output             []ResponseItem    `json:"output"`
	ParallelToolCalls  bool              `json:"parallel_tool_calls"`
	PreviousResponseID *string           `json:"previous_response_id"`
	PromptCacheKey     *string           `json:"prompt_cache_key"`
	Reasoning          ResponseReasoning `json:"reasoning"`
	SafetyIdentifier   *string           `json:"safety_identifier"`
	ServiceTier        string            `json:"service_tier"` // "default"
	Store              bool              `json:"store"`
	Temperature        float64           `json:"temperature"`
	Text               ResponseText      `json:"text"`
	ToolChoice         json.RawMessage   `json:"tool_choice"`
	Tools              json.RawMessage   `json:"tools"`
	TopLogprobs        int               `json:"top_logprobs"`
	TopP               float64           `json:"top_p"`
	Truncation         string            `json:"truncation"`
	Usage              *ResponseUsage    `json:"usage"`
	User               *string           `json:"user"`
	Metadata           json.RawMessage   `json:"metadata"`
	SystemFingerprint  string            `json:"system_fingerprint"`
}

// ResponseError says why a response failed.
type ResponseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// IncompleteReason says what cut a response off.
type IncompleteReason struct {
	Reason string `json:"reason"` // max_output_tokens
}

// ResponseReasoning repeats what was asked for.
type ResponseReasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

// ResponseText repeats the format.
type ResponseText struct {
	Format    json.RawMessage `json:"format"`
	Verbosity string          `json:"verbosity"` // "medium"
}

// ResponseUsage counts tokens.
type ResponseUsage struct {
	InputTokens         int               `json:"input_tokens"`
	InputTokensDetails  PromptDetails     `json:"input_tokens_details"`
	OutputTokens        int               `json:"output_tokens"`
	OutputTokensDetails CompletionDetails `json:"output_tokens_details"`
	TotalTokens         int               `json:"total_tokens"`
	Timings             Timings           `json:"timings"`
}

// ResponseItem is one item of an output: reasoning, message, function_call or custom_tool_call.
type ResponseItem struct {
	ID               string          `json:"id"`
	Type             string          `json:"type"`
	Status           string          `json:"status"` // in_progress, completed, incomplete
	Role             string          `json:"role,omitempty"`
	Content          *[]ResponsePart `json:"content,omitempty"`
	Summary          *[]ResponsePart `json:"summary,omitempty"`
	EncryptedContent string          `json:"encrypted_content,omitempty"`
	CallID           string          `json:"call_id,omitempty"`
	Namespace        string          `json:"namespace,omitempty"`
	Name             string          `json:"name,omitempty"`
	Arguments        *string         `json:"arguments,omitempty"`
	Input            *string         `json:"input,omitempty"`
}

// ResponsePart is a part of an item: output_text, reasoning_text or summary_text. The lists are those of output_text, always empty.
type ResponsePart struct {
	Type        string    `json:"type"`
	Text        string    `json:"text"`
	Annotations *[]string `json:"annotations,omitempty"`
	Logprobs    *[]string `json:"logprobs,omitempty"`
}

// ResponseEvent is one event of a streamed response; Type is its name, and which of the others are set depends on it.
type ResponseEvent struct {
	Type           string        `json:"type"`
	SequenceNumber int           `json:"sequence_number"`
	Response       *Response     `json:"response,omitempty"`
	ItemID         string        `json:"item_id,omitempty"`
	OutputIndex    *int          `json:"output_index,omitempty"`
	ContentIndex   *int          `json:"content_index,omitempty"`
	SummaryIndex   *int          `json:"summary_index,omitempty"`
	Item           *ResponseItem `json:"item,omitempty"`
	Part           *ResponsePart `json:"part,omitempty"`
	Delta          *string       `json:"delta,omitempty"`
	Text           *string       `json:"text,omitempty"`
	Name           string        `json:"name,omitempty"`
	Arguments      *string       `json:"arguments,omitempty"`
	Input          *string       `json:"input,omitempty"`
	Logprobs       *[]string     `json:"logprobs,omitempty"`
	Obfuscation    string        `json:"obfuscation,omitempty"`
}

// ResponseErrorEvent is the event of an error in a stream.
type ResponseErrorEvent struct {
	Type           string  `json:"type"` // "error"
	SequenceNumber int     `json:"sequence_number"`
	Code           *string `json:"code"`
	Message        string  `json:"message"`
	Param          *string `json:"param"`
}

// ResponseDeleted is the answer of DELETE /v1/responses/{id}.
type ResponseDeleted struct {
	ID      string `json:"id"`
	Object  string `json:"object"` // "response"
	Deleted bool   `json:"deleted"`
}

// ItemList is the answer of GET /v1/responses/{id}/input_items.
type ItemList struct {
	Object  string            `json:"object"` // "list"
	Data    []json.RawMessage `json:"data"`
	FirstID *string           `json:"first_id"`
	LastID  *string           `json:"last_id"`
	HasMore bool              `json:"has_more"`
}
