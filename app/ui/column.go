package ui

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"
)

// column is objects below each other, all as wide as it is. Its reason is speed, in a chat of thousands of pieces:
//
//   - An object is measured when it is added, when it is touched and when the width changes, never else.
//   - What lies far outside of the visible part is hidden, so that the toolkit passes over it.
type column struct {
	widget.BaseWidget
	gap     float32
	objects []fyne.CanvasObject
	heights map[fyne.CanvasObject]float32
	width   float32
	from    float32 // the visible part; both zero: all of it
	to      float32
}

func newColumn(gap float32, objects ...fyne.CanvasObject) *column {
	c := &column{gap: gap, objects: objects, heights: map[fyne.CanvasObject]float32{}}
	c.ExtendBaseWidget(c)
	return c
}

// set replaces what is below each other.
func (c *column) set(objects []fyne.CanvasObject) {
	there := map[fyne.CanvasObject]bool{}
	for _, o := range objects {
		there[o] = true
	}
	for o := range c.heights {
		if !there[o] {
			delete(c.heights, o)
		}
	}
	c.objects = objects
	c.arrange()
}

// add appends objects; arrange shows them.
func (c *column) add(objects ...fyne.CanvasObject) { c.objects = append(c.objects, objects...) }

// touch says that an object has another height; arrange shows it.
func (c *column) touch(o fyne.CanvasObject) { delete(c.heights, o) }

// measure is the height of an object at this width.
func (c *column) measure(o fyne.CanvasObject) float32 {
	if h, ok := c.heights[o]; ok {
		return h
	}
	h := o.MinSize().Height
	if c.width > 0 {
		o.Resize(fyne.NewSize(c.width, max(h, o.Size().Height)))
		h = o.MinSize().Height
		c.heights[o] = h
	}
	return h
}

func (c *column) arrange() {
	y := float32(0)
	for i, o := range c.objects {
		if i > 0 {
			y += c.gap
		}
		h := c.measure(o)
		seen := c.to <= c.from || y+h >= c.from && y <= c.to
		if seen != o.Visible() {
			if seen {
				o.Show()
			} else {
				o.Hide()
			}
		}
		if seen {
			o.Resize(fyne.NewSize(c.width, h))
			if inner, ok := o.(*column); ok {
				inner.look(c.from-y, c.to-y)
			}
		}
		o.Move(fyne.NewPos(0, y))
		y += h
	}
}

// look says which part is visible, in the column's own coordinates.
func (c *column) look(from, to float32) {
	if c.from != from || c.to != to {
		c.from, c.to = from, to
		c.arrange()
	}
}

func (c *column) height() float32 {
	y := float32(0)
	for i, o := range c.objects {
		if i > 0 {
			y += c.gap
		}
		y += c.measure(o)
	}
	return y
}

func (c *column) CreateRenderer() fyne.WidgetRenderer { return &columnRenderer{c} }

type columnRenderer struct{ c *column }

func (r *columnRenderer) Layout(size fyne.Size) {
	if size.Width != r.c.width {
		r.c.width = size.Width
		clear(r.c.heights)
	}
	r.c.arrange()
}

func (r *columnRenderer) MinSize() fyne.Size { return fyne.NewSize(160, r.c.height()) }

// Refresh comes with another theme: everything is measured anew.
func (r *columnRenderer) Refresh() {
	clear(r.c.heights)
	r.c.arrange()
}

func (r *columnRenderer) Objects() []fyne.CanvasObject { return r.c.objects }

func (r *columnRenderer) Destroy() {}
