package kernels

import (
	"cmp"
	"math"
	"slices"
)

// The choice of a token on the device. Everything that decides is an integer or one rounding of float32, so every device, and package
// inference/sample, choose the same token from the same logits: probabilities are weights in parts of 2^40, exact to sum in any order.

// MaxKept is the most tokens of largest logits that a draw is made among.
const MaxKept = 256

// MaxBiases is how many tokens can have a bias.
const MaxBiases = 1<<markSeenBit - 1

// Words of a draw, U32 [DrawWords].
const (
	drawKeep      = iota // tokens of largest logits to draw among, at most MaxKept; 1: the likeliest
	drawUniform          // random number of the position, 24 bits
	drawScale            // f32: log2(e)/temperature
	drawTopP             // parts of 2^32 that the kept tokens' weights have to reach; 0: off
	drawLeastLow         // least weight
	drawLeastHigh        //
	drawMarked           // 1: marks and biases apply
	drawPresence         // int32, parts of 2^16, taken from the logit of each token of the answer
	drawFrequency        // int32, parts of 2^16, as often as the answer holds the token
	drawLower            // f32: factor of the positive logits of tokens of prompt and answer
	drawRaise            // f32: factor of their negative logits
	DrawWords
)

// Draw is what one position asks of the device.
type Draw struct {
	Keep                int
	Uniform             uint32
	Scale               float32
	TopP                uint32
	Least               uint64
	Marked              bool
	Presence, Frequency int32
	Lower, Raise        float32
}

// Put writes the draw as the kernels read it, to [DrawWords].
func (d Draw) Put(w []uint32) {
	w[drawKeep], w[drawUniform], w[drawScale], w[drawTopP] = uint32(d.Keep), d.Uniform, math.Float32bits(d.Scale), d.TopP
	w[drawLeastLow], w[drawLeastHigh], w[drawMarked] = uint32(d.Least), uint32(d.Least>>32), 0
	if d.Marked {
		w[drawMarked] = 1
	}
	w[drawPresence], w[drawFrequency] = uint32(d.Presence), uint32(d.Frequency)
	w[drawLower], w[drawRaise] = math.Float32bits(d.Lower), math.Float32bits(d.Raise)
}

// A mark is one word for a token: one more than the index of its bias, whether prompt or answer hold it, and how often the answer does.
const (
	markSeenBit  = 9
	markCountBit = 10
)

// Mark makes the mark of a token; bias is an index, below 0 for none.
func Mark(count int, seen bool, bias int) uint32 {
	m := uint32(count)<<markCountBit | uint32(bias+1)
	if seen {
		m |= 1 << markSeenBit
	}
	return m
}

// Counted is the mark after one more time in the answer, Uncounted takes one back.
func Counted(m uint32) uint32   { return m + 1<<markCountBit | 1<<markSeenBit }
func Uncounted(m uint32) uint32 { return m - 1<<markCountBit }

// SampleParams are the sizes of the choice.
type SampleParams struct {
	N     int // ids that may be chosen; padding rows beyond are ignored
	Block int // logits that a best stands for, a power of two
}

// BestBlock is how many logits one threadgroup of logit_bests looks at.
const BestBlock = 256

// Bests is how many pairs of key and id there are.
func (p SampleParams) Bests() int { return ceil(p.N, p.Block) }

// HeadParams are the sizes of the model's head with the choice.
type HeadParams struct {
	Product LinearParams // one row, one matrix
	Choice  SampleParams // Block as HeadBlock has it
}

// Words of a choice, U32 [ChoiceWords].
const (
	ChoiceID     = iota // the token; where there is none, the first at fault
	ChoiceStatus        // see below
	ChoiceNumber        // f32: its logit as it came
	ChoiceWords
)

// Values of ChoiceStatus.
const (
	Chosen    = iota
	NotFinite // a logit is NaN or +Inf
	AllBanned // every logit is -Inf
)

// logit is a token's logit after penalties and bias.
func (d drawing) logit(id int) float32 {
	x := d.logits[id]
	if d.words[drawMarked] == 0 || d.marks[id] == 0 {
		return x
	}
	m := d.marks[id]
	if m>>markSeenBit&1 != 0 && !math.IsInf(float64(x), 0) {
		f := d.words[drawRaise]
		if x > 0 {
			f = d.words[drawLower]
		}
		x = max(-math.MaxFloat32, min(float32(x*math.Float32frombits(f)), math.MaxFloat32))
	}
	if n := int64(m >> markCountBit); n > 0 {
		p := int64(int32(d.words[drawPresence])) + n*int64(int32(d.words[drawFrequency]))
		x -= float32(float32(max(-mostPenalty, min(p, mostPenalty))) * (1.0 / 65536))
	}
	if b := m & MaxBiases; b != 0 {
		x += d.biases[b-1]
	}
	return x
}

// mostPenalty bounds what is taken from a logit, in parts of 2^16.
const mostPenalty = 1 << 30

// drawing is the arguments of a choice.
type drawing struct {
	logits []float32 // [N]
	words  []uint32
	marks  []uint32
	biases []float32
	block  int // of bests
}

// Keys order logits as unsigned integers: equal numbers have equal keys, and NaN is above all.
const (
	keyNaN      = math.MaxUint32
	keyInfinity = 0xff800000
	keyBanned   = 0x007fffff
)

func orderKey(x float32) uint32 {
	b := math.Float32bits(x)
	switch {
	case b&0x7fffffff > 0x7f800000:
		return keyNaN
	case b == 1<<31: // -0
		return 1 << 31
	case b>>31 != 0:
		return ^b
	}
	return b | 1<<31
}

// Weight is the weight of a logit: 2^(40 - (largest - x)·scale), to a part in 2^24, rounded to an integer; about 2^40 for the largest.
func Weight(x, largest, scale float32) uint64 {
	s := float32(largest-x) * scale
	if !(s < 42) { // less than half of the smallest weight
		return 0
	}
	q := uint32(s * (1 << 24))
	e, f := q>>24, q<<8
	// 2^-f = 1 - f·ln 2·(1 - f·ln 2/2·(1 - ...)), the powers of ln 2 over factorials in parts of 2^32
	var r uint32
	for _, c := range [...]uint32{2, 30, 437, 5676, 65510, 661577, 5726720, 41309550, 238388332, 1031764991, 2977044472} {
		r = c - uint32(uint64(f)*uint64(r)>>32)
	}
	r = math.MaxUint32 - uint32(uint64(f)*uint64(r)>>32)
	return (uint64(r)<<8 + 1<<e>>1) >> e
}

// LogitBests finds the best of each block of logits: its key and id. One item is a block.
func LogitBests() Kernel {
	return Kernel{Name: "logit_bests", Grid: logitBestsGrid, Check: sampleCheck,
		Buffers: []Buffer{{"logits", F32, Read, "[N]"}, {"draw", U32, Read, "[DrawWords]"}, {"marks", U32, Read, "[N]"}, {"biases", F32, Read, "[MaxBiases]"},
			{"bests", U32, Write, "[Bests, 2]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) { params.(SampleParams).findBests(a, lo, hi) }}
}

// findBests finds those of blocks [lo, hi), with the arguments of LogitBests.
func (p SampleParams) findBests(a []Arg, lo, hi int) {
	d := drawing{a[0].F32[:p.N], a[1].U32, a[2].U32, a[3].F32, p.Block}
	for b := lo; b < min(hi, p.Bests()); b++ {
		best, at := uint32(0), b*p.Block
		for id := b * p.Block; id < min((b+1)*p.Block, p.N); id++ {
			if k := orderKey(d.logit(id)); k > best {
				best, at = k, id
			}
		}
		a[4].U32[2*b], a[4].U32[2*b+1] = best, uint32(at)
	}
}

// Q4GemvNormBests is Q4GemvNorm for the model's head, with what LogitBests does: a level less, and no logit is read again. One item is a block.
func Q4GemvNormBests() Kernel {
	return Kernel{Name: "q4_gemv_norm_bests", Segments: 1, Grid: Tuning{}.headGrid, Constants: Tuning{}.headConstants, Check: Tuning{}.headCheck,
		Buffers: []Buffer{{"x", F32, Read, "[K]"}, {"norm", BF16, Read, "[K]"}, {"logits", F32, Write, "[rows]"}, {"draw", U32, Read, "[DrawWords]"}, {"marks", U32, Read, "[N]"},
			{"biases", F32, Read, "[MaxBiases]"}, {"bests", U32, Write, "[Bests, 2]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(HeadParams)
			first, end := p.Rows(lo, hi)
			h := ws.F32(p.Product.K)
			normInto(h, a[0].F32[:p.Product.K], a[1].Raw, p.Product.Eps)
			p.Product.vectorRows(a[2].F32[first:end], a[len(a)-SegmentArgs:], h, first, end, ws)
			p.FindBests(a, lo, hi)
		}}
}

// Blocks is how many blocks the head's rows are, padding rows too.
func (p HeadParams) Blocks() int { return ceil(p.Product.N(), p.Choice.Block) }

// Rows are the rows of blocks [lo, hi).
func (p HeadParams) Rows(lo, hi int) (first, end int) {
	return lo * p.Choice.Block, min(hi*p.Choice.Block, p.Product.N())
}

// FindBests finds the bests of blocks [lo, hi) whose logits are there, with the arguments of Q4GemvNormBests.
func (p HeadParams) FindBests(a []Arg, lo, hi int) { p.Choice.findBests(a[2:], lo, hi) }

// candidate is a token that may be drawn.
type candidate struct {
	id     int
	key    uint32
	weight uint64
}

// DrawToken chooses: among the Keep tokens of largest logits, the lower id first of equal ones, of which those stay that the likelier ones leave
// below TopP and that have the Least weight, the first in the order of ids up to which the weights reach beyond Uniform of their sum. One item.
// bests spare it most of the logits.
func DrawToken() Kernel {
	return Kernel{Name: "draw_token", Grid: drawTokenGrid, Check: sampleCheck,
		Buffers: []Buffer{{"logits", F32, Read, "[N]"}, {"draw", U32, Read, "[DrawWords]"}, {"marks", U32, Read, "[N]"}, {"biases", F32, Read, "[MaxBiases]"},
			{"bests", U32, Read, "[Bests, 2]"}, {"choice", U32, Write, "[ChoiceWords]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			p := params.(SampleParams)
			drawing{a[0].F32[:p.N], a[1].U32, a[2].U32, a[3].F32, p.Block}.choose(a[5].U32, a[4].U32[:2*p.Bests()])
		}}
}

func (d drawing) choose(choice, bests []uint32) {
	top, at := bests[0], bests[1]
	for b := 2; b < len(bests); b += 2 {
		if bests[b] > top {
			top, at = bests[b], bests[b+1]
		}
	}
	choice[ChoiceID], choice[ChoiceStatus] = at, Chosen
	switch {
	case top >= keyInfinity:
		choice[ChoiceStatus] = NotFinite
	case top == keyBanned:
		choice[ChoiceStatus] = AllBanned
	case d.words[drawKeep] > 1:
		choice[ChoiceID] = uint32(d.draw(bests, d.logit(int(at))))
	}
	choice[ChoiceNumber] = math.Float32bits(d.logits[choice[ChoiceID]])
}

// draw draws among the kept.
func (d drawing) draw(bests []uint32, largest float32) int {
	kept := d.kept(bests)
	scale := math.Float32frombits(d.words[drawScale])
	var total uint64
	for i := range kept {
		kept[i].weight = Weight(d.logit(kept[i].id), largest, scale)
		total += kept[i].weight
	}
	enough := TopPart(total, d.words[drawTopP])
	least := uint64(d.words[drawLeastHigh])<<32 | uint64(d.words[drawLeastLow])
	var before, left uint64
	for i := range kept {
		w := kept[i].weight
		if before >= enough || w < least {
			kept[i].weight = 0
		}
		before += w
		left += kept[i].weight
	}
	slices.SortFunc(kept, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
	target, sum := UniformPart(left, d.words[drawUniform]), uint64(0)
	for _, c := range kept {
		if sum += c.weight; sum > target {
			return c.id
		}
	}
	return kept[0].id // the likeliest has a weight, so the loop has returned
}

// TopPart is the least sum that is p of total, p in parts of 2^32; all where p is 0.
func TopPart(total uint64, p uint32) uint64 {
	if p == 0 {
		return math.MaxUint64
	}
	return total>>32*uint64(p) + (total&math.MaxUint32*uint64(p)+math.MaxUint32)>>32
}

// UniformPart is u of total, u in parts of 2^24.
func UniformPart(total uint64, u uint32) uint64 {
	return total>>24*uint64(u) + total&(1<<24-1)*uint64(u)>>24
}

// kept returns the Keep tokens of largest logits, the largest first, the lower id first of equal ones. They lie in the blocks whose best is
// one of the Keep largest bests.
func (d drawing) kept(bests []uint32) []candidate {
	descending := func(a, b candidate) int { return cmp.Or(cmp.Compare(b.key, a.key), cmp.Compare(a.id, b.id)) }
	keep := int(d.words[drawKeep])
	var best []candidate
	for b := range len(bests) / 2 {
		best = append(best, candidate{id: b, key: bests[2*b]})
	}
	slices.SortFunc(best, descending)
	var all []candidate
	for _, b := range best[:min(keep, len(best))] {
		for id := b.id * d.block; id < min((b.id+1)*d.block, len(d.logits)); id++ {
			all = append(all, candidate{id: id, key: orderKey(d.logit(id))})
		}
	}
	slices.SortFunc(all, descending)
	return all[:min(keep, len(all))]
}

// CountToken counts the token of a step, where marks apply, so that the choice behind it knows of it. One item.
func CountToken() Kernel {
	return Kernel{Name: "count_token", Grid: countTokenGrid,
		Buffers: []Buffer{{"tokens", U32, Read, "[1]"}, {"draw", U32, Read, "[DrawWords]"}, {"marks", U32, ReadWrite, "[N]"}},
		Run: func(a []Arg, params any, lo, hi int, ws *Workspace) {
			if a[1].U32[drawMarked] != 0 {
				m := &a[2].U32[min(int(a[0].U32[0]), params.(SampleParams).N-1)]
				*m = Counted(*m)
			}
		}}
}
