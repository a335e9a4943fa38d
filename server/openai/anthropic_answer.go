package openai

import "encoding/json"

// MessageAnswer is the answer of POST /v1/messages.
type MessageAnswer struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"` // "message"
	Role         string         `json:"role"` // "assistant"
	Model        string         `json:"model"`
	Content      []MessageBlock `json:"content"`
	StopReason   *string        `json:"stop_reason"`   // end_turn, max_tokens, stop_sequence, tool_use; null until the end
	StopSequence *string        `json:"stop_sequence"` // the one that was met
	Usage        MessageUsage   `json:"usage"`
}

// MessageBlock is a block of an answer's content: thinking, text or tool_use.
type MessageBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// MessageUsage counts tokens. Unlike elsewhere, InputTokens are those that the cache did not hold.
type MessageUsage struct {
	InputTokens              int `json:"input_tokens"`
	CacheCreationInputTokens int `json:"cache_creation_input_tokens"` // always 0: nothing is paid for
	CacheReadInputTokens     int `json:"cache_read_input_tokens"`
	OutputTokens             int `json:"output_tokens"`
}

// MessageCount is the answer of POST /v1/messages/count_tokens.
type MessageCount struct {
	InputTokens int `json:"input_tokens"`
}

// MessageEvent is one event of a streamed message; Type is its name, and which of the others are set depends on it.
type MessageEvent struct {
	Type    string         `json:"type"`
	Message *MessageAnswer `json:"message,omitempty"`       // message_start
	Index   *int           `json:"index,omitempty"`         // content_block_*
	Block   *MessageBlock  `json:"content_block,omitempty"` // content_block_start
	Delta   any            `json:"delta,omitempty"`         // *MessageDelta of content_block_delta, *MessageStop of message_delta
	Usage   *MessageUsage  `json:"usage,omitempty"`         // message_delta
}

// MessageDelta is what an event adds to a block.
type MessageDelta struct {
	Type        string  `json:"type,omitempty"` // text_delta, thinking_delta, signature_delta, input_json_delta
	Text        *string `json:"text,omitempty"`
	Thinking    *string `json:"thinking,omitempty"`
	Signature   *string `json:"signature,omitempty"`
	PartialJSON *string `json:"partial_json,omitempty"`
}

// MessageStop is how a streamed message ends.
type MessageStop struct {
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
}

// MessageModel is a model in Anthropic's form.
type MessageModel struct {
	Type        string `json:"type"` // "model"
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"` // RFC 3339
}

// MessageModelList is the answer of GET /v1/models to a client of Anthropic's API.
type MessageModelList struct {
	Data    []MessageModel `json:"data"`
	FirstID string         `json:"first_id"`
	LastID  string         `json:"last_id"`
	HasMore bool           `json:"has_more"`
}
