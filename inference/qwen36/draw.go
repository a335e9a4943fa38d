package qwen36

import (
	"fmt"
	"math"
	"slices"

	"pond/inference/ablate"
	"pond/inference/cache"
	"pond/inference/plan"
	"pond/metal"
	"pond/metal/kernels"
)

// Tokens that the device chooses. A step leaves its choice where the next one's embedding reads it, so the next can begin before the host has
// seen the token: the device is never without work between two tokens. What a step is told beside the token, its position, rotation and random
// number, is known before.
//
// A step that began ahead of its time is taken back by forgetting it: it wrote a key row behind the position, a row of the convolution's ring
// that no step at the position reads, and the next gdn state, which has memory of its own on a GPU. The host's has not: there nothing is begun
// ahead of its time, and nothing would be gained by it.

// count appends what lets penalties know of the token of the step; it stands beside the embedding.
func (e *emitter) count() {
	e.dispatch("count", kernels.CountToken(), e.sample(), 1, []operand{{Range: e.Buffer(BufTokens, plan.Input, plan.U32, 1)}, {Range: e.draw()},
		{Range: e.Buffer(BufMarks, plan.State, plan.U32, e.s.UsableIDs()), touched: plan.U32.Bytes()}})
}

// choose appends the head, and the choice of the next token. Marks and biases are read where penalties or biases apply; as shipped none do.
func (e *emitter) choose() {
	p := e.sample()
	head := e.headProduct(1)
	fused := !e.Ablate.Off(ablate.FusedChoice)
	if fused {
		p.Block = e.headBlock(head.params)
	}
	bests := e.scratchIDs("bests", 2*p.Bests())
	told := []operand{{Range: e.draw()}, {Range: e.Buffer(BufMarks, plan.State, plan.U32, p.N), touched: plan.U32.Bytes()},
		{Range: e.Buffer(BufBiases, plan.Input, plan.F32, kernels.MaxBiases), touched: plan.F32.Bytes()}}
	logits := operand{Range: head.logits}
	if fused {
		h := kernels.HeadParams{Product: head.params, Choice: p}
		e.dispatch("lm_head", kernels.Q4GemvNormBests(), h, h.Blocks(), slices.Concat(ranges(e.stream(), head.norm, head.logits), told, ranges(bests)), head.weights)
	} else {
		e.head(e.stream(), 1)
		e.dispatch("bests", kernels.LogitBests(), p, p.Bests(), slices.Concat([]operand{logits}, told, ranges(bests)))
	}
	logits.touched = plan.F32.Bytes() // of the blocks that hold the likeliest
	e.dispatch("choice", kernels.DrawToken(), p, 1, slices.Concat([]operand{logits}, told, ranges(bests, e.Buffer(BufChoice, plan.Output, plan.U32, kernels.ChoiceWords))))
}

func (e *emitter) sample() kernels.SampleParams {
	return kernels.SampleParams{N: e.s.UsableIDs(), Block: kernels.BestBlock}
}

func (e *emitter) draw() plan.Range {
	return e.Buffer(BufDraw, plan.Input, plan.U32, kernels.DrawWords)
}

// stepBuffers are what a step that chooses has slots for beside the sequence's state, in order.
func stepBuffers() []string {
	return []string{BufTokens, BufStep, BufRope, BufDraw, BufMarks, BufBiases, BufChoice}
}

// inputs are what a step is told and where it leaves its choice, but for what is the answer's.
type inputs struct{ tokens, step, rope, draw, choice metal.Buffer }

// Drawing is how the tokens of one answer are chosen. It belongs to the goroutine that owns the device.
type Drawing struct {
	// At is what the position asks for.
	At            func(position int) kernels.Draw
	marks, biases metal.Buffer
	marked        bool
}

// NewDrawing makes a drawing with marks by token, nil where no penalties and biases apply, and biases by the marks' index.
func (m *Model) NewDrawing(marks map[int32]uint32, biases []float32, at func(position int) kernels.Draw) (*Drawing, error) {
	if marks == nil && m.plain != nil {
		return &Drawing{At: at, marks: m.plain.marks, biases: m.plain.biases}, nil
	}
	ids, most := 1, 1
	if marks != nil {
		ids, most = m.Shape.UsableIDs(), kernels.MaxBiases
	}
	if len(biases) > most {
		return nil, fmt.Errorf("biases: got %d, want at most %d", len(biases), most)
	}
	d := &Drawing{At: at, marked: marks != nil}
	var err error
	if d.marks, err = m.dev.NewBuffer(BufMarks, int64(ids)*plan.U32.Bytes()); err != nil {
		return nil, err
	}
	if d.biases, err = m.dev.NewBuffer(BufBiases, int64(most)*plan.F32.Bytes()); err != nil {
		return nil, err
	}
	if marks == nil {
		m.plain = d
	}
	for id, mark := range marks {
		d.marks.U32()[id] = mark
	}
	copy(d.biases.F32(), biases)
	return d, nil
}

// Choice is a token that the device chose, or why there is none.
type Choice struct {
	ID     int32
	Status uint32  // kernels.Chosen, or what the logits are
	Logit  float32 // of ID
}

// step is a run that takes in a token and chooses the next.
type step struct {
	running metal.Running
	in      *inputs
	drawing *Drawing
	token   int32 // that it takes in; of one ahead: once the step before it has ended
	next    bool  // leaves the state before it in place
}

// GoesAhead reports whether Draw may begin a step ahead of its time: where one can be taken back.
func (m *Model) GoesAhead() bool { return m.options.GPU }

// Draw takes in a token and returns the one that the device chooses after it. With ahead the step behind it begins at once, with that token,
// and serves the next Draw where that takes it in; everything else that is done with the sequence takes it back. The answer is the same
// with and without.
func (q *Sequence) Draw(d *Drawing, id int32, ahead bool) (Choice, error) {
	now := q.ahead
	if now != nil && (now.drawing != d || now.token != id) {
		if err := q.Drop(); err != nil {
			return Choice{}, err
		}
		now = nil
	}
	q.ahead = nil
	if now == nil {
		if err := q.fits([]int32{id}); err != nil {
			return Choice{}, err
		}
		if err := q.makeInputs(); err != nil {
			return Choice{}, err
		}
		in := &q.inputs[0]
		in.tokens.U32()[0] = uint32(id)
		var err error
		if now, err = q.start(d, in, in.tokens); err != nil {
			return Choice{}, err
		}
	}
	if now.next {
		q.Step()
	} else {
		q.Advance(1)
	}
	q.Took(-1)
	var behind *step
	if ahead && now.next && q.m.GoesAhead() && q.Pos() < q.Rows() {
		in := &q.inputs[0]
		if in == now.in {
			in = &q.inputs[1]
		}
		var err error
		if behind, err = q.start(d, in, now.in.choice); err != nil {
			return Choice{}, err
		}
	}
	if err := now.running.Wait(); err != nil {
		if behind != nil {
			behind.running.Drop() // failed with it, or never ran
		}
		return Choice{}, err
	}
	w := now.in.choice.U32()
	c := Choice{ID: int32(w[kernels.ChoiceID]), Status: w[kernels.ChoiceStatus], Logit: math.Float32frombits(w[kernels.ChoiceNumber])}
	if q.ahead = behind; behind != nil {
		behind.token = c.ID
		if c.Status != kernels.Chosen {
			return c, q.Drop()
		}
	}
	return c, nil
}

// start begins a step at the position, with the token that will be in tokens.
func (q *Sequence) start(d *Drawing, in *inputs, tokens metal.Buffer) (*step, error) {
	b, err := q.m.decodePass(1, q.Pos()+1, true)
	if err != nil {
		return nil, err
	}
	in.step.U32()[0] = uint32(q.Pos())
	q.m.Shape.Rope(in.rope.F32(), q.Pos(), 1)
	draw := d.At(q.Pos() + 1)
	draw.Marked = d.marked
	draw.Put(in.draw.U32())
	o := q.Options
	o.Slots = append(q.Buffers(), tokens, in.step, in.rope, in.draw, d.marks, d.biases, in.choice)
	return &step{running: q.m.dev.Start(b.pass, o), in: in, drawing: d, next: b.next}, nil
}

func (q *Sequence) makeInputs() error {
	if q.inputs[0].choice != nil {
		return nil
	}
	for i := range q.inputs {
		in := &q.inputs[i]
		for _, b := range []struct {
			at    *metal.Buffer
			name  string
			words int
		}{{&in.tokens, BufTokens, 1}, {&in.step, BufStep, 1}, {&in.rope, BufRope, max(q.m.Shape.RotaryDim, 1)}, {&in.draw, BufDraw, kernels.DrawWords}, {&in.choice, BufChoice, kernels.ChoiceWords}} {
			var err error
			if *b.at, err = q.m.dev.NewBuffer(b.name, int64(b.words)*plan.U32.Bytes()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Drop takes back the step that began ahead of its time, if there is one.
func (q *Sequence) Drop() error {
	s := q.ahead
	if q.ahead = nil; s == nil {
		return nil
	}
	ran, err := s.running.Drop()
	if ran && s.drawing.marked && int(s.token) < len(s.drawing.marks.U32()) {
		m := &s.drawing.marks.U32()[s.token]
		*m = kernels.Uncounted(*m)
	}
	return err
}

// Grow makes room for rows positions.
func (q *Sequence) Grow(rows int) error {
	if rows > q.Rows() {
		if err := q.Drop(); err != nil {
			return err
		}
	}
	return q.State.Grow(rows)
}

// Snapshot copies the state at the position.
func (q *Sequence) Snapshot() *cache.Snapshot {
	_ = q.Drop()
	return q.State.Snapshot()
}

// Reset forgets everything. What failed of a step that nobody wanted is of no more concern.
func (q *Sequence) Reset() {
	_ = q.Drop()
	q.State.Reset()
}

// Rest lets go of what the sequence builds on, see cache.State.
func (q *Sequence) Rest() {
	_ = q.Drop()
	q.State.Rest()
}
