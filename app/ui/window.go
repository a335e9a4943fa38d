package ui

import (
	"context"
	"errors"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"pond/app"
)

// window is the one window: what Pond does, how to reach it, and a box to ask it something.
type window struct {
	w        fyne.Window
	controls Controls
	thread   *thread
	state    app.State

	line     *widget.Label
	detail   *widget.Label
	progress *widget.ProgressBarInfinite
	toggle   *widget.Button // the one next action
	endpoint *widget.Label
	copyURL  *widget.Button
	curl     *widget.Label
	copyCurl *widget.Button

	question *widget.Entry
	send     *widget.Button
	answer   *widget.Label
	scroll   *container.Scroll
	stop     context.CancelFunc // of the answer that is being written; nil when none is
}

func newWindow(a fyne.App, c Controls, t *thread) *window {
	v := &window{w: a.NewWindow("Pond"), controls: c, thread: t}
	v.line = widget.NewLabelWithStyle("", fyne.TextAlignLeading, fyne.TextStyle{Bold: true})
	v.line.Truncation = fyne.TextTruncateEllipsis
	v.detail = widget.NewLabel("")
	v.detail.Wrapping = fyne.TextWrapWord
	v.progress = widget.NewProgressBarInfinite()
	v.toggle = widget.NewButton("", nil)

	v.endpoint = widget.NewLabel("")
	v.endpoint.Selectable = true
	v.copyURL = widget.NewButtonWithIcon("Copy", theme.ContentCopyIcon(), func() { c.Do(app.CopyEndpoint) })
	v.curl = widget.NewLabelWithStyle("", fyne.TextAlignLeading, fyne.TextStyle{Monospace: true})
	v.curl.Selectable = true
	v.curl.Wrapping = fyne.TextWrapBreak
	v.copyCurl = widget.NewButtonWithIcon("Copy", theme.ContentCopyIcon(), func() { a.Clipboard().SetContent(v.curl.Text) })

	v.question = widget.NewEntry()
	v.question.SetPlaceHolder("Ask something")
	v.question.OnSubmitted = func(string) { v.ask() }
	v.send = widget.NewButtonWithIcon("", theme.MailSendIcon(), v.ask)
	v.answer = widget.NewLabel("")
	v.answer.Wrapping = fyne.TextWrapWord
	v.answer.Selectable = true
	v.scroll = container.NewVScroll(v.answer)

	top := container.NewVBox(
		container.NewBorder(nil, nil, nil, v.toggle, v.line),
		v.detail, v.progress,
		widget.NewSeparator(),
		caption("Endpoint for any OpenAI client"),
		container.NewBorder(nil, nil, nil, v.copyURL, v.endpoint),
		caption("Try it in a terminal"),
		container.NewBorder(nil, nil, nil, container.NewVBox(v.copyCurl, layout.NewSpacer()), v.curl),
		widget.NewSeparator(),
		container.NewBorder(nil, nil, nil, v.send, v.question),
	)
	v.w.SetContent(container.NewPadded(container.NewBorder(top, nil, nil, nil, v.scroll)))
	v.w.Resize(fyne.NewSize(560, 520))
	v.w.SetCloseIntercept(v.w.Hide) // closing the window is not quitting: the endpoint lives on in the menu bar
	return v
}

func caption(text string) fyne.CanvasObject {
	l := widget.NewLabel(text)
	l.SizeName = theme.SizeNameCaptionText
	return l
}

// draw shows a state; the text of an answer stays.
func (v *window) draw(s app.State) {
	v.state = s
	v.line.SetText(s.Line())
	v.detail.SetText(detail(s))
	if s.Phase == app.Loading {
		v.progress.Show()
		v.progress.Start()
	} else {
		v.progress.Stop()
		v.progress.Hide()
	}
	for _, item := range app.Menu(s) {
		if item.Action == app.Start || item.Action == app.Stop {
			v.toggle.SetText(item.Label)
			v.toggle.OnTapped = func() { v.controls.Do(item.Action) }
		}
	}
	running := s.Phase == app.Running
	if s.Address != "" {
		v.endpoint.SetText(s.Endpoint())
		v.curl.SetText(app.CurlLine(s.Address, s.Model, s.NeedsKey))
	}
	enable(v.copyURL, running)
	enable(v.copyCurl, running)
	enable(v.send, running)
	if running {
		v.question.Enable()
	} else {
		v.question.Disable()
	}
}

// detail is the second line: what the state line has no room for.
func detail(s app.State) string {
	switch s.Phase {
	case app.Running:
		facts := []string{"Model " + s.Model, s.Executor, app.Tokens(s.ContextTokens) + " of context"}
		if note := s.MemoryNote(); note != "" {
			facts = append(facts, note)
		}
		return strings.Join(facts, " · ")
	case app.Failed:
		return s.Failure
	case app.Loading:
		return "Reading the weights of " + s.Model
	}
	return "Nothing is loaded and nothing listens."
}

func enable(b *widget.Button, on bool) {
	if on {
		b.Enable()
	} else {
		b.Disable()
	}
}

// ask sends the question, or stops the answer that is being written.
func (v *window) ask() {
	if v.stop != nil {
		v.stop()
		return
	}
	question := strings.TrimSpace(v.question.Text)
	if question == "" || v.state.Phase != app.Running {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	v.stop = cancel
	v.send.SetIcon(theme.MediaStopIcon())
	v.answer.SetText("")
	v.controls.Ask(ctx, question,
		func(text string) {
			v.thread.post(func() {
				v.answer.SetText(v.answer.Text + text)
				v.scroll.Refresh() // or the first overflow is missed
				v.scroll.ScrollToBottom()
			})
		},
		func(err error) {
			v.thread.post(func() {
				cancel()
				v.stop = nil
				v.send.SetIcon(theme.MailSendIcon())
				switch {
				case err == nil:
					v.question.SetText("")
				case errors.Is(err, context.Canceled):
					v.answer.SetText(v.answer.Text + " (stopped)")
				default:
					v.answer.SetText(v.answer.Text + "\n" + err.Error())
				}
			})
		})
}
