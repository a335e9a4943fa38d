package tinymodel

// Every value follows from the name of its dense tensor: seed = FNV-1a of the name, stream = SplitMix64, u = the top 24
// bits over 2^24, value = off + amp (2u - 1) in double, rounded to float32 and then to bfloat16. Quantised modules are
// made dense first, in storage order, and then quantised as MLX does (quantize.go).

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Options change how a model is stored. The zero value is the golden form.
type Options struct {
	// GroupSize is the number of weights that share a scale; 0 means 64.
	GroupSize int
	// Bits overrides the width of the modules it names; the config declares it.
	Bits map[string]int
}

func (o Options) withDefaults() Options {
	if o.GroupSize == 0 {
		o.GroupSize = 64
	}
	return o
}

// Config returns what config.json of the model k says, without making its weights.
func Config(k Kind, o Options) (map[string]any, error) {
	o = o.withDefaults()
	d, err := k.dims()
	if err != nil {
		return nil, err
	}
	return d.config(d.tensors(o), o), nil
}

// Generate makes the model k in its golden form.
func Generate(k Kind) (*Model, error) { return GenerateWith(k, Options{}) }

// List returns the tensors of the model k without their bytes, in the order in which MLX walks its modules.
func List(k Kind) ([]Tensor, error) {
	o := Options{}.withDefaults()
	d, err := k.dims()
	if err != nil {
		return nil, err
	}
	var out []Tensor
	for _, s := range d.tensors(o) {
		out = append(out, s.stored(o.GroupSize)...)
	}
	return out, nil
}

// GenerateWith makes the model k, stored as o says.
func GenerateWith(k Kind, o Options) (*Model, error) {
	if k == Real {
		return nil, fmt.Errorf("tinymodel: got %v, whose weights no memory holds twice; package fullsize makes them by offset", k)
	}
	o = o.withDefaults()
	d, err := k.dims()
	if err != nil {
		return nil, err
	}
	specs := d.tensors(o)
	m := &Model{Config: d.config(specs, o)}
	if m.Side, err = d.side(); err != nil {
		return nil, err
	}

	// Modules are independent; two workers halve the wait for the larger models without taking a busy machine whole.
	made := make([][]Tensor, len(specs))
	var wait sync.WaitGroup
	for worker := range 2 {
		wait.Go(func() {
			for i := worker; i < len(specs); i += 2 {
				made[i] = specs[i].make(o.GroupSize)
			}
		})
	}
	wait.Wait()
	m.Tensors = slices.Concat(made...)
	return m, nil
}

// spec is one dense tensor to generate and the form to store it in.
type spec struct {
	name     string // without .weight for a quantised module
	shape    []int  // dense shape, input axis last
	off, amp float64
	bits     int // 0: stored as it is, in BF16
}

func (s spec) make(group int) []Tensor {
	streamName := s.name
	if s.bits != 0 {
		streamName += ".weight"
	}
	count := 1
	for _, n := range s.shape {
		count *= n
	}
	values := make([]float32, count)
	stream := splitMix64{state: fnv1a(streamName)}
	for i := range values {
		values[i] = bf16Round(float32(s.off + s.amp*(2*stream.unit()-1)))
	}
	out := s.stored(group)
	if s.bits == 0 {
		data := make([]byte, 0, 2*count)
		for _, v := range values {
			data = binary.LittleEndian.AppendUint16(data, bf16Bits(v))
		}
		out[0].Data = data
		return out
	}
	out[0].Data, out[1].Data, out[2].Data = Quantize(values, group, s.bits)
	return out
}

// stored lists the tensors that the dense one is kept as, without their bytes.
func (s spec) stored(group int) []Tensor {
	if s.bits == 0 {
		return []Tensor{{Name: s.name, DType: "BF16", Shape: s.shape}}
	}
	in := s.shape[len(s.shape)-1]
	packed, groups := slices.Clone(s.shape), slices.Clone(s.shape)
	packed[len(packed)-1] = in * s.bits / 32
	groups[len(groups)-1] = in / group
	return []Tensor{
		{Name: s.name + ".weight", DType: "U32", Shape: packed},
		{Name: s.name + ".scales", DType: "BF16", Shape: groups},
		{Name: s.name + ".biases", DType: "BF16", Shape: groups},
	}
}

// dims are the dimensions of a kind, named as in config.json.
type dims struct {
	hidden, layers                       int
	heads, kvHeads, headDim              int
	mropeSection                         []int
	keyHeads, valueHeads, keyDim, valDim int
	experts, topK, inter, sharedInter    int
	vocab                                int
	merges                               int // of the tokenizer
}

func (k Kind) dims() (dims, error) {
	switch k {
	case Tiny:
		return dims{
			hidden: 128, layers: 4, heads: 8, kvHeads: 2, headDim: 32, mropeSection: []int{2, 1, 1},
			keyHeads: 2, valueHeads: 4, keyDim: 32, valDim: 32,
			experts: 16, topK: 4, inter: 64, sharedInter: 64, vocab: 320,
		}, nil
	case KernelTrue:
		return dims{
			hidden: 512, layers: 4, heads: 4, kvHeads: 2, headDim: 256, mropeSection: []int{11, 11, 10},
			keyHeads: 2, valueHeads: 4, keyDim: 128, valDim: 128,
			experts: 16, topK: 8, inter: 512, sharedInter: 512, vocab: 512,
		}, nil
	case DemoShaped:
		return dims{
			hidden: 512, layers: 8, heads: 4, kvHeads: 2, headDim: 256, mropeSection: []int{11, 11, 10},
			keyHeads: 2, valueHeads: 4, keyDim: 128, valDim: 128,
			experts: 12, topK: 4, inter: 256, sharedInter: 256, vocab: 4096,
		}, nil
	case Real:
		return dims{
			hidden: 2048, layers: 40, heads: 16, kvHeads: 2, headDim: 256, mropeSection: []int{11, 11, 10},
			keyHeads: 16, valueHeads: 32, keyDim: 128, valDim: 128,
			experts: 256, topK: 8, inter: 512, sharedInter: 512, vocab: 248320, merges: 248044 - 256,
		}, nil
	}
	return dims{}, fmt.Errorf("tinymodel: got %v, want one of %v, %v, %v, %v", k, Tiny, KernelTrue, DemoShaped, Real)
}

// tensors lists what the model holds, in the order in which MLX walks its modules.
func (d dims) tensors(o Options) []spec {
	var out []spec
	linear := func(name string, bits int, gain float64, shape ...int) {
		if b, ok := o.Bits[name]; ok {
			bits = b
		}
		in := shape[len(shape)-1]
		out = append(out, spec{name: name, shape: shape, amp: gain * math.Sqrt(3/float64(in)), bits: bits})
	}
	plain := func(name string, off, amp float64, shape ...int) {
		out = append(out, spec{name: name, shape: shape, off: off, amp: amp})
	}
	norm := func(name string, width int) { plain(name, 1, 0.25, width) }

	const model = "language_model.model."
	keys, values := d.keyHeads*d.keyDim, d.valueHeads*d.valDim
	out = append(out, spec{name: model + "embed_tokens", shape: []int{d.vocab, d.hidden}, amp: 1, bits: 4})
	for i := range d.layers {
		l := fmt.Sprintf("%slayers.%d.", model, i)
		if d.full(i) {
			linear(l+"self_attn.q_proj", 4, 1, 2*d.heads*d.headDim, d.hidden)
			linear(l+"self_attn.k_proj", 4, 1, d.kvHeads*d.headDim, d.hidden)
			linear(l+"self_attn.v_proj", 4, 1, d.kvHeads*d.headDim, d.hidden)
			linear(l+"self_attn.o_proj", 4, 1, d.hidden, d.heads*d.headDim)
			norm(l+"self_attn.q_norm.weight", d.headDim)
			norm(l+"self_attn.k_norm.weight", d.headDim)
		} else {
			plain(l+"linear_attn.conv1d.weight", 0, 0.5, 2*keys+values, 4, 1)
			linear(l+"linear_attn.in_proj_qkv", 4, 1, 2*keys+values, d.hidden)
			linear(l+"linear_attn.in_proj_z", 4, 1, values, d.hidden)
			linear(l+"linear_attn.in_proj_b", 4, 1, d.valueHeads, d.hidden)
			linear(l+"linear_attn.in_proj_a", 4, 1, d.valueHeads, d.hidden)
			plain(l+"linear_attn.dt_bias", 0, 1, d.valueHeads)
			plain(l+"linear_attn.A_log", 0.5, 1.5, d.valueHeads)
			norm(l+"linear_attn.norm.weight", d.valDim)
			linear(l+"linear_attn.out_proj", 4, 1, d.hidden, values)
		}
		norm(l+"input_layernorm.weight", d.hidden)
		norm(l+"post_attention_layernorm.weight", d.hidden)
		linear(l+"mlp.gate", 8, 3, d.experts, d.hidden)
		linear(l+"mlp.switch_mlp.gate_proj", 4, 1, d.experts, d.inter, d.hidden)
		linear(l+"mlp.switch_mlp.up_proj", 4, 1, d.experts, d.inter, d.hidden)
		linear(l+"mlp.switch_mlp.down_proj", 4, 1, d.experts, d.hidden, d.inter)
		linear(l+"mlp.shared_expert.gate_proj", 4, 1, d.sharedInter, d.hidden)
		linear(l+"mlp.shared_expert.down_proj", 4, 1, d.hidden, d.sharedInter)
		linear(l+"mlp.shared_expert.up_proj", 4, 1, d.sharedInter, d.hidden)
		linear(l+"mlp.shared_expert_gate", 8, 1, 1, d.hidden)
	}
	norm(model+"norm.weight", d.hidden)
	linear("language_model.lm_head", 4, 1, d.vocab, d.hidden)
	return out
}

// full reports whether layer i is full attention.
func (d dims) full(i int) bool { return (i+1)%4 == 0 }

// splitMix64 is Steele, Lea and Flood's generator.
type splitMix64 struct{ state uint64 }

// unit returns the next value in [0, 1), a multiple of 2^-24.
func (r *splitMix64) unit() float64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>40) / (1 << 24)
}

// bf16Bits rounds a finite v to bfloat16, to nearest even.
func bf16Bits(v float32) uint16 {
	b := math.Float32bits(v)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func bf16Round(v float32) float32 { return math.Float32frombits(uint32(bf16Bits(v)) << 16) }
