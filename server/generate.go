package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"pond/inference"
	"pond/inference/sample"
	"pond/server/openai"
)

// envelope is what all parts of one answer share.
type envelope struct {
	id      string
	created int64
	model   string
}

func (s *Server) newEnvelope(prefix string) envelope {
	return envelope{id: prefix + randomHex(12), created: time.Now().Unix(), model: s.engine.Info().ID}
}

// progress is written by the engine's worker and read by the heartbeat.
type progress struct{ done, total atomic.Int64 }

func (p *progress) set(done, total int) {
	p.done.Store(int64(done))
	p.total.Store(int64(total))
}

// String is the text of a heartbeat.
func (p *progress) String() string {
	done, total := p.done.Load(), p.total.Load()
	if total == 0 {
		return "waiting"
	}
	if done < total {
		return fmt.Sprintf("prompt %d/%d tokens", done, total)
	}
	return "generating"
}

// generation maps the shared fields. What the client did not set comes from the model card's row for the thinking mode; without
// a seed every answer gets its own.
func (s *Server) generation(g openai.Generation, thinking bool, p *progress) (inference.Generation, error) {
	params := inference.DefaultSampling(thinking)
	set := g.Sampling
	override(&params.Temperature, set.Temperature)
	override(&params.TopP, set.TopP)
	override(&params.MinP, set.MinP)
	override(&params.TopK, set.TopK)
	override(&params.Presence, set.Presence)
	override(&params.Frequency, set.Frequency)
	override(&params.Repetition, set.Repetition)
	if set.TopP != nil && *set.TopP == 0 {
		// On the wire 0 keeps the likeliest token alone; in sample.Params it is off.
		params.TopP = 1e-9
	}
	params.Seed = rand.Uint64()
	if set.Seed != nil {
		params.Seed = uint64(*set.Seed)
	}
	if err := s.setBias(&params, set.Bias); err != nil {
		return inference.Generation{}, err
	}
	return inference.Generation{
		MaxTokens:   g.MaxTokens,
		Sampling:    &params,
		Stop:        g.Stop,
		Logprobs:    g.Logprobs,
		TopLogprobs: g.TopLogprobs,
		OnPrefill:   p.set,
	}, nil
}

func override[T any](field *T, set *T) {
	if set != nil {
		*field = *set
	}
}

func (s *Server) setBias(params *sample.Params, bias map[int32]float64) error {
	vocab := int32(s.engine.Info().VocabSize)
	var beyond []int32
	for id := range bias {
		if id >= vocab {
			beyond = append(beyond, id)
		}
	}
	if len(beyond) > 0 {
		return &openai.Error{Param: "logit_bias", Code: openai.CodeInvalidValue,
			Message: fmt.Sprintf("got the token id %d, want below %d", slices.Min(beyond), vocab)}
	}
	params.Bias = bias
	return nil
}

// endOf gives the error of an answer. When the request was ended from outside the cause says by whom: the engine only knows that
// it was cancelled.
func endOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func usage(u inference.Usage) openai.Usage {
	return openai.Usage{
		PromptTokens:            u.PromptTokens,
		CompletionTokens:        u.CompletionTokens,
		TotalTokens:             u.PromptTokens + u.CompletionTokens,
		PromptTokensDetails:     openai.PromptDetails{CachedTokens: u.CachedTokens},
		CompletionTokensDetails: openai.CompletionDetails{ReasoningTokens: u.ReasoningTokens},
	}
}
