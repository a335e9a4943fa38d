package inference

import (
	"pond/inference/qwen36"
	"pond/inference/sample"
)

// Closing the thinking for the model, because its budget is used up or somebody wants the answer now. The sequence is what the makers
// of the model use for it (Qwen3 Technical Report, section 4.3): a sentence in the model's own voice, and the closing tag as the template
// writes it. It becomes part of the thinking, and of the usage, as if the model had written it. Before the first word of thinking the
// tag stands alone: that is the prompt of a conversation without thinking.
const (
	closingSentence = "\n\nConsidering the limited time by the user, I have to give the solution based on the thinking directly now."
	closingTag      = "\n</think>\n\n"
)

// answerRoom is how many tokens must be left behind the sentence for it to be written: else the tag alone leaves more for the answer.
const answerRoom = 32

// thinkingEnds decides whether the thinking is closed before the token that the model wants to go on with. Where that is the
// closing tag itself, or a character is half written, it is not.
func (w *writer) thinkingEnds(next int32) bool {
	g := &w.job.gen
	asked := w.job.answer.stop.Load()
	if !w.reasoning {
		if asked {
			w.job.answer.stop.Store(false)
		}
		return false
	}
	if !asked && (g.ThinkingBudget <= 0 || w.job.usage.ReasoningTokens < g.ThinkingBudget) {
		return false
	}
	if id, ok := w.tok.ID("</think>"); ok && next == id {
		return false
	}
	return !w.decoder.Pending()
}

// closeThinking writes the closing sequence and returns the logits after it. Where the answer is full before its end, the rest is
// left out and the logits are of no use.
func (e *Engine) closeThinking(l *live, sampler *sample.Sampler, w *writer, logits []float32) ([]float32, error) {
	j := l.job
	j.answer.stop.Store(false)
	left := j.gen.MaxTokens - j.usage.CompletionTokens
	ids := e.tok.EncodeSpecial(closingTag)
	if j.usage.ReasoningTokens > 0 {
		if long := e.tok.EncodeSpecial(closingSentence + closingTag); left-len(long) >= answerRoom {
			ids = long
		}
	}
	return e.give(l, sampler, w, logits, ids)
}

// give writes tokens that were not drawn, as many as the answer may still have, and takes them in as a prompt is taken in. It returns
// the logits after them.
func (e *Engine) give(l *live, sampler *sample.Sampler, w *writer, logits []float32, ids []int32) ([]float32, error) {
	j := l.job
	ids = ids[:min(j.gen.MaxTokens-j.usage.CompletionTokens, len(ids))]
	kind := qwen36.LastLogits
	size := e.chunk
	if j.gen.Logprobs { // each is reported with what stood before it
		kind, size = qwen36.AllLogits, min(size, logitsChunk)
	}
	for len(ids) > 0 {
		if err := e.cancelled(j); err != nil {
			return nil, err
		}
		part := ids[:min(size, len(ids))]
		ids = ids[len(part):]
		choices := make([]sample.Choice, len(part))
		score := func(i int, logits []float32) (err error) { // logits without Logprobs are not looked at
			choices[i] = sample.Choice{ID: part[i]}
			if j.gen.Logprobs {
				if choices[i], err = sampler.Given(logits, part[i], j.top()); err != nil {
					return damaged(logits[:e.info.VocabSize], err)
				}
			}
			sampler.Accept(part[i])
			return nil
		}
		if err := score(0, logits); err != nil {
			return nil, err
		}
		all, err := l.chunk(part, kind, false)
		if err != nil {
			return nil, err
		}
		e.queue.decoded(len(part))
		row := 0
		if j.gen.Logprobs {
			row = len(all) / len(part)
		}
		for i := 1; i < len(part); i++ {
			if err := score(i, all[(i-1)*row:i*row]); err != nil {
				return nil, err
			}
		}
		logits = all[(len(part)-1)*row:]
		for _, c := range choices {
			w.token(c)
		}
	}
	return logits, nil
}
