package qwen36

import (
	"fmt"

	"pond/inference/ablate"
	"pond/inference/plan"
	"pond/metal/kernels"
)

// gdnBlock is what the dispatches of one gated delta net share.
type gdnBlock struct {
	params              kernels.GDNParams
	prefix, name        string
	inputs              []linear // qkv, z, b, a: side by side in one row of "in"
	out                 linear
	conv, aLog, dt, nrm plan.Range
	in, y               plan.Range
}

func (e *emitter) gdn(layer int) gdnBlock {
	s, m := e.s, layerPrefix(layer)+"linear_attn."
	b := gdnBlock{
		prefix: layerPrefix(layer),
		inputs: []linear{
			project(m+"in_proj_qkv", s.ConvDim(), s.Hidden, 4), project(m+"in_proj_z", s.ValueWidth(), s.Hidden, 4),
			project(m+"in_proj_b", s.ValueHeads, s.Hidden, 4), project(m+"in_proj_a", s.ValueHeads, s.Hidden, 4)},
		out:  project(m+"out_proj", s.Hidden, s.ValueWidth(), 4),
		conv: e.vector(m+"conv1d.weight", s.ConvDim()*s.ConvTaps),
		aLog: e.vector(m+"A_log", s.ValueHeads),
		dt:   e.vector(m+"dt_bias", s.ValueHeads),
		nrm:  e.vector(m+"norm.weight", s.ValueDim),
	}
	stride := 0
	for _, l := range b.inputs {
		stride += l.rows
	}
	b.params = kernels.GDNParams{M: e.tokens, HK: s.KeyHeads, HV: s.ValueHeads, DK: s.KeyDim, DV: s.ValueDim, Stride: stride, Eps: e.eps()}
	b.in = e.scratch("gdn.in", e.tokens*stride)
	b.y = e.scratch("gdn.y", e.tokens*s.ValueWidth())
	return b
}

// gdnDecode appends the mixer of one token a sequence: three levels.
func (e *emitter) gdnDecode(layer int, name string) {
	b, x := e.gdn(layer), e.stream()
	e.mixerInput(name, ".in", b.prefix, b.in, b.inputs)
	if e.Ablate.Off(ablate.FusedGDN) || e.Ablate.Off(ablate.FusedResidual) {
		e.gdnUnfused(layer, b, name)
		return
	}
	one, width := b.params, e.s.ValueWidth()
	one.M = 1
	sums := width / kernels.SquareRows
	squares := e.scratch("gdn.squares", e.tokens*sums)
	for r := range e.tokens {
		e.dispatch(rowName(name+".step", r), kernels.GDNStep(), one, one.StateItems(), ranges(b.in.Part(r*one.Stride, one.Stride, plan.F32), b.conv, b.aLog, b.dt,
			e.step(r), e.state("window", layer, r), e.state("state", layer, r), e.state("next", layer, r), b.nrm, b.y.Part(r*width, width, plan.F32), squares.Part(r*sums, sums, plan.F32)))
	}
	e.dispatch(name+".out", kernels.Q4GemvGDNOut(), kernels.GDNOutParams{GDN: b.params, N: e.s.Hidden}, e.s.Hidden, ranges(b.y, squares, x), b.out)
}

// gdnPrefill appends the mixer of a chunk.
func (e *emitter) gdnPrefill(layer int, name string) {
	b := e.gdn(layer)
	e.mixerInput(name, ".in", b.prefix, b.in, b.inputs)
	e.gdnUnfused(layer, b, name)
}

// gdnUnfused appends what follows the input projection, step by step, for any number of tokens of one sequence.
func (e *emitter) gdnUnfused(layer int, b gdnBlock, name string) {
	state, window, step := e.state("state", layer, 0), e.state("window", layer, 0), e.step(0)
	c := e.scratch("gdn.c", e.tokens*e.s.ConvDim())
	args := ranges(b.in, b.conv, step, window, c)
	args[0].touched = columns(e.tokens, e.s.ConvDim())
	e.dispatch(name+".conv", kernels.GDNConv(), b.params, e.tokens, args)
	args = ranges(b.in, step, window)
	args[0].touched = columns(b.params.WindowItems(), e.s.ConvDim())
	e.dispatch(name+".window", kernels.GDNWindowStore(), b.params, b.params.WindowItems(), args)
	args = ranges(c, b.in, b.aLog, b.dt, step, state, b.y)
	args[1].touched = columns(e.tokens, 2*e.s.ValueHeads)
	e.dispatch(name+".scan", kernels.GDNScan(), b.params, b.params.StateItems(), args)
	e.gdnOutput(b, name)
}

// gdnOutput appends the gated norm and the output product for any number of tokens.
func (e *emitter) gdnOutput(b gdnBlock, name string) {
	o := e.scratch("gdn.o", e.tokens*e.s.ValueWidth())
	args := ranges(b.y, b.in, b.nrm, o)
	args[1].touched = columns(e.tokens, e.s.ValueWidth())
	e.dispatch(name+".gate", kernels.GDNGateNorm(), b.params, e.tokens, args)
	e.mixerOutput(name, kernels.Q4GemmAdd(), o, b.out)
}

// columns is the size of some columns of float32 rows, where a kernel reads no more of them.
func columns(rows, width int) int64 { return int64(rows*width) * plan.F32.Bytes() }

// mixerOutput appends x += W o by a kernel that adds, or else by a product and a sum. Where a chunk is so short that a GPU would stand idle the
// product is made in parts, and the norm behind it adds them.
func (e *emitter) mixerOutput(name string, adds kernels.Kernel, o plan.Range, out linear) {
	if p := e.product(e.tokens, out); e.splits(p) {
		p.Parts = p.WorthParts()
		parts := e.scratch(fmt.Sprintf("mixer.parts%d", p.Parts), p.Parts*e.tokens*e.s.Hidden)
		e.dispatch(name+".out", kernels.Q4GemmSplit(), p, p.N(), ranges(o, parts), out)
		e.parts = &parts
		return
	}
	if !e.Ablate.Off(ablate.FusedResidual) {
		e.gemm(name+".out", adds, o, e.stream(), out)
		return
	}
	y := e.scratch("mixer.y", e.tokens*e.s.Hidden)
	e.gemm(name+".out", kernels.Q4Gemm(), o, y, out)
	e.dispatch(name+".add", kernels.ResidualAdd(), kernels.ResidualParams{M: e.tokens, D: e.s.Hidden}, e.tokens, ranges(y, e.stream()))
}

// splits reports whether a product is made in parts.
func (e *emitter) splits(p kernels.LinearParams) bool {
	return e.GPU && !e.decodes && p.WorthParts() > 1 && !e.Ablate.Off(ablate.FusedResidual) && !e.off(ablate.FusedDequantisation) && !e.off(ablate.SplitProducts)
}

// mixerInput appends the norm and the input projections of a mixer; for one token as one kernel.
func (e *emitter) mixerInput(name, suffix, prefix string, out plan.Range, inputs []linear) {
	const weight = "input_layernorm.weight"
	p := e.product(e.tokens, inputs...)
	if e.decodes && !e.Ablate.Off(ablate.FusedNorm) {
		e.dispatch(name+suffix, kernels.Q4GemvNorm(), p, p.N(), ranges(e.stream(), e.vector(prefix+weight, e.s.Hidden), out), inputs...)
		return
	}
	e.gemm(name+suffix, kernels.Q4Gemm(), e.norm(name+".norm", prefix+weight), out, inputs...)
}

// gemm appends a product of quantised matrices by kernel k, or by its like for a matrix that is written out before.
func (e *emitter) gemm(name string, k kernels.Kernel, x, y plan.Range, w ...linear) {
	p := e.product(e.tokens, w...)
	if e.decodes || !e.off(ablate.FusedDequantisation) {
		e.dispatch(name, k, p, p.N(), ranges(x, y), w...)
		return
	}
	unpack, multiply := kernels.Q4Unpack(), kernels.F32Gemm()
	if p.Bits == 8 {
		unpack = kernels.Q8Unpack()
	}
	if k.Name == kernels.Q4GemmAdd().Name {
		multiply = kernels.F32GemmAdd()
	}
	dense := e.scratch(fmt.Sprintf("dense.%d", p.N()*p.K), p.N()*p.K)
	e.dispatch(name+".unpack", unpack, p, p.N(), ranges(dense), w...)
	p.Rows, p.Bits = [kernels.MaxSegments]int{p.N()}, 32
	e.dispatch(name, multiply, p, p.N(), ranges(x, dense, y))
}

// norm appends h = RMSNorm(x) of a chunk.
func (e *emitter) norm(name, weight string) plan.Range {
	h := e.scratch("h", e.tokens*e.s.Hidden)
	p := kernels.NormParams{M: e.tokens, D: e.s.Hidden, Eps: e.eps()}
	if e.parts != nil {
		p.Parts = int(e.parts.Len / h.Len)
		e.dispatch(name, kernels.RMSNormAdd(), p, e.tokens, ranges(*e.parts, e.vector(weight, e.s.Hidden), e.stream(), h))
		e.parts = nil
		return h
	}
	e.dispatch(name, kernels.RMSNorm(), p, e.tokens,
		ranges(e.stream(), e.vector(weight, e.s.Hidden), h))
	return h
}
