package inference

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"pond/inference/chat"
	"pond/inference/grammar"
	"pond/inference/sample"
)

// ErrClosed is what an answer ends with when the engine is closed under it; ErrBusy what a request gets when too many wait.
var (
	ErrClosed = errors.New("the engine was closed")
	ErrBusy   = errors.New("too many requests are waiting")
)

// ContextError says that a prompt does not fit. No work was done.
type ContextError struct {
	PromptTokens    int
	RequestedTokens int // of the answer; 0 when the client named no limit
	LimitTokens     int // of prompt and answer together
}

func (e *ContextError) Error() string {
	return fmt.Sprintf("got a prompt of %d tokens and %d requested for the answer, want at most %d together and one for the answer", e.PromptTokens, e.RequestedTokens, e.LimitTokens)
}

// MaxAnswerTokens is the longest answer when the client names no limit.
const MaxAnswerTokens = 32_768

// Generation says how to answer.
type Generation struct {
	// MaxTokens ends the answer with finish "length". It is cut to what the context leaves; zero means MaxAnswerTokens, cut alike.
	MaxTokens int
	// Sampling nil means DefaultSampling for the thinking mode.
	Sampling *sample.Params
	Stop     []string // texts that end the answer where they stand in its content, not in its thinking; they are not part of it
	Logprobs bool
	// TopLogprobs is how many alternatives to report with each token's logprob.
	TopLogprobs int
	// ThinkingBudget is how many tokens of thinking the model may write; then the block is closed for it and the answer begins. 0: no
	// limit. MaxTokens still counts everything.
	ThinkingBudget int
	// Format is the form of the content. It holds from the end of the thinking on; with tools, the answer may be calls instead.
	Format     grammar.Format
	ToolChoice ToolChoice
	OneCall    bool // the answer ends after its first call
	// StrictTools holds calls to their tools where the model is free to call or not, as ToolChoice does where it must.
	StrictTools bool
	// OnPrefill is called as prompt tokens are taken in; everybody waits until it returns.
	OnPrefill func(done, total int)
	Priority  Priority
}

// Priority says who comes first where several wait: for a place among those that are worked on, and with their prompts.
type Priority int8

const (
	Background  Priority = iota // clients of the endpoint
	Interactive                 // the person before the chat window
)

// ToolChoice says whether the model may, must or must not call a tool. The zero value is "auto".
type ToolChoice struct {
	Mode string // "" or "auto", "none", "required"; ignored with a name
	Name string // the one tool to call
}

// The modes of ToolChoice.
const (
	ToolsAuto     = "auto"
	ToolsNone     = "none"
	ToolsRequired = "required"
)

// forced reports whether the answer must be calls.
func (c ToolChoice) forced() bool { return c.Name != "" || c.Mode == ToolsRequired }

// ChatRequest asks for the next turn of a conversation.
type ChatRequest struct {
	Conversation chat.Conversation
	Generation
}

// CompletionRequest asks for the continuation of a text, or of tokens.
type CompletionRequest struct {
	Prompt string
	Tokens []int32 // instead of Prompt, when not nil
	Generation
}

// DefaultSampling is what the model's card recommends for the mode (spec 1.3, presence penalty 0), with a new random seed.
func DefaultSampling(thinking bool) sample.Params {
	p := sample.Params{Temperature: 0.7, TopP: 0.8, TopK: 20, Seed: rand.Uint64()}
	if thinking {
		p.Temperature, p.TopP = 1.0, 0.95
	}
	return p
}

// Finish says why an answer ended.
type Finish string

const (
	FinishStop      Finish = "stop"
	FinishLength    Finish = "length"
	FinishToolCalls Finish = "tool_calls"
)

// TokenLogprob is one token with its log probability: natural logarithm, of the raw logits after penalties and bias.
type TokenLogprob struct {
	ID      int32
	Bytes   []byte // what the token stands for; may be part of a character
	Logprob float64
	Top     []TokenLogprob // alternatives, most likely first
}

// Update is what one or more tokens added to an answer.
type Update struct {
	Events   []chat.Event
	Logprobs []TokenLogprob // of the tokens since the last update, when asked for
}

// Usage counts an answer.
type Usage struct {
	PromptTokens     int
	CachedTokens     int // of the prompt, not computed again
	DiskTokens       int // the same number where they were read from the disk for it, else 0
	CompletionTokens int // the token that ended the answer included
	ReasoningTokens  int // of the completion
	PrefillTime      time.Duration
	DecodeTime       time.Duration
	MaskTime         time.Duration // of the decode: waiting for, and applying, what a format or a tool choice allows
	MaskSteps        int           // tokens that were chosen so
}

// Result is a whole answer.
type Result struct {
	Answer chat.Answer
	Finish Finish
	// StopText is the one of Generation.Stop that ended the content; "" when none did.
	StopText string
	Usage    Usage
}
