package ui

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"pond/app"
)

// homeWindow is Pond in one window: everything that the menu offers, for when the icon is hidden, and how to reach the endpoint.
type homeWindow struct {
	u *UI
	w fyne.Window

	line, detail, context, trouble *widget.Label
	bar                            *thinBar
	next                           *nextButton
	endpoint                       *widget.Label
	copies                         []*widget.Button
	reach                          fyne.CanvasObject
	page                           *widget.Hyperlink
	quiet                          *widget.Check
	extra                          *fyne.Container // the menu's entries that have no place of their own here
	drawn                          string          // what extra was made of
}

// picture is the app's icon.
func (u *UI) picture(size float32) fyne.CanvasObject {
	icon := u.controls.Icon
	if icon == nil {
		icon = u.app.Icon()
	}
	return container.NewCenter(container.NewGridWrap(fyne.NewSquareSize(size), widget.NewIcon(icon)))
}

func newHomeWindow(u *UI) *homeWindow {
	h := &homeWindow{u: u}
	h.line = subtitle("")
	h.line.SizeName = theme.SizeNameSubHeadingText
	h.detail, h.context = quiet(""), quiet("")
	h.detail.Truncation = fyne.TextTruncateEllipsis
	h.context.Truncation = fyne.TextTruncateEllipsis
	h.trouble = wrapped("")
	h.trouble.Importance = widget.DangerImportance
	h.bar = newThinBar()
	h.next = newNextButton(u)
	h.endpoint = widget.NewLabelWithStyle("", fyne.TextAlignLeading, fyne.TextStyle{Monospace: true})
	h.endpoint.Selectable = true
	h.endpoint.Truncation = fyne.TextTruncateEllipsis
	h.extra = container.NewVBox()
	h.quiet = widget.NewCheck("Let other apps go first", func(on bool) {
		if on != h.u.state.Quiet {
			u.act(app.ToggleQuiet)
		}
	})

	copier := func(text string, a app.Action) *widget.Button {
		b := widget.NewButton(text, func() { u.act(a) })
		h.copies = append(h.copies, b)
		return b
	}
	copyURL := copier("Copy", app.CopyEndpoint)
	copyURL.Icon = theme.ContentCopyIcon()
	snippets := container.NewGridWithColumns(4, copier("curl", app.CopyCurl), copier("Python", app.CopyPython), copier("JavaScript", app.CopyJavaScript), copier("Variables", app.CopyEnvironment))
	h.page = linkTo("Open its page", func() {
		if err := u.openPage(); err != nil {
			showError(err, h.w)
		}
	})
	h.reach = card(container.NewBorder(nil, nil, nil, h.page, subtitle("Endpoint for any OpenAI client")),
		container.NewBorder(nil, nil, nil, copyURL, h.endpoint), quiet("Copy a first request that works as it stands:"), snippets)

	open := func(text string, icon fyne.Resource, a app.Action) *widget.Button {
		return widget.NewButtonWithIcon(text, icon, func() { u.act(a) })
	}
	windows := container.NewGridWithColumns(4, open("Chat", theme.MailComposeIcon(), app.OpenChat), open("Model", theme.StorageIcon(), app.OpenModel),
		open("Settings", theme.SettingsIcon(), app.OpenSettings), open("Logs", theme.ListIcon(), app.OpenLogs))
	about := linkTo("About Pond", u.OpenAbout)
	diagnostics := linkTo("Copy diagnostics", func() { u.act(app.CopyDiagnostics) })
	quit := linkTo("Quit Pond", func() { u.act(app.Quit) })

	head := container.NewBorder(nil, nil, u.picture(52), container.NewCenter(h.next.Button), container.New(stacked{-13}, h.line, h.detail, h.context))
	body := container.NewVBox(head, h.bar, h.trouble, h.reach, windows, h.extra, h.quiet, spread(container.NewHBox(about, diagnostics), quit))
	h.w = u.window("Pond", 600, 480, scrolling(body))
	h.draw(u.state)
	return h
}

// scrolling is a page that may be higher than its window.
func scrolling(o fyne.CanvasObject) fyne.CanvasObject { return container.NewVScroll(page(o)) }

func (h *homeWindow) draw(s app.State) {
	line, failure := s.Line(), ""
	if s.Phase == app.Failed {
		line, failure = "It did not work", sentence(s.Failure)
	}
	say(h.line, line)
	say(h.detail, strings.Join(details(s), " · "))
	say(h.context, strings.Join(promises(s), " · "))
	show(h.context, h.context.Text != "")
	say(h.trouble, failure)
	show(h.trouble, failure != "")
	h.next.draw(s)
	fraction, moving := progressOf(s)
	h.bar.set(fraction)
	show(h.bar, moving)
	say(h.endpoint, "http://"+s.Address+"/v1")
	if s.Address != "" {
		say(h.endpoint, s.Endpoint())
	}
	show(h.page, s.Phase.Serving())
	for _, b := range h.copies {
		enable(b, s.Phase.Serving())
	}
	h.quiet.SetChecked(s.Quiet)
	h.drawExtra(s)
}

// details are the facts of a state that its line has no room for.
func details(s app.State) []string {
	out := []string{s.Model}
	if s.Phase.Serving() && !s.Unloaded && s.Executor != "" {
		out = append(out, s.Executor)
	}
	return out
}

// promises are what the memory allows, and what is to come.
func promises(s app.State) (out []string) {
	if context := s.ContextLine(); context != "" {
		out = append(out, sentenceCase(context))
	}
	if note := s.MemoryNote(); note != "" && s.Phase.Serving() {
		out = append(out, note)
	}
	if update := s.Update.Line(); update != "" {
		out = append(out, update)
	}
	return out
}

// placed are the actions that have a place of their own in the window.
func placed(a app.Action) bool {
	switch a {
	case app.CopyEndpoint, app.CopyCurl, app.CopyPython, app.CopyJavaScript, app.CopyEnvironment,
		app.OpenChat, app.OpenModel, app.OpenSettings, app.OpenLogs, app.OpenWindow, app.CopyDiagnostics, app.ToggleQuiet, app.Quit:
		return true
	}
	return false
}

// drawExtra makes buttons of the rest of the menu, so that nothing is only there.
func (h *homeWindow) drawExtra(s app.State) {
	var row []fyne.CanvasObject
	key := ""
	next := s.Next()
	for _, i := range app.Menu(s) {
		if i.Separator() || i.Label == next.Label || i.Action != app.NoAction && placed(i.Action) {
			continue
		}
		switch {
		case len(i.Children) > 0 && !placed(i.Children[0].Action):
			if !i.Available {
				continue
			}
			choices := h.u.menuItems(i.Children)
			b := widget.NewButtonWithIcon(i.Label, theme.MenuDropDownIcon(), nil)
			b.IconPlacement = widget.ButtonIconTrailingText
			b.OnTapped = func() {
				pos := fyne.CurrentApp().Driver().AbsolutePositionForObject(b)
				widget.ShowPopUpMenuAtPosition(fyne.NewMenu("", choices...), h.w.Canvas(), pos.AddXY(0, b.Size().Height))
			}
			row = append(row, b)
			key += i.Label + "|"
		case i.Action != app.NoAction && i.Available:
			row = append(row, widget.NewButton(i.Label, func() { h.u.act(i.Action) }))
			key += i.Label + "|"
		}
	}
	if key == h.drawn {
		return
	}
	h.drawn = key
	h.extra.RemoveAll()
	if len(row) > 0 {
		h.extra.Add(container.NewGridWithColumns(max(2, len(row)), row...))
	}
}
