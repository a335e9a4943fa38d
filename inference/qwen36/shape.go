// Package qwen36 is the one model family Pond runs: it reads the configuration, names the weights and writes the forward
// pass as plans (package plan) whose dispatches are the kernels of package metal/kernels.
//
// It is not an executor: nothing here computes. Start with decode.go, which is the whole model in one page, then gdn.go,
// attention.go and moe.go, which append one block each.
package qwen36

// Shape holds every dimension of the model, all read from config.json, so that tiny, demo and the real model run the
// same code. The letters in comments are those of kernels/shape.go.
type Shape struct {
	Hidden   int // width of the residual stream, D
	Layers   int
	Interval int // every Interval-th layer is full attention: (i+1) % Interval == 0
	Vocab    int // rows of embed_tokens and lm_head, padding included
	IDs      int // ids that the tokenizer knows; the rows beyond are padding and are never chosen. Zero means all

	Heads     int     // query heads
	KVHeads   int     // key and value heads; Heads % KVHeads == 0
	HeadDim   int     // width of an attention head
	RotaryDim int     // rotated dims of a head, even, the first ones
	RopeTheta float64 // base of the rotary frequencies

	KeyHeads   int // gdn query/key heads
	ValueHeads int // gdn value heads; value head h reads key head h / (ValueHeads/KeyHeads)
	KeyDim     int // width of a gdn key head
	ValueDim   int // width of a gdn value head
	ConvTaps   int // taps of the causal depthwise convolution, 4

	Experts     int // routed experts a layer
	TopK        int // experts a token uses
	Inter       int // width of a routed expert
	SharedInter int // width of the shared expert

	RMSEps     float64 // epsilon of every norm, 1e-6
	MaxContext int     // max_position_embeddings
	EOS        []int32 // ids that end an answer
	GroupSize  int     // weights that share one scale and bias, 64
}

// Attention reports whether layer i is gated full attention; the others are gated delta nets.
func (s Shape) Attention(i int) bool { return (i+1)%s.Interval == 0 }

// ConvDim is the width of the gdn convolution: queries, keys and values side by side.
func (s Shape) ConvDim() int { return 2*s.KeyHeads*s.KeyDim + s.ValueHeads*s.ValueDim }

// ValueWidth is the width of all gdn value heads, which is also the width of z.
func (s Shape) ValueWidth() int { return s.ValueHeads * s.ValueDim }

// QWidth is the width of all attention queries; q_proj makes twice that (query and gate, head by head).
func (s Shape) QWidth() int { return s.Heads * s.HeadDim }

// KVWidth is the width of one token's keys (or values) in one attention layer.
func (s Shape) KVWidth() int { return s.KVHeads * s.HeadDim }

// AttentionLayers counts the full attention layers; GDNLayers the others.
func (s Shape) AttentionLayers() int { return s.Layers / s.Interval }

// GDNLayers counts the gated delta net layers.
func (s Shape) GDNLayers() int { return s.Layers - s.AttentionLayers() }

// UsableIDs is how many ids an answer may hold.
func (s Shape) UsableIDs() int {
	if s.IDs > 0 && s.IDs < s.Vocab {
		return s.IDs
	}
	return s.Vocab
}
