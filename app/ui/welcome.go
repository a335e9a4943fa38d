package ui

import (
	"fmt"
	"reflect"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"pond/app"
	"pond/inference/memgate"
)

// welcomeWindow is the first thing a user sees: what Pond is, what this machine can run, and one button.
type welcomeWindow struct {
	u *UI
	w fyne.Window

	machine, memory         *widget.Label
	verdict, context        *widget.Label
	sums                    *fyne.Container
	size, where, room       *widget.Label
	trouble                 *widget.Label
	need, copyBox, download fyne.CanvasObject
	small                   fyne.CanvasObject // what to know where only the demo model runs
	copyLine                *widget.Label
	copyMode                *widget.RadioGroup
	progress                *thinBar
	line                    *widget.Label
	judged                  app.Verdict // as it is drawn
	judgedIn                app.Phase
	main, demo              *widget.Button
}

// barRoom is the room of a scroll bar at the right of what it scrolls.
const barRoom = 8

// Megabytes a second that the time of a download is guessed with, before there is a rate: 100 Mbit/s.
const guessedRate = 12_500_000

func newWelcomeWindow(u *UI) *welcomeWindow {
	v := &welcomeWindow{u: u}
	label := func() *widget.Label { return widget.NewLabel("") }
	v.machine, v.memory, v.size, v.room = label(), label(), label(), label()
	v.where = label()
	v.verdict, v.context = subtitle(""), note("")
	v.sums = container.NewVBox()
	v.trouble = wrapped("")
	v.trouble.Importance = widget.DangerImportance
	v.copyLine = wrapped("")
	v.copyMode = widget.NewRadioGroup([]string{modeLabel(app.AdoptClone), modeLabel(app.AdoptInPlace), modeLabel(app.AdoptCopy)}, nil)
	v.copyMode.SetSelected(modeLabel(app.AdoptClone))
	v.copyMode.Required = true
	v.progress = newThinBar()
	v.line = quiet("")
	v.main = widget.NewButton("", nil)
	v.main.Importance = widget.HighImportance
	v.demo = widget.NewButton(tryDemo, v.useDemo)
	v.small = card(subtitle("The demo model"), wrapped("This machine runs the demo model, which is built in: small, fast, and good for trying everything out. "+fullNeeds))

	head := container.NewBorder(nil, nil, u.picture(64), nil,
		container.New(stacked{-12}, title("Welcome to Pond"), wrapped("A language model that runs on this machine and nowhere else: a chat, and an endpoint for any OpenAI client.")))
	v.need = card(subtitle("This machine"), facts(fact("Computer", v.machine), fact("Memory", v.memory)), v.verdict, v.sums, v.context)
	v.download = card(subtitle("Download"), facts(fact("Size", v.size), fact("Goes to", v.where), fact("Free there", v.room)))
	v.copyBox = card(subtitle("It is here already"), v.copyLine, v.copyMode)
	foot := container.NewVBox(v.progress, v.line, container.NewHBox(v.demo, layoutSpacer(), v.main))
	body := container.NewVBox(head, v.need, v.small, v.copyBox, v.download, v.trouble)
	v.w = u.window("Welcome to Pond", 620, 700, container.New(margins{pageMargin, pageMargin - 4, pageMargin - barRoom, pageMargin},
		container.NewBorder(nil, container.New(margins{right: barRoom}, foot), nil, nil, container.NewVScroll(container.New(margins{right: barRoom}, body)))))
	v.draw(u.state)
	return v
}

const (
	tryDemo   = "Try the demo model now"
	fullNeeds = "The full model, Qwen3.6-35B-A3B, needs a Mac with Apple Silicon, macOS 15 and 32 GB, or Linux with 20.5 GB of available memory."
)

// useDemo starts the built-in model and opens the chat.
func (v *welcomeWindow) useDemo() {
	v.u.act(app.UseDemo)
	v.u.Open(app.OpenChat)
	v.w.Hide()
}

func modeLabel(m app.AdoptMode) string {
	switch m {
	case app.AdoptInPlace:
		return "Use it where it is: takes no room, and is lost when the other program removes it"
	case app.AdoptClone:
		return "Share its blocks: takes no room, where the disk can, and stays"
	}
	return "Copy it: takes the room a second time"
}

func (v *welcomeWindow) mode() app.AdoptMode {
	for _, m := range []app.AdoptMode{app.AdoptInPlace, app.AdoptClone} {
		if v.copyMode.Selected == modeLabel(m) {
			return m
		}
	}
	return app.AdoptCopy
}

func (v *welcomeWindow) draw(s app.State) {
	say(v.machine, s.Machine.Processor+", "+s.Machine.System)
	say(v.memory, s.Machine.Memory)
	v.drawVerdict(s)
	moving := s.Job.Kind != app.NoJob
	found := len(s.Found) > 0 && !s.Ready
	if found {
		say(v.copyLine, fmt.Sprintf("%s has a copy of the model, %s, in %s. Pond verifies every byte before it uses it.", s.Found[0].Tool, bytes(s.Found[0].Bytes), tidy(s.Found[0].Dir)))
	}
	show(v.copyBox, found && !moving)
	show(v.download, !found && !s.Ready && s.Disk.TotalBytes > 0)
	left := s.Disk.TotalBytes - s.Disk.DoneBytes
	say(v.size, fmt.Sprintf("%s, about %s at 100 Mbit/s", bytes(left), app.About(seconds(left, guessedRate))))
	say(v.where, tidy(s.Disk.Dir))
	say(v.room, roomLine(s.Disk))
	say(v.trouble, sentence(s.Disk.Trouble))
	if s.Phase == app.Failed {
		say(v.trouble, sentence(s.Failure))
	}
	show(v.trouble, v.trouble.Text != "")
	fraction, _ := progressOf(s)
	v.progress.set(fraction)
	show(v.progress, moving || s.Phase == app.Loading)
	say(v.line, "")
	if moving || s.Phase == app.Loading {
		say(v.line, s.Line())
	}
	show(v.line, v.line.Text != "")
	v.drawMain(s, found)
	show(v.demo, s.Model != app.DemoModel)
	show(v.small, s.Model == app.DemoModel)
}

// drawMain is the one button.
func (v *welcomeWindow) drawMain(s app.State, found bool) {
	next := s.Next()
	text, tapped, can := next.Label, func() { v.u.act(next.Action) }, next.Available
	switch {
	case s.Job.Kind != app.NoJob:
		text, tapped, can = "Show the progress", func() { v.u.Open(app.OpenModel) }, true
	case found:
		text, tapped, can = "Use the copy found in "+s.Found[0].Tool, func() { v.adopt(s.Found[0]) }, true
	case s.Phase == app.NeedModel && s.Disk.DoneBytes == 0 && next.Action == app.Download:
		text = "Download " + bytes(s.Disk.TotalBytes)
	case s.Model == app.DemoModel && s.Phase == app.Stopped:
		text, tapped, can = tryDemo, v.useDemo, true
	case s.Phase.Serving():
		text, tapped, can = "Open the chat", func() { v.u.Open(app.OpenChat); v.w.Hide() }, true
	}
	v.main.OnTapped = tapped
	if v.main.Text != text {
		v.main.SetText(text)
	}
	enable(v.main, can)
}

func (v *welcomeWindow) adopt(c app.Copy) {
	mode := v.mode()
	v.u.elsewhere(func() error { return v.u.controls.Adopt(c, mode) }, func(err error) {
		if err != nil {
			showError(err, v.w)
		}
	})
}

// drawVerdict shows whether the model may run, with its arithmetic.
func (v *welcomeWindow) drawVerdict(s app.State) {
	if reflect.DeepEqual(v.judged, s.Verdict) && v.judgedIn == s.Phase {
		return
	}
	v.judged, v.judgedIn = s.Verdict, s.Phase
	good := s.Verdict.Allowed
	v.verdict.SetText(sentence(s.Verdict.Sentence))
	v.verdict.Importance = widget.SuccessImportance
	if !good {
		v.verdict.Importance = widget.WarningImportance
	}
	v.verdict.Refresh()
	show(v.verdict, s.Verdict.Sentence != "")
	v.sums.RemoveAll()
	for _, row := range sumRows(s.Verdict) {
		v.sums.Add(row)
	}
	text := ""
	if context := s.ContextLine(); context != "" && !strings.Contains(strings.ToLower(s.Verdict.Sentence), strings.ToLower(context)) {
		text = sentence("Conversations of " + context)
	}
	if !good && s.Verdict.Anyway {
		text = sentence(s.Verdict.AnywayText)
	}
	say(v.context, text)
	show(v.context, text != "")
}

// sumRows is the arithmetic of a verdict.
func sumRows(v app.Verdict) []fyne.CanvasObject {
	var out []fyne.CanvasObject
	for _, s := range v.Sums {
		value := widget.NewLabel(bytes(s.Bytes))
		value.Alignment = fyne.TextAlignTrailing
		value.SizeName = theme.SizeNameCaptionText
		out = append(out, container.New(margins{top: -8, bottom: -8}, container.NewBorder(nil, nil, quiet(s.Label), nil, value)))
	}
	return out
}

func roomLine(d app.DiskState) string {
	switch lacks := d.LacksBytes(); {
	case d.FreeBytes < 0:
		return "unknown"
	case lacks > 0:
		return fmt.Sprintf("%s: the download needs %s more (%s stays free)", bytes(d.FreeBytes), bytes(lacks), bytes(d.Headroom))
	}
	return bytes(d.FreeBytes)
}

func bytes(n int64) string {
	if n < 1_000_000 {
		return fmt.Sprintf("%d KB", (max(0, n)+999)/1000)
	}
	return memgate.Bytes(uint64(n))
}
