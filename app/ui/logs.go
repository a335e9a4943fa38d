package ui

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"pond/app"
)

// logWindow shows the end of the log, the newest line last.
type logWindow struct {
	u      *UI
	w      fyne.Window
	file   string
	lines  []string // of the log
	shown  []string // those that hold what is looked for
	filter *widget.Entry
	list   *widget.List
	status *widget.Label
	whole  *widget.Label // the line that was chosen
}

func newLogWindow(u *UI) *logWindow {
	v := &logWindow{u: u, status: quiet(""), whole: note("")}
	v.whole.Selectable = true
	v.status.Truncation = fyne.TextTruncateEllipsis
	v.list = widget.NewList(func() int { return len(v.shown) }, func() fyne.CanvasObject {
		l := widget.NewLabelWithStyle("", fyne.TextAlignLeading, fyne.TextStyle{Monospace: true})
		l.SizeName = theme.SizeNameCaptionText
		l.Truncation = fyne.TextTruncateEllipsis
		return container.New(margins{top: -5, bottom: -5}, l)
	}, func(i widget.ListItemID, o fyne.CanvasObject) {
		if i < len(v.shown) {
			l := o.(*fyne.Container).Objects[0].(*widget.Label)
			l.Importance = lineImportance(v.shown[i])
			l.SetText(shortLine(printable(v.shown[i])))
		}
	})
	v.list.HideSeparators = true
	v.list.OnSelected = func(i widget.ListItemID) {
		if i < len(v.shown) {
			u.app.Clipboard().SetContent(v.shown[i])
			v.whole.SetText(v.shown[i])
			v.status.SetText("The line is on the clipboard.")
		}
	}
	v.filter = widget.NewEntry()
	v.filter.SetPlaceHolder("Show lines with …")
	v.filter.OnChanged = func(string) { v.draw() }
	again := widget.NewButtonWithIcon("Read again", theme.ViewRefreshIcon(), v.load)
	all := widget.NewButtonWithIcon("Copy", theme.ContentCopyIcon(), func() { u.app.Clipboard().SetContent(strings.Join(v.shown, "\n")) })
	reveal := widget.NewButtonWithIcon("Show file", theme.FolderOpenIcon(), func() {
		file := v.file
		u.elsewhere(func() error { return u.controls.Reveal(file) }, func(err error) {
			if err != nil {
				showError(err, v.w)
			}
		})
	})
	diagnostics := widget.NewButton("Copy diagnostics", func() { u.act(app.CopyDiagnostics) })
	top := container.NewBorder(nil, nil, nil, container.NewHBox(again, all, reveal), v.filter)
	bottom := container.NewVBox(v.whole, container.NewBorder(nil, nil, nil, diagnostics, v.status))
	v.w = u.window("Pond · Logs", 860, 520, container.New(margins{14, 12, 14, 10}, container.NewBorder(top, bottom, nil, nil, v.list)))
	return v
}

// shortLine is a line without what is the same in each: "15:02:11 INFO msg=...".
func shortLine(line string) string {
	rest, ok := strings.CutPrefix(line, "time=")
	if !ok {
		return line
	}
	stamp, rest, ok := strings.Cut(rest, " level=")
	_, clock, dated := strings.Cut(stamp, "T")
	if !ok || !dated || len(clock) < 8 {
		return line
	}
	level, rest, _ := strings.Cut(rest, " msg=")
	return clock[:8] + "  " + level + strings.Repeat(" ", max(1, 7-len(level))) + rest
}

func lineImportance(line string) widget.Importance {
	switch {
	case strings.Contains(line, "level=ERROR") || strings.Contains(line, `"ERROR"`):
		return widget.DangerImportance
	case strings.Contains(line, "level=WARN") || strings.Contains(line, `"WARN"`):
		return widget.WarningImportance
	}
	return widget.MediumImportance
}

// load reads the log, elsewhere.
func (v *logWindow) load() {
	var lines []string
	var file string
	v.u.elsewhere(func() (err error) {
		lines, file, err = v.u.controls.Log()
		return err
	}, func(err error) {
		if err != nil {
			v.status.SetText(sentence("the log cannot be read: " + err.Error()))
			return
		}
		v.lines, v.file = lines, file
		v.status.SetText(tidy(file) + " · what is said in chats is not in it")
		v.draw()
		v.list.ScrollToBottom()
	})
}

func (v *logWindow) draw() {
	words := strings.Fields(strings.ToLower(v.filter.Text))
	v.shown = nil
	for _, line := range v.lines {
		if holds(strings.ToLower(line), words) {
			v.shown = append(v.shown, line)
		}
	}
	v.list.UnselectAll()
	v.list.Refresh()
}

func holds(line string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return true
}

// aboutWindow says what this is.
type aboutWindow struct{ w fyne.Window }

func newAboutWindow(u *UI) *aboutWindow {
	name := title("Pond")
	center := func(o fyne.CanvasObject) fyne.CanvasObject {
		return container.NewHBox(layout.NewSpacer(), o, layout.NewSpacer())
	}
	text := note("Not the cloud: a pond. One language model, on this machine.")
	text.Alignment = fyne.TextAlignCenter
	licence := note("The licences of Pond, of its libraries and of its models are in LICENSES.txt inside the app, and in the files LICENSE and assets/demo/LICENSES.md of its source.")
	licence.Alignment = fyne.TextAlignCenter
	version := widget.NewLabel("Version " + u.controls.Version)
	version.Selectable = true
	built := quiet(u.controls.Built)
	built.Selectable = true
	show(built, u.controls.Built != "")
	return &aboutWindow{u.window("About Pond", 380, 410, page(container.NewVBox(center(u.picture(96)), center(name), center(version), center(built), text, licence)))}
}
