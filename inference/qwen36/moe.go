package qwen36

import (
	"pond/inference/ablate"
	"pond/inference/plan"
	"pond/metal/kernels"
)

// moeBlock is what the dispatches of one expert block share.
type moeBlock struct {
	params                           kernels.MoEParams
	prefix                           string
	router, sharedRow                linear // 8 bit: E logits and the shared expert's gate, side by side
	gate, up, down                   linear // stacks
	sharedGate, sharedUp, sharedDown linear
	norm                             string
	logits, weights                  plan.Range
	ids                              plan.Range
}

func (e *emitter) moe(layer int) moeBlock {
	s, m := e.s, layerPrefix(layer)+"mlp."
	// A chunk reads the experts that its tokens chose; with uniform routing M tokens miss an expert with (1-T/E)^M.
	used := s.TopK
	for miss, m := 1.0, 0; m < e.tokens; m++ {
		miss *= 1 - float64(s.TopK)/float64(s.Experts)
		used = int(float64(s.Experts)*(1-miss) + 0.5)
	}
	stack := func(name string, rows, k int) linear {
		return linear{module: m + "switch_mlp." + name, stack: s.Experts, used: used, rows: rows, k: k, bits: 4}
	}
	b := moeBlock{
		params:     kernels.MoEParams{M: e.tokens, D: s.Hidden, E: s.Experts, T: s.TopK, I: s.Inter, SI: s.SharedInter, Eps: e.eps()},
		prefix:     layerPrefix(layer),
		router:     project(m+"gate", s.Experts, s.Hidden, 8),
		sharedRow:  project(m+"shared_expert_gate", 1, s.Hidden, 8),
		gate:       stack("gate_proj", s.Inter, s.Hidden),
		up:         stack("up_proj", s.Inter, s.Hidden),
		down:       stack("down_proj", s.Hidden, s.Inter),
		sharedGate: project(m+"shared_expert.gate_proj", s.SharedInter, s.Hidden, 4),
		sharedUp:   project(m+"shared_expert.up_proj", s.SharedInter, s.Hidden, 4),
		sharedDown: project(m+"shared_expert.down_proj", s.Hidden, s.SharedInter, 4),
		norm:       layerPrefix(layer) + "post_attention_layernorm.weight",
	}
	b.logits = e.scratch("moe.logits", e.tokens*(s.Experts+1))
	b.ids = e.scratchIDs("moe.ids", e.tokens*s.TopK)
	b.weights = e.scratch("moe.weights", e.tokens*(s.TopK+1))
	return b
}

// moeDecode appends the experts of one token a sequence: three levels. The shared expert rides along as one more expert.
func (e *emitter) moeDecode(layer int, name string) {
	b, x := e.moe(layer), e.stream()
	norm := e.vector(b.norm, e.s.Hidden)
	p := e.product(e.tokens, b.router, b.sharedRow)
	e.dispatch(name+".router", kernels.Q8GemvNorm(), p, p.N(), ranges(x, norm, b.logits), b.router, b.sharedRow)
	act := e.scratch("moe.act", e.tokens*b.params.ActWidth())
	e.dispatch(name+".gate_up", kernels.MoEGateUp(), b.params, b.params.GateUpItems(), ranges(x, norm, b.logits, b.ids, b.weights, act),
		b.gate, b.up, b.sharedGate, b.sharedUp)
	e.dispatch(name+".down", kernels.MoEDownAdd(), b.params, e.s.Hidden, ranges(act, b.ids, b.weights, x), b.down, b.sharedDown)
}

// moePrefill appends the experts of a chunk: pairs of token and expert are grouped by expert on the device.
func (e *emitter) moePrefill(layer int, name string) {
	b, s, m := e.moe(layer), e.s, e.tokens
	pairs := m * s.TopK
	h := e.norm(name+".norm", b.norm)
	e.gemm(name+".router", kernels.Q8Gemm(), h, b.logits, b.router, b.sharedRow)
	e.dispatch(name+".route", kernels.MoERoute(), b.params, m, ranges(b.logits, b.ids, b.weights))
	order, offsets := e.scratchIDs("moe.order", pairs), e.scratchIDs("moe.offsets", s.Experts+1)
	e.dispatch(name+".group", kernels.MoEGroup(), b.params, 1, ranges(b.ids, order, offsets))
	act := e.scratch("moe.act", pairs*s.Inter)
	e.dispatch(name+".gate_up", kernels.MoEGateUpGrouped(), b.params, s.Experts*s.Inter, ranges(h, order, offsets, act), b.gate, b.up)
	half := kernels.F32
	if !e.decodes && e.GPU && !e.off(ablate.HalfExperts) {
		half = kernels.BF16
	}
	y := e.scratchHalf("moe.y", pairs*s.Hidden, half)
	e.dispatch(name+".down", kernels.MoEDownGrouped(half), b.params, s.Experts*s.Hidden, ranges(act, order, offsets, y), b.down)

	gu := e.scratch("moe.shared.gu", m*2*s.SharedInter)
	e.gemm(name+".shared.gate_up", kernels.Q4Gemm(), h, gu, b.sharedGate, b.sharedUp)
	sact := e.scratch("moe.shared.act", m*s.SharedInter)
	e.dispatch(name+".shared.silu", kernels.SiluMul(), kernels.SiluMulParams{M: m, I: s.SharedInter}, m, ranges(gu, sact))
	sy := e.scratch("moe.shared.y", m*s.Hidden)
	e.gemm(name+".shared.down", kernels.Q4Gemm(), sact, sy, b.sharedDown)
	e.dispatch(name+".combine", kernels.MoECombine(half), b.params, m, ranges(y, sy, b.weights, e.stream()))
}
