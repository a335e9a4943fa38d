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
	}
	b.qkv = e.scratch("attn.qkv", e.tokens*b.params.Stride())
	b.o = e.scratch("attn.o", e.tokens*s.QWidth())
	return b
}

// attentionDecode appends the mixer of one token a sequence with caches of up to blocks blocks: four levels. The traffic of a cache is
// counted for a full last block.
func (e *emitter) attentionDecode(layer int, name string, blocks int) {
	b := e.attention(layer, blocks)
	e.mixerInput(name, ".qkv", b.prefix, b.qkv, b.inputs)
	if e.Ablate.Off(ablate.FusedAttention) {
		e.attentionUnfused(layer, b, name, 1)
		return
	}
	one := b.params
	one.M = 1
	partials, stride, width := e.s.Heads*blocks, one.Stride(), e.s.QWidth()
	acc, stats := e.scratch("attn.acc", e.tokens*partials*e.s.HeadDim), e.scratch("attn.stats", e.tokens*partials*2)
	rows := int64(min(blocks*kernels.AttnBlock, e.context)*e.s.KVWidth()) * e.cacheBytes()
	for r := range e.tokens {
		qkv := b.qkv.Part(r*stride, stride, plan.F32)
		acc, stats := acc.Part(r*partials*e.s.HeadDim, partials*e.s.HeadDim, plan.F32), stats.Part(r*partials*2, partials*2, plan.F32)
		args := ranges(qkv, b.qNorm, b.kNorm, e.rope().Part(r*e.s.RotaryDim, e.s.RotaryDim, plan.F32), e.step(r), e.state("keys", layer, r), e.state("values", layer, r), acc, stats)
		args[5].touched, args[6].touched = rows/2, rows/2 // declared read-write; the rows are read once and one row is written
		e.dispatch(rowName(name+".attend", r), kernels.AttnDecode(e.cacheType()), one, one.DecodeItems(), args)
		e.dispatch(rowName(name+".combine", r), kernels.AttnCombine(), one, e.s.Heads, ranges(acc, stats, qkv, e.step(r), b.o.Part(r*width, width, plan.F32)))
	}
	e.mixerOutput(name, kernels.Q4GemvAdd(), b.o, b.out)
}

// attentionPrefill appends the mixer of a chunk, with its keys in parts.
func (e *emitter) attentionPrefill(layer int, name string, parts int) {
	b := e.attention(layer, 0)
	e.mixerInput(name, ".qkv", b.prefix, b.qkv, b.inputs)
	e.attentionUnfused(layer, b, name, parts)
}

// attentionUnfused appends what follows the input projections, for any number of tokens of one sequence.
func (e *emitter) attentionUnfused(layer int, b attentionBlock, name string, parts int) {
	keys, values, step := e.state("keys", layer, 0), e.state("values", layer, 0), e.step(0)
	q := e.scratchHalf("attn.q", e.tokens*e.s.QWidth(), e.cacheType())
	row := int64(e.tokens*e.s.KVWidth()) * e.cacheBytes()
	gates := int64(e.tokens*e.s.QWidth()) * plan.F32.Bytes()
	args := ranges(b.qkv, b.qNorm, b.kNorm, e.rope(), step, q, keys, values)
	args[0].touched = b.qkv.Len - gates
	args[6].touched, args[7].touched = row, row
	e.dispatch(name+".prep", kernels.AttnPrep(e.cacheType()), b.params, e.tokens, args)
	if parts > 1 {
		p := b.params
		p.Blocks = parts
		rows := e.tokens * e.s.Heads * parts
		acc, stats := e.scratch("attn.acc", rows*e.s.HeadDim), e.scratch("attn.stats", rows*2)
		args = ranges(q, keys, values, step, acc, stats)
		args[1].touched, args[2].touched = row, row
		e.dispatch(name+".attend", kernels.AttnPrefillSplit(e.cacheType()), p, p.SplitItems(), args)
		args = ranges(acc, stats, b.qkv, b.o)
		args[2].touched = gates
		e.dispatch(name+".merge", kernels.AttnPrefillMerge(), p, p.PrefillItems(), args)
	} else {
		read := row // of a first chunk: its own rows
		if blocks := b.params.Blocks; blocks > 0 {
			read = int64(min(blocks*kernels.AttnBlock, e.context)*e.s.KVWidth()) * e.cacheBytes()
		}
		args = ranges(q, keys, values, b.qkv, step, b.o)
		args[1].touched, args[2].touched, args[3].touched = read, read, gates
		e.dispatch(name+".attend", kernels.AttnPrefill(e.cacheType()), b.params, b.params.PrefillItems(), args)
	}
	e.mixerOutput(name, kernels.Q4GemmAdd(), b.o, b.out)
}
