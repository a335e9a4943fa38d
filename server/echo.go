package server

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"pond/inference"
	"pond/server/openai"
)

// maxEchoLogprobs bounds the prompt whose log probabilities are computed: each token is a row of the whole vocabulary.
const maxEchoLogprobs = 4096

// echoed is a prompt that the answer begins with.
type echoed struct {
	text     string
	logprobs []inference.TokenLogprob // one a token, the first without a number; nil when not asked for
}

// echoes prepares the prompts of a request with echo; nil without. Log probabilities of a prompt take a run of the model of their own, which
// waits its turn like an answer.
func (s *Server) echoes(ctx context.Context, req *openai.CompletionRequest) ([]echoed, error) {
	if !req.Echo {
		return nil, nil
	}
	tok := s.engine.Tokenizer()
	list := make([]echoed, len(req.Prompts))
	for i, p := range req.Prompts {
		ids := p.Tokens
		if ids == nil {
			ids = tok.Encode(p.Text)
		}
		if list[i].text = p.Text; p.Tokens != nil {
			list[i].text = s.text(ids)
		}
		if !req.Logprobs {
			continue
		}
		if len(ids) > maxEchoLogprobs {
			return nil, &openai.Error{Param: "echo", Code: openai.CodeInvalidValue,
				Message: fmt.Sprintf("got a prompt of %d tokens with logprobs, want at most %d", len(ids), maxEchoLogprobs)}
		}
		lines := make([]inference.TokenLogprob, len(ids))
		lines[0] = inference.TokenLogprob{ID: ids[0], Bytes: tok.Bytes(ids[0]), Logprob: math.NaN()}
		err := s.engine.Logits(ctx, ids, func(pos int, logits []float32) error {
			if pos+1 < len(ids) {
				lines[pos+1] = s.promptLogprob(ids[pos+1], logits, req.TopLogprobs)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		list[i].logprobs = lines
	}
	return list, nil
}

// echoesBefore is echoes for an answer that comes as a stream. When they take longer than a client may hear nothing, the stream is opened and heartbeats go out;
// until then an error has a status of its own. out is nil while nothing was sent.
func (s *Server) echoesBefore(c echo.Context, req *openai.CompletionRequest) (list []echoed, out *eventStream, err error) {
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	type outcome struct {
		list []echoed
		err  error
	}
	outcomes := make(chan outcome, 1)
	go func() {
		defer close(outcomes)
		list, err := s.echoes(ctx, req)
		outcomes <- outcome{list, err}
	}()
	patience := time.NewTimer(s.options.Heartbeat)
	defer patience.Stop()
	select {
	case o := <-outcomes:
		return o.list, nil, o.err
	case <-patience.C:
	}
	next := func() (outcome, bool) {
		o, ok := <-outcomes
		return o, ok
	}
	if out, err = openStream(c, s.options.Heartbeat); err != nil {
		cancel()
		next()
		return nil, out, err
	}
	working := func() string { return "log probabilities of the prompt" }
	var end outcome
	if err := pump(out, next, cancel, working, func(o outcome) error { end = o; return nil }); err != nil {
		return nil, out, err
	}
	return end.list, out, end.err
}

// promptLogprob says how likely a token of the prompt was after those before it.
func (s *Server) promptLogprob(id int32, logits []float32, top int) inference.TokenLogprob {
	tok := s.engine.Tokenizer()
	logits = logits[:s.engine.Info().VocabSize] // what is beyond is padding
	largest := float64(slices.Max(logits))
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l) - largest)
	}
	norm := largest + math.Log(sum)
	line := inference.TokenLogprob{ID: id, Bytes: tok.Bytes(id), Logprob: float64(logits[id]) - norm}
	order := make([]int32, 0, top+1)
	for i := range int32(len(logits)) {
		at, _ := slices.BinarySearchFunc(order, i, func(a, b int32) int {
			if logits[a] >= logits[b] {
				return -1
			}
			return 1
		})
		if at < top {
			order = slices.Insert(order, at, i)
			order = order[:min(len(order), top)]
		}
	}
	for _, i := range order {
		line.Top = append(line.Top, inference.TokenLogprob{ID: i, Bytes: tok.Bytes(i), Logprob: float64(logits[i]) - norm})
	}
	return line
}
