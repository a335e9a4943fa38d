// Package chat is the text protocol of Qwen3.6: it turns a conversation into the
// pieces of a prompt, and the text that the model writes back into reasoning,
// content and tool calls.
//
// It is not a template engine and not a wire format. The checkpoint's revision is
// pinned, so its one chat template is written out in Go (template.go), and golden
// files recorded from the official template hold it in place. OpenAI's JSON shapes
// belong to the server; the types here are what the server maps them to.
//
// Start reading at Render (template.go) for the way in, and at Parser (parser.go)
// for the way out. Normalise (normalise.go) lists what clients send that the
// template would refuse.
//
// What the two directions owe each other is exact replay: when an answer in the
// model's canonical form is parsed and rendered again as history, the same bytes
// come out, so that cached state stays valid. Answer.Message makes that history.
package chat

import (
	"encoding/json"

	"pond/inference/tokenizer"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string // "system", "developer", "user", "assistant" or "tool"
	Content Content
	// Reasoning is the assistant's thinking. nil: the client sent none, and a think
	// block written into Content is looked for, as the official template does. Not
	// nil, even if empty: Content is not searched.
	Reasoning  *string
	ToolCalls  []ToolCall // assistant only; ignored elsewhere, as the template does
	ToolCallID string     // kept for the caller; the model links results by order
	Name       string     // kept for the caller; not rendered
}

// Content is a message's text in parts; the parts are joined without a separator.
type Content struct {
	Parts []Part
	Null  bool // the client sent null or nothing; renders as empty text
}

// TextContent returns content of one text part.
func TextContent(s string) Content { return Content{Parts: []Part{{Text: s}}} }

// String returns the parts' text joined without a separator.
func (c Content) String() string {
	if len(c.Parts) == 1 {
		return c.Parts[0].Text
	}
	n := 0
	for _, p := range c.Parts {
		n += len(p.Text)
	}
	b := make([]byte, 0, n)
	for _, p := range c.Parts {
		b = append(b, p.Text...)
	}
	return string(b)
}

// Part is one part of a message's content.
type Part struct {
	// Type is the wire's name of the part. "", "text", "input_text" and
	// "output_text" are text; Normalise refuses all others by path.
	Type string
	Text string
}

// ToolCall is one call of a function.
type ToolCall struct {
	ID, Name string
	// Arguments is a JSON object, or a JSON string that holds one (OpenAI's form);
	// nil, null and "" mean no arguments. Key order and 64-bit integers are kept.
	Arguments json.RawMessage
}

// Conversation is everything that the template reads.
type Conversation struct {
	Messages []Message
	Tools    []json.RawMessage // each a JSON object, written into the prompt in its own key order
	Thinking *bool             // nil or true: the answer starts with reasoning
	// PreserveThinking keeps the think blocks of every earlier assistant turn; without
	// it only those after the last user message are written.
	PreserveThinking bool
	// NoGenerationPrompt leaves out the final "<|im_start|>assistant" opening.
	NoGenerationPrompt bool
}

// Prompt is a rendered conversation.
type Prompt struct {
	// Pieces concatenate to the official template's text. Control pieces are the
	// template's own special tokens, one each; all that a user wrote is text, and no
	// two text pieces stand side by side.
	Pieces []tokenizer.Piece
	// Borders are the indexes in Pieces of each "<|im_start|>", ascending; the
	// generation prompt's is the last. Cached state is worth keeping there: what a new
	// user message takes away, the earlier think blocks, begins right behind a border.
	Borders []int
	// Thinking says that the prompt ends inside an open think block, so the output
	// starts as reasoning.
	Thinking bool
}

// String returns the prompt's text.
func (p Prompt) String() string {
	n := 0
	for _, piece := range p.Pieces {
		n += len(piece.Text)
	}
	b := make([]byte, 0, n)
	for _, piece := range p.Pieces {
		b = append(b, piece.Text...)
	}
	return string(b)
}

// Error says which part of a conversation cannot be rendered, and why. It is the
// client's mistake: a server answers it with status 400.
type Error struct {
	Path    string // such as "messages[3].tool_calls[0].function.arguments"
	Message string // got and want
}

func (e *Error) Error() string { return e.Path + ": " + e.Message }
