package ui

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/widget"
)

// keyButton is a button that Return presses, and that Escape leaves its dialog from: the toolkit's own know the space bar alone.
type keyButton struct {
	widget.Button
	leave func()
}

func newKeyButton(text string, tapped, leave func()) *keyButton {
	b := &keyButton{leave: leave}
	b.Text, b.OnTapped = text, tapped
	b.ExtendBaseWidget(b)
	return b
}

func (b *keyButton) TypedKey(e *fyne.KeyEvent) {
	switch e.Name {
	case fyne.KeyReturn, fyne.KeyEnter:
		b.OnTapped()
	case fyne.KeyEscape:
		b.leave()
	default:
		b.Button.TypedKey(e)
	}
}

// nameEntry is the field of a dialog: Return is the dialog's yes, Escape its no.
type nameEntry struct {
	widget.Entry
	leave func()
}

func (e *nameEntry) TypedKey(k *fyne.KeyEvent) {
	if k.Name == fyne.KeyEscape {
		e.leave()
		return
	}
	e.Entry.TypedKey(k)
}

// dialogWidth is that of a dialog with a sentence or a field.
const dialogWidth = 420

// showDialog shows content above its buttons; focus is what the keyboard talks to.
func showDialog(title string, content fyne.CanvasObject, w fyne.Window, focus fyne.Focusable, buttons ...fyne.CanvasObject) *dialog.CustomDialog {
	d := dialog.NewCustomWithoutButtons(title, sized(content, dialogWidth, 0), w)
	d.SetButtons([]fyne.CanvasObject{container.NewHBox(append([]fyne.CanvasObject{layout.NewSpacer()}, buttons...)...)})
	d.Show()
	w.Canvas().Focus(focus)
	return d
}

// showError shows an error as a sentence.
func showError(err error, w fyne.Window) {
	var d *dialog.CustomDialog
	hide := func() { d.Hide() }
	ok := newKeyButton("OK", hide, hide)
	ok.Importance = widget.HighImportance
	d = showDialog("That did not work", wrapped(sentences(err)), w, ok, ok)
}

// confirm asks before something is lost. The keyboard is at no, so that a Return too many loses nothing.
func confirm(title, text, yes, no string, w fyne.Window, do func()) {
	var d *dialog.CustomDialog
	hide := func() { d.Hide() }
	keep := newKeyButton(no, hide, hide)
	sure := newKeyButton(yes, func() { d.Hide(); do() }, hide)
	sure.Importance = widget.DangerImportance
	d = showDialog(title, wrapped(text), w, keep, keep, sure)
}

// askName asks for a line of text, with the present one marked: what is typed replaces it.
func askName(title, present, yes string, w fyne.Window, do func(string)) {
	var d *dialog.CustomDialog
	hide := func() { d.Hide() }
	name := &nameEntry{leave: hide}
	name.ExtendBaseWidget(name)
	name.SetText(present)
	take := func() { d.Hide(); do(name.Text) }
	name.OnSubmitted = func(string) { take() }
	ok := newKeyButton(yes, take, hide)
	ok.Importance = widget.HighImportance
	d = showDialog(title, name, w, name, newKeyButton("Cancel", hide, hide), ok)
	name.TypedShortcut(&fyne.ShortcutSelectAll{})
}
