package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"pond/inference"
	"pond/inference/grammar"
	"pond/inference/sample"
	"pond/server/openai"
)

// envelope is what all parts of one answer share.
type envelope struct {
	id          string
	created     int64
	model       string
	fingerprint string
}

func (s *Server) newEnvelope(prefix string) envelope {
	return envelope{id: prefix + randomHex(12), created: time.Now().Unix(), model: s.engine.Info().ID, fingerprint: s.fingerprint}
}

// generation maps the shared fields. What the client did not set comes from the model card's row for the thinking mode; without
// a seed every answer gets its own.
func (s *Server) generation(g openai.Generation, thinking bool) (inference.Generation, error) {
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
	}, nil
}

// nth gives the generation of one of several choices: each has a seed of its own, the first the client's.
func nth(g inference.Generation, choice int, w *work) inference.Generation {
	params := *g.Sampling
	params.Seed += uint64(choice)
	g.Sampling, g.OnPrefill = &params, w.progress.set
	return g
}

// bind adds what only conversations have: the limit of the thinking, the form of the answer, and which tools must be called.
func bind(g *inference.Generation, req *openai.ChatRequest) error {
	g.ThinkingBudget, g.OneCall, g.StrictTools = req.ThinkingBudget, req.OneCall, req.StrictTools
	if g.ToolChoice.Name = req.ToolChoice.Name; req.ToolChoice.Mode != openai.ToolNamed {
		g.ToolChoice.Mode = string(req.ToolChoice.Mode)
	}
	switch req.Format.Kind {
	case openai.FormatObject:
		g.Format = grammar.JSONObject()
	case openai.FormatSchema:
		f, err := grammar.Schema(req.Format.Schema, req.Format.Strict)
		if err != nil {
			return schemaError(req.Format.Path, err)
		}
		g.Format = f
	}
	return nil
}

// schemaError names the part of the schema that cannot be kept to.
func schemaError(path string, err error) error {
	var unsupported *grammar.UnsupportedError
	code := openai.CodeInvalidValue
	if errors.As(err, &unsupported) {
		code = openai.CodeUnsupported
	}
	return &openai.Error{Param: path, Code: code, Message: err.Error()}
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

// usage counts the answers to one prompt, which is computed once.
func usage(results ...inference.Result) openai.Usage {
	var u openai.Usage
	var prefill, decode time.Duration
	for i, r := range results {
		if i == 0 {
			u.PromptTokens = r.Usage.PromptTokens
			u.PromptTokensDetails = openai.PromptDetails{CachedTokens: r.Usage.CachedTokens, DiskTokens: r.Usage.DiskTokens}
		}
		u.CompletionTokens += r.Usage.CompletionTokens
		u.CompletionTokensDetails.ReasoningTokens += r.Usage.ReasoningTokens
		prefill += r.Usage.PrefillTime
		decode += r.Usage.DecodeTime
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	u.Timings = openai.Timings{PrefillMS: milliseconds(prefill), DecodeMS: milliseconds(decode),
		PrefillPerSecond: perSecond(u.PromptTokens-u.PromptTokensDetails.CachedTokens, prefill), DecodePerSecond: perSecond(u.CompletionTokens, decode)}
	return u
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func perSecond(tokens int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return math.Round(float64(tokens)/d.Seconds()*10) / 10
}
