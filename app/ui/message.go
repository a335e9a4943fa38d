package ui

import (
	"fmt"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"pond/app/chats"
)

// messageHooks is what a message asks of the chat it stands in.
type messageHooks struct {
	copy       func(string)
	regenerate func(id int)
	edit       func(m chats.Message)
	version    func(id, by int)
	scrolled   func(*fyne.ScrollEvent) // for what scrolls sideways inside
	resized    func()                  // the message's height is another one
	hide       bool                    // thinking is not shown, only how long it took
}

// messageView draws one message and follows it as it grows.
type messageView struct {
	*column
	hooks  messageHooks
	shown  chats.Shown
	plain  bool
	folded bool // thinking

	text    flow
	thought flow
	think   *widget.Button
	note    *widget.Label
	foot    fyne.CanvasObject
	figures *widget.Label
	status  *widget.Label
}

// flow is a text that grows, in blocks: all but the last are closed, and stay as they are.
type flow struct {
	split    splitter
	length   int // of the text that was taken in
	ended    bool
	objects  []fyne.CanvasObject // of closed blocks
	tail     fyne.CanvasObject   // of the open one; nil: there is none
	tailCode *codeView           // of the open one, when it is code
	code     *strings.Builder    // the whole of the code that the last block belongs to
}

func newMessageView(m chats.Shown, hooks messageHooks, folded bool) *messageView {
	v := &messageView{column: newColumn(2), hooks: hooks, folded: folded}
	v.think = widget.NewButtonWithIcon("", theme.MenuExpandIcon(), v.fold)
	v.think.Importance = widget.LowImportance
	v.think.Alignment = widget.ButtonAlignLeading
	enable(v.think, !hooks.hide)
	v.note = widget.NewLabel("")
	v.note.Wrapping = fyne.TextWrapWord
	v.note.Importance = widget.DangerImportance
	v.figures = quiet("")
	v.figures.Wrapping = fyne.TextWrapWord
	v.status = quiet("")
	v.update(m, chats.View{})
	return v
}

// grows tells whether m is this message, perhaps with more text.
func (v *messageView) grows(m chats.Shown) bool {
	return m.ID == v.shown.ID && strings.HasPrefix(m.Text, v.shown.Text) && strings.HasPrefix(m.Thinking, v.shown.Thinking) && m.Role == v.shown.Role
}

// update draws what is new. The view tells what the running answer is at.
func (v *messageView) update(m chats.Shown, view chats.View) {
	first := v.foot == nil
	footer := first || m.End != v.shown.End || m.Version != v.shown.Version || m.Versions != v.shown.Versions
	v.shown = m
	if footer {
		v.foot = v.footer()
		say(v.figures, figuresLine(m))
	}
	ended := m.Role == chats.User || m.End != chats.Running
	v.text.update(m.Text, ended, v.plain || m.Role == chats.User, v.hooks)
	if !v.folded {
		v.thought.update(m.Thinking, ended || m.Text != "", true, v.hooks)
	}
	if line := thinkingLine(m, view); v.think.Text != line {
		v.think.SetText(line)
	}
	if note := endLine(m); note != v.note.Text {
		v.note.SetText(note)
		v.note.Importance = widget.LowImportance
		if m.End == chats.Broken {
			v.note.Importance = widget.DangerImportance
		}
		v.note.Refresh()
	}
	say(v.status, workLine(view))
	v.compose()
}

// compose puts the parts below each other.
func (v *messageView) compose() {
	var objects []fyne.CanvasObject
	if v.shown.Role == chats.User {
		question := newColumn(0, v.text.all()...)
		inner := []fyne.CanvasObject{question}
		for _, f := range v.shown.Files {
			inner = append([]fyne.CanvasObject{fileChip(f, nil)}, inner...)
		}
		objects = append(objects, container.NewBorder(nil, nil, container.NewVBox(v.foot), nil, onSurface(newColumn(0, inner...))))
		v.column.set(objects)
		return
	}
	if v.shown.Thinking != "" {
		icon := theme.MenuExpandIcon()
		switch {
		case v.hooks.hide:
			icon = nil
		case !v.folded:
			icon = theme.MenuDropDownIcon()
		}
		if v.think.Icon != icon {
			v.think.SetIcon(icon)
		}
		objects = append(objects, container.NewHBox(v.think))
		if !v.folded {
			objects = append(objects, v.thought.all()...)
		}
	}
	objects = append(objects, v.text.all()...)
	if v.note.Text != "" {
		objects = append(objects, v.note)
		v.column.touch(v.note)
	}
	if v.shown.End == chats.Running {
		if v.status.Text != "" {
			objects = append(objects, v.status)
		}
	} else {
		objects = append(objects, v.foot)
	}
	v.column.set(objects)
}

// fold shows the thinking, or hides it.
func (v *messageView) fold() {
	v.folded = !v.folded
	if !v.folded {
		v.thought.update(v.shown.Thinking, v.shown.End != chats.Running || v.shown.Text != "", true, v.hooks)
	}
	v.compose()
	v.hooks.resized()
}

// setPlain shows the text as it was written, in labels that can be selected from.
func (v *messageView) setPlain(plain bool) {
	v.plain = plain
	v.text = flow{}
	v.text.update(v.shown.Text, v.shown.End != chats.Running, plain, v.hooks)
	v.compose()
	v.hooks.resized()
}

// footer is the row below a message.
func (v *messageView) footer() fyne.CanvasObject {
	id := v.shown.ID
	small := func(icon fyne.Resource, tapped func()) *widget.Button {
		b := widget.NewButtonWithIcon("", icon, tapped)
		b.Importance = widget.LowImportance
		return b
	}
	row := []fyne.CanvasObject{small(theme.ContentCopyIcon(), func() { v.hooks.copy(v.shown.Text) })}
	if v.shown.Role == chats.User {
		row = append(row, small(theme.DocumentCreateIcon(), func() { v.hooks.edit(v.shown.Message) }))
	} else {
		row = append(row, small(theme.ViewRefreshIcon(), func() { v.hooks.regenerate(id) }),
			small(theme.DocumentIcon(), func() { v.setPlain(!v.plain) }))
	}
	if v.shown.Versions > 1 {
		back := small(theme.NavigateBackIcon(), func() { v.hooks.version(id, -1) })
		next := small(theme.NavigateNextIcon(), func() { v.hooks.version(id, 1) })
		enable(back, v.shown.Version > 1)
		enable(next, v.shown.Version < v.shown.Versions)
		row = append(row, back, quiet(fmt.Sprintf("%d of %d", v.shown.Version, v.shown.Versions)), next)
	}
	buttons := container.NewHBox(row...)
	if v.shown.Role == chats.User {
		return buttons
	}
	return container.New(&footLayout{}, buttons, v.figures)
}

// footLayout puts the figures beside the buttons where they have room, and below them where they have not: they are never cut.
type footLayout struct{ width float32 }

// below tells whether the figures need a line of their own.
func (l *footLayout) below(o []fyne.CanvasObject) bool {
	label := o[1].(*widget.Label)
	text := fyne.MeasureText(label.Text, theme.Size(label.SizeName), label.TextStyle).Width + 2*theme.InnerPadding()
	return l.width > 0 && label.Text != "" && o[0].MinSize().Width+text > l.width
}

func (l *footLayout) Layout(o []fyne.CanvasObject, size fyne.Size) {
	l.width = size.Width
	buttons, label := o[0], o[1]
	least := buttons.MinSize()
	buttons.Move(fyne.NewPos(0, 0))
	buttons.Resize(least)
	if l.below(o) {
		label.Move(fyne.NewPos(0, least.Height-footOverlap))
		label.Resize(fyne.NewSize(size.Width, label.MinSize().Height))
		label.Resize(fyne.NewSize(size.Width, label.MinSize().Height)) // as high as its lines at this width
		return
	}
	label.Resize(fyne.NewSize(max(0, size.Width-least.Width), least.Height))
	height := label.MinSize().Height
	label.Move(fyne.NewPos(least.Width, (least.Height-height)/2))
}

// footOverlap is how much of its own space a label gives up below the buttons.
const footOverlap = 6

func (l *footLayout) MinSize(o []fyne.CanvasObject) fyne.Size {
	s := o[0].MinSize()
	if l.below(o) {
		s.Height += o[1].MinSize().Height - footOverlap
	}
	return s
}

func figuresLine(m chats.Shown) string {
	if m.Figures == nil {
		return ""
	}
	return m.Figures.Line()
}

// thinkingLine is the fold's label: how long the model thought, or thinks.
func thinkingLine(m chats.Shown, view chats.View) string {
	switch {
	case m.Figures != nil && m.Figures.ThinkingMS > 0:
		return "Thought for " + chats.Seconds(time.Duration(m.Figures.ThinkingMS)*time.Millisecond)
	case m.End == chats.Running && view.Work == chats.Thinking:
		if took := time.Since(view.Since).Truncate(time.Second); took > 0 {
			return "Thinking · " + wholeSeconds(took)
		}
		return "Thinking…"
	case m.End == chats.Running && view.Thought > 0:
		return "Thought for " + chats.Seconds(view.Thought)
	}
	return "Thoughts" // of an answer that was interrupted: nobody knows how long
}

// wholeSeconds is a time without tenths, which would flicker: "3 s", "1 min 5 s".
func wholeSeconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return chats.Seconds(d)
}

// endLine is what to know of an answer's end; empty for one that is whole.
func endLine(m chats.Shown) string {
	switch m.End {
	case chats.Complete:
		if m.Role == chats.Assistant && m.Text == "" {
			return "The model ended without an answer. The arrow below asks again."
		}
	case chats.Length:
		return "The answer reached its limit of tokens."
	case chats.Stopped:
		return "Stopped."
	case chats.Interrupted:
		return "Interrupted: Pond was closed while this was written. The arrow below asks again."
	case chats.Broken:
		return m.Error
	}
	return ""
}

// workLine is what the running answer is at.
func workLine(v chats.View) string {
	switch v.Work {
	case chats.Waiting:
		return "Waiting for the model…"
	case chats.Prefill:
		if v.Total > 0 {
			return fmt.Sprintf("Reading the conversation… %d %%", v.Done*100/v.Total)
		}
		return "Reading the conversation…"
	}
	return ""
}

// fileChip is an attached file; remove nil: it stays.
func fileChip(f chats.File, remove func()) fyne.CanvasObject {
	icon := widget.NewIcon(theme.FileTextIcon())
	name := quiet(fmt.Sprintf("%s · %d KB", f.Name, (len(f.Text)+1023)>>10))
	row := []fyne.CanvasObject{container.New(margins{left: 8}, icon), name}
	if remove != nil {
		b := widget.NewButtonWithIcon("", theme.CancelIcon(), remove)
		b.Importance = widget.LowImportance
		row = append(row, b)
	}
	return container.NewHBox(row...)
}

// update takes the whole text in and draws what is new.
func (f *flow) update(text string, ended, plain bool, hooks messageHooks) {
	if len(text) == f.length && ended == f.ended || f.ended {
		return
	}
	f.length, f.ended = len(text), ended
	if plain {
		f.updatePlain(text, ended)
		return
	}
	closed, open := f.split.update(text, ended)
	for _, b := range closed {
		f.objects = append(f.objects, f.view(b, hooks, true))
	}
	if open == nil || open.text == "" && !open.code {
		f.tail, f.tailCode = nil, nil
		return
	}
	if open.code && f.tailCode != nil && len(closed) == 0 {
		f.tailCode.label.SetText(printable(open.text)) // the rest of it stays
		return
	}
	f.tail = f.view(*open, hooks, false)
}

// view draws a block. closed: its text joins the code that the copy button gives.
func (f *flow) view(b block, hooks messageHooks, closed bool) fyne.CanvasObject {
	f.tailCode = nil
	if !b.code {
		return proseView(b.text, hooks.scrolled)
	}
	if !b.continues || f.code == nil {
		f.code = &strings.Builder{}
	}
	whole := f.code
	v := newCodeView(b, func() string {
		if f.code == whole && f.tailCode != nil { // the last piece is still growing
			return whole.String() + f.tailCode.label.Text
		}
		return whole.String()
	}, hooks.copy, hooks.scrolled)
	if closed {
		whole.WriteString(b.text)
	} else {
		f.tailCode = v
	}
	return v.object
}

// updatePlain draws the text as it is, in labels of a few thousand bytes each.
func (f *flow) updatePlain(text string, ended bool) {
	for len(text)-f.split.at > proseBytes {
		end := f.split.at + proseBytes
		if i := strings.LastIndexByte(text[f.split.at:end], '\n'); i > 0 {
			end = f.split.at + i + 1
		} else if i := strings.LastIndexByte(text[f.split.at:end], ' '); i > 0 {
			end = f.split.at + i + 1
		}
		f.objects = append(f.objects, plainLabel(strings.TrimSuffix(text[f.split.at:end], "\n")))
		f.split.at = end
	}
	f.tail = nil
	if rest := text[f.split.at:]; strings.TrimSpace(rest) != "" {
		f.tail = plainLabel(strings.TrimRight(rest, "\n"))
		if ended {
			f.objects, f.tail, f.split.at = append(f.objects, f.tail), nil, len(text)
		}
	}
}

func plainLabel(text string) fyne.CanvasObject {
	l := widget.NewLabel(printable(text))
	l.Wrapping = fyne.TextWrapWord
	l.Selectable = true
	return l
}

func (f *flow) all() []fyne.CanvasObject {
	if f.tail == nil {
		return append([]fyne.CanvasObject(nil), f.objects...)
	}
	return append(f.objects[:len(f.objects):len(f.objects)], f.tail)
}
