package ui

import (
	"runtime"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/widget"
)

// composer is the box that questions are written in. Return sends and Shift-Return breaks the line, or, for those who compose text,
// Return breaks the line and Command-Return (Control-Return on Linux) sends.
//
// The callback is a field of its own: with OnSubmitted set, Fyne submits on Shift-Return.
type composer struct {
	widget.Entry
	send      func()
	stop      func()
	paste     func(text string) bool   // true: the text is taken care of
	shortcut  func(fyne.Shortcut) bool // the window's; true: it was one
	commanded bool                     // Return breaks the line
	shift     bool
}

// The heights of the box, in lines.
const (
	composerLines    = 2
	composerMaxLines = 9
)

func newComposer() *composer {
	c := &composer{}
	c.ExtendBaseWidget(c)
	c.MultiLine = true
	c.Wrapping = fyne.TextWrapWord
	c.SetMinRowsVisible(composerLines)
	return c
}

// grow gives the box as many lines as its text has, within limits; true: that is another height.
func (c *composer) grow() bool {
	rows := min(composerMaxLines, max(composerLines, 1+strings.Count(c.Text, "\n")))
	if rows == composerLines && len(c.Text) > 160 {
		rows = composerLines + 2
	}
	before := c.MinSize().Height
	c.SetMinRowsVisible(rows)
	return c.MinSize().Height != before
}

func (c *composer) KeyDown(e *fyne.KeyEvent) {
	if e.Name == desktop.KeyShiftLeft || e.Name == desktop.KeyShiftRight {
		c.shift = true
	}
	c.Entry.KeyDown(e)
}

func (c *composer) KeyUp(e *fyne.KeyEvent) {
	if e.Name == desktop.KeyShiftLeft || e.Name == desktop.KeyShiftRight {
		c.shift = false
	}
	c.Entry.KeyUp(e)
}

func (c *composer) FocusLost() {
	c.shift = false // its release may go elsewhere
	c.Entry.FocusLost()
}

func (c *composer) TypedKey(e *fyne.KeyEvent) {
	switch e.Name {
	case fyne.KeyReturn, fyne.KeyEnter:
		if !c.commanded && !c.shift {
			c.send()
			return
		}
	case fyne.KeyEscape:
		c.stop()
		return
	}
	c.Entry.TypedKey(e)
}

func (c *composer) TypedShortcut(s fyne.Shortcut) {
	if custom, ok := s.(*desktop.CustomShortcut); ok && custom.Modifier == fyne.KeyModifierShortcutDefault && (custom.KeyName == fyne.KeyReturn || custom.KeyName == fyne.KeyEnter) {
		c.send()
		return
	}
	if c.shortcut != nil && c.shortcut(s) {
		return
	}
	if p, ok := s.(*fyne.ShortcutPaste); ok && c.paste != nil && c.paste(p.Clipboard.Content()) {
		return
	}
	c.Entry.TypedShortcut(s)
}

// hint says which keys do what.
func (c *composer) hint() string {
	switch {
	case !c.commanded:
		return "Return sends · Shift-Return breaks the line"
	case runtime.GOOS == "darwin":
		return "Command-Return sends · Return breaks the line"
	}
	return "Control-Return sends · Return breaks the line"
}

// finder is the box that chats are searched with; the window's shortcuts work in it too.
type finder struct {
	widget.Entry
	shortcut func(fyne.Shortcut) bool
	leave    func()
}

func newFinder() *finder {
	f := &finder{}
	f.ExtendBaseWidget(f)
	f.SetPlaceHolder("Search chats")
	return f
}

func (f *finder) TypedShortcut(s fyne.Shortcut) {
	if f.shortcut == nil || !f.shortcut(s) {
		f.Entry.TypedShortcut(s)
	}
}

func (f *finder) TypedKey(e *fyne.KeyEvent) {
	if e.Name == fyne.KeyEscape {
		f.leave()
		return
	}
	f.Entry.TypedKey(e)
}
