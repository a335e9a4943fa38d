package qwen36

import (
	"pond/inference/ablate"
	"pond/inference/plan"
	"pond/metal/kernels"
)

// attentionBlock is what the dispatches of one gated full attention share.
type attentionBlock struct {
	params       kernels.AttentionParams
	prefix       string
	inputs       []linear // q (with gates), k, v: side by side in one row of "qkv"
	out          linear
	qNorm, kNorm plan.Range
	keys, values plan.Range
	qkv, o       plan.Range
}

func (e *emitter) attention(layer, blocks int) attentionBlock {
	s, m := e.s, layerPrefix(layer)+"self_attn."
	b := attentionBlock{
		params: kernels.AttentionParams{M: e.tokens, H: s.Heads, KV: s.KVHeads, HD: s.HeadDim, R: s.RotaryDim, Blocks: blocks, Context: e.context, Eps: e.eps()},
		prefix: layerPrefix(layer),
		inputs: []linear{project(m+"q_proj", 2*s.QWidth(), s.Hidden, 4), project(m+"k_proj", s.KVWidth(), s.Hidden, 4), project(m+"v_proj", s.KVWidth(), s.Hidden, 4)},
		out:    project(m+"o_proj", s.Hidden, s.QWidth(), 4),
		qNorm:  e.vector(m+"q_norm.weight", s.HeadDim),
		kNorm:  e.vector(m+"k_norm.weight", s.HeadDim),
		keys:   e.state("keys", layer),
		values: e.state("values", layer),
	}
	b.qkv = e.scratch("attn.qkv", e.tokens*b.params.Stride())
	b.o = e.scratch("attn.o", e.tokens*s.QWidth())
	return b
}

// attentionDecode appends the mixer of one token with a cache of up to blocks blocks: four levels. The traffic of the cache is
// counted for a full last block.
func (e *emitter) attentionDecode(layer int, name string, blocks int) {
	b := e.attention(layer, blocks)
	e.mixerInput(name, ".qkv", b.prefix, b.qkv, b.inputs)
	if e.Ablate.Off(ablate.FusedAttention) {
		e.attentionUnfused(b, name)
		return
	}
	acc := e.scratch("attn.acc", e.s.Heads*blocks*e.s.HeadDim)
	stats := e.scratch("attn.stats", e.s.Heads*blocks*2)
	rows := int64(min(blocks*kernels.AttnBlock, e.context)*e.s.KVWidth()) * e.cacheBytes()
	args := ranges(b.qkv, b.qNorm, b.kNorm, e.rope(), e.step(), b.keys, b.values, acc, stats)
	args[5].touched, args[6].touched = rows/2, rows/2 // declared read-write; the rows are read once and one row is written
	e.dispatch(name+".attend", kernels.AttnDecode(e.cacheType()), b.params, b.params.DecodeItems(), args)
	e.dispatch(name+".combine", kernels.AttnCombine(), b.params, e.s.Heads, ranges(acc, stats, b.qkv, e.step(), b.o))
	e.mixerOutput(name, kernels.Q4GemvAdd(), b.o, b.out)
}

// attentionPrefill appends the mixer of a chunk.
func (e *emitter) attentionPrefill(layer int, name string) {
	b := e.attention(layer, 0)
	e.mixerInput(name, ".qkv", b.prefix, b.qkv, b.inputs)
	e.attentionUnfused(b, name)
}

// attentionUnfused appends what follows the input projections, for any number of tokens.
func (e *emitter) attentionUnfused(b attentionBlock, name string) {
	q := e.scratch("attn.q", e.tokens*e.s.QWidth())
	row := int64(e.tokens*e.s.KVWidth()) * e.cacheBytes()
	args := ranges(b.qkv, b.qNorm, b.kNorm, e.rope(), e.step(), q, b.keys, b.values)
	args[6].touched, args[7].touched = row, row
	e.dispatch(name+".prep", kernels.AttnPrep(e.cacheType()), b.params, e.tokens, args)
	args = ranges(q, b.keys, b.values, b.qkv, e.step(), b.o)
	args[1].touched, args[2].touched = row, row
	e.dispatch(name+".attend", kernels.AttnPrefill(e.cacheType()), b.params, b.params.PrefillItems(), args)
	e.mixerOutput(name, kernels.Q4GemmAdd(), b.o, b.out)
}
