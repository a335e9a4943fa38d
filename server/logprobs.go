package server

import (
	"math"
	"strings"
	"unicode/utf8"

	"pond/inference"
	"pond/server/openai"
)

// lowestLogprob stands for minus infinity, which JSON cannot write; the hosted API uses the same number.
const lowestLogprob = -9999

func finite(logprob float64) float64 { return math.Max(logprob, lowestLogprob) }

// chatLogprobs maps tokens to the chat form; nil when they were not asked for.
func chatLogprobs(asked bool, tokens []inference.TokenLogprob) *openai.ChatLogprobs {
	if !asked {
		return nil
	}
	list := &openai.ChatLogprobs{Content: make([]openai.TokenLogprob, 0, len(tokens))}
	for _, t := range tokens {
		entry := openai.TokenLogprob{TopLogprob: candidate(t), Top: make([]openai.TopLogprob, 0, len(t.Top))}
		for _, c := range t.Top {
			entry.Top = append(entry.Top, candidate(c))
		}
		list.Content = append(list.Content, entry)
	}
	return list
}

func candidate(t inference.TokenLogprob) openai.TopLogprob {
	ints := make([]int, len(t.Bytes))
	for i, b := range t.Bytes {
		ints[i] = int(b)
	}
	return openai.TopLogprob{Token: tokenText(t.Bytes), Logprob: finite(t.Logprob), Bytes: ints}
}

// tokenText shows a token that is part of a character with U+FFFD; its bytes are exact beside it.
func tokenText(raw []byte) string { return strings.ToValidUTF8(string(raw), "\ufffd") }

// completionLogprobs maps tokens to the older form: those of an echoed prompt, the first of which has no number, and those of the answer.
// offset is the number of characters before the first, and the new one is returned.
func completionLogprobs(prompt, tokens []inference.TokenLogprob, offset int) (*openai.CompletionLogprobs, int) {
	list := &openai.CompletionLogprobs{Tokens: []string{}, TokenLogprobs: []*float64{}, TopLogprobs: []map[string]float64{}, TextOffset: []int{}}
	for i, t := range append(prompt[:len(prompt):len(prompt)], tokens...) {
		text := tokenText(t.Bytes)
		list.Tokens = append(list.Tokens, text)
		list.TextOffset = append(list.TextOffset, offset)
		offset += utf8.RuneCountInString(text)
		if i == 0 && len(prompt) > 0 {
			list.TokenLogprobs = append(list.TokenLogprobs, nil)
			list.TopLogprobs = append(list.TopLogprobs, nil)
			continue
		}
		top := make(map[string]float64, len(t.Top))
		for _, c := range t.Top {
			name := tokenText(c.Bytes)
			// Two parts of characters may look alike here; the likelier one is kept.
			if have, ok := top[name]; !ok || have < finite(c.Logprob) {
				top[name] = finite(c.Logprob)
			}
		}
		logprob := finite(t.Logprob)
		list.TokenLogprobs = append(list.TokenLogprobs, &logprob)
		list.TopLogprobs = append(list.TopLogprobs, top)
	}
	return list, offset
}
