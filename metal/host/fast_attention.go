package host

import (
	"math"

	"pond/metal/kernels"
)

// keyTile is how many keys all query heads of a key head meet before the next: 16 of 256 floats are 16 KiB of the first cache.
const keyTile = 16

func (f fast) normRope(p kernels.AttentionParams, dst, x []float32, norm []byte, cs []float32) {
	f.normInto(dst, x, norm, p.Eps)
	half := p.R / 2
	for i := range half {
		a, b, c, s := dst[i], dst[i+half], cs[i], cs[half+i]
		dst[i], dst[i+half] = a*c-b*s, b*c+a*s
	}
}

// block computes the partials of some queries [n, HD], scaled by 1/√HD, over cached positions [k0, k1) of a KV head: acc [n, HD] and, of each, the
// maximum and the sum.
func (f fast) block(p kernels.AttentionParams, acc, stats, q, keys, values []float32, kv, k0, k1, n int, s *scratch) {
	count, w := k1-k0, p.KVWidth()
	scores := size(&s.scores, n*kernels.AttnBlock)
	for t := 0; t < count; t += keyTile {
		rows := keys[(k0+t)*w+kv*p.HD:]
		for h := range n {
			f.DotRows(scores[h*kernels.AttnBlock+t:][:min(keyTile, count-t)], q[h*p.HD:(h+1)*p.HD], rows, w)
		}
	}
	for h := range n {
		e := scores[h*kernels.AttnBlock:][:count]
		stats[2*h] = f.Max(e)
		stats[2*h+1] = f.ExpSum(e, stats[2*h])
	}
	clear(acc[:n*p.HD])
	for t := 0; t < count; t += keyTile {
		rows := values[(k0+t)*w+kv*p.HD:]
		for h := range n {
			f.AddRows(acc[h*p.HD:(h+1)*p.HD], scores[h*kernels.AttnBlock+t:][:min(keyTile, count-t)], rows, w)
		}
	}
}

func (f fast) attnDecode(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.AttentionParams)
	qkv, pos, n := a[0].F32, int(a[4].U32[0]), p.HeadsPerKV()
	s.fresh()
	q, acc, stats := size(&s.q, n*p.HD), size(&s.acc, n*p.HD), s.F32(2*n)
	scale := float32(1 / math.Sqrt(float64(p.HD)))
	for i := lo; i < hi; i++ {
		kv, b := i/p.Blocks, i%p.Blocks
		k0, k1 := b*kernels.AttnBlock, min((b+1)*kernels.AttnBlock, pos+1)
		if k0 >= k1 {
			continue
		}
		if k1 == pos+1 {
			f.normRope(p, p.Row(a[5].F32, pos, kv), p.Key(qkv, kv), a[2].Raw, a[3].F32)
			copy(p.Row(a[6].F32, pos, kv), p.Value(qkv, kv))
		}
		if s.head != kv {
			for h := range n {
				f.normRope(p, q[h*p.HD:(h+1)*p.HD], p.Query(qkv, kv*n+h), a[1].Raw, a[3].F32)
			}
			f.Scale(q, q, scale)
			s.head = kv
		}
		f.block(p, acc, stats, q, a[5].F32, a[6].F32, kv, k0, k1, n, s)
		for h := range n {
			slot := (kv*n+h)*p.Blocks + b
			copy(a[7].F32[slot*p.HD:(slot+1)*p.HD], acc[h*p.HD:(h+1)*p.HD])
			copy(a[8].F32[2*slot:2*slot+2], stats[2*h:])
		}
	}
}

func exp32(x float32) float32 { return float32(math.Exp(float64(x))) }

func (f fast) attnCombine(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.AttentionParams)
	n := (int(a[3].U32[0]) + kernels.AttnBlock) / kernels.AttnBlock
	weights := s.F32(n)
	for h := lo; h < hi; h++ {
		stats := a[1].F32[2*h*p.Blocks:]
		top := float32(math.Inf(-1))
		for b := range n {
			top = max(top, stats[2*b])
		}
		var total float32
		for b := range n {
			weights[b] = exp32(stats[2*b] - top)
			total += weights[b] * stats[2*b+1]
		}
		o := a[4].F32[h*p.HD : (h+1)*p.HD]
		clear(o)
		f.AddRows(o, weights, a[0].F32[h*p.Blocks*p.HD:], p.HD)
		f.MulSigmoid(o, o, p.Gate(a[2].F32, h), 1/total)
	}
}

func (f fast) attnPrep(a []kernels.Arg, params any, lo, hi int, _ *scratch) {
	p := params.(kernels.AttentionParams)
	pos := int(a[4].U32[0])
	for m := lo; m < hi; m++ {
		qkv, cs := a[0].F32[m*p.Stride():(m+1)*p.Stride()], a[3].F32[m*p.R:(m+1)*p.R]
		for h := range p.H {
			f.normRope(p, p.PreparedQueries(a[5].F32, m, h, 1), p.Query(qkv, h), a[1].Raw, cs)
		}
		for kv := range p.KV {
			f.normRope(p, p.Row(a[6].F32, pos+m, kv), p.Key(qkv, kv), a[2].Raw, cs)
			copy(p.Row(a[7].F32, pos+m, kv), p.Value(qkv, kv))
		}
	}
}

// attnPrefill takes the query heads of a token that share a key head together; their partials are merged block by block.
func (f fast) attnPrefill(a []kernels.Arg, params any, lo, hi int, s *scratch) {
	p := params.(kernels.AttentionParams)
	pos, scale := int(a[4].U32[0]), float32(1/math.Sqrt(float64(p.HD)))
	shared := p.HeadsPerKV()
	q, acc, stats, tops, sums := size(&s.q, shared*p.HD), size(&s.acc, shared*p.HD), s.F32(2*shared), s.F32(shared), s.F32(shared)
	for i := lo; i < hi; {
		m, h := i/p.H, i%p.H
		kv := h / shared
		n := min((kv+1)*shared-h, hi-i)
		f.Scale(q[:n*p.HD], p.PreparedQueries(a[0].F32, m, h, n), scale)
		o := a[5].F32[i*p.HD : (i+n)*p.HD]
		for k0, keys := 0, pos+m+1; k0 < keys; k0 += kernels.AttnBlock {
			f.block(p, acc, stats, q, a[1].F32, a[2].F32, kv, k0, min(k0+kernels.AttnBlock, keys), n, s)
			for j := range n {
				part, whole := acc[j*p.HD:(j+1)*p.HD], o[j*p.HD:(j+1)*p.HD]
				if k0 == 0 {
					copy(whole, part)
					tops[j], sums[j] = stats[2*j], stats[2*j+1]
					continue
				}
				top := max(tops[j], stats[2*j])
				before, now := exp32(tops[j]-top), exp32(stats[2*j]-top)
				if before != 1 {
					f.Scale(whole, whole, before)
				}
				f.AddScaled(whole, part, now)
				tops[j], sums[j] = top, sums[j]*before+stats[2*j+1]*now
			}
		}
		for j := range n {
			whole := o[j*p.HD : (j+1)*p.HD]
			f.MulSigmoid(whole, whole, p.Gate(a[3].F32[m*p.Stride():], h+j), 1/sums[j])
		}
		i += n
	}
}
