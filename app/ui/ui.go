// Package ui draws Pond with Fyne: one window and the tray menu, both from an app.State.
//
// It takes a fyne.App, so it is tested without a screen; only gui.go in package main makes a real one. It decides nothing: what
// the user asks for goes to Controls. Start with New.
package ui

import (
	"context"
	"sync/atomic"

	"fyne.io/fyne/v2"

	"pond/app"
)

// Controls is what the user interface may ask for. Both are called on Fyne's thread and must not block it.
type Controls struct {
	// Do carries out an action of the menu or a button.
	Do func(app.Action)
	// Ask answers one question: emit takes the answer's text as it comes, on any goroutine, and done follows once.
	Ask func(ctx context.Context, question string, emit func(text string), done func(error))
}

// UI is the window and the menu. Its methods belong to Fyne's thread, but for Post and End.
type UI struct {
	controls Controls
	thread   *thread
	window   *window
}

// thread leads to Fyne's thread as long as Fyne runs. Afterwards Fyne would run what it is given on the caller's goroutine,
// against windows that are gone, so from then on nothing is given to it.
type thread struct{ ended atomic.Bool }

func (t *thread) post(f func()) {
	if !t.ended.Load() {
		fyne.Do(f)
	}
}

// New makes the window, hidden, and draws the first state.
func New(a fyne.App, c Controls, s app.State) *UI {
	t := &thread{}
	u := &UI{controls: c, thread: t, window: newWindow(a, c, t)}
	u.Draw(s)
	return u
}

// Post runs f on Fyne's thread, soon; from any goroutine.
func (u *UI) Post(f func()) { u.thread.post(f) }

// End says that Fyne is about to quit: nothing is posted any more.
func (u *UI) End() { u.thread.ended.Store(true) }

// Draw shows a state in the window.
func (u *UI) Draw(s app.State) { u.window.draw(s) }

// Show brings the window to the front. Only a user's click may lead here: a window that takes the focus by itself is rude.
func (u *UI) Show() {
	u.window.w.Show()
	u.window.w.RequestFocus()
}

// TrayMenu is the menu of a state. The tray rebuilds it whole on every change, so it keeps no reference to the last one.
func (u *UI) TrayMenu(s app.State) *fyne.Menu {
	return fyne.NewMenu("Pond", u.menuItems(app.Menu(s))...)
}

func (u *UI) menuItems(entries []app.Item) []*fyne.MenuItem {
	var items []*fyne.MenuItem
	for _, i := range entries {
		if i.Separator() {
			items = append(items, fyne.NewMenuItemSeparator())
			continue
		}
		item := fyne.NewMenuItem(i.Label, func() { u.controls.Do(i.Action) })
		item.Disabled = !i.Available
		item.IsQuit = i.Action == app.Quit // or Fyne adds a Quit of its own
		if len(i.Children) > 0 {
			item.ChildMenu = fyne.NewMenu("", u.menuItems(i.Children)...)
		}
		items = append(items, item)
	}
	return items
}
