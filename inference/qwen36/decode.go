package qwen36

import (
	"fmt"
	"math"
	"slices"

	"pond/inference/ablate"
	"pond/inference/plan"
	"pond/metal/kernels"
)

// Decode is the plan of one token of one sequence, with the choice of the next, see DecodeBatch.
func (o Options) Decode(s Shape, context, keys int) (*plan.Plan, error) {
	return o.decodePlan(s, context, keys, 1, !o.Ablate.Off(ablate.DeviceSampler))
}

// DecodeBatch is the plan of one token each of rows sequences, given caches of context rows of which at most keys are used: 6 levels a gated delta
// net layer, 7 an attention layer, one before and one after for the logits. Products read their weights once for all rows; what works on a sequence's
// state is a dispatch a row, side by side in one level. No row's arithmetic depends on its neighbours, so each gets the bits that it would get alone.
// Position, token and rotation angles are inputs, so the plan serves every step whose keys fit. Options that switch fused kernels off add
// levels, and are for one row.
func (o Options) DecodeBatch(s Shape, context, keys, rows int) (*plan.Plan, error) {
	return o.decodePlan(s, context, keys, rows, false)
}

// decodePlan is DecodeBatch, and where it is to choose, a level more for the next token of the one row.
func (o Options) decodePlan(s Shape, context, keys, rows int, chooses bool) (*plan.Plan, error) {
	if keys < 1 || keys > context {
		return nil, fmt.Errorf("decode plan: got %d keys, want 1 to %d", keys, context)
	}
	if most := o.batchRows(); rows < 1 || rows > most {
		return nil, fmt.Errorf("decode plan: got %d rows, want 1 to %d", rows, most)
	}
	name := "decode"
	if rows > 1 {
		name = fmt.Sprintf("decode of %d", rows)
	}
	e := o.newEmitter(name, s, rows, context)
	e.decodes = true
	e.embed()
	if chooses {
		e.count()
	}
	for i := range s.Layers {
		name := fmt.Sprintf("layers.%d", i)
		if s.Attention(i) {
			e.attentionDecode(i, name+".attn", Blocks(keys))
		} else {
			e.gdnDecode(i, name+".gdn")
		}
		if e.Ablate.Off(ablate.FusedExperts) {
			e.moePrefill(i, name+".moe")
		} else {
			e.moeDecode(i, name+".moe")
		}
	}
	if chooses {
		e.choose()
	} else {
		e.head(e.stream(), rows)
	}
	return e.Build()
}

// batchRows is how many sequences a decode plan takes. The kernels that stand in where fused ones are switched off take several tokens of one
// sequence, not one of several, or a row's sums would depend on its neighbours.
func (o Options) batchRows() int {
	for _, w := range []ablate.Switch{ablate.FusedNorm, ablate.FusedGDN, ablate.FusedAttention, ablate.FusedExperts, ablate.FusedResidual, ablate.FixedBlockAttention} {
		if slices.Contains(o.Ablate.Asked(), w) {
			return 1
		}
	}
	return kernels.MaxBatch
}

// Blocks is how many attention blocks hold a number of keys.
func Blocks(keys int) int { return (keys + kernels.AttnBlock - 1) / kernels.AttnBlock }

// Logits says for which positions of a chunk the head is run.
type Logits uint8

const (
	LastLogits Logits = iota // of the last token, what generation needs
	AllLogits                // of every token, for perplexity and inspection
)

// Prefill is the plan of a chunk of tokens that serves at any position.
func (o Options) Prefill(s Shape, context, tokens int, l Logits) (*plan.Plan, error) {
	return o.PrefillInParts(s, context, tokens, l, 1)
}

// KeyParts is in how many parts a chunk's attention takes the keys when pos tokens are before it; one where that is not worth it.
func (o Options) KeyParts(s Shape, tokens, pos int) int {
	if !o.GPU {
		return 1
	}
	p := kernels.AttentionParams{M: tokens, H: s.Heads, KV: s.KVHeads, HD: s.HeadDim}
	parts := p.KeyParts(pos)
	if parts > 1 && o.off(ablate.SplitPrefillKeys) {
		return 1
	}
	return parts
}

// PrefillInParts is Prefill with the keys of attention in parts, so that a short chunk behind a long context fills a GPU: two levels instead of one.
func (o Options) PrefillInParts(s Shape, context, tokens int, l Logits, parts int) (*plan.Plan, error) {
	if tokens < 1 || tokens > context {
		return nil, fmt.Errorf("prefill plan: got a chunk of %d tokens, want 1 to %d", tokens, context)
	}
	e := o.newEmitter("prefill", s, tokens, context)
	e.embed()
	for i := range s.Layers {
		name := fmt.Sprintf("layers.%d", i)
		if s.Attention(i) {
			e.attentionPrefill(i, name+".attn", parts)
		} else {
			e.gdnPrefill(i, name+".gdn")
		}
		e.moePrefill(i, name+".moe")
	}
	if l == AllLogits {
		h := e.norm("norm", textPrefix+"norm.weight")
		head := project(headModule, s.Vocab, s.Hidden, 4)
		logits := e.Buffer(BufLogits, plan.Output, plan.F32, tokens*s.Vocab)
		e.dispatch("lm_head", kernels.Q4Gemm(), e.product(tokens, head), s.Vocab, ranges(h, logits), head)
	} else {
		e.head(e.stream().Part((tokens-1)*s.Hidden, s.Hidden, plan.F32), 1)
	}
	return e.Build()
}

func (e *emitter) embed() {
	tokens := e.Buffer(BufTokens, plan.Input, plan.U32, e.tokens)
	table := linear{module: textPrefix + "embed_tokens", stack: e.s.Vocab, used: min(e.tokens, e.s.Vocab), rows: 1, k: e.s.Hidden, bits: 4}
	e.dispatch("embed", kernels.EmbedQ4(), kernels.EmbedParams{M: e.tokens, D: e.s.Hidden, Vocab: e.s.Vocab}, e.tokens, ranges(tokens, e.stream()), table)
}

// headProduct is the final norm and the logits for some rows of the stream.
type headProduct struct {
	params       kernels.LinearParams
	norm, logits plan.Range
	weights      linear
}

func (e *emitter) headProduct(rows int) headProduct {
	w := project(headModule, e.s.Vocab, e.s.Hidden, 4)
	return headProduct{e.product(rows, w), e.vector(textPrefix+"norm.weight", e.s.Hidden), e.Buffer(BufLogits, plan.Output, plan.F32, rows*e.s.Vocab), w}
}

// head appends it for rows of x.
func (e *emitter) head(x plan.Range, rows int) {
	h := e.headProduct(rows)
	e.dispatch("lm_head", kernels.Q4GemvNorm(), h.params, e.s.Vocab, ranges(x, h.norm, h.logits), h.weights)
}

// Rope writes the rotation of tokens positions from first into dst [tokens, RotaryDim]: cosines, then sines, of p·theta^(−2i/R).
// Angles are float64, see kernels.AttentionParams.
func (s Shape) Rope(dst []float32, first, tokens int) {
	half := s.RotaryDim / 2
	for m := range tokens {
		row := dst[m*s.RotaryDim : (m+1)*s.RotaryDim]
		for i := range half {
			sin, cos := math.Sincos(float64(first+m) * math.Pow(s.RopeTheta, -float64(2*i)/float64(s.RotaryDim)))
			row[i], row[half+i] = float32(cos), float32(sin)
		}
	}
}
