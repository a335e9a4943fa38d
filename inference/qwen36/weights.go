package qwen36

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"pond/inference/checkpoint"
)

// Linear is a quantised projection y = W x, W [Rows, K] (stacked experts: [Experts*Rows, K]), as it lies in the file.
type Linear struct {
	Module string            // module path, the tensor names without .weight/.scales/.biases
	Stack  int               // experts stacked in front, 1 for a plain projection
	Rows   int               // output rows of one matrix
	K      int               // input width
	Bits   int               // 4 or 8
	Codes  checkpoint.Tensor // U32 [Stack*Rows, K*Bits/32], lowest index in the lowest bits
	Scales checkpoint.Tensor // BF16 [Stack*Rows, K/64]
	Biases checkpoint.Tensor // BF16 [Stack*Rows, K/64]
}

// Weights is the checkpoint with names turned into fields. Its tensors are windows on the checkpoint's bytes and live as
// long as it is open.
type Weights struct {
	Embed, Head Linear
	Norm        checkpoint.Tensor // [Hidden] BF16
	Layers      []Layer

	SkippedTensors int   // tensors of the vision tower, which text does not need
	SkippedBytes   int64 // their bytes
}

// Layer is one block pair: a mixer (gdn or attention, the other is nil) and the experts.
type Layer struct {
	InputNorm, PostNorm checkpoint.Tensor // [Hidden] BF16
	GDN                 *GDN
	Attention           *Attention
	MoE                 MoE
}

// GDN is the gated delta net mixer.
type GDN struct {
	QKV, Z, B, A, Out Linear
	Conv              checkpoint.Tensor // [ConvDim, ConvTaps, 1] BF16
	ALog, DtBias      checkpoint.Tensor // [ValueHeads] BF16
	Norm              checkpoint.Tensor // [ValueDim] BF16, not offset
}

// Attention is the gated full attention mixer.
type Attention struct {
	Q, K, V, O   Linear
	QNorm, KNorm checkpoint.Tensor // [HeadDim] BF16
}

// MoE is the expert block.
type MoE struct {
	Router, SharedGate                   Linear // 8 bit
	Gate, Up, Down                       Linear // stacked, 4 bit
	SharedGateProj, SharedUp, SharedDown Linear // the shared expert
}

// visionPrefix begins the names of the tensors that text does not need.
const visionPrefix = "vision_tower."

// Want is one tensor that the model needs.
type Want struct {
	Name   string
	DType  checkpoint.DType
	Shape  []int
	Module string // the linear module it belongs to, empty for a tensor of its own
	Bits   int    // declared width of the module's weights, 0 without a module
}

// Bytes is the tensor's length in its file.
func (w Want) Bytes() int64 {
	n := int64(w.DType.Bits()) / 8
	for _, dim := range w.Shape {
		n *= int64(dim)
	}
	return n
}

// Wanted lists every tensor of a model of shape s stored as q says, in the order of the layers.
func Wanted(s Shape, q Quantization) []Want {
	var list []Want
	w := walk{s: s, q: q, take: func(want Want) checkpoint.Tensor {
		list = append(list, want)
		return checkpoint.Tensor{}
	}}
	w.weights()
	return list
}

// LoadWeights finds every tensor of the model in c and checks its dtype and shape. An error names the tensor, what was
// got and what is wanted: one that is missing, has another dtype or shape, or is packed for another width than config.json
// declares, any tensor left over outside the vision tower, and NaN or infinities where checkNumbers looks for them.
func LoadWeights(c *checkpoint.Checkpoint, s Shape, q Quantization) (*Weights, error) {
	var first error
	used := map[string]bool{}
	var wants []Want
	var tensors []checkpoint.Tensor
	w := walk{s: s, q: q, take: func(want Want) checkpoint.Tensor {
		used[want.Name] = true
		t, ok := c.Tensor(want.Name)
		wants, tensors = append(wants, want), append(tensors, t)
		if first == nil {
			first = want.compare(t, ok)
		}
		return t
	}}
	weights := w.weights()
	if first != nil {
		return nil, first
	}
	if err := w.unsupported; err != nil {
		return nil, err
	}
	var left []string
	for _, name := range c.Names() {
		if used[name] {
			continue
		}
		if strings.HasPrefix(name, visionPrefix) {
			t, _ := c.Tensor(name) // a name of the list
			weights.SkippedTensors++
			weights.SkippedBytes += int64(len(t.Data))
			continue
		}
		left = append(left, name)
	}
	if len(left) > 0 {
		shown := strings.Join(left[:min(3, len(left))], ", ")
		if len(left) > 3 {
			shown += ", ..."
		}
		return nil, fmt.Errorf("left-over tensors: got %d that the model has no place for, want none: %s", len(left), shown)
	}
	if err := checkNumbers(tensors, wants); err != nil {
		return nil, err
	}
	if err := checkNorm(weights.Norm); err != nil {
		return nil, err
	}
	return weights, nil
}

// compare checks the tensor that was found under the wanted name.
func (w Want) compare(t checkpoint.Tensor, found bool) error {
	if !found {
		return fmt.Errorf("%s: missing, want %s %d", w.Name, w.DType, w.Shape)
	}
	if t.DType == w.DType && slices.Equal(t.Shape, w.Shape) {
		return nil
	}
	err := fmt.Errorf("%s: got %s %d, want %s %d", w.Name, t.DType, t.Shape, w.DType, w.Shape)
	if n := len(w.Shape); w.DType == checkpoint.U32 && t.DType == w.DType && len(t.Shape) == n && slices.Equal(t.Shape[:n-1], w.Shape[:n-1]) {
		if bits := t.Shape[n-1] * w.Bits; bits%w.Shape[n-1] == 0 {
			return fmt.Errorf("%w: packed with %d bits a weight, config.json declares %d", err, bits/w.Shape[n-1], w.Bits)
		}
	}
	return err
}

// checkNorm refuses norms in upstream's form, which stores the distance from 1: MLX's converter adds the 1, and with
// these weights every activation would vanish. Trained final norms lie around 1 and above.
func checkNorm(t checkpoint.Tensor) error {
	sum := 0.0
	for i := 0; i+1 < len(t.Data); i += 2 {
		sum += float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.Data[i:])) << 16))
	}
	mean := sum / float64(len(t.Data)/2)
	if !(mean > 0.25 && mean < math.Inf(1)) {
		return fmt.Errorf("%s: got a mean of %.3g, want about 1 (a mean near 0 is the form before conversion to MLX)", t.Name, mean)
	}
	return nil
}

// walk goes through the model once and takes each tensor; it is the one list of names.
type walk struct {
	s           Shape
	q           Quantization
	take        func(Want) checkpoint.Tensor
	unsupported error // the first module with a width that the kernels do not compute
}

func (w *walk) weights() *Weights {
	const model = "language_model.model."
	s := w.s
	out := &Weights{Embed: w.linear(model+"embed_tokens", 4, s.Vocab, s.Hidden)}
	for i := range s.Layers {
		out.Layers = append(out.Layers, w.layer(fmt.Sprintf("%slayers.%d.", model, i), s.Attention(i)))
	}
	out.Norm = w.plain(model+"norm.weight", s.Hidden)
	out.Head = w.linear("language_model.lm_head", 4, s.Vocab, s.Hidden)
	return out
}

func (w *walk) layer(l string, attention bool) Layer {
	s := w.s
	out := Layer{InputNorm: w.plain(l+"input_layernorm.weight", s.Hidden)}
	if attention {
		out.Attention = w.attention(l + "self_attn.")
	} else {
		out.GDN = w.gdn(l + "linear_attn.")
	}
	out.PostNorm = w.plain(l+"post_attention_layernorm.weight", s.Hidden)
	out.MoE = MoE{
		Router:         w.linear(l+"mlp.gate", 8, s.Experts, s.Hidden),
		SharedGate:     w.linear(l+"mlp.shared_expert_gate", 8, 1, s.Hidden),
		Gate:           w.stacked(l+"mlp.switch_mlp.gate_proj", s.Inter, s.Hidden),
		Up:             w.stacked(l+"mlp.switch_mlp.up_proj", s.Inter, s.Hidden),
		Down:           w.stacked(l+"mlp.switch_mlp.down_proj", s.Hidden, s.Inter),
		SharedGateProj: w.linear(l+"mlp.shared_expert.gate_proj", 4, s.SharedInter, s.Hidden),
		SharedUp:       w.linear(l+"mlp.shared_expert.up_proj", 4, s.SharedInter, s.Hidden),
		SharedDown:     w.linear(l+"mlp.shared_expert.down_proj", 4, s.Hidden, s.SharedInter),
	}
	return out
}

func (w *walk) gdn(l string) *GDN {
	s := w.s
	return &GDN{
		QKV:    w.linear(l+"in_proj_qkv", 4, s.ConvDim(), s.Hidden),
		Z:      w.linear(l+"in_proj_z", 4, s.ValueWidth(), s.Hidden),
		B:      w.linear(l+"in_proj_b", 4, s.ValueHeads, s.Hidden),
		A:      w.linear(l+"in_proj_a", 4, s.ValueHeads, s.Hidden),
		Out:    w.linear(l+"out_proj", 4, s.Hidden, s.ValueWidth()),
		Conv:   w.plain(l+"conv1d.weight", s.ConvDim(), s.ConvTaps, 1),
		ALog:   w.plain(l+"A_log", s.ValueHeads),
		DtBias: w.plain(l+"dt_bias", s.ValueHeads),
		Norm:   w.plain(l+"norm.weight", s.ValueDim),
	}
}

func (w *walk) attention(l string) *Attention {
	s := w.s
	return &Attention{
		Q:     w.linear(l+"q_proj", 4, 2*s.QWidth(), s.Hidden),
		K:     w.linear(l+"k_proj", 4, s.KVWidth(), s.Hidden),
		V:     w.linear(l+"v_proj", 4, s.KVWidth(), s.Hidden),
		O:     w.linear(l+"o_proj", 4, s.Hidden, s.QWidth()),
		QNorm: w.plain(l+"q_norm.weight", s.HeadDim),
		KNorm: w.plain(l+"k_norm.weight", s.HeadDim),
	}
}

// plain takes a tensor that is not quantised.
func (w *walk) plain(name string, shape ...int) checkpoint.Tensor {
	return w.take(Want{Name: name, DType: checkpoint.BF16, Shape: shape})
}

// linear takes a quantised module; bits is the width that the kernels compute there.
func (w *walk) linear(module string, bits, rows, k int) Linear {
	return w.module(Linear{Module: module, Stack: 1, Rows: rows, K: k}, bits, rows)
}

// stacked takes the matrices of all routed experts.
func (w *walk) stacked(module string, rows, k int) Linear {
	return w.module(Linear{Module: module, Stack: w.s.Experts, Rows: rows, K: k}, 4, w.s.Experts, rows)
}

func (w *walk) module(l Linear, bits int, outer ...int) Linear {
	l.Bits = w.q.BitsOf(l.Module)
	if l.Bits != bits && w.unsupported == nil {
		w.unsupported = fmt.Errorf("%s.weight: got %d bits a weight, want %d, the width computed there", l.Module, l.Bits, bits)
	}
	take := func(suffix string, dtype checkpoint.DType, width int) checkpoint.Tensor {
		shape := append(slices.Clone(outer), width)
		return w.take(Want{Name: l.Module + suffix, DType: dtype, Shape: shape, Module: l.Module, Bits: l.Bits})
	}
	l.Codes = take(".weight", checkpoint.U32, l.K*l.Bits/32)
	l.Scales = take(".scales", checkpoint.BF16, l.K/w.q.GroupSize)
	l.Biases = take(".biases", checkpoint.BF16, l.K/w.q.GroupSize)
	return l
}
