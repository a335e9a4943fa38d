package qwen36

import (
	"fmt"

	"pond/inference/cache"
	"pond/inference/plan"
	"pond/metal/kernels"
)

// Names of the buffers that are not weights. State is per sequence, inputs are written before a run, outputs read after it.
const (
	BufTokens = "tokens" // input, U32 [M]
	BufStep   = "step"   // input, U32 [rows]: position of the chunk's first token, or of each sequence's
	BufRope   = "rope"   // input, F32 [M, RotaryDim]: cosines, then sines
	BufLogits = "logits" // output, F32 [rows, Vocab], or [M, Vocab] when all are wanted
	BufDraw   = "draw"   // input, U32 [DrawWords]: how to choose the next token
	BufMarks  = "marks"  // state of an answer, U32 [ids]: what penalties and biases have to do with each token
	BufBiases = "biases" // input, F32 [MaxBiases]
	BufChoice = "choice" // output, U32 [ChoiceWords]: the next token
)

// StateName names a state buffer of a layer: kind is "state", "next", "window", "keys" or "values".
func StateName(kind string, layer int) string { return fmt.Sprintf("%s.%d", kind, layer) }

// rowName is the name of a sequence's own dispatch or state in a plan of several: the first's is that in a plan of one.
func rowName(name string, row int) string {
	if row == 0 {
		return name
	}
	return fmt.Sprintf("%s@%d", name, row)
}

// StateBuffers lists what one sequence of up to context tokens carries, in layer order. The window is a ring of ConvTaps rows.
func (o Options) StateBuffers(s Shape, context int) []cache.Spec {
	var out []cache.Spec
	for i := range s.Layers {
		if s.Attention(i) {
			row := int64(s.KVWidth()) * o.cacheBytes()
			for _, kind := range []string{"keys", "values"} {
				out = append(out, cache.Spec{Name: StateName(kind, i), LenBytes: row * int64(context), RowBytes: row})
			}
			continue
		}
		out = append(out,
			cache.Spec{Name: StateName("state", i), LenBytes: int64(s.ValueWidth()*s.KeyDim) * plan.F32.Bytes(), Next: StateName("next", i), Apart: o.GPU},
			cache.Spec{Name: StateName("window", i), LenBytes: int64(kernels.ConvTaps*s.ConvDim()) * plan.F32.Bytes()})
	}
	return out
}

// emitter appends dispatches to a plan, taking names, element types and access from the kernels' signatures.
type emitter struct {
	*plan.Builder
	Options
	s       Shape
	parts   *plan.Range           // products that are still to be added to the stream, by the norm that follows
	decodes bool                  // the plan of one token a sequence, by its own kernels
	tokens  int                   // M; in decode also the sequences
	context int                   // rows of the KV cache
	states  map[string]cache.Spec // by name
}

func (o Options) newEmitter(name string, s Shape, tokens, context int) *emitter {
	e := &emitter{Builder: plan.New(name), Options: o, s: s, tokens: tokens, context: context, states: map[string]cache.Spec{}}
	for _, b := range o.StateBuffers(s, context) {
		e.states[b.Name] = b
		if b.Next != "" {
			e.states[b.Next] = cache.Spec{Name: b.Next, LenBytes: b.LenBytes}
		}
	}
	return e
}

// linear is a quantised projection as a plan sees it.
type linear struct {
	module         string
	stack, rows, k int
	bits           int
	used           int // matrices of the stack that a run reads, of stack
}

// weights are the three ranges of a projection.
func (e *emitter) weights(l linear) [kernels.SegmentArgs]plan.Range {
	n := l.stack * l.rows
	return [...]plan.Range{
		e.Buffer(l.module+".weight", plan.Weight, plan.Code, n*l.k*l.bits/8),
		e.Buffer(l.module+".scales", plan.Weight, plan.BF16, n*l.k/kernels.Group),
		e.Buffer(l.module+".biases", plan.Weight, plan.BF16, n*l.k/kernels.Group),
	}
}

func (e *emitter) vector(name string, n int) plan.Range {
	return e.Buffer(name, plan.Weight, plan.BF16, n)
}

func (e *emitter) scratch(name string, n int) plan.Range {
	return e.Buffer(name, plan.Scratch, plan.F32, n)
}

// scratchHalf is scratch of bf16, where a GPU keeps it so.
func (e *emitter) scratchHalf(name string, n int, t kernels.DType) plan.Range {
	if t == kernels.BF16 {
		return e.Buffer(name, plan.Scratch, plan.BF16, n)
	}
	return e.scratch(name, n)
}

func (e *emitter) scratchIDs(name string, n int) plan.Range {
	return e.Buffer(name, plan.Scratch, plan.U32, n)
}

// step is where a row's sequence stands; a chunk has one row.
func (e *emitter) step(row int) plan.Range {
	n := 1
	if e.decodes {
		n = e.tokens
	}
	return e.Buffer(BufStep, plan.Input, plan.U32, n).Part(row, 1, plan.U32)
}

func (e *emitter) rope() plan.Range {
	return e.Buffer(BufRope, plan.Input, plan.F32, e.tokens*e.s.RotaryDim)
}

func (e *emitter) stream() plan.Range { return e.scratch("x", e.tokens*e.s.Hidden) }

// state is a buffer of a row's sequence.
func (e *emitter) state(kind string, layer, row int) plan.Range {
	b, ok := e.states[StateName(kind, layer)]
	if !ok {
		e.Fail(fmt.Errorf("qwen36: internal error: no state %s in layer %d", kind, layer))
		return plan.Range{}
	}
	t := plan.F32
	if b.RowBytes > 0 && e.halfKV() {
		t = plan.BF16
	}
	return e.Buffer(rowName(b.Name, row), plan.State, t, int(b.LenBytes/t.Bytes()))
}

// operand is one argument: a range and, where a run moves less than all of it, how much.
type operand struct {
	plan.Range
	touched int64
}

func ranges(rs ...plan.Range) []operand {
	out := make([]operand, len(rs))
	for i, r := range rs {
		out[i] = operand{Range: r}
	}
	return out
}

// dispatch appends one launch of k with its buffers in signature order, then its weight matrices.
func (e *emitter) dispatch(name string, k kernels.Kernel, params any, items int, args []operand, w ...linear) {
	for _, l := range w {
		for _, r := range e.weights(l) {
			op := operand{Range: r}
			if l.used < l.stack {
				op.touched = r.Len / int64(l.stack) * int64(l.used)
			}
			args = append(args, op)
		}
	}
	d := plan.Dispatch{Name: name, Kernel: k.Name, Params: params, Items: items}
	for i, a := range args {
		sig, err := k.Param(i, len(args))
		if err != nil {
			e.Fail(fmt.Errorf("qwen36: internal error: %s: %w", name, err))
			return
		}
		d.Args = append(d.Args, plan.Arg{Param: sig.Name, Range: a.Range, Access: plan.Access(sig.Access), Touched: a.touched})
	}
	e.Add(d)
}

func (e *emitter) eps() float32 { return float32(e.s.RMSEps) }

// params of a product of M rows with the given matrices.
func (e *emitter) product(tokens int, w ...linear) kernels.LinearParams {
	p := kernels.LinearParams{M: tokens, K: w[0].k, Bits: w[0].bits, Eps: e.eps()}
	for i, l := range w {
		p.Rows[i] = l.rows
	}
	return p
}

// Module path prefixes of the checkpoint.
const (
	textPrefix = "language_model.model."
	headModule = "language_model.lm_head"
)

func layerPrefix(i int) string { return fmt.Sprintf("%slayers.%d.", textPrefix, i) }

// project is a plain 4-bit or 8-bit projection.
func project(module string, rows, k, bits int) linear {
	return linear{module: module, stack: 1, used: 1, rows: rows, k: k, bits: bits}
}
