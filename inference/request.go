package inference

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"pond/inference/chat"
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
	// OnPrefill is called as prompt tokens are taken in, from the worker: it must not block.
	OnPrefill func(done, total int)
}

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
	CompletionTokens int // the token that ended the answer included
	ReasoningTokens  int // of the completion
	PrefillTime      time.Duration
	DecodeTime       time.Duration
}

// Result is a whole answer.
type Result struct {
	Answer chat.Answer
	Finish Finish
	Usage  Usage
}
