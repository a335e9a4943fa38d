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
	Obfuscate    bool // stream_options.include_obfuscation
	Choices      int  // n: answers to the same prompt; 1 when absent
	Logprobs     bool
	TopLogprobs  int      // 0 to 20
	Ignored      []string // paths of fields that have no effect, sorted: those nobody knows, and wishes that Pond cannot grant
}

// ChatRequest is the body of POST /v1/chat/completions. The other endpoints that hold conversations are decoded into it too.
type ChatRequest struct {
	Generation
	Messages         []Message
	Tools            []json.RawMessage
	ToolChoice       ToolChoice
	OneCall          bool  // parallel_tool_calls false
	StrictTools      bool  // a tool is strict
	Thinking         *bool // nil when the client left it to the server
	ThinkingBudget   int   // tokens; 0 is no limit
	PreserveThinking bool
	Format           Format
}

// Budgets of thinking, in tokens, that reasoning_effort stands for; high and above have none.
const (
	BudgetMinimal = 256
	BudgetLow     = 1_024
	BudgetMedium  = 8_192
)

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
	req.Format = o.responseFormat()
	o.chatLogprobs(req)
	o.refuse(chatRefusals())
	o.finish()
	if r.err != nil {
		return nil, r.err
	}
	req.Ignored, req.StrictTools = r.names(), r.strict
	return req, nil
}

func (o *object) generation(limits ...string) Generation {
	g := Generation{Choices: 1}
	if model := o.str("model"); model != nil {
		g.Model = *model
	}
	g.Sampling = o.sampling()
	g.MaxTokens = o.maxTokens(limits...)
	g.Stop = o.stops("stop")
	o.stream(&g)
	if n := o.integer("n", 1, maxChoices); n != nil {
		g.Choices = int(*n)
	}
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
