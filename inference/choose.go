package inference

import (
	"errors"
	"fmt"
	"math"

	"pond/inference/ablate"
	"pond/inference/qwen36"
	"pond/inference/sample"
	"pond/metal/kernels"
)

// chooser is where the tokens of an answer are chosen. The device does it where it can, and goes on with the token before the host has read it.
// The host does it from all logits where those are asked for: where a form says which tokens may come, where log-probabilities are wanted, and
// where the filters leave more tokens than the device draws among. Both choose the same token from the same logits.
type chooser struct {
	e       *Engine
	l       *live
	sampler *sample.Sampler
	masker  *masker
	top     int  // see job.top
	device  bool // chooses
	ahead   bool // begins the next step by itself

	logits []float32      // after the last token, where the host chooses the next
	drawn  *sample.Choice // the next token, where the device has chosen it
}

func (e *Engine) newChooser(l *live, s *sample.Sampler, m *masker, top int) *chooser {
	c := &chooser{e: e, l: l, sampler: s, masker: m, top: top}
	if _, ok := s.Draw(0); ok && m == nil && top < 0 && !e.ablate.Off(ablate.DeviceSampler) {
		c.device = true
		c.ahead = e.model.GoesAhead() && !e.ablate.Off(ablate.DeviceToken)
	}
	return c
}

// after goes on from the logits behind tokens that were not drawn.
func (c *chooser) after(logits []float32) { c.logits, c.drawn = logits, nil }

// next returns the token of the next position.
func (c *chooser) next() (sample.Choice, error) {
	if d := c.drawn; d != nil {
		c.drawn = nil
		c.e.queue.chose(true)
		return *d, nil
	}
	allowed, err := c.masker.next()
	if err != nil {
		return sample.Choice{}, err
	}
	choice, err := c.sampler.NextAmong(c.logits, allowed, len(c.l.tokens), c.top)
	if err != nil {
		return choice, damaged(c.logits[:c.e.info.VocabSize], err)
	}
	c.e.queue.chose(false)
	return choice, nil
}

// take takes in a token, which the sampler has accepted. goesOn says that more than the token behind it will be wanted. Where the worker makes
// the step together with others', the host chooses the next token.
func (c *chooser) take(id int32, goesOn bool) error {
	t := turn{kind: step, tokens: 1, id: id}
	if c.device {
		t.sampler, t.ahead = c.sampler, goesOn && c.ahead
	}
	err := c.l.ask(t)
	c.logits, c.drawn = c.l.logits, c.l.drawn
	return err
}

// draw is a step of one answer whose next token the device chooses.
func (l *live) draw() (err error) {
	e, t := l.worker.e, l.asked
	if l.drawing == nil {
		if l.drawing, err = e.newDrawing(t.sampler, t.id); err != nil {
			return err
		}
	}
	c, err := l.seq.Draw(l.drawing, t.id, t.ahead)
	if err == nil {
		err = e.refused(c)
	}
	if err != nil {
		return err
	}
	l.tokens = append(l.tokens, t.id)
	l.drawn = &sample.Choice{ID: c.ID}
	return nil
}

// newDrawing gives the device what the sampler knows. The step that takes in the next token counts it itself.
func (e *Engine) newDrawing(s *sample.Sampler, next int32) (*qwen36.Drawing, error) {
	at := func(position int) kernels.Draw {
		d, _ := s.Draw(position)
		return kernels.Draw(d)
	}
	if !at(0).Marked {
		return e.model.NewDrawing(nil, nil, at)
	}
	list, biases := s.Marks()
	marks := make(map[int32]uint32, len(list))
	for _, m := range list {
		if m.ID == next && m.Count > 0 {
			m.Count--
		}
		marks[m.ID] = kernels.Mark(m.Count, m.Seen, m.Bias)
	}
	return e.model.NewDrawing(marks, biases, at)
}

// refused is why the device chose no token; nil where it did.
func (e *Engine) refused(c qwen36.Choice) error {
	switch c.Status {
	case kernels.Chosen:
		if c.ID < 0 || int(c.ID) >= e.info.VocabSize {
			return fmt.Errorf("internal error: the device chose token %d, want one below %d", c.ID, e.info.VocabSize)
		}
		return nil
	case kernels.AllBanned:
		return fmt.Errorf("logits: got -Inf for each of %d tokens, want a finite one", e.info.VocabSize)
	}
	if x := float64(c.Logit); math.IsNaN(x) || math.IsInf(x, 1) {
		return &DamagedError{c.ID, c.Logit}
	}
	return errors.New("logits: got NaN or +Inf after penalties and biases, want numbers")
}
