package openai

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
)

// Sampling holds what the client set itself; nil fields are the engine's to choose.
type Sampling struct {
	Temperature *float64 // 0 to 2; 0 is greedy
	TopP        *float64 // 0 to 1
	MinP        *float64 // 0 to 1
	TopK        *int     // 0 is off
	Presence    *float64 // -2 to 2
	Frequency   *float64 // -2 to 2
	Repetition  *float64 // above 0; 1 is off
	Seed        *int64
	Bias        map[int32]float64 // token id to -100..100; nil when not sent
}

// Limits of the fields.
const (
	maxTopLogprobs  = 20
	maxStops        = 16 // the API says 4; chat front ends send a dozen, and each costs little
	maxStopBytes    = 1024
	maxChoices      = 16 // the API says 128; each takes its turn on one device
	maxRepetition   = 10
	maxBiases       = 4096
	unboundedNumber = math.MaxInt64
)

func (o *object) sampling() Sampling {
	s := Sampling{
		Temperature: o.number("temperature", 0, 2),
		TopP:        o.number("top_p", 0, 1),
		MinP:        o.number("min_p", 0, 1),
		Presence:    o.number("presence_penalty", -2, 2),
		Frequency:   o.number("frequency_penalty", -2, 2),
		Seed:        o.integer("seed", math.MinInt64, math.MaxInt64),
		Bias:        o.logitBias(),
	}
	// -1 is how vLLM's and llama.cpp's clients write "off".
	if k := o.integer("top_k", -1, math.MaxInt32); k != nil {
		n := int(max(*k, 0))
		s.TopK = &n
	}
	if s.Repetition = o.number("repetition_penalty", 0, maxRepetition); s.Repetition != nil && *s.Repetition == 0 {
		o.report.fail(o.at("repetition_penalty"), CodeInvalidValue, "got 0, want above 0 to %d (1 is off)", maxRepetition)
	}
	return s
}

func (o *object) logitBias() map[int32]float64 {
	entries := o.object("logit_bias")
	if entries == nil {
		return nil
	}
	if len(entries.fields) > maxBiases {
		o.report.fail(entries.path, CodeInvalidValue, "got %d entries, want at most %d", len(entries.fields), maxBiases)
		return nil
	}
	keys := make([]string, 0, len(entries.fields))
	for key := range entries.fields {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	bias := make(map[int32]float64, len(keys))
	for _, key := range keys {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil || id < 0 {
			o.report.fail(entries.path, CodeInvalidValue, "got the key %s, want a token id", strconv.Quote(clip(key)))
			return nil
		}
		if v := entries.number(key, -100, 100); v != nil {
			bias[int32(id)] = *v
		}
	}
	return bias
}

// maxTokens takes the two spellings of the output limit; 0 when neither is set.
func (o *object) maxTokens(names ...string) int {
	var limit int64
	var from string
	for _, name := range names {
		n := o.integer(name, 1, unboundedNumber)
		if n == nil {
			continue
		}
		if from != "" && *n != limit {
			o.report.fail(o.at(name), CodeInvalidValue, "got %d while %s is %d: send one of them", *n, from, limit)
		}
		limit, from = *n, name
	}
	return int(min(limit, math.MaxInt32))
}

// stops takes a string or a list of strings. Empty strings stop nothing and are dropped.
func (o *object) stops(name string) []string {
	raw, ok := o.take(name)
	if !ok {
		return nil
	}
	var list []*string // nil for null, which Go's reader would take for an empty string
	var one string
	if json.Unmarshal(raw, &one) == nil {
		list = []*string{&one}
	} else if json.Unmarshal(raw, &list) != nil {
		o.report.fail(o.at(name), CodeInvalidType, "got %s, want a string or a list of strings", kindOf(raw))
		return nil
	}
	var kept []string
	for i, item := range list {
		if item == nil {
			o.report.fail(fmt.Sprintf("%s[%d]", o.at(name), i), CodeInvalidType, "got null, want a string")
			return nil
		}
		s := *item
		if len(s) > maxStopBytes {
			o.report.fail(o.at(name), CodeInvalidValue, "got a string of %d bytes, want at most %d", len(s), maxStopBytes)
		}
		if s != "" {
			kept = append(kept, s)
		}
	}
	if len(kept) > maxStops {
		o.report.fail(o.at(name), CodeInvalidValue, "got %d strings, want at most %d", len(kept), maxStops)
	}
	return kept
}

// stream takes stream and stream_options. Options without a stream have nothing to act on and are allowed.
func (o *object) stream(g *Generation) {
	if b := o.boolean("stream"); b != nil {
		g.Stream = *b
	}
	options := o.object("stream_options")
	if options == nil {
		return
	}
	if b := options.boolean("include_usage"); b != nil {
		g.IncludeUsage = *b
	}
	if b := options.boolean("include_obfuscation"); b != nil {
		g.Obfuscate = *b
	}
	options.finish()
}
