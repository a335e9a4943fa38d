package host

import (
	"math"

	"pond/metal/host/simd"
	"pond/metal/kernels"
)

// scratch is one worker's private memory, kept from chunk to chunk so that a step allocates nothing.
type scratch struct {
	kernels.Workspace
	id, prepared uint64 // of the dispatch being run, and of the one that what follows was prepared for
	head         int    // what part of it, where a dispatch has several

	h       []float32
	vecs    []simd.Vector
	rows    simd.Rows
	work    simd.Work
	ids     [kernels.MaxBatch * kernels.MaxTopK]uint32
	weights [kernels.MaxBatch * (kernels.MaxTopK + 1)]float32
	few     few
	act     [kernels.MaxBatch][]float32 // where the activations of s.few go

	q, k, gates    []float32 // of the gdn scan, and of attention
	gate, up, zero []float32
	scores, acc    []float32
}

func (s *scratch) begin(id uint64) {
	s.Reset()
	s.id = id
}

// fresh says whether the dispatch's prologue is still to be computed by this worker, and takes it for done.
func (s *scratch) fresh() bool {
	if s.prepared == s.id {
		return false
	}
	s.prepared, s.head = s.id, -1
	return true
}

// size returns n floats in *f's memory, contents undefined.
func size(f *[]float32, n int) []float32 {
	if cap(*f) < n {
		*f = make([]float32, n)
	}
	*f = (*f)[:n]
	return *f
}

// few are the vectors of one product and where their results go.
type few struct {
	vs    [kernels.MaxBatch]*simd.Vector
	y, up [kernels.MaxBatch][]float32
}

// padded is n rounded up to whole vectors of any level. What is left over after whole vectors is computed in another way, with other bits, so
// where work is cut must not decide what is left over.
func padded(n int) int { return (n + 15) &^ 15 }

// vectors are the first n prepared vectors.
func (s *scratch) vectors(n int) []simd.Vector {
	for len(s.vecs) < n {
		s.vecs = append(s.vecs, simd.Vector{})
	}
	return s.vecs[:n]
}

// run computes the work items [lo, hi) of a dispatch.
type run func(a []kernels.Arg, params any, lo, hi int, s *scratch)

// plain runs the reference.
func plain(k kernels.Run) run {
	return func(a []kernels.Arg, params any, lo, hi int, s *scratch) { k(a, params, lo, hi, &s.Workspace) }
}

// fast are vectorised kernels over one set of operations. They follow the references of package kernels item by item; what differs
// is the order of sums and the precision of activations in products.
type fast struct{ *simd.Set }

// fits says whether the vectorised kernels take these sizes: products take rows of whole pairs of groups.
func fits(params any) bool {
	switch p := params.(type) {
	case kernels.LinearParams:
		return simd.Fits(p.K)
	case kernels.HeadParams:
		return simd.Fits(p.Product.K)
	case kernels.MoEParams:
		return simd.Fits(p.D) && simd.Fits(p.I) && simd.Fits(p.SI)
	case kernels.GDNOutParams:
		return simd.Fits(p.GDN.ValueWidth())
	}
	return true
}

// all are the vectorised kernels by name.
func (f fast) all() map[string]run {
	return map[string]run{
		"q4_gemv_norm": f.gemvNorm, "q4_gemv_norm_bests": f.gemvNormBests, "q8_gemv_norm": f.gemvNorm, "q4_gemv_add": f.gemvAdd, "q4_gemv_gdn_out": f.gemvGDNOut,
		"q4_gemm": f.gemm, "q8_gemm": f.gemm, "q4_gemm_add": f.gemmAdd,
		"rmsnorm": f.rmsNorm, "silu_mul": f.siluMul,
		"moe_gate_up": f.moeGateUp, "moe_down_add": f.moeDownAdd, "moe_gate_up_grouped": f.moeGateUpGrouped, "moe_down_grouped": f.moeDownGrouped,
		"moe_combine": f.moeCombine,
		"gdn_step":    f.gdnStep, "gdn_conv": f.gdnConv, "gdn_scan": f.gdnScan, "gdn_gate_norm": f.gdnGateNorm,
		"attn_decode": f.attnDecode, "attn_combine": f.attnCombine, "attn_prep": f.attnPrep, "attn_prefill": f.attnPrefill,
	}
}

// Vectorised says which instruction set this processor's kernels use, and which kernels have no version of it and run as plain Go.
func Vectorised() (set string, plain []string) {
	all := fast{}.all()
	for _, k := range kernels.All() {
		if all[k.Name] == nil {
			plain = append(plain, k.Name)
		}
	}
	return simd.Best().String(), plain
}

// rms is 1/√(mean(x²) + eps).
func (f fast) rms(x []float32, eps float32) float32 {
	return float32(1 / math.Sqrt(float64(f.SumSquares(x))/float64(len(x))+float64(eps)))
}

func (f fast) normInto(dst, x []float32, w []byte, eps float32) { f.Norm(dst, x, w, f.rms(x, eps)) }

func matrix(a []kernels.Arg, segment, k, bits int) simd.Matrix {
	a = a[kernels.SegmentArgs*segment:]
	return simd.Matrix{Codes: a[0].Raw, Scales: a[1].Raw, Biases: a[2].Raw, K: k, Bits: bits}
}

// expert is matrix e of a stack of 4-bit matrices of n rows.
func expert(m simd.Matrix, e, n int) simd.Matrix {
	codes, groups := n*m.K/2, n*m.K/kernels.Group*2
	m.Codes, m.Scales, m.Biases = m.Codes[e*codes:(e+1)*codes], m.Scales[e*groups:(e+1)*groups], m.Biases[e*groups:(e+1)*groups]
	return m
}
