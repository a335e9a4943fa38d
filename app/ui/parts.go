package ui

import (
	"os"
	"path/filepath"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"pond/app"
)

// pageMargin is the space around what a window shows.
const pageMargin = 20

// page is a window's content with space around it.
func page(o fyne.CanvasObject) fyne.CanvasObject {
	return container.New(margins{pageMargin, pageMargin - 4, pageMargin, pageMargin}, o)
}

func title(text string) *widget.RichText {
	return widget.NewRichText(span(text, fyne.TextStyle{Bold: true}, theme.SizeNameHeadingText))
}

func subtitle(text string) *widget.Label {
	l := widget.NewLabelWithStyle(text, fyne.TextAlignLeading, fyne.TextStyle{Bold: true})
	l.Wrapping = fyne.TextWrapWord
	return l
}

// wrapped is text that breaks its lines.
func wrapped(text string) *widget.Label {
	l := widget.NewLabel(text)
	l.Wrapping = fyne.TextWrapWord
	return l
}

// note is a small text that breaks its lines.
func note(text string) *widget.Label {
	l := quiet(text)
	l.Wrapping = fyne.TextWrapWord
	return l
}

// card is a group of things on a surface of their own.
func card(objects ...fyne.CanvasObject) fyne.CanvasObject {
	return onSurface(container.New(margins{6, 6, 6, 6}, container.NewVBox(objects...)))
}

// facts is a small table with as much room below as above.
func facts(rows ...fyne.CanvasObject) fyne.CanvasObject {
	return container.New(margins{top: 3, bottom: 5}, container.NewVBox(rows...))
}

// fact is a row of a small table: what, and what of it. A value that is long breaks its lines: a folder must be seen to its end.
func fact(what string, value *widget.Label) fyne.CanvasObject {
	name := widget.NewLabel(what)
	name.Importance = widget.LowImportance
	value.Wrapping = fyne.TextWrapWord
	return container.New(margins{top: -6, bottom: -6}, container.New(twoColumns{0.23}, name, value))
}

// twoColumns gives the first object a share of the width, and the second the rest.
type twoColumns struct{ share float32 }

func (t twoColumns) Layout(o []fyne.CanvasObject, size fyne.Size) {
	w := size.Width * t.share
	o[0].Resize(fyne.NewSize(w, size.Height))
	o[1].Move(fyne.NewPos(w, 0))
	o[1].Resize(fyne.NewSize(size.Width-w, size.Height))
}

func (twoColumns) MinSize(o []fyne.CanvasObject) fyne.Size {
	a, b := o[0].MinSize(), o[1].MinSize()
	return fyne.NewSize(a.Width+b.Width, max(a.Height, b.Height))
}

// say gives a label a text. Labels lay their text out even when it is the one that they have, and states come often.
func say(l *widget.Label, text string) {
	if l.Text != text {
		l.SetText(text)
	}
}

// tidy writes a path with the user's own folder as "~".
func tidy(path string) string {
	home, err := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(path, home); err == nil && ok && strings.HasPrefix(rest, string(filepath.Separator)) {
		return "~" + rest
	}
	return path
}

// linkTo is a text that does something, for what is not the main thing of a window.
func linkTo(text string, tapped func()) *widget.Hyperlink {
	l := widget.NewHyperlink(text, nil)
	l.SizeName = theme.SizeNameCaptionText
	l.OnTapped = tapped
	return l
}

// thinBar is a progress bar without a text.
type thinBar struct {
	widget.BaseWidget
	value       float64
	track, fill *tinted
}

func newThinBar() *thinBar {
	b := &thinBar{track: newTinted(colorTrack, 3), fill: newTinted(theme.ColorNamePrimary, 3)}
	b.ExtendBaseWidget(b)
	return b
}

func (b *thinBar) set(value float64) {
	if value = min(1, max(0, value)); value != b.value {
		b.value = value
		b.Refresh()
	}
}

func (b *thinBar) CreateRenderer() fyne.WidgetRenderer { return &thinBarRenderer{b} }

type thinBarRenderer struct{ b *thinBar }

// thinBarHeight is of the bar itself; around it is a little room.
const thinBarHeight = 6

func (r *thinBarRenderer) Layout(size fyne.Size) {
	y := (size.Height - thinBarHeight) / 2
	r.b.track.Move(fyne.NewPos(0, y))
	r.b.track.Resize(fyne.NewSize(size.Width, thinBarHeight))
	r.b.fill.Move(fyne.NewPos(0, y))
	r.b.fill.Resize(fyne.NewSize(size.Width*float32(r.b.value), thinBarHeight))
}

func (r *thinBarRenderer) MinSize() fyne.Size { return fyne.NewSize(60, thinBarHeight+8) }

func (r *thinBarRenderer) Refresh() {
	r.Layout(r.b.Size())
	r.b.track.Refresh()
	r.b.fill.Refresh()
}

func (r *thinBarRenderer) Objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{r.b.track, r.b.fill}
}

func (r *thinBarRenderer) Destroy() {}

// nextButton is the one next action of a state.
type nextButton struct {
	*widget.Button
	u *UI
}

func newNextButton(u *UI) *nextButton {
	b := &nextButton{widget.NewButton("", nil), u}
	b.Importance = widget.HighImportance
	return b
}

func (b *nextButton) draw(s app.State) {
	next := s.Next()
	b.OnTapped = func() { b.u.act(next.Action) }
	importance := widget.HighImportance
	if s.Phase.Serving() || s.Phase == app.Loading || s.Phase == app.Verifying {
		importance = widget.MediumImportance
	}
	if b.Text != next.Label || b.Importance != importance {
		b.Importance = importance
		b.SetText(next.Label)
	}
	enable(b.Button, next.Available)
}

func enable(b *widget.Button, on bool) {
	switch {
	case on && b.Disabled():
		b.Enable()
	case !on && !b.Disabled():
		b.Disable()
	}
}

// show makes an object visible or not.
func show(o fyne.CanvasObject, visible bool) {
	switch {
	case visible && !o.Visible():
		o.Show()
	case !visible && o.Visible():
		o.Hide()
	}
}

// spread puts objects beside each other, the last ones at the right edge.
func spread(left, right fyne.CanvasObject) fyne.CanvasObject {
	return container.NewHBox(left, layout.NewSpacer(), right)
}

// sized gives an object at least a size.
func sized(o fyne.CanvasObject, width, height float32) fyne.CanvasObject {
	return container.New(atLeast{width, height}, o)
}

type atLeast struct{ width, height float32 }

func (atLeast) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	for _, o := range objects {
		o.Resize(size)
	}
}

func (l atLeast) MinSize(objects []fyne.CanvasObject) fyne.Size {
	s := fyne.NewSize(l.width, l.height)
	for _, o := range objects {
		s = s.Max(o.MinSize())
	}
	return s
}

// atWidth gives an object exactly a width.
type atWidth struct{ width float32 }

func (atWidth) Layout(objects []fyne.CanvasObject, size fyne.Size) { atLeast{}.Layout(objects, size) }

func (l atWidth) MinSize(objects []fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(l.width, atLeast{}.MinSize(objects).Height)
}
