package simd

import "golang.org/x/sys/cpu"

// Best is the fastest level that this processor has.
func Best() Level {
	x := cpu.X86
	switch {
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI:
		return AVX512
	case x.HasAVX2 && x.HasFMA:
		return AVX2
	}
	return Portable
}

// New returns the operations of a level, which Best must reach.
func New(l Level, p Precision) *Set {
	switch l {
	case AVX512:
		return &Set{Level: l, Precision: p, floats: vectors512().floats(), products: products512()}
	case AVX2: // a 16-bit product costs a tenth more than an 8-bit one there, so that is what there is
		return &Set{Level: l, Precision: Int16, floats: vectorsAVX2().floats(), products: productsAVX2()}
	}
	return portable(p)
}
