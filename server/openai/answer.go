package openai

// Names of Object fields.
const (
	ObjectChat       = "chat.completion"
	ObjectChatChunk  = "chat.completion.chunk"
	ObjectCompletion = "text_completion"
	ObjectModel      = "model"
	ObjectList       = "list"
)

// Chat is the whole answer to a chat request.
type Chat struct {
	ID                string       `json:"id"`
	Object            string       `json:"object"`
	Created           int64        `json:"created"` // seconds since 1970
	Model             string       `json:"model"`
	SystemFingerprint string       `json:"system_fingerprint"`
	Choices           []ChatChoice `json:"choices"`
	Usage             Usage        `json:"usage"`
}

// ChatChoice is one of n answers.
type ChatChoice struct {
	Index        int           `json:"index"`
	Message      AnswerMessage `json:"message"`
	Logprobs     *ChatLogprobs `json:"logprobs"`
	FinishReason string        `json:"finish_reason"`
}

// AnswerMessage is the assistant's turn. Content is null where there is none beside reasoning or calls. The reasoning goes out
// under both names in use, reasoning_content (DeepSeek, Qwen) and reasoning (vLLM, mlx-lm).
type AnswerMessage struct {
	Role             string         `json:"role"`
	Content          *string        `json:"content"`
	Refusal          *string        `json:"refusal"` // always null
	ReasoningContent string         `json:"reasoning_content,omitempty"`
	Reasoning        string         `json:"reasoning,omitempty"`
	ToolCalls        []CallOfAnswer `json:"tool_calls,omitempty"`
}

// CallOfAnswer is one tool call; Index is set only in deltas.
type CallOfAnswer struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function CallFunction `json:"function"`
}

// CallFunction carries the arguments as JSON text, or a fragment of it in a delta.
type CallFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// ChatChunk is one event of a streamed answer. Usage is only in the last one, with no choices, and only when asked for.
type ChatChunk struct {
	ID                string        `json:"id"`
	Object            string        `json:"object"`
	Created           int64         `json:"created"`
	Model             string        `json:"model"`
	SystemFingerprint string        `json:"system_fingerprint"`
	Choices           []ChunkChoice `json:"choices"`
	Usage             *Usage        `json:"usage,omitempty"`
	Obfuscation       string        `json:"obfuscation,omitempty"`
}

// ChunkChoice has a null finish_reason until the last delta.
type ChunkChoice struct {
	Index        int           `json:"index"`
	Delta        Delta         `json:"delta"`
	Logprobs     *ChatLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
}

// Delta is what one event adds.
type Delta struct {
	Role             string         `json:"role,omitempty"`
	Content          *string        `json:"content,omitempty"`
	ReasoningContent string         `json:"reasoning_content,omitempty"`
	Reasoning        string         `json:"reasoning,omitempty"`
	ToolCalls        []CallOfAnswer `json:"tool_calls,omitempty"`
}

// ChatLogprobs lists the generated tokens in order, those of the reasoning and of tool calls included.
type ChatLogprobs struct {
	Content []TokenLogprob `json:"content"`
	Refusal *string        `json:"refusal"` // always null
}

// TokenLogprob is one generated token.
type TokenLogprob struct {
	TopLogprob
	Top []TopLogprob `json:"top_logprobs"`
}

// TopLogprob is one candidate. Token is valid UTF-8; Bytes are exact, also where the token is a part of a character.
type TopLogprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"` // ints, because JSON text of []byte is base64
}

// Usage counts tokens.
type Usage struct {
	PromptTokens            int               `json:"prompt_tokens"`
	CompletionTokens        int               `json:"completion_tokens"`
	TotalTokens             int               `json:"total_tokens"`
	PromptTokensDetails     PromptDetails     `json:"prompt_tokens_details"`
	CompletionTokensDetails CompletionDetails `json:"completion_tokens_details"`
	Timings                 Timings           `json:"timings"`
}

// Timings say how long the device took: over the prompt, without what the cache spared, and over the answer.
type Timings struct {
	PrefillMS        float64 `json:"prefill_ms"`
	DecodeMS         float64 `json:"decode_ms"`
	PrefillPerSecond float64 `json:"prefill_tokens_per_second"`
	DecodePerSecond  float64 `json:"decode_tokens_per_second"`
}

// PromptDetails says how many prompt tokens were found in the cache, and whether that was read from the disk.
type PromptDetails struct {
	CachedTokens int `json:"cached_tokens"`
	DiskTokens   int `json:"disk_tokens,omitempty"` // of the cached ones
}

// CompletionDetails says how many tokens the thinking took.
type CompletionDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// Completion is the whole answer to a completion request, and, with a null finish_reason, one event of its stream.
type Completion struct {
	ID                string             `json:"id"`
	Object            string             `json:"object"`
	Created           int64              `json:"created"`
	Model             string             `json:"model"`
	SystemFingerprint string             `json:"system_fingerprint"`
	Choices           []CompletionChoice `json:"choices"`
	Usage             *Usage             `json:"usage,omitempty"`
	Obfuscation       string             `json:"obfuscation,omitempty"`
}

// CompletionChoice is one of n answers to one of the prompts: index n*p+i for answer i to prompt p.
type CompletionChoice struct {
	Text         string              `json:"text"`
	Index        int                 `json:"index"`
	Logprobs     *CompletionLogprobs `json:"logprobs"`
	FinishReason *string             `json:"finish_reason"`
}

// CompletionLogprobs are parallel lists over the generated tokens. TextOffset counts characters from the start of the text.
type CompletionLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []*float64           `json:"token_logprobs"` // null for the first token of an echoed prompt, which nothing comes before
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"`
}

// Model describes one model of GET /v1/models.
type Model struct {
	ID            string `json:"id"`
	Object        string `json:"object"`
	Created       int64  `json:"created"`
	OwnedBy       string `json:"owned_by"`
	ContextLength int    `json:"context_length"` // tokens of prompt and answer together
}

// ModelList is the answer of GET /v1/models.
type ModelList struct {
	Object string  `json:"object"`
	Data   []Model `json:"data"`
}
