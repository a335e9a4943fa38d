package openai

// TokenizeRequest is the body of POST /tokenize: a text or a conversation.
type TokenizeRequest struct {
	Model   string
	Text    string
	Chat    *ChatRequest // instead of Text
	Special bool         // control tokens written in Text become such
	Strings bool         // show each token
	Ignored []string
}

// Tokens is the answer of POST /tokenize.
type Tokens struct {
	Tokens      []int32  `json:"tokens"`
	Count       int      `json:"count"`
	MaxModelLen int      `json:"max_model_len"`
	Strings     []string `json:"token_strs,omitempty"`
}

// Text is the answer of POST /detokenize, under the names that llama.cpp's and vLLM's clients read.
type Text struct {
	Content string `json:"content"`
	Prompt  string `json:"prompt"`
}

// DecodeTokenize reads a body with content (llama.cpp), prompt (vLLM) or messages; the error is an *Error.
func DecodeTokenize(body []byte) (*TokenizeRequest, error) {
	r := &report{}
	o := decodeBody(body, r)
	req := &TokenizeRequest{}
	if s := o.str("model"); s != nil {
		req.Model = *s
	}
	content, prompt := o.str("content"), o.str("prompt")
	_, talk := o.fields["messages"]
	switch {
	case content != nil && prompt != nil, talk && (content != nil || prompt != nil):
		r.fail("", CodeInvalidValue, "want only one of content, prompt and messages")
	case talk:
		req.Chat = &ChatRequest{}
		req.Chat.Messages = o.messages()
		req.Chat.Tools = o.tools()
		o.thinking(req.Chat)
		o.refuse([]refusal{{"add_generation_prompt", []string{"true"}, ""}})
	case content != nil:
		req.Text = *content
	case prompt != nil:
		req.Text = *prompt
	default:
		r.fail("content", CodeMissing, "missing: want content, prompt or messages")
	}
	for name, into := range map[string]*bool{"parse_special": &req.Special, "with_pieces": &req.Strings, "return_token_strs": &req.Strings} {
		if b := o.boolean(name); b != nil && *b {
			*into = true
		}
	}
	// Both ask for a token at the beginning that this model does not have.
	o.boolean("add_special")
	o.boolean("add_special_tokens")
	o.finish()
	if r.err != nil {
		return nil, r.err
	}
	req.Ignored = r.names()
	return req, nil
}

// DetokenizeRequest is the body of POST /detokenize.
type DetokenizeRequest struct {
	Model   string
	Tokens  []int32
	Ignored []string
}

// DecodeDetokenize reads a body with tokens; the error is an *Error.
func DecodeDetokenize(body []byte) (*DetokenizeRequest, error) {
	r := &report{}
	o := decodeBody(body, r)
	req := &DetokenizeRequest{}
	if s := o.str("model"); s != nil {
		req.Model = *s
	}
	switch raw, ok := o.take("tokens"); {
	case !ok:
		r.fail("tokens", CodeMissing, "missing: want a list of token ids")
	case kindOf(raw) != "a list":
		r.fail("tokens", CodeInvalidType, "got %s, want a list of token ids", kindOf(raw))
	case compact(raw) != "[]":
		req.Tokens = o.tokenIDs(raw, "tokens")
	}
	o.finish()
	if r.err != nil {
		return nil, r.err
	}
	req.Ignored = r.names()
	return req, nil
}

// DecodeStopThinking reads the body of POST /v1/pond/stop-thinking: an id, or nothing.
func DecodeStopThinking(body []byte) (id string, ignored []string, err error) {
	r := &report{}
	if len(body) == 0 {
		body = []byte("{}")
	}
	o := decodeBody(body, r)
	if s := o.str("id"); s != nil {
		if id = *s; id == "" {
			r.fail("id", CodeInvalidValue, "got an empty string, want the id of a request, or nothing")
		}
	}
	o.finish()
	if r.err != nil {
		return "", nil, r.err
	}
	return id, r.names(), nil
}
