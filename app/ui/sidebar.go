package ui

import (
	"fmt"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"pond/app/chats"
)

// sidebar is the list of chats, and what it is searched with.
type sidebar struct {
	c      *chatWindow
	object fyne.CanvasObject
	search *finder
	list   *widget.List
	bad    *widget.Label
	none   *widget.Label

	found   []chats.Summary
	loading bool // a list is on its way
	again   bool // another one is wanted behind it
	silent  bool // the selection follows the chat, not the user
}

func newSidebar(c *chatWindow) *sidebar {
	s := &sidebar{c: c}
	s.search = newFinder()
	s.search.shortcut = c.shortcut
	s.search.OnChanged = func(string) { s.reload() }
	s.search.leave = func() {
		s.search.SetText("")
		c.focus()
	}
	s.list = widget.NewList(func() int { return len(s.found) }, s.row, s.fill)
	s.list.HideSeparators = true
	s.list.OnSelected = func(i widget.ListItemID) {
		if !s.silent && i < len(s.found) {
			c.open(s.found[i].ID)
		}
	}
	s.bad = note("")
	s.bad.Importance = widget.WarningImportance
	s.bad.Hide()
	s.none = note("")
	s.none.Alignment = fyne.TextAlignCenter
	fresh := widget.NewButtonWithIcon("New chat", theme.ContentAddIcon(), c.newChat)
	top := container.New(margins{10, 10, 10, 6}, container.NewVBox(fresh, s.search))
	s.object = container.NewStack(newTinted(theme.ColorNameHeaderBackground, 0),
		container.NewBorder(top, s.bad, nil, nil, container.NewStack(s.list, container.NewVBox(s.none))))
	return s
}

// chatRow is one line of the list.
type chatRow struct {
	widget.BaseWidget
	title, when *widget.Label
	more        *widget.Button
	box         *fyne.Container
}

func (r *chatRow) CreateRenderer() fyne.WidgetRenderer { return widget.NewSimpleRenderer(r.box) }

func (s *sidebar) row() fyne.CanvasObject {
	r := &chatRow{title: widget.NewLabel(""), when: quiet("")}
	r.title.Truncation = fyne.TextTruncateEllipsis
	r.when.Truncation = fyne.TextTruncateEllipsis
	r.more = widget.NewButtonWithIcon("", theme.MoreVerticalIcon(), nil)
	r.more.Importance = widget.LowImportance
	texts := container.New(stacked{-13}, r.title, r.when)
	r.box = container.NewBorder(nil, nil, nil, container.NewCenter(r.more), texts)
	r.ExtendBaseWidget(r)
	return r
}

// stacked puts objects below each other with a gap that may be negative: labels bring more space than a list wants.
type stacked struct{ gap float32 }

func (l stacked) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	y := float32(0)
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		h := o.MinSize().Height
		o.Move(fyne.NewPos(0, y))
		o.Resize(fyne.NewSize(size.Width, h))
		y += h + l.gap
	}
}

func (l stacked) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var s fyne.Size
	n := 0
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		s.Width = max(s.Width, m.Width)
		s.Height += m.Height
		if n++; n > 1 {
			s.Height += l.gap
		}
	}
	return s
}

func (s *sidebar) fill(i widget.ListItemID, o fyne.CanvasObject) {
	if i >= len(s.found) {
		return
	}
	chat, r := s.found[i], o.(*chatRow)
	r.title.SetText(chat.Title)
	line := when(chat.Updated, s.c.u.now())
	if chat.Found != "" {
		line = chat.Found
	}
	r.when.SetText(line)
	r.more.OnTapped = func() { s.menu(chat, r.more) }
}

// when is a time as a list says it.
func when(t, now time.Time) string {
	t = t.Local()
	now = now.Local()
	y, m, d := now.Date()
	today := time.Date(y, m, d, 0, 0, 0, 0, now.Location())
	switch {
	case !t.Before(today):
		return t.Format("15:04")
	case !t.Before(today.AddDate(0, 0, -1)):
		return "Yesterday"
	case !t.Before(today.AddDate(0, 0, -6)):
		return t.Format("Monday")
	case t.Year() == now.Year():
		return t.Format("2 January")
	}
	return t.Format("2 January 2006")
}

func (s *sidebar) menu(chat chats.Summary, at fyne.CanvasObject) {
	w := s.c.w
	menu := fyne.NewMenu("", fyne.NewMenuItem("Rename…", func() { s.rename(chat) }), fyne.NewMenuItem("Delete…", func() { s.remove(chat) }))
	pos := fyne.CurrentApp().Driver().AbsolutePositionForObject(at)
	widget.ShowPopUpMenuAtPosition(menu, w.Canvas(), pos.AddXY(0, at.Size().Height))
}

func (s *sidebar) rename(chat chats.Summary) {
	askName("Rename the chat", chat.Title, "Rename", s.c.w, func(name string) {
		s.c.u.elsewhere(func() error { return s.c.u.controls.Chats.Rename(chat.ID, name) }, s.changed)
	})
}

func (s *sidebar) remove(chat chats.Summary) {
	text := fmt.Sprintf("“%s” and all its answers are removed from this machine.", chat.Title)
	confirm("Delete the chat?", text, "Delete", "Cancel", s.c.w, func() {
		s.c.u.elsewhere(func() error { return s.c.u.controls.Chats.Delete(chat.ID) }, func(err error) {
			if err == nil && s.c.view.ID == chat.ID {
				s.c.newChat()
			}
			s.changed(err)
		})
	})
}

func (s *sidebar) changed(err error) {
	s.c.fail(err)
	s.reload()
}

// reload reads the list anew, elsewhere. Wishes that come meanwhile become one more reading.
func (s *sidebar) reload() {
	if s.loading {
		s.again = true
		return
	}
	s.loading, s.again = true, false
	query := s.search.Text
	var list chats.List
	s.c.u.elsewhere(func() (err error) {
		list, err = s.c.u.controls.Chats.List(query)
		return err
	}, func(err error) {
		s.loading = false
		s.draw(list, err)
		if s.again {
			s.reload()
		}
	})
}

func (s *sidebar) draw(list chats.List, err error) {
	s.found = list.Chats
	s.list.Refresh()
	s.silent = true
	s.list.UnselectAll()
	for i, chat := range s.found {
		if chat.ID == s.c.view.ID {
			s.list.Select(i)
		}
	}
	s.silent = false
	switch {
	case err != nil:
		s.bad.SetText(sentence(err.Error()))
	case len(list.Bad) == 1:
		s.bad.SetText("One chat cannot be read: " + list.Bad[0].File + ". It was left as it is.")
	case len(list.Bad) > 1:
		s.bad.SetText(fmt.Sprintf("%d chats cannot be read. They were left as they are, in %s.", len(list.Bad), s.c.u.controls.Chats.Dir()))
	}
	show(s.bad, err != nil || len(list.Bad) > 0)
	s.none.SetText("")
	if len(s.found) == 0 && s.search.Text != "" {
		s.none.SetText("No chat has these words.")
	}
}
