package ui

import (
	"image/color"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// indentWidth is how far a list or quote moves its text in.
const indentWidth = 22

// tinted is a rectangle in a colour of the theme, and of its next one.
type tinted struct {
	widget.BaseWidget
	name   fyne.ThemeColorName
	border fyne.ThemeColorName // empty: none
	radius float32
}

func newTinted(name fyne.ThemeColorName, radius float32) *tinted {
	t := &tinted{name: name, radius: radius}
	t.ExtendBaseWidget(t)
	return t
}

func (t *tinted) CreateRenderer() fyne.WidgetRenderer {
	r := &tintedRenderer{t, canvas.NewRectangle(color.Transparent)}
	r.Refresh()
	return r
}

type tintedRenderer struct {
	t    *tinted
	rect *canvas.Rectangle
}

func (r *tintedRenderer) Layout(size fyne.Size)        { r.rect.Resize(size) }
func (r *tintedRenderer) MinSize() fyne.Size           { return fyne.NewSize(1, 1) }
func (r *tintedRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.rect} }
func (r *tintedRenderer) Destroy()                     {}
func (r *tintedRenderer) Refresh() {
	r.rect.FillColor = theme.Color(r.t.name)
	r.rect.CornerRadius = r.t.radius
	if r.t.border != "" {
		r.rect.StrokeColor, r.rect.StrokeWidth = theme.Color(r.t.border), 1
	}
	r.rect.Refresh()
}

// onSurface puts an object on a rounded surface.
func onSurface(o fyne.CanvasObject) fyne.CanvasObject {
	return container.NewStack(newTinted(colorSurface, theme.Size(theme.SizeNameInputRadius)), o)
}

// margins is a layout with its own space on each side.
type margins struct{ left, top, right, bottom float32 }

func (m margins) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	for _, o := range objects {
		o.Move(fyne.NewPos(m.left, m.top))
		o.Resize(fyne.NewSize(size.Width-m.left-m.right, size.Height-m.top-m.bottom))
	}
}

func (m margins) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var s fyne.Size
	for _, o := range objects {
		s = s.Max(o.MinSize())
	}
	return s.AddWidthHeight(m.left+m.right, m.top+m.bottom)
}

// sideScroll scrolls sideways, and leaves turning the wheel to what it lies in.
type sideScroll struct {
	container.Scroll
	outer func(*fyne.ScrollEvent)
}

func newSideScroll(content fyne.CanvasObject, outer func(*fyne.ScrollEvent)) *sideScroll {
	s := &sideScroll{outer: outer}
	s.Direction, s.Content = container.ScrollHorizontalOnly, content
	s.ExtendBaseWidget(s)
	return s
}

func (s *sideScroll) Scrolled(e *fyne.ScrollEvent) {
	if dx, dy := e.Scrolled.DX, e.Scrolled.DY; dx*dx > dy*dy || s.outer == nil {
		s.Scroll.Scrolled(e)
		return
	}
	s.outer(e)
}

// proseView draws a block of Markdown.
func proseView(text string, outer func(*fyne.ScrollEvent)) fyne.CanvasObject {
	leaves := parseMarkdown(text)
	objects := make([]fyne.CanvasObject, 0, len(leaves))
	for _, l := range leaves {
		objects = append(objects, leafView(l, outer))
	}
	if len(objects) == 1 {
		return objects[0]
	}
	return newColumn(leafGap, objects...)
}

// leafGap takes back some of the room that every text brings with it, so that a list stands close.
const leafGap = -9

func leafView(l leaf, outer func(*fyne.ScrollEvent)) fyne.CanvasObject {
	var o fyne.CanvasObject
	switch l.kind {
	case ruler:
		o = container.New(margins{top: 8, bottom: 8}, widget.NewSeparator())
	case tableLeaf:
		o = tableView(l.table, outer)
	case codeLeaf:
		o = codeBody(l.code, outer)
	default:
		text := widget.NewRichText(l.spans...)
		text.Wrapping = fyne.TextWrapWord
		o = text
		if l.kind == heading {
			o = container.New(margins{top: 4}, text)
		}
	}
	if l.marker != "" {
		mark := widget.NewRichText(span(l.marker, fyne.TextStyle{}, ""))
		o = container.New(markerLayout{}, mark, o)
	}
	if left := float32(max(0, l.indent-1)) * indentWidth; left > 0 || l.indent > 0 && l.marker == "" {
		if l.marker == "" {
			left += indentWidth
		}
		o = container.New(margins{left: left}, o)
	}
	for range min(l.quote, 8) {
		o = container.New(quoteLayout{}, newTinted(theme.ColorNameInputBorder, 1), o)
	}
	return o
}

// markerLayout puts a list item's mark in front of its text.
type markerLayout struct{}

func (markerLayout) Layout(o []fyne.CanvasObject, size fyne.Size) {
	w := markerWidth(o[0])
	o[0].Move(fyne.NewPos(w-o[0].MinSize().Width+theme.InnerPadding()-2, 0))
	o[0].Resize(o[0].MinSize())
	o[1].Move(fyne.NewPos(w, 0))
	o[1].Resize(fyne.NewSize(size.Width-w, size.Height))
}

func markerWidth(mark fyne.CanvasObject) float32 {
	return max(indentWidth, mark.MinSize().Width-theme.InnerPadding()+2)
}

func (markerLayout) MinSize(o []fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(markerWidth(o[0])+o[1].MinSize().Width, o[1].MinSize().Height)
}

// quoteLayout puts a bar beside a quote.
type quoteLayout struct{}

func (quoteLayout) Layout(o []fyne.CanvasObject, size fyne.Size) {
	o[0].Move(fyne.NewPos(8, 2))
	o[0].Resize(fyne.NewSize(3, size.Height-4))
	o[1].Move(fyne.NewPos(14, 0))
	o[1].Resize(fyne.NewSize(size.Width-14, size.Height))
}

func (quoteLayout) MinSize(o []fyne.CanvasObject) fyne.Size {
	return o[1].MinSize().AddWidthHeight(14, 0)
}

// tableView draws a table: cells as wide as their text, up to a limit behind which it wraps.
func tableView(g *grid, outer func(*fyne.ScrollEvent)) fyne.CanvasObject {
	columns := len(g.align)
	var objects []fyne.CanvasObject
	for _, row := range g.rows {
		for c := range columns {
			var spans []widget.RichTextSegment
			if c < len(row) {
				spans = row[c]
			}
			text := widget.NewRichText(spans...)
			if text.MinSize().Width > cellWidth {
				text.Wrapping = fyne.TextWrapWord
				text.Resize(fyne.NewSize(cellWidth, text.MinSize().Height))
			}
			objects = append(objects, text)
		}
	}
	l := &gridLayout{columns: columns}
	table := container.New(l, objects...)
	var lines []fyne.CanvasObject
	for range len(g.rows) - 1 {
		lines = append(lines, newTinted(theme.ColorNameSeparator, 0))
	}
	ruled := container.New(&linesLayout{l, table}, append(lines, table)...)
	return container.New(margins{top: 4, bottom: 4}, newSideScroll(container.NewStack(newTinted(colorSurface, 8), ruled), outer))
}

// cellWidth is the widest cell of a table.
const cellWidth = 260

// gridLayout gives each column the width of its widest cell, and spare room to all of them.
type gridLayout struct {
	columns int
	edges   []float32 // where rows begin
}

func (l *gridLayout) measure(objects []fyne.CanvasObject) (widths, heights []float32) {
	widths, heights = make([]float32, l.columns), make([]float32, len(objects)/l.columns)
	for i, o := range objects {
		m := o.MinSize()
		if t, ok := o.(*widget.RichText); ok && t.Wrapping != fyne.TextWrapOff {
			m.Width = cellWidth
		}
		widths[i%l.columns] = max(widths[i%l.columns], m.Width)
		heights[i/l.columns] = max(heights[i/l.columns], m.Height)
	}
	return widths, heights
}

func (l *gridLayout) MinSize(objects []fyne.CanvasObject) fyne.Size {
	widths, heights := l.measure(objects)
	return fyne.NewSize(sum(widths), sum(heights))
}

func (l *gridLayout) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	widths, heights := l.measure(objects)
	if spare := size.Width - sum(widths); spare > 0 {
		for c := range widths {
			widths[c] += spare / float32(len(widths))
		}
	}
	l.edges = l.edges[:0]
	y := float32(0)
	for r := range heights {
		l.edges = append(l.edges, y)
		x := float32(0)
		for c := range widths {
			o := objects[r*l.columns+c]
			o.Move(fyne.NewPos(x, y))
			o.Resize(fyne.NewSize(widths[c], heights[r]))
			x += widths[c]
		}
		y += heights[r]
	}
}

func sum(values []float32) (total float32) {
	for _, v := range values {
		total += v
	}
	return total
}

// linesLayout puts a line between the rows of a grid: its last object.
type linesLayout struct {
	grid  *gridLayout
	table *fyne.Container
}

func (l *linesLayout) MinSize([]fyne.CanvasObject) fyne.Size { return l.table.MinSize() }

func (l *linesLayout) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	l.table.Resize(size)
	l.grid.Layout(l.table.Objects, size)
	for i, o := range objects[:len(objects)-1] {
		if i+1 < len(l.grid.edges) {
			o.Move(fyne.NewPos(0, l.grid.edges[i+1]))
			o.Resize(fyne.NewSize(size.Width, 1))
		}
	}
}

// codeBody is code that scrolls sideways.
func codeBody(text string, outer func(*fyne.ScrollEvent)) fyne.CanvasObject {
	return onSurface(newSideScroll(codeLabel(text), outer))
}

func codeLabel(text string) *widget.Label {
	l := widget.NewLabelWithStyle(printable(text), fyne.TextAlignLeading, fyne.TextStyle{Monospace: true})
	l.SizeName = theme.SizeNameCaptionText
	l.Selectable = true
	return l
}

// printable leaves out what no font draws and some layouts trip over.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// codeView is one piece of a code block: the first one has the language and a button that copies the whole.
type codeView struct {
	object fyne.CanvasObject
	label  *widget.Label
}

func newCodeView(b block, whole func() string, copied func(string), outer func(*fyne.ScrollEvent)) *codeView {
	v := &codeView{label: codeLabel(b.text)}
	body := newSideScroll(v.label, outer)
	if b.continues {
		v.object = onSurface(body)
		return v
	}
	name := quiet(b.language)
	button := widget.NewButton("Copy", func() { copied(whole()) }) // an icon would be parsed anew for each block
	button.Importance = widget.LowImportance
	head := container.New(margins{left: 2, right: 2, top: 2}, container.NewHBox(name, layout.NewSpacer(), button))
	v.object = container.New(margins{top: 2, bottom: 6}, onSurface(container.New(stacked{-7}, head, body)))
	return v
}

// quiet is a small text that is not the point.
func quiet(text string) *widget.Label {
	l := widget.NewLabel(text)
	l.SizeName = theme.SizeNameCaptionText
	l.Importance = widget.LowImportance
	return l
}
