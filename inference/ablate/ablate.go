// Package ablate is the table of optimisations that can be switched off, to measure what each is worth and to look for one that is at
// fault. Switching one off changes how something is computed, never what: results agree to the last bit where the table says so, and
// within the rounding of another order of sums elsewhere.
//
// It knows no device and no model. A Set is read once, when an engine is opened, and asked by what builds plans and devices; afterwards it
// says which switches found something to change. Start with Parse.
package ablate

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Switch names an optimisation.
type Switch string

// The switches, sorted by name.
const (
	BatchedDecode       Switch = "batched-decode"
	CoalescedKV         Switch = "coalesced-kv"
	ConcurrentEncoding  Switch = "concurrent-encoding"
	DeviceSampler       Switch = "device-sampler"
	DeviceToken         Switch = "device-token"
	FixedBlockAttention Switch = "fixed-block-attention"
	FusedAttention      Switch = "fused-attention"
	FusedChoice         Switch = "fused-choice"
	FusedDequantisation Switch = "fused-dequantisation"
	FusedExperts        Switch = "fused-experts"
	FusedGDN            Switch = "fused-gdn"
	FusedNorm           Switch = "fused-norm"
	GQAPacking          Switch = "gqa-packing"
	HalfExperts         Switch = "half-experts"
	HalfKV              Switch = "half-kv"
	FusedResidual       Switch = "fused-residual"
	RegisterGDNScan     Switch = "register-gdn-scan"
	ResidentRouting     Switch = "resident-routing"
	SplitPrefillKeys    Switch = "split-prefill-keys"
	SplitProducts       Switch = "split-products"
	TensorOps           Switch = "tensor-ops"
	TileHeight          Switch = "tile-height"
	WideSets            Switch = "wide-sets"
)

// Entry is a row of the table.
type Entry struct {
	Switch Switch
	On     string // what happens as shipped
	Off    string // what happens instead
	// SameBits says that results do not change at all, on any device. The others change by the rounding of another order of sums on a GPU;
	// on the host executor in its exact mode none changes a bit.
	SameBits bool
}

// Table lists every switch, sorted by name.
func Table() []Entry {
	return []Entry{
		{BatchedDecode, "answers that want a token at once, up to four, get them in one pass that reads the weights once", "a pass each", true},
		{CoalescedKV, "decode: a simdgroup reads a key's row side by side, 16 bytes a lane", "a thread reads a whole row, so that neighbours read places a row apart, and all goes by vectors", false},
		{ConcurrentEncoding, "dispatches of a level run side by side on the GPU", "one after the other, in an encoder that orders them itself", true},
		{DeviceSampler, "decode: the device chooses the next token, where no form, no log-probabilities and no filter asks for all logits", "the host does, from all logits", true},
		{DeviceToken, "decode: the next step begins with the token that the device chose, before the host has read it", "when the host has read it", true},
		{FixedBlockAttention, "decode: a block of keys begins at a multiple of 256, whatever the context", "the keys are split evenly among the blocks of a launch, whose places move with every token", false},
		{FusedAttention, "decode: norm, rotation, append and blocks of keys in one kernel, then one that merges them", "as in a chunk of one token: preparation, then one threadgroup for all keys of a head", false},
		{FusedChoice, "decode: the head's product finds the likeliest of its rows, where the device chooses the next token", "a dispatch of its own does, which reads all logits again", true},
		{FusedDequantisation, "prefill: a tile's weights are rebuilt in threadgroup memory while it is multiplied", "the matrices of mixers, router and shared expert are written out as float32 first; those of the other experts stay as they are", false},
		{FusedExperts, "decode: choice, gate, up and activation in one kernel, then all nine experts' down products in one", "as in a chunk of one token: nine dispatches", false},
		{FusedGDN, "decode: convolution, gates and state in one kernel, the gated norm in the output product", "as in a chunk of one token: convolution, window, scan, gated norm, product", false},
		{FusedNorm, "decode: RMSNorm in the prologue of the mixers' input products", "a norm of its own before them", false},
		{FusedResidual, "what a mixer adds to the stream is added by its output product", "by a dispatch of its own behind it; in decode the delta net then runs as in a chunk of one token, since the rest of its norm is in that product", false},
		{GQAPacking, "decode: all query heads of a KV head share each key's read once there are blocks enough to fill a GPU, eight by simdgroup matrices", "a query head a threadgroup by vectors, the second reader finds the rows in the cache", false},
		{HalfExperts, "prefill: a GPU keeps what the experts give as bf16 until it is added up", "as float32, twice the bytes", false},
		{HalfKV, "a GPU keeps keys and values as bf16", "as float32, twice the bytes of a context", false},
		{RegisterGDNScan, "prefill: the recurrent state stays in registers for a whole chunk", "it is written to memory and read again after every token", true},
		{ResidentRouting, "prefill: the device lists the tokens of each expert", "the host does, between two passes, for every layer", true},
		{SplitPrefillKeys, "prefill: the keys before a short chunk are taken in parts, so that they fill a GPU", "by as many threadgroups as there are groups of queries", false},
		{SplitProducts, "prefill: output products of short chunks are made in parts, which the norm behind them adds", "in one, by fewer threadgroups than a GPU has cores", false},
		{TensorOps, "prefill: products of many rows and attention by Metal 4's tensor operations where a GPU has units for them, rounded to bf16", "by simdgroup matrices in float32", false},
		{TileHeight, "prefill: tiles of 8 to 64 rows, by the rows there are, in the experts by those that each received", "64 rows always", true},
		{WideSets, "decode: up to 32 rows of a matrix share the input vector in registers", "eight", true},
	}
}

// Set is the switches that are off. It is safe for concurrent use; nil is a set of none.
type Set struct {
	off   []Switch // sorted
	acted atomic.Uint64
}

// Parse reads names separated by commas; none is an empty set.
func Parse(names string) (*Set, error) {
	s := &Set{}
	for name := range strings.SplitSeq(names, ",") {
		w := Switch(strings.TrimSpace(name))
		switch {
		case w == "":
			continue
		case !slices.Contains(all(), w):
			return nil, fmt.Errorf("ablate: got %q, want some of %s", w, join(all()))
		case !slices.Contains(s.off, w):
			s.off = append(s.off, w)
		}
	}
	slices.Sort(s.off)
	return s, nil
}

func all() []Switch {
	var out []Switch
	for _, e := range Table() {
		out = append(out, e.Switch)
	}
	return out
}

func join(list []Switch) string {
	var names []string
	for _, w := range list {
		names = append(names, string(w))
	}
	return strings.Join(names, ", ")
}

// Off reports whether a switch is off, and notes that it acted: ask only where there is something to change.
func (s *Set) Off(w Switch) bool {
	if s == nil {
		return false
	}
	i, ok := slices.BinarySearch(s.off, w)
	if ok {
		s.acted.Or(1 << i)
	}
	return ok
}

// Asked lists the switches that are off, sorted.
func (s *Set) Asked() []Switch {
	if s == nil {
		return nil
	}
	return slices.Clone(s.off)
}

// Acted lists those of Asked that changed something so far, sorted. What was asked and did not act has no part in a measurement: its
// executor or model does not have the optimisation.
func (s *Set) Acted() []Switch {
	var out []Switch
	for i, w := range s.Asked() {
		if s.acted.Load()>>i&1 == 1 {
			out = append(out, w)
		}
	}
	return out
}

// String lists the switches that are off as Parse reads them.
func (s *Set) String() string { return strings.ReplaceAll(join(s.Asked()), " ", "") }
