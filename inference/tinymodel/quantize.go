package tinymodel

import (
	"encoding/binary"
	"math"
)

// Quantize stores values, whose rows are a multiple of group long, as MLX's affine quantisation: codes of bits bits, the
// lowest index in the lowest bits of little-endian words, and one bfloat16 scale and bias for each group, so that
// value = scale*code + bias. The larger edge of a group is hit exactly, hence the often negative scales. All steps are in
// float32; codes are chosen with the scale and bias before these are rounded. Source: affine_quantize in
// ml-explore/mlx, mlx/backend/metal/kernels/quantized.h.
func Quantize(values []float32, group, bits int) (codes, scales, biases []byte) {
	codes = make([]byte, 0, len(values)*bits/8)
	scales = make([]byte, 0, 2*len(values)/group)
	biases = make([]byte, 0, 2*len(values)/group)
	top := float32(int(1)<<bits - 1)
	for ; len(values) >= group; values = values[group:] {
		hi, lo := float32(0), float32(math.Inf(1))
		for _, v := range values[:group] {
			hi, lo = max(hi, v), min(lo, v)
		}
		scale := max((hi-lo)/top, 1e-7)
		edge := lo
		if !(abs(lo) > abs(hi)) {
			scale, edge = -scale, hi
		}
		bias := float32(0)
		if q0 := round(edge / scale); q0 != 0 {
			scale, bias = edge/q0, edge
		}
		var word uint32
		filled := 0
		for _, v := range values[:group] {
			q := min(max(round((v-bias)/scale), 0), top)
			word |= uint32(q) << filled
			if filled += bits; filled == 32 {
				codes = binary.LittleEndian.AppendUint32(codes, word)
				word, filled = 0, 0
			}
		}
		scales = binary.LittleEndian.AppendUint16(scales, bf16Bits(scale))
		biases = binary.LittleEndian.AppendUint16(biases, bf16Bits(bias))
	}
	return codes, scales, biases
}

func abs(v float32) float32 { return float32(math.Abs(float64(v))) }

// round rounds to the nearest whole number, halves away from zero.
func round(v float32) float32 { return float32(math.Round(float64(v))) }
