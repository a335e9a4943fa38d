package kernels

// Tuning switches off choices of how a kernel is launched, to measure what they are worth. The zero value is what is shipped. LoneKeys, EvenBlocks and,
// where attn_decode would go by matrices, LoneHeads change the order of sums, TensorOps the precision of products; the others change no bit of any result.
type Tuning struct {
	NarrowSets  bool // products of one row: eight rows a set of lanes, never 16 or 32
	TallTiles   bool // products of many rows: tiles of 64 rows, however few rows there are
	LoneHeads   bool // attn_decode: a query head a threadgroup, so that heads of one KV head share no row's read
	LoneKeys    bool // attn_decode: a key's row is read by one thread, not by a simdgroup; by vectors
	EvenBlocks  bool // attn_decode and attn_combine: the keys are split evenly among the launch's blocks, whose places then move with the position
	StoredState bool // gdn_scan: the state lies in memory between tokens, not in registers
	TensorOps   bool // the kernels that TensorKernels lists: launched from TensorSource, which rounds x and the weights to bf16, and in attention the weights of values
}

// Tuned is a kernel with its launch changed; kernels that a field does not concern stay as they are.
func Tuned(k Kernel, t Tuning) Kernel {
	switch k.Name {
	case "q4_gemv_norm", "q8_gemv_norm", "q4_gemv_add":
		k.Grid, k.Constants = t.linearVectorGrid, t.linearVectorConstants
	case "q4_gemv_norm_bests":
		k.Grid, k.Constants, k.Check = t.headGrid, t.headConstants, t.headCheck
	case "q4_gemv_gdn_out":
		k.Grid, k.Constants = t.gdnOutGrid, t.gdnOutConstants
	case "moe_gate_up":
		k.Grid, k.Constants = t.moeGateUpGrid, t.moeGateUpConstants
	case "moe_down_add":
		k.Grid, k.Constants = t.moeDownGrid, t.moeDownConstants
	case "q4_gemm", "q8_gemm", "q4_gemm_add", "f32_gemm", "f32_gemm_add":
		k.Grid, k.Constants = t.linearMatrixGrid, t.linearMatrixConstants
	case "moe_gate_up_grouped":
		k.Grid, k.Constants = t.moeGateUpGroupedGrid, t.groupedConstants
	case "q4_gemm_split":
		k.Grid, k.Constants = t.linearSplitGrid, t.linearMatrixConstants
	case "moe_down_grouped", "moe_down_grouped_bf16":
		k.Grid, k.Constants = t.moeDownGroupedGrid, t.groupedConstants
	case "attn_decode":
		k.Grid, k.Constants = t.attnDecodeGrid(F32), t.attnDecodeConstants(F32)
	case "attn_decode_bf16":
		k.Grid, k.Constants = t.attnDecodeGrid(BF16), t.attnDecodeConstants(BF16)
	case "attn_combine":
		k.Constants = t.attnCombineConstants
	case "attn_prefill_bf16":
		k.Grid, k.Constants = t.attnPrefillGrid, t.attnPrefillConstants
	case "attn_prefill_split_bf16":
		k.Grid, k.Constants = t.attnSplitGrid, t.attnPrefillConstants
	case "gdn_scan":
		k.Constants = t.gdnScanConstants
	}
	return k
}

// choice is a function constant that chooses between two forms of a kernel.
func (t Tuning) choice(index int, yes bool) Constant {
	if yes {
		return Constant{index, int32(1)}
	}
	return Constant{index, int32(0)}
}

// rowGroups is how many groups of eight rows one set of lanes takes: the more, the less often x is read and prepared, while at least busy
// simdgroups remain to fill a GPU. sets is their number at one group each.
func (t Tuning) rowGroups(sets, lanes, busy int) int {
	groups := 1
	for !t.NarrowSets && groups < 4 && sets*lanes/simd/(2*groups) >= busy {
		groups *= 2
	}
	return groups
}

// Heights of a tile: powers of two between.
const (
	leastTileRows       = 8
	leastTensorTileRows = 32
	mostTileRows        = 64
)

// tileRows is the height of a tile for m rows.
func (t Tuning) tileRows(m int) int {
	switch {
	case t.TallTiles:
		return mostTileRows
	case t.TensorOps:
		return min(power(m, leastTensorTileRows), mostTileRows)
	}
	return min(power(m, leastTileRows), mostTileRows)
}

// tileBytes is the threadgroup memory of a tile: a step of x and of the weights, two of them in bf16 for tensor operations, or the finished tile,
// which takes their place.
func (t Tuning) tileBytes(rows int) int {
	if t.TensorOps {
		return max(2*2*(rows+tileCols)*tileDepth, 4*rows*tileCols)
	}
	return 4 * max((rows+tileCols)*(tileDepth+tilePad), rows*(tileCols+tilePad))
}

// sharedHeads is how many query heads one threadgroup of attn_decode takes: all of a KV head, so that they share each row, but fewer while
// there are too few blocks to fill a GPU; then the second reader finds the rows in the cache.
func (t Tuning) sharedHeads(cache DType, p AttentionParams) int {
	switch {
	case t.LoneHeads:
		return 1
	case t.matrixDecode(cache, p):
		return decodeHeads
	}
	heads := power(min(p.HeadsPerKV(), decodeHeads), 1)
	for heads > 1 && p.KV*p.Blocks*ceil(p.HeadsPerKV(), heads) < 128 {
		heads /= 2
	}
	return heads
}
