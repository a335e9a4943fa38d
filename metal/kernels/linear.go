package kernels

// LinearParams are the sizes of a product of M rows with up to four weight matrices of the same width.
type LinearParams struct {
	M    int              // rows of x
	K    int              // width of x, a multiple of 64
	Bits int              // 4 or 8
	Rows [MaxSegments]int // rows of each matrix, zero where absent; their outputs lie side by side
	Eps  float32          // of the norm in the prologue, where there is one
	// Parts is in how many parts K is taken, of whole groups each, where the kernel takes it in parts.
	Parts int
}

// N is the width of the output.
func (p LinearParams) N() int {
	n := 0
	for _, r := range p.Rows {
		n += r
	}
	return n
}

// EachSegment calls f for each matrix that rows [lo, hi) of the output touch: its index, the rows inside it, and where they lie in the
// output.
func (p LinearParams) EachSegment(lo, hi int, f func(segment, r0, r1, col int)) {
	col := 0
	for s, rows := range p.Rows {
		a, b := max(lo, col), min(hi, col+rows)
		if a < b {
			f(s, a-col, b-col, a)
		}
		col += rows
	}
}

// MaxBatch is how many rows the products of decode take: one token each of as many sequences. A row's sums are those that it would have
// alone, whatever its neighbours are.
const MaxBatch = 4

// batchRows computes output columns [lo, hi) of x Wᵀ for each of a few rows of x.
func (p LinearParams) batchRows(w []Arg, x []float32, lo, hi int, ws *Workspace, done func(m int, y []float32)) {
	if p.M == 1 {
		y := ws.F32(hi - lo)
		p.vectorRows(y, w, x, lo, hi, ws)
		done(0, y)
		return
	}
	p.matrixRows(w, x, lo, hi, ws, func(m0, m1 int, tile []float32) {
		for m := m0; m < m1; m++ {
			done(m, tile[(m-m0)*(hi-lo):(m-m0+1)*(hi-lo)])
		}
	})
}

// vectorRows computes output rows [lo, hi) of W x into dst.
func (p LinearParams) vectorRows(dst []float32, w []Arg, x []float32, lo, hi int, ws *Workspace) {
	sums := ws.F32(p.K / Group)
	groupSums(sums, x)
	p.EachSegment(lo, hi, func(s, r0, r1, col int) {
		rowsTimesVector(dst[col-lo:col-lo+r1-r0], matrixOf(w, s, p.K, p.Bits), r0, x, sums)
	})
}

// tokenTile is how many rows of x are worked on at once: 32 rows of 2,048 floats fill 256 KiB, which stays in a core's second
// cache while all weight rows pass.
const tokenTile = 32

// matrixRows computes output columns [lo, hi) of x Wᵀ for all M rows and hands each tile to done.
func (p LinearParams) matrixRows(w []Arg, x []float32, lo, hi int, ws *Workspace, done func(m0, m1 int, tile []float32)) {
	groups := p.K / Group
	most := min(tokenTile, p.M)
	sums := ws.F32(most * groups)
	acc := ws.F32(most)
	tile := ws.F32(most * (hi - lo))
	for m0 := 0; m0 < p.M; m0 += tokenTile {
		m1 := min(m0+tokenTile, p.M)
		xt := x[m0*p.K : m1*p.K]
		groupSums(sums[:(m1-m0)*groups], xt)
		p.EachSegment(lo, hi, func(s, r0, r1, col int) {
			rowsTimesMatrix{m: matrixOf(w, s, p.K, p.Bits), r0: r0, r1: r1, x: xt, sums: sums, y: tile, ldy: hi - lo, col: col - lo,
				tokens: m1 - m0, acc: acc}.run()
		})
		done(m0, m1, tile)
	}
}

// Q4GemvNorm is y = W (x̂ ⊙ norm), x̂ = x/rms(x), for one row or a few: the norm is recomputed by every worker, which costs K and saves
// a level.
func Q4GemvNorm() Kernel { return gemvNorm("q4_gemv_norm") }

// Q8GemvNorm is Q4GemvNorm for 8-bit weights: the router and the shared expert's gate.
func Q8GemvNorm() Kernel { return gemvNorm("q8_gemv_norm") }

func gemvNorm(name string) Kernel {
	return Kernel{Name: name, Segments: MaxSegments, Grid: Tuning{}.linearVectorGrid, Constants: Tuning{}.linearVectorConstants, Check: linearCheck,
		Buffers: []Buffer{{"x", F32, Read, "[M, K]"}, {"norm", BF16, Read, "[K]"}, {"y", F32, Write, "[M, N]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(LinearParams)
			h, n := ws.F32(p.M*p.K), p.N()
			for m := range p.M {
				normInto(h[m*p.K:(m+1)*p.K], a[0].F32[m*p.K:(m+1)*p.K], a[1].Raw, p.Eps)
			}
			p.batchRows(a[3:], h, lo, hi, ws, func(m int, y []float32) { copy(a[2].F32[m*n+lo:], y) })
		}}
}

// addTo is the residual: x[m] += y in columns from lo on.
func addTo(x []float32, n, lo int) func(m int, y []float32) {
	return func(m int, y []float32) {
		for i, v := range y {
			x[m*n+lo+i] += v
		}
	}
}

// Q4GemvAdd is x += W v for one row or a few.
func Q4GemvAdd() Kernel {
	return Kernel{Name: "q4_gemv_add", Segments: 1, Grid: Tuning{}.linearVectorGrid, Constants: Tuning{}.linearVectorConstants, Check: linearCheck,
		Buffers: []Buffer{{"v", F32, Read, "[M, K]"}, {"x", F32, ReadWrite, "[M, N]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(LinearParams)
			p.batchRows(a[2:], a[0].F32, lo, hi, ws, addTo(a[1].F32, p.N(), lo))
		}}
}

// Q4Gemm is y = x Wᵀ for M rows; one item is one output column.
func Q4Gemm() Kernel { return gemm("q4_gemm") }

// Q8Gemm is Q4Gemm for 8-bit weights.
func Q8Gemm() Kernel { return gemm("q8_gemm") }

func gemm(name string) Kernel {
	return Kernel{Name: name, Segments: MaxSegments, Grid: Tuning{}.linearMatrixGrid, Constants: Tuning{}.linearMatrixConstants,
		Buffers: []Buffer{{"x", F32, Read, "[M, K]"}, {"y", F32, Write, "[M, N]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(LinearParams)
			n, y := p.N(), a[1].F32
			p.matrixRows(a[2:], a[0].F32, lo, hi, ws, func(m0, m1 int, tile []float32) {
				for m := m0; m < m1; m++ {
					copy(y[m*n+lo:m*n+hi], tile[(m-m0)*(hi-lo):])
				}
			})
		}}
}

// Q4GemmAdd is x += v Wᵀ for M rows; one item is one output column.
func Q4GemmAdd() Kernel {
	return Kernel{Name: "q4_gemm_add", Segments: 1, Grid: Tuning{}.linearMatrixGrid, Constants: Tuning{}.linearMatrixConstants,
		Buffers: []Buffer{{"v", F32, Read, "[M, K]"}, {"x", F32, ReadWrite, "[M, N]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(LinearParams)
			n, x := p.N(), a[1].F32
			p.matrixRows(a[2:], a[0].F32, lo, hi, ws, func(m0, m1 int, tile []float32) {
				for m := m0; m < m1; m++ {
					for i, v := range tile[(m-m0)*(hi-lo) : (m-m0+1)*(hi-lo)] {
						x[m*n+lo+i] += v
					}
				}
			})
		}}
}

// Q4GemmSplit is the product of M rows in parts: y [Parts, M, N], part i over columns [i, i+1)·K/Parts. Few rows have few tiles; with parts there
// are enough to fill a GPU. One item is one output column.
func Q4GemmSplit() Kernel {
	return Kernel{Name: "q4_gemm_split", Segments: 1, Grid: Tuning{}.linearSplitGrid, Constants: Tuning{}.linearMatrixConstants, Check: linearSplitCheck,
		Buffers: []Buffer{{"x", F32, Read, "[M, K]"}, {"y", F32, Write, "[Parts, M, N]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(LinearParams)
			w, groups := matrixOf(a[2:], 0, p.K, p.Bits), p.K/Group/p.Parts
			var q [Group]float32
			for n := lo; n < hi; n++ {
				for m := range p.M {
					for part := range p.Parts {
						var acc float32
						for g := part * groups; g < (part+1)*groups; g++ {
							w.unpack(&q, n, g)
							x := (*[Group]float32)(a[0].F32[m*p.K+g*Group:])
							var sum float32
							for _, v := range x {
								sum += v
							}
							acc = w.accumulate(acc, dot(&q, x), sum, n, g)
						}
						a[1].F32[(part*p.M+m)*p.N()+n] = acc
					}
				}
			}
		}}
}

// EmbedParams are the sizes of the embedding gather.
type EmbedParams struct {
	M, D, Vocab int
}

// EmbedQ4 is x[m] = row tokens[m] of the 4-bit table; one item is one token.
func EmbedQ4() Kernel {
	return Kernel{Name: "embed_q4", Segments: 1, Grid: embedGrid,
		Buffers: []Buffer{{"tokens", U32, Read, "[M]"}, {"x", F32, Write, "[M, D]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(EmbedParams)
			w := matrixOf(a[2:], 0, p.D, 4)
			var q [Group]float32
			for m := lo; m < hi; m++ {
				row, x := int(a[0].U32[m]), a[1].F32[m*p.D:(m+1)*p.D]
				for g := range p.D / Group {
					w.unpack(&q, row, g)
					i := row*(p.D/Group) + g
					scale, bias := bf16(w.scales, i), bf16(w.biases, i)
					for j, v := range q {
						x[g*Group+j] = float32(scale*v) + bias
					}
				}
			}
		}}
}

// NormParams are the sizes of a norm over M rows.
type NormParams struct {
	M, D  int
	Eps   float32
	Parts int // of RMSNormAdd
}

// RMSNorm is y[m] = x[m]/rms(x[m]) ⊙ norm; one item is one row.
func RMSNorm() Kernel {
	return Kernel{Name: "rmsnorm", Grid: normGrid,
		Buffers: []Buffer{{"x", F32, Read, "[M, D]"}, {"norm", BF16, Read, "[D]"}, {"y", F32, Write, "[M, D]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(NormParams)
			for m := lo; m < hi; m++ {
				normInto(a[2].F32[m*p.D:(m+1)*p.D], a[0].F32[m*p.D:(m+1)*p.D], a[1].Raw, p.Eps)
			}
		}}
}

// RMSNormAdd is x[m] += Σ parts[i, m], then y[m] = x[m]/rms(x[m]) ⊙ norm: what Q4GemmSplit left is added where it is read first. One item is one row.
func RMSNormAdd() Kernel {
	return Kernel{Name: "rmsnorm_add", Grid: normGrid,
		Buffers: []Buffer{{"parts", F32, Read, "[Parts, M, D]"}, {"norm", BF16, Read, "[D]"}, {"x", F32, ReadWrite, "[M, D]"}, {"y", F32, Write, "[M, D]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(NormParams)
			for m := lo; m < hi; m++ {
				x := a[2].F32[m*p.D : (m+1)*p.D]
				for i := range x {
					more := a[0].F32[m*p.D+i]
					for part := 1; part < p.Parts; part++ {
						more += a[0].F32[(part*p.M+m)*p.D+i]
					}
					x[i] += more
				}
				normInto(a[3].F32[m*p.D:(m+1)*p.D], x, a[1].Raw, p.Eps)
			}
		}}
}

// SiluMulParams are the sizes of SiluMul.
type SiluMulParams struct {
	M, I int
}

// SiluMul is act[m] = silu(gate[m]) ⊙ up[m], gate and up side by side in gu; one item is one row.
func SiluMul() Kernel {
	return Kernel{Name: "silu_mul", Grid: siluMulGrid,
		Buffers: []Buffer{{"gu", F32, Read, "[M, 2*I]"}, {"act", F32, Write, "[M, I]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(SiluMulParams)
			for m := lo; m < hi; m++ {
				gu, act := a[0].F32[m*2*p.I:(m+1)*2*p.I], a[1].F32[m*p.I:(m+1)*p.I]
				for i := range act {
					act[i] = silu(gu[i]) * gu[p.I+i]
				}
			}
		}}
}
