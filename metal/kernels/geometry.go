package kernels

import "fmt"

// The launch of each kernel on a GPU: threadgroups, threads, dynamic threadgroup memory, and the values of function constants. The
// numbers here and the .metal files belong together; what a thread, simdgroup and threadgroup owns is said there.

// Grid is how a dispatch is launched: dispatchThreadgroups:threadsPerThreadgroup:, with ThreadgroupBytes of dynamic threadgroup memory
// at index 0 (none when zero).
type Grid struct {
	Groups, Threads  [3]int
	ThreadgroupBytes int
}

// Constant is the value of one Metal function constant: an int32 or a bool.
type Constant struct {
	Index int
	Value any
}

// Indices of the function constants, as in prelude.metal. They are sizes that a compiler should know, so that loops over them
// unroll and arrays stay in registers.
const (
	constHeadLanes   = iota // HD/32: dims of an attention head that a lane holds
	constHeadsGroup         // query heads that a threadgroup of attn_decode takes
	constMatrix             // 1: attention by simdgroup matrices
	constKeyLanes           // DK/32: dims of a gdn key that a lane holds
	constTileRows           // rows of x that a threadgroup of a product of many rows takes
	constExpertLanes        // router logits that a lane holds
	constRowGroups          // groups of eight rows that a set of lanes takes
	constLeastRows          // least height of a tile of an expert's rows
	constLoneKeys           // 1: attn_decode reads a key's row by one thread
	constEvenBlocks         // 1: attention of one token splits its keys evenly
	constStoredState        // 1: gdn_scan keeps the state in memory between tokens
	constWidth              // columns of a product of one row; of an expert's down I; of a cached row in attn_decode
	constSharedWidth        // moe_down_add: columns of the shared expert's
	constExpertRows         // moe_gate_up: rows of an expert's gate
	constSeveral            // 1: a product of one row is of a few rows, each by threadgroups of its own
	constValueWidth         // q4_gemv_gdn_out: DV
)

const (
	simd           = 32   // threads of a simdgroup
	maxThreads     = 1024 // threads of a threadgroup
	laneWeights    = 32   // columns of a product of one row that a lane owns: 16 bytes of 4-bit codes
	rowSet         = 8    // rows of a product of one row that one set of lanes computes
	tileCols       = 64   // output columns of a tile of a product of many rows
	tileDepth      = 32   // columns of x that a step of the tile brings into threadgroup memory
	tilePad        = 4    // floats between rows of a tile in threadgroup memory
	maxExperts     = 1024 // E that one simdgroup can rank
	maxSimdTopK    = 32   // T that one simdgroup can rank
	maxHeadDim     = 256  // HD of the attention kernels
	maxKeyDim      = 256  // DK of the gdn kernels
	decodeHeads    = 8    // query heads of a KV head that a threadgroup of attn_decode takes at most
	prefillQueries = 8    // queries of one row group of attn_prefill
	prefillKeys    = 64   // keys of a step of attn_prefill
	tensorQueries  = 64   // rows of (query, head) of a threadgroup of attn_prefill by tensor operations
)

func grid1(groups, threads int) Grid {
	return Grid{Groups: [3]int{groups, 1, 1}, Threads: [3]int{threads, 1, 1}}
}

func grid2(x, y, threads int) Grid {
	return Grid{Groups: [3]int{x, y, 1}, Threads: [3]int{threads, 1, 1}}
}

func ceil(a, b int) int { return (a + b - 1) / b }

// round is a, rounded up to a multiple of b.
func round(a, b int) int { return ceil(a, b) * b }

// power is the smallest power of two that is at least a, and at least least.
func power(a, least int) int {
	p := least
	for p < a {
		p *= 2
	}
	return p
}

// setLanes is how many lanes share a row of K columns.
func setLanes(k int) int { return power(ceil(k, laneWeights), rowSet) }

// Simdgroups that fill a GPU of 40 cores: of products, and of those whose prologue costs as much as four rows. The router fills none however its rows
// are shared: two simdgroups for each of 17 threadgroups are 3.9 instructions a weight, for each of 33 they are 4.2.
const (
	busy       = 1024
	busyCostly = 512
	busyRouter = 32
)

func rowConstants(groups, width, rows int) []Constant {
	several := int32(0)
	if rows > 1 {
		several = 1
	}
	return []Constant{{constRowGroups, int32(groups)}, {constWidth, int32(width)}, {constSeveral, several}}
}

// times is a launch for so many rows: their threadgroups stand side by side, so that what they read alike is read at one time.
func (g Grid) times(rows int) Grid {
	g.Groups[0] *= rows
	return g
}

// checkBatch is the limit of the products of decode.
func checkBatch(rows int) error {
	if rows < 1 || rows > MaxBatch {
		return fmt.Errorf("%d rows of a product of decode: want 1 to %d", rows, MaxBatch)
	}
	return nil
}

// wideGroups is how many threadgroups are worth having before they get wider than one set of rows.
const wideGroups = 256

// setGrid is the launch of sets of rows, each of lanes lanes.
func setGrid(sets, lanes int) Grid {
	threads := max(lanes, simd)
	if ceil(sets, threads/lanes) > wideGroups {
		threads = max(threads, 4*simd)
	}
	return grid1(ceil(sets, threads/lanes), threads)
}

// checkWidth is the limit of the products of one row: all columns of a row lie in the lanes of one threadgroup.
func checkWidth(k int) error {
	if k > maxThreads*laneWeights {
		return fmt.Errorf("width %d of a product of one row: want at most %d", k, maxThreads*laneWeights)
	}
	return nil
}

// vectorSets is how many sets of so many rows the matrices have.
func (p LinearParams) vectorSets(rows int) int {
	sets := 0
	for _, r := range p.Rows {
		sets += ceil(r, rows)
	}
	return sets
}

func (t Tuning) linearRowGroups(p LinearParams) int {
	enough := busy
	if p.Bits == 8 {
		enough = busyRouter
	}
	return t.rowGroups(p.vectorSets(rowSet), setLanes(p.K), enough)
}

func (t Tuning) linearVectorGrid(params any, _ int) Grid {
	p := params.(LinearParams)
	return setGrid(p.vectorSets(rowSet*t.linearRowGroups(p)), setLanes(p.K)).times(p.M)
}

func (t Tuning) linearVectorConstants(params any) []Constant {
	p := params.(LinearParams)
	return rowConstants(t.linearRowGroups(p), p.K, p.M)
}

func linearCheck(params any) error {
	p := params.(LinearParams)
	if err := checkBatch(p.M); err != nil {
		return err
	}
	return checkWidth(p.K)
}

func (t Tuning) gdnOutRowGroups(p GDNOutParams) int {
	return t.rowGroups(ceil(p.N, rowSet), setLanes(p.GDN.ValueWidth()), busy)
}

func (t Tuning) gdnOutGrid(params any, _ int) Grid {
	p := params.(GDNOutParams)
	return setGrid(ceil(p.N, rowSet*t.gdnOutRowGroups(p)), setLanes(p.GDN.ValueWidth())).times(p.GDN.M)
}

func (t Tuning) gdnOutConstants(params any) []Constant {
	p := params.(GDNOutParams)
	return append(rowConstants(t.gdnOutRowGroups(p), p.GDN.ValueWidth(), p.GDN.M), Constant{constValueWidth, int32(p.GDN.DV)})
}

func gdnOutCheck(params any) error {
	p := params.(GDNOutParams).GDN
	if err := checkBatch(p.M); err != nil {
		return err
	}
	if err := gdnCheck(p); err != nil {
		return err
	}
	return checkWidth(p.ValueWidth())
}

const tileThreads = 4 * simd

func (t Tuning) linearMatrixGrid(params any, _ int) Grid {
	p := params.(LinearParams)
	tiles := 0
	for _, r := range p.Rows {
		tiles += ceil(r, tileCols)
	}
	g := grid2(ceil(p.M, t.tileRows(p.M)), tiles, tileThreads)
	g.ThreadgroupBytes = t.tileBytes(t.tileRows(p.M))
	return g
}

// Tiles that fill a GPU of 40 cores, and the least part of K that is worth a result of its own.
const (
	busyTiles      = 120
	leastPartWidth = 2 * Group
)

// WorthParts is in how many parts Q4GemmSplit would take this product; one: its tiles are enough as they are.
func (p LinearParams) WorthParts() int {
	g := Tuning{}.linearMatrixGrid(p, 0).Groups
	parts := 1
	for parts*g[0]*g[1] < busyTiles && p.K%(2*parts*Group) == 0 && p.K/(2*parts) >= leastPartWidth {
		parts *= 2
	}
	return parts
}

func (t Tuning) linearSplitGrid(params any, items int) Grid {
	g := t.linearMatrixGrid(params, items)
	g.Groups[2] = params.(LinearParams).Parts
	return g
}

func linearSplitCheck(params any) error {
	if p := params.(LinearParams); p.Parts < 1 || p.K%(p.Parts*Group) != 0 {
		return fmt.Errorf("%d parts of width %d: want whole groups of %d in each", p.Parts, p.K, Group)
	}
	return nil
}

func (t Tuning) linearMatrixConstants(params any) []Constant {
	return []Constant{{constTileRows, int32(t.tileRows(params.(LinearParams).M))}}
}

func embedGrid(params any, _ int) Grid {
	p := params.(EmbedParams)
	return grid2(ceil(p.D, laneWeights*simd), p.M, simd)
}

func normGrid(params any, _ int) Grid {
	p := params.(NormParams)
	return grid1(p.M, min(round(ceil(p.D, 4), simd), 8*simd))
}

func siluMulGrid(params any, _ int) Grid {
	p := params.(SiluMulParams)
	return grid2(ceil(p.I, 4*4*simd), p.M, 4*simd)
}

// HeadBlock is how many logits a threadgroup of the head computes, and so the block of its choice.
func (t Tuning) HeadBlock(p LinearParams) int {
	return t.linearVectorGrid(p, 0).Threads[0] / setLanes(p.K) * rowSet * t.linearRowGroups(p)
}

func (t Tuning) headGrid(params any, items int) Grid {
	return t.linearVectorGrid(params.(HeadParams).Product, items)
}

func (t Tuning) headConstants(params any) []Constant {
	return t.linearVectorConstants(params.(HeadParams).Product)
}

func (t Tuning) headCheck(params any) error {
	p := params.(HeadParams)
	if err := linearCheck(p.Product); err != nil {
		return err
	}
	switch block := t.HeadBlock(p.Product); {
	case p.Product.M != 1 || p.Product.Rows[0] != p.Product.N():
		return fmt.Errorf("head of %d rows with matrices of %v: want one row and one matrix", p.Product.M, p.Product.Rows)
	case p.Choice.N > p.Product.N():
		return fmt.Errorf("choice among %d tokens: want at most the head's %d", p.Choice.N, p.Product.N())
	case p.Choice.Block != block:
		return fmt.Errorf("bests of %d logits: want the %d of a threadgroup of the head", p.Choice.Block, block)
	}
	return sampleCheck(p.Choice)
}

// bestThreads look at a block of logits.
const bestThreads = 2 * simd

// drawThreads are the threads of draw_token.
const drawThreads = maxThreads

// maxChoice is the most tokens to choose among: twice their number is counted in 32 bits.
const maxChoice = 1 << 30

func logitBestsGrid(params any, _ int) Grid { return grid1(params.(SampleParams).Bests(), bestThreads) }

// drawTokenGrid is one threadgroup, whose threads share the bests.
func drawTokenGrid(any, int) Grid { return grid1(1, drawThreads) }

func countTokenGrid(any, int) Grid { return grid1(1, simd) }

func sampleCheck(params any) error {
	switch p := params.(SampleParams); {
	case p.N < 1 || p.N > maxChoice:
		return fmt.Errorf("choice among %d tokens: want 1 to %d", p.N, maxChoice)
	case p.Block < 1 || p.Block&(p.Block-1) != 0:
		return fmt.Errorf("bests of %d logits: want a power of two", p.Block)
	}
	return nil
}

func gdnConstants(params any) []Constant {
	return []Constant{{constKeyLanes, int32(params.(GDNParams).DK / simd)}}
}

func (t Tuning) gdnScanConstants(params any) []Constant {
	return append(gdnConstants(params), t.choice(constStoredState, t.StoredState))
}

func gdnCheck(params any) error {
	p := params.(GDNParams)
	switch {
	case p.DK%simd != 0 || p.DK > maxKeyDim:
		return fmt.Errorf("gdn key width %d: want a multiple of %d, at most %d", p.DK, simd, maxKeyDim)
	case p.DV%StateBlock != 0:
		return fmt.Errorf("gdn value width %d: want a multiple of %d", p.DV, StateBlock)
	}
	return nil
}

func gdnStateGrid(params any, _ int) Grid {
	return grid1(params.(GDNParams).StateItems(), StateBlock/rowSet*simd)
}

// convTile is how many tokens a thread of gdn_conv walks through.
const convTile = 16

func gdnConvGrid(params any, _ int) Grid {
	p := params.(GDNParams)
	return grid2(ceil(p.C(), 4*simd), ceil(p.M, convTile), 4*simd)
}

func gdnWindowGrid(params any, _ int) Grid {
	p := params.(GDNParams)
	return grid2(ceil(p.C(), 4*simd), p.WindowItems(), 4*simd)
}

// headsPerGroup is how many simdgroups, each with one head of one token, share a threadgroup where they do not work together.
const headsPerGroup = 8

func gdnGateGrid(params any, _ int) Grid {
	p := params.(GDNParams)
	return grid2(ceil(p.HV, headsPerGroup), p.M, headsPerGroup*simd)
}

func (p AttentionParams) laneConstant() Constant {
	return Constant{constHeadLanes, int32(p.HD / simd)}
}

func attnCheck(params any) error {
	p := params.(AttentionParams)
	switch {
	case p.HD%simd != 0 || p.HD > maxHeadDim:
		return fmt.Errorf("attention head width %d: want a multiple of %d, at most %d", p.HD, simd, maxHeadDim)
	case p.R%2 != 0 || p.R > p.HD:
		return fmt.Errorf("rotated width %d: want an even number, at most the head's %d", p.R, p.HD)
	case p.H%p.KV != 0:
		return fmt.Errorf("%d query heads: want a multiple of the %d key heads", p.H, p.KV)
	}
	return nil
}

const attnThreads = 8 * simd

// matrixDecode reports whether attn_decode takes its heads by eights, as simdgroup matrices want them, from a cache of that type, and leaves enough
// threadgroups: one of eight heads takes as long as one of two heads by vectors.
func (t Tuning) matrixDecode(cache DType, p AttentionParams) bool {
	return cache == BF16 && !t.LoneKeys && !t.LoneHeads && p.HD == maxHeadDim && p.HeadsPerKV()%decodeHeads == 0 && p.Blocks*p.H/decodeHeads >= 64
}

// attnDecodeGrid is the launch of attn_decode over a cache of that type.
func (t Tuning) attnDecodeGrid(cache DType) func(any, int) Grid {
	return func(params any, _ int) Grid {
		p := params.(AttentionParams)
		heads := t.sharedHeads(cache, p)
		g := Grid{Groups: [3]int{p.Blocks, p.KV, ceil(p.HeadsPerKV(), heads)}, Threads: [3]int{attnThreads, 1, 1}}
		g.ThreadgroupBytes = 4 * ((heads+1)*p.HD + AttnBlock*heads)
		if p.HD == maxHeadDim { // the parts of the simdgroups, of two heads at a time
			g.ThreadgroupBytes = max(g.ThreadgroupBytes, 4*min(heads, 2)*attnThreads/simd*p.HD)
		}
		if t.matrixDecode(cache, p) { // what eight simdgroups stage, queries, weights, the own key and value
			g.ThreadgroupBytes = 2*8*16*(32+8) + 4*decodeHeads*p.HD + 4*decodeHeads*(AttnBlock+4) + 2*2*p.HD
		}
		return g
	}
}

func (t Tuning) attnDecodeConstants(cache DType) func(any) []Constant {
	return func(params any) []Constant {
		p := params.(AttentionParams)
		return []Constant{p.laneConstant(), {constHeadsGroup, int32(t.sharedHeads(cache, p))}, t.choice(constMatrix, t.matrixDecode(cache, p)), t.choice(constLoneKeys, t.LoneKeys),
			t.choice(constEvenBlocks, t.EvenBlocks), {constWidth, int32(p.KVWidth())}}
	}
}

func (t Tuning) attnCombineConstants(any) []Constant {
	return []Constant{t.choice(constEvenBlocks, t.EvenBlocks)}
}

// combineParts is how many interleaved sums attn_combine makes over the blocks at most.
const combineParts = maxThreads / simd

func attnCombineGrid(params any, _ int) Grid {
	p := params.(AttentionParams)
	return grid1(p.H*p.HD/simd, simd*min(power(max(p.Blocks, 1), 1), combineParts))
}

func attnPrepGrid(params any, _ int) Grid {
	p := params.(AttentionParams)
	return grid2(ceil(p.H+2*p.KV, headsPerGroup), p.M, headsPerGroup*simd)
}

func attnPrepConstants(params any) []Constant {
	return []Constant{params.(AttentionParams).laneConstant()}
}

// matrixRoute reports whether attn_prefill takes the queries of a chunk by eights, as simdgroup matrices want them.
func (p AttentionParams) matrixRoute() bool { return p.M >= prefillQueries }

// prefillHeads is how many query heads of a KV head one threadgroup of attn_prefill takes, prefillTiles how many groups of eight
// queries; together at most eight, one a simdgroup.
func (p AttentionParams) prefillHeads() int {
	if p.matrixRoute() {
		return min(p.HeadsPerKV(), 8)
	}
	return power(min(p.HeadsPerKV(), 8), 1)
}

func (p AttentionParams) prefillTiles() int { return 8 / p.prefillHeads() }

func (t Tuning) attnPrefillGrid(params any, _ int) Grid {
	p := params.(AttentionParams)
	if t.TensorOps { // any 64 rows of (query, head) of a KV head: scores and their factors as floats, weights as bf16
		g := Grid{Groups: [3]int{ceil(p.M*p.HeadsPerKV(), tensorQueries), p.KV, 1}, Threads: [3]int{attnThreads, 1, 1}}
		g.ThreadgroupBytes = tensorQueries * ((4+2)*(prefillKeys+2*tilePad) + 4)
		return g
	}
	heads := p.prefillHeads()
	g := Grid{Groups: [3]int{p.M, p.KV, ceil(p.HeadsPerKV(), heads)}, Threads: [3]int{attnThreads, 1, 1}}
	if !p.matrixRoute() {
		g.ThreadgroupBytes = 4 * AttnBlock * heads
		return g
	}
	rows := heads * p.prefillTiles() * prefillQueries
	g.Groups[0] = ceil(p.M, p.prefillTiles()*prefillQueries)
	g.ThreadgroupBytes = 4 * (rows*(prefillKeys+tilePad) + rows + rows*prefillQueries + prefillQueries*(p.HD+tilePad))
	return g
}

// Keys of a chunk are split where its queries alone are too few threadgroups for 40 cores: into so many parts that there are about six a core, each of two
// blocks of keys or more.
const (
	busyGroups    = 240
	leastPartKeys = 2 * AttnBlock
)

// KeyParts is into how many parts attn_prefill_split would take the keys of this chunk behind pos others; one: it is not worth it.
func (p AttentionParams) KeyParts(pos int) int {
	p.Blocks = 0
	g := Tuning{}.attnPrefillGrid(p, 0).Groups
	parts := 1
	for parts*g[0]*g[1]*g[2] < busyGroups && 2*parts*leastPartKeys <= pos+p.M {
		parts *= 2
	}
	return parts
}

func (t Tuning) attnSplitGrid(params any, items int) Grid {
	p := params.(AttentionParams)
	g := t.attnPrefillGrid(params, items)
	g.Groups[2] *= p.Blocks
	return g
}

func attnMergeGrid(params any, _ int) Grid {
	p := params.(AttentionParams)
	return grid2(ceil(p.H, headsPerGroup), p.M, headsPerGroup*simd)
}

func splitCheck(params any) error {
	if p := params.(AttentionParams); p.Blocks < 1 {
		return fmt.Errorf("%d parts of the keys: want at least 1", p.Blocks)
	}
	return attnCheck(params)
}

func (t Tuning) attnPrefillConstants(params any) []Constant {
	p := params.(AttentionParams)
	if t.TensorOps {
		return []Constant{p.laneConstant()}
	}
	matrix := int32(0)
	if p.matrixRoute() {
		matrix = 1
	}
	return []Constant{p.laneConstant(), {constHeadsGroup, int32(p.prefillHeads())}, {constMatrix, matrix}}
}

func moeCheck(params any) error {
	p := params.(MoEParams)
	switch {
	case p.E > maxExperts:
		return fmt.Errorf("%d experts: want at most %d", p.E, maxExperts)
	case p.T > maxSimdTopK || p.T > p.E:
		return fmt.Errorf("%d experts a token: want at most %d, and at most all %d", p.T, maxSimdTopK, p.E)
	case p.ActWidth() > maxThreads*laneWeights:
		return fmt.Errorf("%d activations of the chosen experts: want at most %d", p.ActWidth(), maxThreads*laneWeights)
	}
	return checkWidth(p.D)
}

// moeBatchCheck is moeCheck for the kernels of decode.
func moeBatchCheck(params any) error {
	if err := checkBatch(params.(MoEParams).M); err != nil {
		return err
	}
	return moeCheck(params)
}

func moeConstants(params any) []Constant {
	return []Constant{{constExpertLanes, int32(ceil(params.(MoEParams).E, simd))}}
}

// gateUpSets is how many sets moe_gate_up has; half of a set's rows are gate rows, half the up rows that go with them.
func (p MoEParams) gateUpSets(rows int) int { return p.T*ceil(p.I, rows/2) + ceil(p.SI, rows/2) }

func (t Tuning) gateUpRowGroups(p MoEParams) int {
	return t.rowGroups(p.gateUpSets(rowSet), setLanes(p.D), busy)
}

func (t Tuning) moeGateUpGrid(params any, _ int) Grid {
	p := params.(MoEParams)
	return setGrid(p.gateUpSets(rowSet*t.gateUpRowGroups(p)), setLanes(p.D)).times(p.M)
}

func (t Tuning) moeGateUpConstants(params any) []Constant {
	p := params.(MoEParams)
	return append(append(moeConstants(params), rowConstants(t.gateUpRowGroups(p), p.D, p.M)...), Constant{constExpertRows, int32(p.I)})
}

// downThreads is the threadgroup of moe_down_add: a thread for each block of columns of all chosen experts.
func (p MoEParams) downThreads() int { return round(ceil(p.ActWidth(), laneWeights), simd) }

func (t Tuning) downRowGroups(p MoEParams) int {
	return t.rowGroups(ceil(p.D, rowSet), p.downThreads(), busyCostly)
}

func (t Tuning) moeDownGrid(params any, _ int) Grid {
	p := params.(MoEParams)
	return grid1(ceil(p.D, rowSet*t.downRowGroups(p)), p.downThreads()).times(p.M)
}

func (t Tuning) moeDownConstants(params any) []Constant {
	p := params.(MoEParams)
	return append(rowConstants(t.downRowGroups(p), p.I, p.M), Constant{constSharedWidth, int32(p.SI)})
}

func moeRouteGrid(params any, _ int) Grid {
	return grid1(ceil(params.(MoEParams).M, headsPerGroup), headsPerGroup*simd)
}

func moeGroupGrid(params any, _ int) Grid {
	return grid1(ceil(params.(MoEParams).E, headsPerGroup), headsPerGroup*simd)
}

// groupedGrid is the launch of a product by expert: cols tiles of columns, and as many tiles of rows as the chunk may have at most,
// whatever the routing. A tile has the height that fits its expert, at most tileRows(M).
func (t Tuning) groupedGrid(p MoEParams, cols int) Grid {
	pairs, rows := p.M*p.T, t.tileRows(p.M)
	g := grid2(cols, (pairs+(rows-1)*min(p.E, pairs))/rows, tileThreads)
	g.ThreadgroupBytes = t.tileBytes(rows)
	return g
}

func (t Tuning) moeGateUpGroupedGrid(params any, _ int) Grid {
	p := params.(MoEParams)
	return t.groupedGrid(p, ceil(p.I, tileCols/2))
}

func (t Tuning) moeDownGroupedGrid(params any, _ int) Grid {
	p := params.(MoEParams)
	return t.groupedGrid(p, ceil(p.D, tileCols))
}

func (t Tuning) groupedConstants(any) []Constant {
	return []Constant{{constLeastRows, int32(t.tileRows(1))}}
}

func moeCombineGrid(params any, _ int) Grid {
	p := params.(MoEParams)
	return grid2(ceil(p.D, 4*4*simd), p.M, 4*simd)
}
