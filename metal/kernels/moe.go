package kernels

import "math"

// MoEParams are the sizes of the expert kernels.
type MoEParams struct {
	M, D  int
	E, T  int // experts, experts a token uses
	I, SI int // width of a routed expert, of the shared expert
	Eps   float32
}

// ActWidth is the width of one token's expert activations: the routed experts in rank order, then the shared one.
func (p MoEParams) ActWidth() int { return p.T*p.I + p.SI }

// Route picks the T largest logits, the lower index on a tie, and softmaxes over just those, which equals renormalising the softmax
// over all (spec 2.6). Logit E is the shared expert's gate: weights[T] = sigmoid of it.
func (p MoEParams) Route(logits []float32, ids []uint32, weights []float32) {
	for k := range p.T {
		best := -1
		for e, v := range logits[:p.E] {
			if (best < 0 || v > logits[best]) && !contains(ids[:k], uint32(e)) {
				best = e
			}
		}
		ids[k] = uint32(best)
	}
	top := logits[ids[0]]
	var sum float32
	for k, e := range ids[:p.T] {
		weights[k] = exp(logits[e] - top)
		sum += weights[k]
	}
	for k := range p.T {
		weights[k] /= sum
	}
	weights[p.T] = sigmoid(logits[p.E])
}

func contains(ids []uint32, e uint32) bool {
	for _, v := range ids {
		if v == e {
			return true
		}
	}
	return false
}

// The weight matrices of the expert kernels, by segment.
const (
	SegGate, SegUp, SegSharedGate, SegSharedUp = 0, 1, 2, 3 // MoEGateUp
	SegDown, SegSharedDown                     = 0, 1       // MoEDownAdd
)

// GateUpItems is the grid of MoEGateUp: a row of each token's choices, whether or not another token chose the same, and of the shared expert.
func (p MoEParams) GateUpItems() int { return p.M*p.T*p.I + p.SI }

// Users appends the pairs, token*T + rank, that use the expert of a pair, itself the first; none where an earlier token chose that expert,
// whose pair then lists this one too. ids is [M, T].
func (p MoEParams) Users(dst []int, ids []uint32, pair int) []int {
	e := ids[pair]
	for other, o := range ids[:p.M*p.T] {
		switch {
		case o != e:
		case other < pair:
			return dst[:0]
		default:
			dst = append(dst, other)
		}
	}
	return dst
}

// fewVectors multiplies rows [r0, r0+n) of m with a few vectors: y[i*n:] are the results of xs[i], in the order of sums of one.
func fewVectors(y []float32, m matrix, r0, n int, xs [][]float32, ws *Workspace) {
	groups := m.k / Group
	sums := ws.F32(len(xs) * groups)
	for i, x := range xs {
		groupSums(sums[i*groups:(i+1)*groups], x)
	}
	if len(xs) == 1 {
		rowsTimesVector(y[:n], m, r0, xs[0], sums)
		return
	}
	all := ws.F32(len(xs) * m.k)
	for i, x := range xs {
		copy(all[i*m.k:], x)
	}
	rowsTimesMatrix{m: m, r0: r0, r1: r0 + n, x: all, sums: sums, y: y, ldy: n, tokens: len(xs), acc: ws.F32(len(xs))}.run()
}

// MoEGateUp is the first half of the expert block for one token or a few: norm, top-k from the router's logits (recomputed by every worker: E
// logits are cheaper than a level), gate and up of the chosen experts and, as one more, of the shared expert, SwiGLU. An expert that several
// tokens chose is read once. The worker of item 0 stores the routes for the second half. One item is one row of one choice.
func MoEGateUp() Kernel {
	return Kernel{Name: "moe_gate_up", Segments: 4, Grid: Tuning{}.moeGateUpGrid, Constants: Tuning{}.moeGateUpConstants, Check: moeBatchCheck,
		Buffers: []Buffer{{"x", F32, Read, "[M, D]"}, {"norm", BF16, Read, "[D]"}, {"logits", F32, Read, "[M, E+1]"},
			{"ids", U32, Write, "[M, T]"}, {"weights", F32, Write, "[M, T+1]"}, {"act", F32, Write, "[M, T*I + SI]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(MoEParams)
			h, weights := ws.F32(p.M*p.D), ws.F32(p.M*(p.T+1))
			var routes [MaxBatch * MaxTopK]uint32
			ids := routes[:p.M*p.T]
			for m := range p.M {
				normInto(h[m*p.D:(m+1)*p.D], a[0].F32[m*p.D:(m+1)*p.D], a[1].Raw, p.Eps)
				p.Route(a[2].F32[m*(p.E+1):(m+1)*(p.E+1)], ids[m*p.T:(m+1)*p.T], weights[m*(p.T+1):(m+1)*(p.T+1)])
			}
			if lo == 0 {
				copy(a[3].U32, ids)
				copy(a[4].F32, weights)
			}
			w, act := a[6:], a[5].F32
			// rows [r0, r0+n) of gate and up for some tokens; at is where each token's activations begin
			gateUp := func(gate, up matrix, r0, n int, tokens, at []int) {
				var xs [MaxBatch][]float32
				for i, m := range tokens {
					xs[i] = h[m*p.D : (m+1)*p.D]
				}
				g, u := ws.F32(len(tokens)*n), ws.F32(len(tokens)*n)
				fewVectors(g, gate, r0, n, xs[:len(tokens)], ws)
				fewVectors(u, up, r0, n, xs[:len(tokens)], ws)
				for i := range tokens {
					for j, v := range g[i*n : (i+1)*n] {
						act[at[i]+r0+j] = silu(v) * u[i*n+j]
					}
				}
			}
			var pairs, tokens, at [MaxBatch]int
			for i := lo; i < hi; {
				pair := i / p.I
				if pair >= p.M*p.T { // the shared expert, of all tokens
					for m := range p.M {
						tokens[m], at[m] = m, m*p.ActWidth()+p.T*p.I
					}
					gateUp(matrixOf(w, SegSharedGate, p.D, 4), matrixOf(w, SegSharedUp, p.D, 4), i-p.M*p.T*p.I, hi-i, tokens[:p.M], at[:p.M])
					break
				}
				end := min(hi, (pair+1)*p.I)
				users := p.Users(pairs[:0], ids, pair)
				for j, u := range users {
					tokens[j], at[j] = u/p.T, u/p.T*p.ActWidth()+u%p.T*p.I
				}
				if len(users) > 0 {
					e := int(ids[pair])
					gateUp(matrixOf(w, SegGate, p.D, 4).expert(e, p.I), matrixOf(w, SegUp, p.D, 4).expert(e, p.I), i-pair*p.I, end-i, tokens[:len(users)], at[:len(users)])
				}
				i = end
			}
		}}
}

// MoEDownAdd is the second half: x += Σ_k weights[k]·down_k(act_k) + weights[T]·shared_down(act_T) of each token, added in rank order. One item
// is one row.
func MoEDownAdd() Kernel {
	return Kernel{Name: "moe_down_add", Segments: 2, Grid: Tuning{}.moeDownGrid, Constants: Tuning{}.moeDownConstants, Check: moeBatchCheck,
		Buffers: []Buffer{{"act", F32, Read, "[M, T*I + SI]"}, {"ids", U32, Read, "[M, T]"}, {"weights", F32, Read, "[M, T+1]"}, {"x", F32, ReadWrite, "[M, D]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(MoEParams)
			act, ids, w := a[0].F32, a[1].U32, a[4:]
			n := hi - lo
			var pairs [MaxBatch]int
			var xs [MaxBatch][]float32
			y, part := ws.F32(p.M*p.T*n), ws.F32(p.M*n) // y by pair
			for pair := range p.M * p.T {
				users := p.Users(pairs[:0], ids, pair)
				if len(users) == 0 {
					continue
				}
				for i, u := range users {
					xs[i] = act[u/p.T*p.ActWidth()+u%p.T*p.I:][:p.I]
				}
				fewVectors(part, matrixOf(w, SegDown, p.I, 4).expert(int(ids[pair]), p.D), lo, n, xs[:len(users)], ws)
				for i, u := range users {
					copy(y[u*n:(u+1)*n], part[i*n:])
				}
			}
			for m := range p.M {
				xs[m] = act[m*p.ActWidth()+p.T*p.I:][:p.SI]
			}
			fewVectors(part, matrixOf(w, SegSharedDown, p.SI, 4), lo, n, xs[:p.M], ws)
			sum := ws.F32(n)
			for m := range p.M {
				clear(sum)
				for k := range p.T {
					addScaled(sum, y[(m*p.T+k)*n:], a[2].F32[m*(p.T+1)+k])
				}
				addScaled(sum, part[m*n:], a[2].F32[m*(p.T+1)+p.T])
				for i, v := range sum {
					a[3].F32[m*p.D+lo+i] += v
				}
			}
		}}
}

// MoERoute is the top-k of every token of a chunk; one item is one token.
func MoERoute() Kernel {
	return Kernel{Name: "moe_route", Grid: moeRouteGrid, Constants: moeConstants, Check: moeCheck,
		Buffers: []Buffer{{"logits", F32, Read, "[M, E+1]"}, {"ids", U32, Write, "[M, T]"}, {"weights", F32, Write, "[M, T+1]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(MoEParams)
			for m := lo; m < hi; m++ {
				p.Route(a[0].F32[m*(p.E+1):(m+1)*(p.E+1)], a[1].U32[m*p.T:(m+1)*p.T], a[2].F32[m*(p.T+1):(m+1)*(p.T+1)])
			}
		}}
}

// MoEGroup lists the (token, rank) pairs by expert: pairs [offsets[e], offsets[e+1]) of order use expert e, in order of token. A pair
// is token*T + rank. One item.
func MoEGroup() Kernel {
	return Kernel{Name: "moe_group", Grid: moeGroupGrid, Check: moeCheck,
		Buffers: []Buffer{{"ids", U32, Read, "[M, T]"}, {"order", U32, Write, "[M*T]"}, {"offsets", U32, Write, "[E+1]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(MoEParams)
			ids, order, offsets := a[0].U32[:p.M*p.T], a[1].U32, a[2].U32[:p.E+1]
			clear(offsets)
			for _, e := range ids {
				offsets[e+1]++
			}
			for e := range p.E {
				offsets[e+1] += offsets[e]
			}
			for pair, e := range ids { // offsets[e] runs to the expert's end, then is put back
				order[offsets[e]] = uint32(pair)
				offsets[e]++
			}
			copy(offsets[1:], offsets[:p.E])
			offsets[0] = 0
		}}
}

// EachExpert runs rows [lo, hi) of the stacked experts' outputs, n rows an expert, over the tokens of each expert.
func (p MoEParams) EachExpert(offsets []uint32, n, lo, hi int, f func(e, r0, r1 int, first, last uint32)) {
	for i := lo; i < hi; {
		e := i / n
		end := min(hi, (e+1)*n)
		if offsets[e] < offsets[e+1] {
			f(e, i-e*n, end-e*n, offsets[e], offsets[e+1])
		}
		i = end
	}
}

// MoEGateUpGrouped is gate, up and SwiGLU of every pair, expert by expert: act[i] belongs to pair order[i]. One item is one row of one
// expert, whatever tokens it has.
func MoEGateUpGrouped() Kernel {
	return Kernel{Name: "moe_gate_up_grouped", Segments: 2, Grid: Tuning{}.moeGateUpGroupedGrid, Constants: Tuning{}.groupedConstants, Check: moeCheck,
		Buffers: []Buffer{{"h", F32, Read, "[M, D]"}, {"order", U32, Read, "[M*T]"}, {"offsets", U32, Read, "[E+1]"}, {"act", F32, Write, "[M*T, I]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(MoEParams)
			groups := p.D / Group
			sums, acc := ws.F32(p.M*groups), ws.F32(tokenTile)
			groupSums(sums, a[0].F32[:p.M*p.D])
			g, u := ws.F32(tokenTile*p.I), ws.F32(tokenTile*p.I)
			var rows [tokenTile]uint32
			p.EachExpert(a[2].U32, p.I, lo, hi, func(e, r0, r1 int, first, last uint32) {
				n := r1 - r0
				for t0 := first; t0 < last; t0 += tokenTile {
					t1 := min(t0+tokenTile, last)
					for i, pair := range a[1].U32[t0:t1] {
						rows[i] = pair / uint32(p.T)
					}
					q := rowsTimesMatrix{m: matrixOf(a[4:], SegGate, p.D, 4).expert(e, p.I), r0: r0, r1: r1, x: a[0].F32, sums: sums, y: g, ldy: n,
						in: rows[:t1-t0], tokens: int(t1 - t0), acc: acc}
					q.run()
					q.m, q.y = matrixOf(a[4:], SegUp, p.D, 4).expert(e, p.I), u
					q.run()
					for t := range int(t1 - t0) {
						act := a[3].F32[(int(t0)+t)*p.I+r0:][:n]
						for i := range act {
							act[i] = silu(g[t*n+i]) * u[t*n+i]
						}
					}
				}
			})
		}}
}

// MoEDownGrouped is the down projection of every pair, stored by pair, so that the combination can add in rank order, as F32 or rounded to BF16. One
// item is one row of one expert.
func MoEDownGrouped(out DType) Kernel {
	return Kernel{Name: cacheName("moe_down_grouped", out), Segments: 1, Grid: Tuning{}.moeDownGroupedGrid, Constants: Tuning{}.groupedConstants, Check: moeCheck,
		Buffers: []Buffer{{"act", F32, Read, "[M*T, I]"}, {"order", U32, Read, "[M*T]"}, {"offsets", U32, Read, "[E+1]"}, {"y", out, Write, "[M*T, D]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(MoEParams)
			sums, acc := ws.F32(tokenTile*p.I/Group), ws.F32(tokenTile)
			var part []float32
			if out == BF16 {
				part = ws.F32(tokenTile * p.D)
			}
			p.EachExpert(a[2].U32, p.D, lo, hi, func(e, r0, r1 int, first, last uint32) {
				for t0 := first; t0 < last; t0 += tokenTile {
					t1 := min(t0+tokenTile, last)
					x := a[0].F32[int(t0)*p.I : int(t1)*p.I]
					groupSums(sums[:len(x)/Group], x)
					q := rowsTimesMatrix{m: matrixOf(a[4:], SegDown, p.I, 4).expert(e, p.D), r0: r0, r1: r1, x: x, sums: sums, y: a[3].F32, ldy: p.D, col: r0,
						out: a[1].U32[t0:t1], tokens: int(t1 - t0), acc: acc}
					if out == F32 {
						q.run()
						continue
					}
					n := r1 - r0
					q.y, q.ldy, q.col, q.out = part[:n*q.tokens], n, 0, nil
					q.run()
					for t, pair := range a[1].U32[t0:t1] {
						for i, v := range q.y[t*n : (t+1)*n] {
							putBF16(a[3].Raw, int(pair)*p.D+r0+i, v)
						}
					}
				}
			})
		}}
}

// MoECombine is x[m] += Σ_k weights[m,k]·y[m,k] + weights[m,T]·shared[m], added as MoEDownAdd adds, from what MoEDownGrouped stored; one item is one token.
func MoECombine(in DType) Kernel {
	return Kernel{Name: cacheName("moe_combine", in), Grid: moeCombineGrid,
		Buffers: []Buffer{{"y", in, Read, "[M, T, D]"}, {"shared", F32, Read, "[M, D]"}, {"weights", F32, Read, "[M, T+1]"}, {"x", F32, ReadWrite, "[M, D]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(MoEParams)
			sum := ws.F32(p.D)
			for m := lo; m < hi; m++ {
				w := a[2].F32[m*(p.T+1) : (m+1)*(p.T+1)]
				clear(sum)
				for k := range p.T {
					row := (m*p.T + k) * p.D
					if in == F32 {
						addScaled(sum, a[0].F32[row:], w[k])
						continue
					}
					for i := range sum {
						sum[i] += float32(w[k] * bf16(a[0].Raw, row+i))
					}
				}
				addScaled(sum, a[1].F32[m*p.D:], w[p.T])
				for i, v := range sum {
					a[3].F32[m*p.D+i] += v
				}
			}
		}}
}

func addScaled(dst, x []float32, w float32) {
	for i := range dst {
		dst[i] += float32(w * x[i])
	}
}

// MaxTopK is the largest T that the kernels take.
const MaxTopK = 64

// Valid reports whether the sizes are ones the kernels can run.
func (p MoEParams) Valid() bool { return p.T <= MaxTopK && p.T <= p.E && p.E < math.MaxInt32 }
