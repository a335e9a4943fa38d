package chat

import (
	"strings"

	"pond/inference/tokenizer"
)

// The template of Qwen3.6, written out. Two rules keep it safe and exact:
//
//   - control writes one of the template's special tokens; text writes everything
//     else. Nothing that came from a caller ever goes to control.
//   - The text is the official template's, byte for byte, but for one thing that it
//     refuses: system turns after the first are rendered in place.

// Special tokens that the template itself writes.
const (
	imStart         = "<|im_start|>"
	imEnd           = "<|im_end|>"
	thinkOpen       = "<think>"
	thinkClose      = "</think>"
	callOpen        = "<tool_call>"
	callClose       = "</tool_call>"
	responseOpen    = "<tool_response>"
	responseClose   = "</tool_response>"
	functionOpen    = "<function="
	functionClose   = "</function>"
	parameterOpen   = "<parameter="
	parameterClose  = "</parameter>"
	toolsHead       = "# Tools\n\nYou have access to the following functions:\n\n<tools>"
	toolsTailBefore = "\n</tools>\n\nIf you choose to call a function ONLY reply in the following format with NO suffix:\n\n"
	toolsTailSample = "\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n" +
		"<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple lines\n</parameter>\n</function>\n"
	toolsTailRules = "\n\n<IMPORTANT>\nReminder:\n" +
		"- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within "
	toolsTailAfter = " XML tags\n" +
		"- Required parameters MUST be specified\n" +
		"- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after\n" +
		"- If there is no function call available, answer the question like normal with your current knowledge and do not tell the user about function calls\n" +
		"</IMPORTANT>"
)

// Render normalises the conversation and writes its prompt. Errors are *Error.
func Render(c Conversation) (Prompt, error) {
	c, err := Normalise(c)
	if err != nil {
		return Prompt{}, err
	}
	var r renderer
	r.header(c)
	query := lastQuery(c.Messages)
	for i, m := range c.Messages {
		switch m.Role {
		case "system":
			if i > 0 {
				r.turn("system", trim(m.Content.String()))
			}
		case "user":
			r.turn("user", trim(m.Content.String()))
		case "assistant":
			r.assistant(m, c.PreserveThinking || i > query)
		case "tool":
			// Results in a row share one user turn. The template opens none for a
			// result that is the very first message.
			first := i > 0 && c.Messages[i-1].Role != "tool"
			last := i == len(c.Messages)-1 || c.Messages[i+1].Role != "tool"
			r.response(trim(m.Content.String()), first, last)
		}
	}
	thinking := c.Thinking == nil || *c.Thinking
	if !c.NoGenerationPrompt {
		r.open("assistant\n")
		r.control(thinkOpen)
		if thinking {
			r.text("\n")
		} else {
			r.text("\n\n")
			r.control(thinkClose)
			r.text("\n\n")
		}
	}
	return Prompt{Pieces: r.finish(), Borders: r.borders, Thinking: thinking && !c.NoGenerationPrompt}, nil
}

// renderer collects pieces. Text waits in pending until a control piece follows,
// so that text pieces are joined: the tokenizer may merge across their seam.
type renderer struct {
	pieces  []tokenizer.Piece
	borders []int
	pending strings.Builder
}

func (r *renderer) text(s string) { r.pending.WriteString(s) }

func (r *renderer) control(token string) {
	r.flush()
	r.pieces = append(r.pieces, tokenizer.Piece{Text: token, Control: true})
}

func (r *renderer) flush() {
	if r.pending.Len() > 0 {
		r.pieces = append(r.pieces, tokenizer.Piece{Text: r.pending.String()})
		r.pending.Reset()
	}
}

func (r *renderer) finish() []tokenizer.Piece {
	r.flush()
	return r.pieces
}

// open starts a turn and notes its border.
func (r *renderer) open(role string) {
	r.flush()
	r.borders = append(r.borders, len(r.pieces))
	r.control(imStart)
	r.text(role)
}

func (r *renderer) close() {
	r.control(imEnd)
	r.text("\n")
}

func (r *renderer) turn(role, text string) {
	r.open(role + "\n")
	r.text(text)
	r.close()
}

// header writes the tools and the leading system message, as one system turn.
func (r *renderer) header(c Conversation) {
	system, text := c.Messages[0].Role == "system", ""
	if system {
		text = trim(c.Messages[0].Content.String())
	}
	if len(c.Tools) == 0 {
		if system {
			r.turn("system", text)
		}
		return
	}
	r.open("system\n" + toolsHead)
	for _, tool := range c.Tools {
		r.text("\n")
		r.text(string(tool))
	}
	r.text(toolsTailBefore)
	r.control(callOpen)
	r.text(toolsTailSample)
	r.control(callClose)
	r.text(toolsTailRules)
	r.control(callOpen)
	r.control(callClose)
	r.text(toolsTailAfter)
	if text != "" {
		r.text("\n\n" + text)
	}
	r.close()
}

func (r *renderer) assistant(m Message, think bool) {
	reasoning, content := splitThinking(m)
	r.open("assistant\n")
	if think {
		r.control(thinkOpen)
		r.text("\n" + reasoning + "\n")
		r.control(thinkClose)
		r.text("\n\n")
	}
	r.text(content)
	for i, call := range m.ToolCalls {
		switch {
		case i > 0:
			r.text("\n")
		case trim(content) != "":
			r.text("\n\n")
		}
		r.call(call)
	}
	r.close()
}

// splitThinking returns an assistant turn's reasoning and content. A client that
// keeps thinking inside the content is served as the template serves it: reasoning
// ends at the first closing tag, content starts after the last one.
func splitThinking(m Message) (reasoning, content string) {
	content = trim(m.Content.String())
	if m.Reasoning != nil {
		return trim(*m.Reasoning), content
	}
	first := strings.Index(content, thinkClose)
	if first < 0 {
		return "", content
	}
	reasoning = strings.TrimRight(content[:first], "\n")
	if i := strings.LastIndex(reasoning, thinkOpen); i >= 0 {
		reasoning = reasoning[i+len(thinkOpen):]
	}
	content = content[strings.LastIndex(content, thinkClose)+len(thinkClose):]
	return trim(reasoning), strings.TrimLeft(content, "\n")
}

// call writes one function call. String arguments are written raw, others as JSON.
func (r *renderer) call(call ToolCall) {
	arguments, err := parseArguments(call.Arguments)
	if err != nil {
		panic("chat: internal error: normalised arguments: " + err.Error())
	}
	r.control(callOpen)
	r.text("\n" + functionOpen + call.Name + ">\n")
	for _, m := range arguments.members {
		r.text(parameterOpen + m.key + ">\n")
		if m.value.kind == jsonString {
			r.text(m.value.text)
		} else {
			r.text(string(appendJSON(nil, m.value, pythonForm)))
		}
		r.text("\n" + parameterClose + "\n")
	}
	r.text(functionClose + "\n")
	r.control(callClose)
}

// response writes one tool result; first and last say where it stands in its row.
func (r *renderer) response(text string, first, last bool) {
	if first {
		r.open("user")
	}
	r.text("\n")
	r.control(responseOpen)
	r.text("\n" + text + "\n")
	r.control(responseClose)
	if last {
		r.close()
	}
}
