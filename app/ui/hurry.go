package ui

import (
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"pond/app/chats"
)

// hurryAfter is how long the model thinks before "Answer now" is offered.
const hurryAfter = 10 * time.Second

// hurryRow stands above the box when an answer looks stuck: when thinking takes long, or when what is written goes round in circles. It says which, and
// offers what helps; nothing is done by itself.
type hurryRow struct {
	object fyne.CanvasObject
	line   *widget.Label
	now    *widget.Button // ends the thinking
	stop   *widget.Button
}

func newHurryRow(c *chatWindow) *hurryRow {
	h := &hurryRow{line: quiet("")}
	h.now = widget.NewButtonWithIcon("Answer now", theme.MediaFastForwardIcon(), func() { c.talk.AnswerNow() })
	h.stop = widget.NewButtonWithIcon("Stop", theme.MediaStopIcon(), func() { c.talk.Stop() })
	h.object = container.NewHBox(layout.NewSpacer(), h.line, h.now, h.stop, layout.NewSpacer())
	h.object.Hide()
	return h
}

// draw follows a view; true: the row came or went.
func (h *hurryRow) draw(v chats.View, now time.Time) bool {
	thinking := v.Work == chats.Thinking
	long := thinking && now.Sub(v.Since) >= hurryAfter
	circles := v.Circles && (thinking || v.Work == chats.Answering)
	switch {
	case circles:
		say(h.line, "It repeats itself.")
	case long:
		say(h.line, "Thinking takes long.")
	}
	show(h.now, thinking)
	show(h.stop, !thinking)
	before := h.object.Visible()
	show(h.object, long || circles)
	return before != h.object.Visible()
}
