package kernels

import "math"

// AttentionParams are the sizes of the attention kernels.
type AttentionParams struct {
	M         int // tokens of the chunk, 1 in decode
	H, KV, HD int
	R         int // rotated dims, the first of each head
	Blocks    int // AttnBlock-key blocks that decode may need; results beyond the context are not written
	Context   int // rows of the cache
	Eps       float32
}

// HeadsPerKV is how many query heads share a key/value head.
func (p AttentionParams) HeadsPerKV() int { return p.H / p.KV }

// KVWidth is the width of a cached row of keys, or of values.
func (p AttentionParams) KVWidth() int { return p.KV * p.HD }
func (p AttentionParams) Stride() int  { return 2*p.H*p.HD + 2*p.KVWidth() } // of a row of qkv

// A row of qkv is, per query head, HD of query and HD of gate; then all keys; then all values (spec 2.5).
func (p AttentionParams) Query(qkv []float32, h int) []float32 { return qkv[2*h*p.HD:][:p.HD] }
func (p AttentionParams) Gate(qkv []float32, h int) []float32  { return qkv[(2*h+1)*p.HD:][:p.HD] }
func (p AttentionParams) Key(qkv []float32, kv int) []float32 {
	return qkv[2*p.H*p.HD+kv*p.HD:][:p.HD]
}
func (p AttentionParams) Value(qkv []float32, kv int) []float32 {
	return qkv[2*p.H*p.HD+p.KVWidth()+kv*p.HD:][:p.HD]
}

// cached is a cache of keys or values as a reference sees it: floats, or bf16 bytes.
type cached struct {
	AttentionParams
	f32 []float32
	raw []byte
}

func (p AttentionParams) cached(a Arg) cached { return cached{p, a.F32, a.Raw} }

// row is the key or value of one position and head, in tmp [HD] where it is not kept as floats.
func (c cached) row(tmp []float32, pos, kv int) []float32 {
	if c.raw == nil {
		return c.Row(c.f32, pos, kv)
	}
	at := pos*c.KVWidth() + kv*c.HD
	for i := range tmp {
		tmp[i] = bf16(c.raw, at+i)
	}
	return tmp
}

// put stores a row.
func (c cached) put(row []float32, pos, kv int) {
	if c.raw == nil {
		copy(c.Row(c.f32, pos, kv), row)
		return
	}
	at := pos*c.KVWidth() + kv*c.HD
	for i, v := range row {
		putBF16(c.raw, at+i, v)
	}
}

// cacheName is a kernel's name over a cache of that type.
func cacheName(name string, cache DType) string {
	if cache == BF16 {
		return name + "_bf16"
	}
	return name
}

// Row is the cached key or value of one position and head; the cache is [Context, KV, HD].
func (p AttentionParams) Row(cache []float32, pos, kv int) []float32 {
	return cache[pos*p.KVWidth()+kv*p.HD:][:p.HD]
}

// queryRow is the row of q that holds query head h of token m: q is [KV, M, H/KV, HD], so that the heads of a KV head are the rows of one matrix.
func (p AttentionParams) queryRow(m, h int) int {
	return (h/p.HeadsPerKV()*p.M+m)*p.HeadsPerKV() + h%p.HeadsPerKV()
}

// PreparedQueries are n query heads of token m from h on, all of one KV head, in q as AttnPrep writes it.
func (p AttentionParams) PreparedQueries(q []float32, m, h, n int) []float32 {
	return q[p.queryRow(m, h)*p.HD:][:n*p.HD]
}

// query is the same in tmp [HD] where q is kept as bf16.
func (p AttentionParams) query(q Arg, tmp []float32, m, h int) []float32 {
	if q.Raw == nil {
		return p.PreparedQueries(q.F32, m, h, 1)
	}
	for i := range tmp {
		tmp[i] = bf16(q.Raw, p.queryRow(m, h)*p.HD+i)
	}
	return tmp
}

// normRope is RMSNorm over the head, then rotation of pairs (i, i+R/2) by the angles of the token: cs is cosines then sines,
// R/2 of each, computed by the host in float64 because an angle of 262,143 rad has no fraction left in fast float32.
func (p AttentionParams) normRope(dst, x []float32, norm []byte, cs []float32) {
	normInto(dst, x, norm, p.Eps)
	half := p.R / 2
	for i := range half {
		a, b, c, s := dst[i], dst[i+half], cs[i], cs[half+i]
		dst[i] = float32(a*c) - float32(b*s)
		dst[i+half] = float32(b*c) + float32(a*s)
	}
}

// partial is the softmax-weighted sum of the values of one block of keys, not yet divided: acc = Σ exp(s−max)·v, sum = Σ exp(s−max).
type partial struct {
	max, sum float32
}

// block computes one partial for one query over cached positions [k0, k1) of a KV head, keys in order.
func (p AttentionParams) block(acc, q []float32, keys, values cached, scores, tmp []float32, kv, k0, k1 int) partial {
	scale := float32(1 / math.Sqrt(float64(p.HD)))
	r := partial{max: float32(math.Inf(-1))}
	for t := k0; t < k1; t++ {
		var s float32
		for i, k := range keys.row(tmp, t, kv) {
			s += float32(q[i] * k)
		}
		s *= scale
		scores[t-k0] = s
		r.max = max(r.max, s)
	}
	clear(acc)
	for t := k0; t < k1; t++ {
		e := exp(scores[t-k0] - r.max)
		r.sum += e
		for i, v := range values.row(tmp, t, kv) {
			acc[i] += float32(e * v)
		}
	}
	return r
}

// merge folds the partials of the blocks, in order, into o = (Σ w·acc / Σ w·sum) ⊙ sigmoid(gate) with w = exp(max − largest max).
func (p AttentionParams) merge(o []float32, blocks int, part func(b int) partial, acc func(b int) []float32, gate []float32) {
	top := float32(math.Inf(-1))
	for b := range blocks {
		top = max(top, part(b).max)
	}
	clear(o)
	var total float32
	for b := range blocks {
		w := exp(part(b).max - top)
		total += float32(w * part(b).sum)
		for i, v := range acc(b) {
			o[i] += float32(w * v)
		}
	}
	for i := range o {
		o[i] = o[i] / total * sigmoid(gate[i])
	}
}

func blocksOf(keys int) int { return (keys + AttnBlock - 1) / AttnBlock }

// DecodeItems is the grid of AttnDecode: KV heads times blocks.
func (p AttentionParams) DecodeItems() int { return p.KV * p.Blocks }

// AttnDecode is one token's attention up to the partials: norm and rotation of the queries of a KV head, and, by the item that owns
// the current block, of the key, which it appends with the value to the cache; then one partial a query head. One item is one block
// of one KV head, so the query heads that share a row read it together. cache is how keys and values are kept: F32, or BF16, rounded to
// nearest even as they are stored.
func AttnDecode(cache DType) Kernel {
	return Kernel{Name: cacheName("attn_decode", cache), Grid: Tuning{}.attnDecodeGrid(cache), Constants: Tuning{}.attnDecodeConstants(cache), Check: attnCheck,
		Buffers: []Buffer{{"qkv", F32, Read, "[Stride]"}, {"q_norm", BF16, Read, "[HD]"}, {"k_norm", BF16, Read, "[HD]"}, {"rope", F32, Read, "[R] cos, sin"},
			{"step", U32, Read, "[1] position"}, {"keys", cache, ReadWrite, "[Context, KV, HD]"}, {"values", cache, ReadWrite, "[Context, KV, HD]"},
			{"acc", F32, Write, "[H, NB, HD]"}, {"stats", F32, Write, "[H, NB, 2] max, sum"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(AttentionParams)
			qkv, pos := a[0].F32, int(a[4].U32[0])
			q, scores, tmp := ws.F32(p.HD), ws.F32(AttnBlock), ws.F32(p.HD)
			keys, values := p.cached(a[5]), p.cached(a[6])
			for i := lo; i < hi; i++ {
				kv, b := i/p.Blocks, i%p.Blocks
				k0, k1 := b*AttnBlock, min((b+1)*AttnBlock, pos+1)
				if k0 >= k1 {
					continue
				}
				if k1 == pos+1 {
					p.normRope(q, p.Key(qkv, kv), a[2].Raw, a[3].F32)
					keys.put(q, pos, kv)
					values.put(p.Value(qkv, kv), pos, kv)
				}
				for h := kv * p.HeadsPerKV(); h < (kv+1)*p.HeadsPerKV(); h++ {
					p.normRope(q, p.Query(qkv, h), a[1].Raw, a[3].F32)
					slot := h*p.Blocks + b
					r := p.block(a[7].F32[slot*p.HD:(slot+1)*p.HD], q, keys, values, scores, tmp, kv, k0, k1)
					a[8].F32[2*slot], a[8].F32[2*slot+1] = r.max, r.sum
				}
			}
		}}
}

// AttnCombine merges the partials of one token and applies the output gate; one item is one query head.
func AttnCombine() Kernel {
	return Kernel{Name: "attn_combine", Grid: attnCombineGrid, Constants: Tuning{}.attnCombineConstants, Check: attnCheck,
		Buffers: []Buffer{{"acc", F32, Read, "[H, NB, HD]"}, {"stats", F32, Read, "[H, NB, 2]"}, {"qkv", F32, Read, "[Stride]"}, {"step", U32, Read, "[1] position"},
			{"o", F32, Write, "[H, HD]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(AttentionParams)
			n := blocksOf(int(a[3].U32[0]) + 1)
			for h := lo; h < hi; h++ {
				p.merge(a[4].F32[h*p.HD:(h+1)*p.HD], n,
					func(b int) partial {
						s := a[1].F32[2*(h*p.Blocks+b):]
						return partial{s[0], s[1]}
					},
					func(b int) []float32 { return a[0].F32[(h*p.Blocks+b)*p.HD:][:p.HD] },
					p.Gate(a[2].F32, h))
			}
		}}
}

// AttnPrep normalises and rotates the queries and keys of a chunk and appends keys and values to the cache; one item is one token. Queries are
// kept as keys are, since they meet in products of matrices.
func AttnPrep(cache DType) Kernel {
	return Kernel{Name: cacheName("attn_prep", cache), Grid: attnPrepGrid, Constants: attnPrepConstants, Check: attnCheck,
		Buffers: []Buffer{{"qkv", F32, Read, "[M, Stride]"}, {"q_norm", BF16, Read, "[HD]"}, {"k_norm", BF16, Read, "[HD]"}, {"rope", F32, Read, "[M, R] cos, sin"},
			{"step", U32, Read, "[1] position"}, {"q", cache, Write, "[KV, M, H/KV, HD]"}, {"keys", cache, ReadWrite, "[Context, KV, HD]"}, {"values", cache, ReadWrite, "[Context, KV, HD]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(AttentionParams)
			pos, row := int(a[4].U32[0]), ws.F32(p.HD)
			keys, values := p.cached(a[6]), p.cached(a[7])
			for m := lo; m < hi; m++ {
				qkv, cs := a[0].F32[m*p.Stride():(m+1)*p.Stride()], a[3].F32[m*p.R:(m+1)*p.R]
				for h := range p.H {
					if cache == BF16 {
						p.normRope(row, p.Query(qkv, h), a[1].Raw, cs)
						for i, v := range row {
							putBF16(a[5].Raw, p.queryRow(m, h)*p.HD+i, v)
						}
						continue
					}
					p.normRope(p.PreparedQueries(a[5].F32, m, h, 1), p.Query(qkv, h), a[1].Raw, cs)
				}
				for kv := range p.KV {
					p.normRope(row, p.Key(qkv, kv), a[2].Raw, cs)
					keys.put(row, pos+m, kv)
					values.put(p.Value(qkv, kv), pos+m, kv)
				}
			}
		}}
}

// PrefillItems is the grid of AttnPrefill: tokens times query heads.
func (p AttentionParams) PrefillItems() int { return p.M * p.H }

// AttnPrefill is causal attention of a chunk over the cache, gated; one item is one query head of one token. Blocks are cut and merged
// as in decode, so both give the same bits.
func AttnPrefill(cache DType) Kernel {
	return Kernel{Name: cacheName("attn_prefill", cache), Grid: Tuning{}.attnPrefillGrid, Constants: Tuning{}.attnPrefillConstants, Check: attnCheck,
		Buffers: []Buffer{{"q", cache, Read, "[KV, M, H/KV, HD]"}, {"keys", cache, Read, "[Context, KV, HD]"}, {"values", cache, Read, "[Context, KV, HD]"},
			{"qkv", F32, Read, "[M, Stride]"}, {"step", U32, Read, "[1] position"}, {"o", F32, Write, "[M, H, HD]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(AttentionParams)
			pos := int(a[4].U32[0])
			most := blocksOf(pos + p.M)
			acc, stats, scores, tmp, row := ws.F32(most*p.HD), ws.F32(2*most), ws.F32(AttnBlock), ws.F32(p.HD), ws.F32(p.HD)
			cachedKeys, cachedValues := p.cached(a[1]), p.cached(a[2])
			for i := lo; i < hi; i++ {
				m, h := i/p.H, i%p.H
				q, keys := p.query(a[0], row, m, h), pos+m+1
				for b := range blocksOf(keys) {
					r := p.block(acc[b*p.HD:(b+1)*p.HD], q, cachedKeys, cachedValues, scores, tmp, h/p.HeadsPerKV(), b*AttnBlock, min((b+1)*AttnBlock, keys))
					stats[2*b], stats[2*b+1] = r.max, r.sum
				}
				p.merge(a[5].F32[i*p.HD:(i+1)*p.HD], blocksOf(keys),
					func(b int) partial { return partial{stats[2*b], stats[2*b+1]} },
					func(b int) []float32 { return acc[b*p.HD : (b+1)*p.HD] },
					p.Gate(a[3].F32[m*p.Stride():], h))
			}
		}}
}

// partKeys are the keys [k0, k1) of part b of Blocks, for a chunk behind pos others: whole blocks of keys.
func (p AttentionParams) partKeys(pos, b int) (k0, k1 int) {
	span := round(ceil(pos+p.M, p.Blocks), AttnBlock)
	return b * span, (b + 1) * span
}

// SplitItems is the grid of AttnPrefillSplit: parts of query heads of tokens.
func (p AttentionParams) SplitItems() int { return p.M * p.H * p.Blocks }

// AttnPrefillSplit is AttnPrefill for Blocks parts of the keys, up to the parts' sums: a short chunk behind a long context has too few queries to fill a GPU.
// stats are in units of log2. A part with no key before a query has zeroes. One item is one part of one query head of one token.
func AttnPrefillSplit(cache DType) Kernel {
	return Kernel{Name: cacheName("attn_prefill_split", cache), Grid: Tuning{}.attnSplitGrid, Constants: Tuning{}.attnPrefillConstants, Check: splitCheck,
		Buffers: []Buffer{{"q", cache, Read, "[KV, M, H/KV, HD]"}, {"keys", cache, Read, "[Context, KV, HD]"}, {"values", cache, Read, "[Context, KV, HD]"}, {"step", U32, Read, "[1] position"},
			{"acc", F32, Write, "[M, H, NB, HD]"}, {"stats", F32, Write, "[M, H, NB, 2] max, sum"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(AttentionParams)
			pos := int(a[3].U32[0])
			scores, tmp, part, query := ws.F32(AttnBlock), ws.F32(p.HD), ws.F32(p.HD), ws.F32(p.HD)
			keys, values := p.cached(a[1]), p.cached(a[2])
			for i := lo; i < hi; i++ {
				row, b := i/p.Blocks, i%p.Blocks
				m, h := row/p.H, row%p.H
				first, end := p.partKeys(pos, b)
				end = min(end, pos+m+1)
				q := p.query(a[0], query, m, h)
				whole, acc := partial{max: float32(math.Inf(-1))}, a[4].F32[i*p.HD:(i+1)*p.HD]
				clear(acc)
				a[5].F32[2*i], a[5].F32[2*i+1] = lowest, 0
				if first >= end {
					continue
				}
				for k0 := first; k0 < end; k0 += AttnBlock {
					r := p.block(part, q, keys, values, scores, tmp, h/p.HeadsPerKV(), k0, min(k0+AttnBlock, end))
					top := max(whole.max, r.max)
					before, now := exp(whole.max-top), exp(r.max-top)
					for j, v := range part {
						acc[j] = float32(acc[j]*before) + float32(v*now)
					}
					whole = partial{top, float32(whole.sum*before) + float32(r.sum*now)}
				}
				a[5].F32[2*i], a[5].F32[2*i+1] = whole.max*math.Log2E, whole.sum
			}
		}}
}

// lowest stands for minus infinity, as in prelude.metal.
const lowest = -3.4e38

// AttnPrefillMerge adds the parts of AttnPrefillSplit up and applies the output gate; one item is one query head of one token.
func AttnPrefillMerge() Kernel {
	return Kernel{Name: "attn_prefill_merge", Grid: attnMergeGrid, Constants: attnPrepConstants, Check: splitCheck,
		Buffers: []Buffer{{"acc", F32, Read, "[M, H, NB, HD]"}, {"stats", F32, Read, "[M, H, NB, 2] max, sum"}, {"qkv", F32, Read, "[M, Stride]"}, {"o", F32, Write, "[M, H, HD]"}},
		Run: func(a []Arg, params any, lo, hi int, _ *Workspace) {
			p := params.(AttentionParams)
			for i := lo; i < hi; i++ {
				m, h := i/p.H, i%p.H
				stats := a[1].F32[2*i*p.Blocks : 2*(i+1)*p.Blocks]
				top := float32(lowest)
				for b := range p.Blocks {
					if stats[2*b+1] > 0 {
						top = max(top, stats[2*b])
					}
				}
				o := a[3].F32[i*p.HD : (i+1)*p.HD]
				clear(o)
				var total float32
				for b := range p.Blocks {
					if stats[2*b+1] <= 0 {
						continue
					}
					w := float32(math.Exp2(float64(stats[2*b] - top)))
					total += float32(w * stats[2*b+1])
					for j, v := range a[0].F32[(i*p.Blocks+b)*p.HD:][:p.HD] {
						o[j] += float32(w * v)
					}
				}
				for j, gate := range p.Gate(a[2].F32[m*p.Stride():], h) {
					o[j] = o[j] / total * sigmoid(gate)
				}
			}
		}}
}
