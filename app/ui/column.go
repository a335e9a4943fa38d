package ui

import (
	"sort"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"
)

// column is objects below each other, all as wide as it is. Its reason is speed, in a chat of thousands of pieces:
//
//   - An object is measured when it is added, when it is touched and when the width changes, never else; and what stands above a change is
//     not laid out again.
//   - What lies far outside of the visible part is hidden, so that the toolkit passes over it.
type column struct {
	widget.BaseWidget
	gap     float32
	objects []fyne.CanvasObject
	heights []float32 // of the objects; below 0: not measured
	tops    []float32 // where they begin; those before valid are right
	valid   int       // objects before this one are where they belong
	width   float32

	from, to    float32 // the part that can be seen; equal: all of it
	first, last int     // the objects that are shown, the last one not included
}

// unmeasured is the height of an object that nobody has asked for it.
const unmeasured = -1

func newColumn(gap float32, objects ...fyne.CanvasObject) *column {
	c := &column{gap: gap}
	c.ExtendBaseWidget(c)
	c.replace(objects)
	return c
}

// set replaces what is below each other. Objects that stay keep their heights, and those at the beginning their places.
func (c *column) set(objects []fyne.CanvasObject) {
	c.replace(objects)
	c.arrange()
}

func (c *column) replace(objects []fyne.CanvasObject) {
	same := 0
	for same < len(objects) && same < len(c.objects) && objects[same] == c.objects[same] {
		same++
	}
	known := map[fyne.CanvasObject]float32{}
	for i := same; i < len(c.objects); i++ {
		known[c.objects[i]] = c.heights[i]
	}
	c.heights, c.tops = c.heights[:same], c.tops[:min(same, len(c.tops))]
	for _, o := range objects[same:] {
		h, ok := known[o]
		if !ok {
			h = unmeasured
		}
		c.heights = append(c.heights, h)
	}
	for len(c.tops) < len(objects) {
		c.tops = append(c.tops, 0)
	}
	c.objects = objects
	c.valid = min(c.valid, same)
	c.first, c.last = min(c.first, len(objects)), min(c.last, len(objects))
}

// touch says that an object has another height; arrange shows it.
func (c *column) touch(o fyne.CanvasObject) {
	for i := len(c.objects) - 1; i >= 0; i-- {
		if c.objects[i] == o {
			c.heights[i] = unmeasured
			c.valid = min(c.valid, i)
			return
		}
	}
}

// forget makes everything be measured anew.
func (c *column) forget() {
	for i := range c.heights {
		c.heights[i] = unmeasured
	}
	c.valid = 0
}

// measure is the height of an object at this width.
func (c *column) measure(i int) float32 {
	if h := c.heights[i]; h >= 0 {
		return h
	}
	o := c.objects[i]
	h := o.MinSize().Height
	if c.width > 0 {
		o.Resize(fyne.NewSize(c.width, max(h, o.Size().Height)))
		h = o.MinSize().Height
		c.heights[i] = h
	}
	return h
}

// arrange puts the objects where they belong, from the first one that is not.
func (c *column) arrange() {
	changed := c.valid
	for i := c.valid; i < len(c.objects); i++ {
		y := float32(0)
		if i > 0 {
			y = c.tops[i-1] + c.measure(i-1) + c.gap
		}
		c.tops[i] = y
		c.measure(i)
		c.objects[i].Move(fyne.NewPos(0, y))
	}
	if c.width > 0 {
		c.valid = len(c.objects)
	}
	c.reveal(changed)
}

// reveal shows what can be seen and hides the rest. Objects from changed on are looked at whatever was shown before.
func (c *column) reveal(changed int) {
	first, last := 0, len(c.objects)
	if c.to > c.from {
		first = sort.Search(len(c.objects), func(i int) bool { return c.tops[i]+c.measure(i) >= c.from })
		last = first + sort.Search(len(c.objects)-first, func(i int) bool { return c.tops[first+i] > c.to })
	}
	hide := func(from, to int) {
		for i := max(0, from); i < min(to, len(c.objects)); i++ {
			if (i < first || i >= last) && c.objects[i].Visible() {
				c.objects[i].Hide()
			}
		}
	}
	hide(c.first, c.last)
	hide(changed, len(c.objects))
	for i := first; i < last; i++ {
		o := c.objects[i]
		if !o.Visible() {
			o.Show()
		}
		o.Resize(fyne.NewSize(c.width, c.measure(i)))
		if inner, ok := columnOf(o); ok {
			inner.look(c.from-c.tops[i], c.to-c.tops[i])
		}
	}
	c.first, c.last = first, last
}

// columnOf is the column that an object is.
func columnOf(o fyne.CanvasObject) (*column, bool) {
	switch o := o.(type) {
	case *column:
		return o, true
	case *messageView:
		return o.column, true
	}
	return nil, false
}

// look says which part is visible, in the column's own coordinates.
func (c *column) look(from, to float32) {
	if c.from != from || c.to != to {
		c.from, c.to = from, to
		c.arrange()
	}
}

// height is that of all objects.
func (c *column) height() float32 {
	n := len(c.objects)
	if n > 0 && c.valid == n {
		return c.tops[n-1] + c.measure(n-1)
	}
	y := float32(0)
	for i := range c.objects {
		if i > 0 {
			y += c.gap
		}
		y += c.measure(i)
	}
	return y
}

func (c *column) CreateRenderer() fyne.WidgetRenderer { return &columnRenderer{c} }

type columnRenderer struct{ c *column }

func (r *columnRenderer) Layout(size fyne.Size) {
	if size.Width != r.c.width {
		r.c.width = size.Width
		r.c.forget()
	}
	r.c.arrange()
}

func (r *columnRenderer) MinSize() fyne.Size { return fyne.NewSize(160, r.c.height()) }

// Refresh comes with another theme: everything is measured anew.
func (r *columnRenderer) Refresh() {
	r.c.forget()
	r.c.arrange()
}

func (r *columnRenderer) Objects() []fyne.CanvasObject { return r.c.objects }

func (r *columnRenderer) Destroy() {}
