package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"pond/inference"
	"pond/server/openai"
)

// completion answers POST /v1/completions: text is continued as it stands, without the chat template.
func (s *Server) completion(c echo.Context) error {
	body, err := s.readBody(c)
	if err != nil {
		return err
	}
	req, err := openai.DecodeCompletion(body)
	if err != nil {
		return err
	}
	if err := s.checkModel(req.Model); err != nil {
		return err
	}
	for p, prompt := range req.Prompts {
		for i, id := range prompt.Tokens {
			if vocab := s.engine.Info().VocabSize; int(id) >= vocab {
				path := fmt.Sprintf("prompt[%d]", i)
				if len(req.Prompts) > 1 {
					path = fmt.Sprintf("prompt[%d][%d]", p, i)
				}
				return &openai.Error{Param: path, Code: openai.CodeInvalidValue, Message: fmt.Sprintf("got the token id %d, want below %d", id, vocab)}
			}
		}
	}
	g, err := s.generation(req.Generation, false) // no template, no thinking
	if err != nil {
		return err
	}
	// Before the answers, or it would wait for them.
	var echoes []echoed
	var out *eventStream // nil: nothing was sent yet
	if req.Stream && req.Echo {
		noteIgnored(c, req.Ignored) // a header, and the stream may begin in here
		echoes, out, err = s.echoesBefore(c, req)
	} else {
		echoes, err = s.echoes(c.Request().Context(), req)
	}
	if err != nil {
		return s.broken(c, out, endOf(c.Request().Context(), err))
	}
	head := s.newEnvelope("cmpl-")
	w, err := s.begin(c.Request().Context(), requestID(c), head.id, len(req.Prompts)*req.Choices, func(ctx context.Context, w *work, choice int) (*inference.Answer, error) {
		prompt := req.Prompts[choice/req.Choices]
		return s.engine.Complete(ctx, inference.CompletionRequest{Prompt: prompt.Text, Tokens: prompt.Tokens, Generation: nth(g, choice%req.Choices, w)})
	})
	if err != nil {
		return s.broken(c, out, err)
	}
	defer w.end()
	if out == nil {
		noteIgnored(c, req.Ignored)
	}
	if req.Stream {
		return s.streamInto(out, c, w, func(out *eventStream) encoder {
			return &completionStream{completionAnswer: completionAnswer{head: head, logprobs: req.Logprobs, perPrompt: req.Choices, echoes: echoes},
				eventStream: out, usage: req.IncludeUsage, pad: req.Obfuscate}
		})
	}
	choices, err := w.wait()
	if err != nil {
		return err
	}
	a := completionAnswer{head: head, logprobs: req.Logprobs, perPrompt: req.Choices, echoes: echoes}
	answer := a.frame()
	for i, whole := range choices {
		a.start(i)
		a.pending = append(a.pending, whole.logprobs...)
		finish := string(whole.Finish)
		answer.Choices = append(answer.Choices, a.choice(i, whole.Answer.Content, &finish))
	}
	u := completionUsage(resultsOf(choices), req.Choices)
	answer.Usage = &u
	return writeJSON(c, http.StatusOK, answer)
}

// completionUsage sums over the prompts; perPrompt answers belong to each.
func completionUsage(results []inference.Result, perPrompt int) openai.Usage {
	total := usage(results...)
	for i := perPrompt; i < len(results); i += perPrompt {
		more := usage(results[i])
		total.PromptTokens += more.PromptTokens
		total.TotalTokens += more.PromptTokens
		total.PromptTokensDetails.CachedTokens += more.PromptTokensDetails.CachedTokens
		total.PromptTokensDetails.DiskTokens += more.PromptTokensDetails.DiskTokens
	}
	return total
}

// completionAnswer builds the choices of a completion, one after the other.
type completionAnswer struct {
	head      envelope
	logprobs  bool
	perPrompt int
	echoes    []echoed                 // one a prompt; nil without echo
	unsaid    bool                     // the echo of the present choice
	pending   []inference.TokenLogprob // of tokens whose text is still held back
	offset    int                      // characters before the pending tokens
}

// start begins a choice.
func (a *completionAnswer) start(int) {
	a.unsaid, a.pending, a.offset = a.echoes != nil, a.pending[:0], 0
}

// choice makes the next piece of a choice: the echo before the first.
func (a *completionAnswer) choice(index int, text string, finish *string) openai.CompletionChoice {
	var prompt []inference.TokenLogprob
	if a.unsaid {
		a.unsaid = false
		e := a.echoes[index/a.perPrompt]
		text, prompt = e.text+text, e.logprobs
	}
	c := openai.CompletionChoice{Index: index, Text: text, FinishReason: finish}
	if a.logprobs {
		c.Logprobs, a.offset = completionLogprobs(prompt, a.pending, a.offset)
		a.pending = a.pending[:0]
	}
	return c
}

func (a *completionAnswer) frame(choices ...openai.CompletionChoice) openai.Completion {
	return openai.Completion{ID: a.head.id, Object: openai.ObjectCompletion, Created: a.head.created, Model: a.head.model,
		SystemFingerprint: a.head.fingerprint, Choices: choices}
}
