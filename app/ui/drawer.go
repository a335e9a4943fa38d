package ui

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"pond/app"
	"pond/app/chats"
)

// drawer holds the parameters of the open chat. What is written there counts at once, where it makes sense; where it does not, the line
// below says what is wanted.
type drawer struct {
	c      *chatWindow
	object fyne.CanvasObject

	temperature, topP, topK, most *widget.Entry
	system                        *widget.Entry
	thinking                      *widget.Check
	trouble                       *widget.Label
	filling                       bool
}

func newDrawer(c *chatWindow) *drawer {
	d := &drawer{c: c}
	line := func(placeholder string) *widget.Entry {
		e := widget.NewEntry()
		e.SetPlaceHolder(placeholder)
		e.OnChanged = func(string) { d.apply() }
		return e
	}
	d.temperature, d.topP, d.topK, d.most = line("recommended"), line("recommended"), line("recommended"), line("no limit")
	d.system = widget.NewMultiLineEntry()
	d.system.Wrapping = fyne.TextWrapWord
	d.system.SetPlaceHolder("What the model is told first")
	d.system.SetMinRowsVisible(6)
	d.system.OnChanged = func(string) { d.apply() }
	d.thinking = widget.NewCheck("Think before answering", func(bool) { d.apply() })
	d.trouble = note("")
	d.trouble.Importance = widget.DangerImportance
	content := container.NewVBox(
		subtitle("This chat"),
		quiet("Temperature"), d.temperature, quiet("Top-p"), d.topP, quiet("Top-k"), d.topK, quiet("Longest answer, in tokens"), d.most,
		d.thinking, quiet("System prompt"), d.system, d.trouble,
		note("Empty fields take what the model's makers recommend. Changes count from the next answer on."),
	)
	d.object = container.NewBorder(nil, nil, widget.NewSeparator(), nil,
		container.New(atWidth{260}, container.NewVScroll(container.New(margins{12, 8, 14, 12}, content))))
	d.object.Hide()
	return d
}

// show fills the fields.
func (d *drawer) show(p chats.Params) {
	d.filling = true
	d.temperature.SetText(decimal(p.Temperature))
	d.topP.SetText(decimal(p.TopP))
	d.topK.SetText("")
	if p.TopK != nil {
		d.topK.SetText(strconv.Itoa(*p.TopK))
	}
	d.most.SetText("")
	if p.MaxTokens > 0 {
		d.most.SetText(strconv.Itoa(p.MaxTokens))
	}
	d.system.SetText(p.System)
	d.thinking.SetChecked(p.Thinks())
	d.filling = false
	d.trouble.SetText("")
}

func decimal(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

// read is what the fields say.
func (d *drawer) read() (p chats.Params, err error) {
	number := func(what, text string) *float64 {
		text = strings.TrimSpace(strings.ReplaceAll(text, ",", "."))
		if text == "" {
			return nil
		}
		v, e := strconv.ParseFloat(text, 64)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%s: got %q, want a number", what, text))
		}
		return &v
	}
	p.Temperature, p.TopP = number("temperature", d.temperature.Text), number("top-p", d.topP.Text)
	whole := func(what, text string) *int {
		if text = strings.TrimSpace(text); text == "" {
			return nil
		}
		n, e := strconv.Atoi(text)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%s: got %q, want a whole number", what, text))
		}
		return &n
	}
	p.TopK = whole("top-k", d.topK.Text)
	if n := whole("longest answer", d.most.Text); n != nil {
		p.MaxTokens = *n
	}
	thinks := d.thinking.Checked
	p.Thinking, p.System = &thinks, d.system.Text
	return p, errors.Join(err, p.Validate())
}

func (d *drawer) apply() {
	if d.filling || d.c.talk == nil {
		return
	}
	p, err := d.read()
	if err == nil {
		err = d.c.talk.SetParams(p)
	}
	d.trouble.SetText("")
	if err != nil {
		d.trouble.SetText(sentences(err))
	}
}

// banner says what the model is doing when it is not ready to answer, with the one next action.
type banner struct {
	object fyne.CanvasObject
	line   *widget.Label
	bar    *thinBar
	room   fyne.CanvasObject // of the bar
	next   *nextButton
}

func newBanner(u *UI) *banner {
	b := &banner{line: widget.NewLabel(""), bar: newThinBar(), next: newNextButton(u)}
	b.line.Truncation = fyne.TextTruncateEllipsis
	b.room = container.New(margins{left: 8, right: 8}, b.bar)
	b.object = container.New(margins{12, 6, 12, 6}, container.NewStack(newTinted(colorSurface, theme.Size(theme.SizeNameInputRadius)),
		container.New(margins{6, 4, 6, 4}, container.NewBorder(nil, b.room, nil, b.next.Button, b.line))))
	return b
}

func (b *banner) draw(s app.State) {
	say(b.line, s.Line())
	b.next.draw(s)
	fraction, moving := progressOf(s)
	b.bar.set(fraction)
	show(b.room, moving)
	show(b.object, !s.Phase.Serving())
}

// progressOf is how far what Pond is doing is; false: it is doing nothing that has an end.
func progressOf(s app.State) (fraction float64, moving bool) {
	switch s.Phase {
	case app.Loading:
		if s.Load.TotalBytes > 0 {
			fraction = float64(s.Load.DoneBytes) / float64(s.Load.TotalBytes)
		}
		return fraction, true
	case app.Downloading, app.Verifying:
		return s.Job.Fraction(), true
	}
	return 0, false
}
