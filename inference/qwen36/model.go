package qwen36

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"pond/inference/cache"
	"pond/inference/checkpoint"
	"pond/inference/plan"
	"pond/metal"
	"pond/metal/kernels"
)

// Model is the weights on a device, ready to be run. It belongs to the goroutine that owns the device. The checkpoint must outlive
// it: the host executor computes on the file's own bytes.
type Model struct {
	Shape   Shape
	Context int // rows of each sequence's KV cache
	options Options
	dev     metal.Device
	weights map[string]metal.Buffer
	edges   map[string]metal.Buffer // inputs and outputs, shared by all passes
	scratch metal.Buffer            // shared by all passes: nothing in it lives between runs
	slots   map[string]int          // of each state buffer, by its name in a plan
	next    map[string]bool         // state buffers that a step writes anew
	decode  map[batch]bound
	plain   *Drawing        // of answers without penalties and biases
	prefill map[chunk]bound // by size; only sizes that come again are kept
}

// NewModel places the weights. LoadWeights has checked names, types and shapes before.
func (o Options) NewModel(dev metal.Device, c *checkpoint.Checkpoint, s Shape, context int) (*Model, error) {
	m := &Model{Shape: s, Context: context, options: o, dev: dev, weights: map[string]metal.Buffer{}, edges: map[string]metal.Buffer{}, slots: map[string]int{}, next: map[string]bool{},
		decode: map[batch]bound{}, prefill: map[chunk]bound{}}
	specs := o.StateBuffers(s, context)
	for row := range kernels.MaxBatch {
		for _, name := range cache.Names(specs) {
			m.slots[rowName(name, row)] = len(m.slots)
		}
	}
	for _, b := range specs {
		m.next[b.Next] = true
	}
	for i, name := range stepBuffers() { // where a second sequence's would be: a pass that chooses has one
		m.slots[name] = len(cache.Names(specs)) + i
	}
	p, err := o.Decode(s, context, 1)
	if err != nil {
		return nil, err
	}
	// A first look at the other plan too: what cannot be built is told at once, and so are the switches that act in it.
	if _, err := o.Prefill(s, context, min(8, context), LastLogits); err != nil {
		return nil, err
	}
	for _, b := range p.Buffers {
		if b.Class != plan.Weight {
			continue
		}
		t, ok := c.Tensor(b.Name)
		if !ok || int64(len(t.Data)) != b.LenBytes {
			return nil, fmt.Errorf("%s: got %d bytes in the checkpoint, want %d", b.Name, len(t.Data), b.LenBytes)
		}
		if m.weights[b.Name], err = dev.PlaceWeights(b.Name, t.Data); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// WeightBytes is the size of the weights, as published.
func (m *Model) WeightBytes() int64 {
	var n int64
	for _, b := range m.weights {
		n += int64(len(b.Bytes()))
	}
	return n
}

// WeightNames are the tensors that the model reads, in no order.
func (m *Model) WeightNames() []string { return slices.Collect(maps.Keys(m.weights)) }

// StateSpecs lists what each of its sequences carries.
func (m *Model) StateSpecs() []cache.Spec { return m.options.StateBuffers(m.Shape, m.Context) }

// Sequence is one timeline of tokens on a model: its state. The model's passes have slots for it.
type Sequence struct {
	*cache.State
	// Options apply to every run; tests shuffle and tap.
	Options metal.RunOptions

	m      *Model
	inputs [2]inputs // of two steps in flight
	ahead  *step     // begun with the token that the step before it chose; nil: none
}

// batch is a decode pass: of so many sequences, with so many attention blocks, with or without the choice of the one's next token.
type batch struct {
	rows, blocks int
	chooses      bool
}

type chunk struct {
	tokens int
	logits Logits
	parts  int // of attention's keys
}

// bound is a compiled plan with the buffers that the host writes and reads.
type bound struct {
	pass         metal.Pass
	tokens, step metal.Buffer
	rope         metal.Buffer // nil when the plan has no attention
	logits       metal.Buffer
	next         bool // the state behind the run is in the buffers for it, not in place
}

// NewSequence allocates the state of a sequence. Its rows grow as it does, to Context tokens at most.
func (m *Model) NewSequence() (*Sequence, error) {
	st, err := cache.NewState(m.dev, m.options.StateBuffers(m.Shape, m.Context))
	if err != nil {
		return nil, err
	}
	return &Sequence{State: st, m: m}, nil
}

// bind turns a plan into a pass over the model's weights and the shared scratch, with slots for a sequence's state.
func (m *Model) bind(p *plan.Plan, err error) (bound, error) {
	if err != nil {
		return bound{}, err
	}
	if err := m.growScratch(p.ScratchBytes); err != nil {
		return bound{}, err
	}
	chooses := slices.ContainsFunc(p.Buffers, func(b plan.Buffer) bool { return b.Name == BufChoice })
	bufs := make([]metal.Buffer, len(p.Buffers))
	for i, b := range p.Buffers {
		if chooses && slices.Contains(stepBuffers(), b.Name) {
			bufs[i] = metal.Slot{Index: m.slots[b.Name], Name: b.Name}
			continue
		}
		switch b.Class {
		case plan.Weight:
			bufs[i] = m.weights[b.Name]
		case plan.State:
			bufs[i] = metal.Slot{Index: m.slots[b.Name], Name: b.Name}
		case plan.Scratch:
			bufs[i] = m.scratch
		default:
			s := m.edges[b.Name]
			if s == nil || int64(len(s.Bytes())) < b.LenBytes {
				var err error
				if s, err = m.dev.NewBuffer(b.Name, b.LenBytes); err != nil {
					return bound{}, err
				}
				m.edges[b.Name] = s
			}
			bufs[i] = s
		}
		if bufs[i] == nil {
			return bound{}, fmt.Errorf("qwen36: internal error: plan %s: no memory for %s %s", p.Name, b.Class, b.Name)
		}
	}
	prog := metal.Program{Label: p.Name, Levels: make([][]metal.Dispatch, p.Levels)}
	for i, d := range p.Dispatches {
		md := metal.Dispatch{Label: d.Name, Kernel: d.Kernel, Params: d.Params, Items: d.Items, Work: d.Bytes()}
		for _, a := range d.Args {
			at := metal.Slice{Buffer: bufs[a.Range.Buffer], Off: a.Range.Off, Len: a.Range.Len}
			if b := p.Buffers[a.Range.Buffer]; b.Class == plan.Scratch {
				at.Off, at.Name = a.At, b.Name
			}
			md.Args = append(md.Args, at)
		}
		prog.Levels[p.Level[i]] = append(prog.Levels[p.Level[i]], md)
	}
	pass, err := m.dev.Compile(prog)
	if err != nil {
		return bound{}, err
	}
	named := func(name string) metal.Buffer {
		for i, b := range p.Buffers {
			if b.Name == name {
				return bufs[i]
			}
		}
		return nil
	}
	next := slices.ContainsFunc(p.Buffers, func(b plan.Buffer) bool { return m.next[b.Name] })
	return bound{pass: pass, next: next, tokens: named(BufTokens), step: named(BufStep), rope: named(BufRope), logits: named(BufLogits)}, nil
}

// growScratch makes the scratch memory at least so large. Passes are bound to it: those that exist are given up, so that there is never an
// old one beside the new.
func (m *Model) growScratch(lenBytes int64) (err error) {
	if m.scratch != nil && int64(len(m.scratch.Bytes())) >= lenBytes {
		return nil
	}
	clear(m.decode)
	clear(m.prefill)
	m.scratch = nil
	m.scratch, err = m.dev.NewBuffer("scratch", lenBytes)
	return err
}

// decodePass returns the pass of so many sequences whose attention covers keys keys. Its size is the next power of two of blocks, so that a
// long answer meets at most eleven of them.
func (m *Model) decodePass(rows, keys int, chooses bool) (bound, error) {
	key := batch{rows, 1, chooses}
	for key.blocks < Blocks(keys) {
		key.blocks *= 2
	}
	if b, ok := m.decode[key]; ok {
		return b, nil
	}
	b, err := m.bind(m.options.decodePlan(m.Shape, m.Context, min(m.Context, key.blocks*kernels.AttnBlock), rows, chooses))
	if err == nil {
		m.decode[key] = b
	}
	return b, err
}

// prefillPass returns the pass of a chunk.
func (m *Model) prefillPass(c chunk) (bound, error) {
	b, ok := m.prefill[c]
	if ok {
		return b, nil
	}
	b, err := m.bind(m.options.PrefillInParts(m.Shape, m.Context, c.tokens, c.logits, c.parts))
	if err != nil {
		return b, err
	}
	if len(m.prefill) >= keptChunks {
		clear(m.prefill)
	}
	m.prefill[c] = b
	return b, nil
}

// MostTogether is how many sequences Step takes.
func (m *Model) MostTogether() int { return m.options.batchRows() }

// Step takes in one token of each of some different sequences, in one pass that reads the weights once, and returns the logits of the next of
// each, [Vocab] f32, valid until the next run. Each sequence gets what Token would give it, to the bit. Where it fails after the checks, what
// state the sequences are in is undefined.
func (m *Model) Step(qs []*Sequence, ids []int32) ([][]float32, error) {
	keys := 0
	for i, q := range qs {
		if err := q.Drop(); err != nil {
			return nil, err
		}
		if err := q.fits(ids[i : i+1]); err != nil {
			return nil, err
		}
		keys = max(keys, q.Pos()+1)
	}
	b, err := m.decodePass(len(qs), keys, false)
	if err != nil {
		return nil, err
	}
	o := qs[0].Options
	o.Slots = make([]metal.Buffer, 0, len(qs)*len(m.slots)/kernels.MaxBatch)
	for i, q := range qs {
		b.tokens.U32()[i] = uint32(ids[i])
		b.step.U32()[i] = uint32(q.Pos())
		if b.rope != nil {
			m.Shape.Rope(b.rope.F32()[i*m.Shape.RotaryDim:], q.Pos(), 1)
		}
		o.Slots = append(o.Slots, q.Buffers()...)
	}
	if err := m.dev.Run(b.pass, o); err != nil {
		return nil, err
	}
	logits := make([][]float32, len(qs))
	for i, q := range qs {
		if b.next {
			q.Step()
		} else {
			q.Advance(1)
		}
		q.Took(-1)
		logits[i] = b.logits.F32()[i*m.Shape.Vocab : (i+1)*m.Shape.Vocab]
	}
	return logits, nil
}

// Token takes in one token and returns the logits of the next, [Vocab] f32, valid until the next run.
func (q *Sequence) Token(id int32) ([]float32, error) {
	logits, err := q.m.Step([]*Sequence{q}, []int32{id})
	if err != nil {
		return nil, err
	}
	return logits[0], nil
}

// Chunk takes in tokens at once and returns the logits after the last, [Vocab], or after each, [len(ids), Vocab]; valid until the
// next run.
func (q *Sequence) Chunk(ids []int32, l Logits) ([]float32, error) {
	return q.ChunkInParts(ids, l, q.m.options.KeyParts(q.m.Shape, len(ids), q.Pos()))
}

// ChunkInParts is Chunk with attention's keys in that many parts, whatever would be chosen here; for tests of both routes.
func (q *Sequence) ChunkInParts(ids []int32, l Logits, parts int) ([]float32, error) {
	if err := q.Drop(); err != nil {
		return nil, err
	}
	if err := q.fits(ids); err != nil {
		return nil, err
	}
	b, err := q.m.prefillPass(chunk{len(ids), l, parts})
	if err != nil {
		return nil, err
	}
	if err := q.run(b, ids); err != nil {
		return nil, err
	}
	n := q.m.Shape.Vocab
	if l == AllLogits {
		n *= len(ids)
	}
	return b.logits.F32()[:n], nil
}

// keptChunks bounds the compiled prefill passes: the full chunk, and the last tails, whose sizes seldom come again.
const keptChunks = 8

func (q *Sequence) fits(ids []int32) error {
	if len(ids) == 0 || q.Pos()+len(ids) > q.m.Context {
		return fmt.Errorf("got %d tokens at position %d, want 1 to %d", len(ids), q.Pos(), q.m.Context-q.Pos())
	}
	for i, id := range ids {
		if id < 0 || int(id) >= q.m.Shape.Vocab {
			return fmt.Errorf("token %d: got id %d, want 0 to %d", q.Pos()+i, id, q.m.Shape.Vocab-1)
		}
	}
	return q.Grow(q.Capacity(q.Pos() + len(ids)))
}

// Steps by which rows grow: an answer of some length needs none, and what is copied at each is worth it.
const (
	growTokens = 256 // a block of keys: a short question takes no more
	growPart   = 4   // of what is there
)

// Capacity is the number of positions to grow to where n are needed: the present one where that is enough.
func (q *Sequence) Capacity(n int) int {
	if n <= q.Rows() {
		return q.Rows()
	}
	n = max(n, q.Rows()+q.Rows()/growPart)
	return min(q.m.Context, (n+growTokens-1)/growTokens*growTokens)
}

// Restore puts the sequence where a snapshot was taken.
func (q *Sequence) Restore(c *cache.Snapshot) error {
	if err := q.Drop(); err != nil {
		return err
	}
	if err := q.Grow(q.Capacity(c.Pos())); err != nil {
		return err
	}
	return q.State.Restore(c)
}

func (q *Sequence) run(b bound, ids []int32) error {
	for i, id := range ids {
		b.tokens.U32()[i] = uint32(id)
	}
	b.step.U32()[0] = uint32(q.Pos())
	if b.rope != nil {
		q.m.Shape.Rope(b.rope.F32(), q.Pos(), len(ids))
	}
	o := q.Options
	o.Slots = q.Buffers()
	if err := q.m.dev.Run(b.pass, o); err != nil {
		return err
	}
	if b.next {
		q.Step()
	} else {
		q.Advance(len(ids))
	}
	q.Took(int32(len(ids)))
	return nil
}

// Shuffle makes every run take the dispatches of a level in a random order, which must not change a bit.
func (q *Sequence) Shuffle(seed uint64) { q.Options.Shuffle = rand.New(rand.NewPCG(seed, 1)) }
