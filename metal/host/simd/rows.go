package simd

// blockTokens is how many tokens a tile of rows meets at once: 128 of them with 32 results each are 16 KiB, which stay in the first
// cache together with a group of unpacked weights and the tokens' group.
const blockTokens = 128

// tileWeights is the room of one group of unpacked weights: 32 steps of k, 32 rows, two words.
const tileWeights = 32 * 32 * 2

// Rows are the activations of several tokens, quantised and packed. Their memory is reused.
type Rows struct {
	k, tokens int
	blocks    []block
	vectors   []Vector // without blocks: each token
	row       func(t int) []float32
	rest      Vector // with blocks: the token whose last rows, too few for a tile, are being computed
	q         []int16
	steps     []float32
	sums      []float32
}

// block is up to blockTokens tokens in the layout of the level: AVX-512 group after group, [K/64][padded][64] and [K/64][padded] of steps
// and sums; AVX2 token after token.
type block struct {
	first, tokens, padded int
	q16                   []int16
	q8                    []int8
	steps, sums           []float32
}

// Work is one worker's memory for products with many tokens.
type Work struct {
	weights        []int16
	weights8       []int8
	scales, biases []float32
	y              []float32 // [padded][tile]
}

// fewTokens is up to how many tokens are cheaper one by one: unpacking a group of weights costs as much as four products with it.
const fewTokens = 2

// PackOneByOne fills r with tokens rows of k activations for products that have no kernel for many tokens; row(t) gives the t-th.
func (s *Set) PackOneByOne(r *Rows, tokens, k int, row func(t int) []float32) {
	r.k, r.tokens, r.blocks, r.row = k, tokens, r.blocks[:0], row
	for len(r.vectors) < tokens {
		r.vectors = append(r.vectors, Vector{})
	}
	for t := range tokens {
		s.Quantise(&r.vectors[t], row(t))
	}
}

// Pack fills r with tokens rows of k activations for 4-bit weights; row(t) gives the t-th, as long as r is used.
func (s *Set) Pack(r *Rows, tokens, k int, row func(t int) []float32) {
	if s.tile == 0 || tokens <= fewTokens || k%s.unit != 0 {
		s.PackOneByOne(r, tokens, k, row)
		return
	}
	r.k, r.tokens, r.blocks, r.row = k, tokens, r.blocks[:0], row
	groups := k / Group
	r.q = grow(r.q, k)
	r.steps, r.sums = grow(r.steps, groups), grow(r.sums, groups)
	for first := 0; first < tokens; first += blockTokens {
		if len(r.blocks) == cap(r.blocks) {
			r.blocks = append(r.blocks, block{})
		} else {
			r.blocks = r.blocks[:len(r.blocks)+1] // its memory is still there
		}
		b := &r.blocks[len(r.blocks)-1]
		b.first, b.tokens = first, min(blockTokens, tokens-first)
		b.padded = (b.tokens + s.padTokens - 1) / s.padTokens * s.padTokens
		if s.Precision == Int8 {
			b.q8 = grow(b.q8, groups*b.padded*Group)
		} else {
			b.q16 = grow(b.q16, groups*b.padded*Group)
		}
		b.steps, b.sums = grow(b.steps, groups*b.padded), grow(b.sums, groups*b.padded)
		for t := range b.padded {
			if t < b.tokens {
				s.quantise(r.q, r.steps, r.sums, row(first+t), s.Precision.limit())
			} else { // the codes of the last token again, worth nothing
				clear(r.steps)
				clear(r.sums)
			}
			s.pack(b, r, t, s.Precision)
		}
	}
}

// MulRows computes rows [row, row+n) of m times every token and hands the results on: emit(t, i, y) gives results i.. of token t.
func (s *Set) MulRows(r *Rows, m Matrix, row, n int, w *Work, emit func(t, i int, y []float32)) {
	if n == 0 {
		return
	}
	m.check(row, n)
	tiled := 0
	if len(r.blocks) > 0 {
		tiled = n / s.tile * s.tile
	}
	for bi := range r.blocks {
		b := &r.blocks[bi]
		w.y = grow(w.y, b.padded*s.tile)
		for i := 0; i < tiled; i += s.tile {
			clear(w.y)
			s.mulTile(w.y, m, row+i, b, s.Precision, w)
			for t := range b.tokens {
				emit(b.first+t, i, w.y[t*s.tile:(t+1)*s.tile])
			}
		}
	}
	if tiled == n {
		return
	}
	w.y = grow(w.y, n-tiled)
	for t := range r.tokens {
		v := &r.rest
		if len(r.blocks) == 0 {
			v = &r.vectors[t]
		} else {
			s.Quantise(v, r.row(t))
		}
		s.MulVector(w.y, m, row+tiled, v)
		emit(t, tiled, w.y)
	}
}
