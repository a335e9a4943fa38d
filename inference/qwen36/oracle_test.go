package qwen36

// The oracle: the whole model, one token at a time, in straight loops over double precision numbers and dequantised
// weights. It exists to be right by reading and shares nothing with the plans, kernels or executors that it checks: only
// the names of Weights and the bytes of the file. forward order: step, then mixer by mixer, then the experts.
//
// It follows the reference numbers' conventions: exact dequantisation with the stored scales and biases, no rounding of
// activations, caches or states, and MLX's epsilon in the l2 norm of the gated delta net.

import (
	"encoding/binary"
	"math"
	"slices"

	"pond/inference/checkpoint"
)

// precision is how values are stored between two steps of the oracle; sums are in double precision either way.
type precision int

const (
	double precision = iota // float64
	single                  // rounded to float32 at each store, states and caches included
)

// mutation is one mistake that a port of this model could make. Tests show that each is noticed.
type mutation int

const (
	faithful          mutation = iota
	swappedKeySources          // value heads 1 and 2 read each other's key head
	droppedDecay               // the state never fades
	swappedGateHalves          // in q_proj's rows of a head the gate comes first
	interleavedRotary          // rotary over pairs (2i, 2i+1) instead of (i, i+half)
	offsetNorms                // norms multiply by 1 + w
	reversedTaps               // convolution tap 0 multiplies the current token
	gateBeforeNorm             // gated norm: gate first, norm after
	readBeforeWrite            // state is read out before the token is written
	unnormalisedTopK           // expert weights keep their share of the whole softmax
	queriesThenGates           // q_proj: all heads' queries, then all gates
	wholeHeadRotary            // every dim of a head is rotated
	ungatedShared              // the shared expert is added whole
	decayAfterMemory           // memory is read before the state decays
	upstreamL2Epsilon          // l2 norm with 1e-6 instead of KeyDim*1e-6; not a mistake, only the other convention
)

func (m mutation) String() string {
	return [...]string{
		"faithful", "swapped key sources", "dropped decay", "swapped gate halves", "interleaved rotary", "offset norms",
		"reversed taps", "gate before norm", "read before write", "unnormalised top-k", "queries then gates",
		"whole-head rotary", "ungated shared expert", "decay after memory", "upstream l2 epsilon",
	}[m]
}

// oracle is the model and one sequence's state.
type oracle struct {
	w         *Weights
	s         Shape
	precision precision
	mutation  mutation
	position  int // tokens seen so far
	layers    []oracleState
}

// oracleState is what one layer carries from token to token.
type oracleState struct {
	gdn    []float64   // [ValueHeads, ValueDim, KeyDim]
	conv   [][]float64 // the last ConvTaps-1 rows of in_proj_qkv's output, oldest first, [ConvDim] each
	keys   [][]float64 // a row [KVHeads, HeadDim] for each token, normalised and rotated
	values [][]float64 // a row [KVHeads, HeadDim] for each token
}

// oracleTrace is everything that tests compare for one token.
type oracleTrace struct {
	Embedding []float64 // [Hidden]
	Layers    []oracleLayerTrace
	Final     []float64 // [Hidden], after model.norm
	Logits    []float64 // [Vocab], padding rows included
}

type oracleLayerTrace struct {
	AfterMixer   []float64 // residual stream between mixer and experts, [Hidden]
	Residual     []float64 // residual stream after the layer, [Hidden]
	RouterLogits []float64 // [Experts]
	Experts      []int     // [TopK], by falling weight
	Weights      []float64 // [TopK], sum 1
	SharedGate   float64
}

// newOracle starts an empty sequence. Set precision or mutation before the first step.
func newOracle(w *Weights, s Shape) *oracle {
	o := &oracle{w: w, s: s, layers: make([]oracleState, s.Layers)}
	for i := range o.layers {
		if s.Attention(i) {
			continue
		}
		o.layers[i].gdn = make([]float64, s.ValueHeads*s.ValueDim*s.KeyDim)
		for range s.ConvTaps - 1 {
			o.layers[i].conv = append(o.layers[i].conv, make([]float64, s.ConvDim()))
		}
	}
	return o
}

// GDNState returns layer's recurrent state, [ValueHeads, ValueDim, KeyDim]; ConvRows its last inputs, oldest first.
func (o *oracle) GDNState(layer int) []float64   { return o.layers[layer].gdn }
func (o *oracle) ConvRows(layer int) [][]float64 { return o.layers[layer].conv }

// Keys and Values return layer's cache, one row [KVHeads, HeadDim] for each token.
func (o *oracle) Keys(layer int) [][]float64   { return o.layers[layer].keys }
func (o *oracle) Values(layer int) [][]float64 { return o.layers[layer].values }

// run steps through tokens and returns the trace of each.
func (o *oracle) run(tokens ...int32) []oracleTrace {
	var out []oracleTrace
	for _, token := range tokens {
		out = append(out, o.step(token))
	}
	return out
}

// greedy reads the prompt and then writes n tokens, always the likeliest. Traces: one for each token that was read,
// so the last token written has none.
func (o *oracle) greedy(prompt []int32, n int) (written []int32, traces []oracleTrace) {
	traces = o.run(prompt...)
	for {
		next := int32(argmax(traces[len(traces)-1].Logits))
		written = append(written, next)
		if len(written) == n {
			return written, traces
		}
		traces = append(traces, o.step(next))
	}
}

// step reads one token.
func (o *oracle) step(token int32) oracleTrace {
	x := make([]float64, o.s.Hidden)
	dequantise(o.w.Embed, int(token), x)
	x = o.stored(x)
	trace := oracleTrace{Embedding: slices.Clone(x)}
	for i, layer := range o.w.Layers {
		h := o.rmsNorm(x, o.normWeight(layer.InputNorm))
		if layer.Attention != nil {
			x = o.add(x, o.attention(layer.Attention, &o.layers[i], h))
		} else {
			x = o.add(x, o.gdn(layer.GDN, &o.layers[i], h))
		}
		t := oracleLayerTrace{AfterMixer: slices.Clone(x)}
		h = o.rmsNorm(x, o.normWeight(layer.PostNorm))
		x = o.add(x, o.experts(&layer.MoE, h, &t))
		t.Residual = slices.Clone(x)
		trace.Layers = append(trace.Layers, t)
	}
	trace.Final = o.rmsNorm(x, o.normWeight(o.w.Norm))
	trace.Logits = o.linear(o.w.Head, 0, trace.Final)
	o.position++
	return trace
}

// gdn is the gated delta net: project, convolve, fold the token into the state, read it out, norm, gate, project.
func (o *oracle) gdn(g *GDN, st *oracleState, h []float64) []float64 {
	s := o.s
	u := o.linear(g.QKV, 0, h)
	z := o.linear(g.Z, 0, h)
	b := o.linear(g.B, 0, h)
	a := o.linear(g.A, 0, h)

	taps := plainValues(g.Conv) // [ConvDim, ConvTaps]
	window := append(st.conv, u)
	c := make([]float64, s.ConvDim())
	for ch := range c {
		for j := range s.ConvTaps {
			tap := j
			if o.mutation == reversedTaps {
				tap = s.ConvTaps - 1 - j
			}
			c[ch] += taps[ch*s.ConvTaps+tap] * window[j][ch]
		}
		c[ch] = silu(c[ch])
	}
	c = o.stored(c)
	st.conv = window[1:]

	keyWidth := s.KeyHeads * s.KeyDim
	q, k, v := c[:keyWidth], c[keyWidth:2*keyWidth], c[2*keyWidth:]
	logA, dtBias, norm := plainValues(g.ALog), plainValues(g.DtBias), plainValues(g.Norm)
	y := make([]float64, 0, s.ValueWidth())
	for head := range s.ValueHeads {
		source := head / (s.ValueHeads / s.KeyHeads)
		keySource := source
		if o.mutation == swappedKeySources && (head == 1 || head == 2) {
			keySource = (3 - head) / (s.ValueHeads / s.KeyHeads)
		}
		qh := o.l2(q[source*s.KeyDim:][:s.KeyDim])
		for i := range qh {
			qh[i] /= math.Sqrt(float64(s.KeyDim))
		}
		kh := o.l2(k[keySource*s.KeyDim:][:s.KeyDim])
		vh := v[head*s.ValueDim:][:s.ValueDim]
		beta := sigmoid(b[head])
		decay := math.Exp(-math.Exp(logA[head]) * softplus(a[head]+dtBias[head]))
		if o.mutation == droppedDecay {
			decay = 1
		}

		yh := make([]float64, s.ValueDim)
		for dv := range s.ValueDim {
			row := st.gdn[(head*s.ValueDim+dv)*s.KeyDim:][:s.KeyDim]
			early := dot(row, kh)
			for i := range row {
				row[i] *= decay
			}
			memory := dot(row, kh)
			if o.mutation == decayAfterMemory {
				memory = early
			}
			yh[dv] = dot(row, qh)
			delta := beta * (vh[dv] - memory)
			for i := range row {
				row[i] = o.store(row[i] + delta*kh[i])
			}
			if o.mutation != readBeforeWrite {
				yh[dv] = dot(row, qh)
			}
		}
		zh := z[head*s.ValueDim:][:s.ValueDim]
		if o.mutation == gateBeforeNorm {
			for i := range yh {
				yh[i] *= silu(zh[i])
			}
			y = append(y, o.rmsNorm(yh, norm)...)
			continue
		}
		yh = o.rmsNorm(o.stored(yh), norm)
		for i := range yh {
			yh[i] *= silu(zh[i])
		}
		y = append(y, yh...)
	}
	return o.linear(g.Out, 0, o.stored(y))
}

// attention is gated full attention over all tokens so far.
func (o *oracle) attention(a *Attention, st *oracleState, h []float64) []float64 {
	s := o.s
	projected := o.linear(a.Q, 0, h) // [Heads, query and gate, HeadDim]
	k := o.linear(a.K, 0, h)         // [KVHeads, HeadDim]
	v := o.linear(a.V, 0, h)
	qNorm, kNorm := o.normWeight(a.QNorm), o.normWeight(a.KNorm)

	var keyRow []float64
	for head := range s.KVHeads {
		kh := o.rmsNorm(k[head*s.HeadDim:][:s.HeadDim], kNorm)
		keyRow = append(keyRow, o.rotated(kh)...)
	}
	st.keys = append(st.keys, keyRow)
	st.values = append(st.values, v)

	out := make([]float64, 0, s.QWidth())
	for head := range s.Heads {
		qh, gate := projected[2*head*s.HeadDim:][:s.HeadDim], projected[(2*head+1)*s.HeadDim:][:s.HeadDim]
		switch o.mutation {
		case swappedGateHalves:
			qh, gate = gate, qh
		case queriesThenGates:
			qh, gate = projected[head*s.HeadDim:][:s.HeadDim], projected[(s.Heads+head)*s.HeadDim:][:s.HeadDim]
		}
		qh = o.rotated(o.rmsNorm(qh, qNorm))
		at := head / (s.Heads / s.KVHeads) * s.HeadDim // this head's keys and values in a cache row

		scores := make([]float64, len(st.keys))
		for p, row := range st.keys {
			scores[p] = dot(qh, row[at:at+s.HeadDim]) / math.Sqrt(float64(s.HeadDim))
		}
		probabilities := softmax(scores)
		oh := make([]float64, s.HeadDim)
		for p, row := range st.values {
			for i := range oh {
				oh[i] += probabilities[p] * row[at+i]
			}
		}
		for i := range oh {
			oh[i] *= sigmoid(gate[i])
		}
		out = append(out, oh...)
	}
	return o.linear(a.O, 0, o.stored(out))
}

// rotated applies the rotary embedding of the current position to the first RotaryDim dims of one head.
func (o *oracle) rotated(x []float64) []float64 {
	out := slices.Clone(x)
	dims := o.s.RotaryDim
	if o.mutation == wholeHeadRotary {
		dims = o.s.HeadDim
	}
	half := dims / 2
	for i := range half {
		angle := float64(o.position) * math.Pow(o.s.RopeTheta, -2*float64(i)/float64(dims))
		sin, cos := math.Sincos(angle)
		first, second := i, i+half
		if o.mutation == interleavedRotary {
			first, second = 2*i, 2*i+1
		}
		out[first] = x[first]*cos - x[second]*sin
		out[second] = x[first]*sin + x[second]*cos
	}
	return o.stored(out)
}

// experts is the mixture: the TopK likeliest experts by weight, and the shared one through its own gate.
func (o *oracle) experts(m *MoE, h []float64, t *oracleLayerTrace) []float64 {
	t.RouterLogits = o.linear(m.Router, 0, h)
	probabilities := softmax(t.RouterLogits)
	order := make([]int, len(probabilities))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { // stable: of equals the lower index wins
		switch {
		case probabilities[a] > probabilities[b]:
			return -1
		case probabilities[a] < probabilities[b]:
			return 1
		}
		return 0
	})
	t.Experts = order[:o.s.TopK]
	sum := 0.0
	for _, e := range t.Experts {
		sum += probabilities[e]
	}
	if o.mutation == unnormalisedTopK {
		sum = 1
	}
	out := make([]float64, o.s.Hidden)
	for _, e := range t.Experts {
		weight := probabilities[e] / sum
		t.Weights = append(t.Weights, weight)
		for i, v := range o.swiglu(m.Gate, m.Up, m.Down, e, h) {
			out[i] += weight * v
		}
	}
	t.SharedGate = sigmoid(o.linear(m.SharedGate, 0, h)[0])
	gate := t.SharedGate
	if o.mutation == ungatedShared {
		gate = 1
	}
	for i, v := range o.swiglu(m.SharedGateProj, m.SharedUp, m.SharedDown, 0, h) {
		out[i] += gate * v
	}
	return o.stored(out)
}

// swiglu is one expert: down(silu(gate h) * up h).
func (o *oracle) swiglu(gate, up, down Linear, expert int, h []float64) []float64 {
	g, u := o.linear(gate, expert, h), o.linear(up, expert, h)
	for i := range g {
		g[i] = silu(g[i]) * u[i]
	}
	return o.linear(down, expert, o.stored(g))
}

// linear multiplies x by one matrix of l.
func (o *oracle) linear(l Linear, expert int, x []float64) []float64 {
	y, row := make([]float64, l.Rows), make([]float64, l.K)
	for r := range y {
		dequantise(l, expert*l.Rows+r, row)
		y[r] = o.store(dot(row, x))
	}
	return y
}

// dequantise writes row r of all of l's rows, stacked matrices one after the other, to row: scale*code + bias.
func dequantise(l Linear, r int, row []float64) {
	const group = 64
	codes := l.Codes.Data[r*l.K*l.Bits/8:][:l.K*l.Bits/8]
	for g := range l.K / group {
		scale := bf16At(l.Scales, r*l.K/group+g)
		bias := bf16At(l.Biases, r*l.K/group+g)
		for i := g * group; i < (g+1)*group; i++ {
			var code byte
			if l.Bits == 8 {
				code = codes[i]
			} else {
				code = codes[i/2] >> (4 * (i % 2)) & 15 // the low half first
			}
			row[i] = scale*float64(code) + bias
		}
	}
}

func (o *oracle) rmsNorm(x, weight []float64) []float64 {
	scale := 1 / math.Sqrt(dot(x, x)/float64(len(x))+o.s.RMSEps)
	out := make([]float64, len(x))
	for i := range x {
		out[i] = x[i] * scale * weight[i]
	}
	return o.stored(out)
}

// normWeight returns the weight of a norm that upstream stores as its distance from 1 and this checkpoint stores whole.
func (o *oracle) normWeight(t checkpoint.Tensor) []float64 {
	w := plainValues(t)
	if o.mutation == offsetNorms {
		for i := range w {
			w[i]++
		}
	}
	return w
}

// l2 scales one head to length 1.
func (o *oracle) l2(x []float64) []float64 {
	epsilon := float64(len(x)) * 1e-6
	if o.mutation == upstreamL2Epsilon {
		epsilon = 1e-6
	}
	scale := 1 / math.Sqrt(dot(x, x)+epsilon)
	out := make([]float64, len(x))
	for i := range x {
		out[i] = x[i] * scale
	}
	return o.stored(out)
}

func (o *oracle) add(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] + b[i]
	}
	return o.stored(out)
}

// store rounds one value to the oracle's precision; stored rounds x in place and returns it.
func (o *oracle) store(v float64) float64 {
	if o.precision == single {
		return float64(float32(v))
	}
	return v
}

func (o *oracle) stored(x []float64) []float64 {
	for i := range x {
		x[i] = o.store(x[i])
	}
	return x
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

func softmax(x []float64) []float64 {
	top := slices.Max(x)
	out := make([]float64, len(x))
	sum := 0.0
	for i, v := range x {
		out[i] = math.Exp(v - top)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

func sigmoid(v float64) float64  { return 1 / (1 + math.Exp(-v)) }
func silu(v float64) float64     { return v * sigmoid(v) }
func softplus(v float64) float64 { return max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))) }

// argmax returns the index of the largest value, the lowest of equals.
func argmax(x []float64) int {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return best
}

func bf16At(t checkpoint.Tensor, i int) float64 {
	return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.Data[2*i:])) << 16))
}

// plainValues returns a BF16 tensor's values.
func plainValues(t checkpoint.Tensor) []float64 {
	out := make([]float64, len(t.Data)/2)
	for i := range out {
		out[i] = bf16At(t, i)
	}
	return out
}
