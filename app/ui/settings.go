package ui

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"pond/app"
	"pond/app/settings"
)

// settingsWindow draws settings.Fields: what each value is, in a line, and what is wrong with it where it is written. A value that makes
// sense is saved at once.
type settingsWindow struct {
	u         *UI
	w         fyne.Window
	rows      []*settingRow
	login     *widget.Check
	loginUp   *widget.Label
	command   *widget.Check
	commandAt *widget.Label // where it is
	status    *widget.Label
	tabs      *container.AppTabs
	filling   bool
	saving    bool
	writing   sync.Mutex // held while settings are written: what is written last is what was chosen last
	wanted    bool       // another saving behind the running one
	edits     int        // what is typed is saved when none has come for a while
	failed    error      // of the last saving
	unsaved   bool       // value is not saved, and will be in a moment
	value     settings.Settings
	saved     settings.Settings // as they are in the file, or are on their way there
}

// settingRow is one field and its editor.
type settingRow struct {
	field   settings.Field
	fill    func(text string)
	trouble *widget.Label
}

func newSettingsWindow(u *UI) *settingsWindow {
	v := &settingsWindow{u: u}
	v.status = quiet("")
	v.status.Truncation = fyne.TextTruncateEllipsis
	var tabs []*container.TabItem
	for _, section := range []settings.Section{settings.General, settings.Endpoint, settings.Engine, settings.Chat} {
		var rows []fyne.CanvasObject
		if section == settings.General {
			rows = append(rows, v.loginRow(), widget.NewSeparator(), v.commandRow(), widget.NewSeparator())
		}
		for _, f := range settings.Fields() {
			if f.Section == section {
				rows = append(rows, v.row(f), widget.NewSeparator())
			}
		}
		if n := len(rows); n > 0 {
			rows = rows[:n-1]
		}
		tabs = append(tabs, container.NewTabItem(string(section), container.NewVScroll(container.New(margins{6, 10, 16, 6}, container.NewVBox(rows...)))))
	}
	v.tabs = container.NewAppTabs(tabs...)
	v.w = u.window("Pond · Settings", 700, 600, container.New(margins{14, 10, 14, 8}, container.NewBorder(nil, v.status, nil, nil, v.tabs)))
	v.w.SetCloseIntercept(func() {
		v.flush()
		v.w.Hide()
	})
	return v
}

// loginRow is the login item: the system's own state, never a remembered one.
func (v *settingsWindow) loginRow() fyne.CanvasObject {
	v.loginUp = note("")
	v.loginUp.Hide()
	v.loginUp.Importance = widget.WarningImportance
	v.login = widget.NewCheck("Open Pond at login", func(on bool) {
		if v.filling {
			return
		}
		v.u.elsewhere(func() error { return v.u.controls.SetLoginItem(on) }, func(err error) {
			if err != nil {
				showError(err, v.w)
			}
			v.readLogin()
		})
	})
	return container.New(stacked{-10}, v.login, note("Off by default; what the system's own settings say holds."), v.loginUp)
}

// commandRow is the command of the terminal: the link as it lies on the disk, never a remembered one.
func (v *settingsWindow) commandRow() fyne.CanvasObject {
	v.commandAt = note("")
	v.command = widget.NewCheck("Command line: pond in the terminal", func(on bool) {
		if v.filling {
			return
		}
		v.u.elsewhere(func() error { return v.u.controls.SetCommand(on) }, func(err error) {
			if err != nil {
				showError(err, v.w)
			}
			v.readCommand()
		})
	})
	return container.New(stacked{-10}, v.command, v.commandAt)
}

// readCommand looks for the link.
func (v *settingsWindow) readCommand() {
	var link string
	v.u.elsewhere(func() error {
		link = v.u.controls.CommandLine()
		return nil
	}, func(error) {
		v.filling = true
		defer func() { v.filling = false }()
		v.command.SetChecked(link != "")
		text := "A link to this app, in a folder of yours that terminals look into."
		if link != "" {
			text = sentence(app.LinkLine(link))
		}
		v.commandAt.SetText(text)
		v.w.Content().Refresh()
	})
}

// readLogin asks the system whether Pond is opened at login.
func (v *settingsWindow) readLogin() {
	var status app.LoginStatus
	v.u.elsewhere(func() (err error) {
		status, err = v.u.controls.LoginItem()
		return err
	}, func(err error) {
		v.filling = true
		defer func() { v.filling = false }()
		v.login.SetChecked(err == nil && status == app.LoginOn)
		v.login.Enable()
		text := ""
		switch {
		case err != nil:
			text = sentence(err.Error())
		case status == app.LoginNeedsApproval:
			text = "The system waits for your approval: System Settings, General, Login Items."
		case status == app.LoginUnavailable:
			text = "This is not possible from here: only an installed app can be opened at login."
			v.login.Disable()
		}
		v.loginUp.SetText(text)
		show(v.loginUp, text != "")
		v.w.Content().Refresh()
	})
}

// row draws one field.
func (v *settingsWindow) row(f settings.Field) fyne.CanvasObject {
	r := &settingRow{field: f, trouble: note("")}
	r.trouble.Importance = widget.DangerImportance
	r.trouble.Hide()
	v.rows = append(v.rows, r)
	help := f.Help
	if f.Restart {
		help += " Counts from the next start."
	}
	var editor fyne.CanvasObject
	wide := false
	switch f.Kind {
	case settings.Toggle:
		check := widget.NewCheck(f.Title, func(on bool) { v.change(r, fmt.Sprint(on)) })
		r.fill = func(text string) { check.SetChecked(text == "true") }
		return container.New(stacked{-10}, check, note(help), r.trouble)
	case settings.Choice:
		editor = v.choice(r)
	case settings.Folder:
		editor = v.folder(r)
		wide = true
	case settings.Secret:
		e := widget.NewPasswordEntry()
		editor, wide = v.entry(r, e), true
	case settings.Text, settings.Words:
		e := widget.NewEntry()
		if f.Key == "system_prompt" {
			e = widget.NewMultiLineEntry()
			e.Wrapping = fyne.TextWrapWord
			e.SetMinRowsVisible(3)
		}
		editor, wide = v.entry(r, e), true
	default:
		e := widget.NewEntry()
		if f.Optional {
			e.SetPlaceHolder("recommended")
		}
		editor = v.entry(r, e)
		if f.Unit != "" {
			editor = container.NewBorder(nil, nil, nil, quiet(f.Unit), editor)
		}
	}
	name := widget.NewLabel(f.Title)
	if wide {
		return container.New(stacked{-6}, name, container.New(margins{left: 8}, editor), note(help), r.trouble)
	}
	return container.New(stacked{-8}, container.NewBorder(nil, nil, nil, container.New(atWidth{220}, editor), name), note(help), r.trouble)
}

func (v *settingsWindow) entry(r *settingRow, e *widget.Entry) fyne.CanvasObject {
	e.OnChanged = func(text string) { v.change(r, text) }
	r.fill = func(text string) {
		if e.Text != text {
			e.SetText(text)
		}
	}
	return e
}

func (v *settingsWindow) choice(r *settingRow) fyne.CanvasObject {
	var labels []string
	for _, o := range r.field.Choices {
		labels = append(labels, o.Label)
	}
	s := widget.NewSelect(labels, func(label string) {
		for _, o := range r.field.Choices {
			if o.Label == label {
				v.change(r, o.Value)
			}
		}
	})
	r.fill = func(text string) {
		for _, o := range r.field.Choices {
			if o.Value == text {
				s.SetSelected(o.Label)
			}
		}
	}
	return s
}

func (v *settingsWindow) folder(r *settingRow) fyne.CanvasObject {
	e := widget.NewEntry()
	e.SetPlaceHolder("Pond's own folder")
	v.entry(r, e)
	pick := widget.NewButtonWithIcon("Choose…", theme.FolderOpenIcon(), func() {
		dialog.ShowFolderOpen(func(dir fyne.ListableURI, err error) {
			if err == nil && dir != nil {
				e.SetText(dir.Path())
			}
		}, v.w)
	})
	return container.NewBorder(nil, nil, nil, pick, e)
}

// load fills the window with what holds.
func (v *settingsWindow) load() {
	v.flush()
	if !v.saving {
		v.value = v.u.controls.Settings()
		v.saved = v.value
	}
	v.refill()
	v.status.SetText("Changes are saved as you make them.")
	v.readLogin()
	v.readCommand()
}

func (v *settingsWindow) refill() {
	v.filling = true
	defer func() { v.filling = false }()
	for _, r := range v.rows {
		r.fill(r.field.Text(v.value))
		r.trouble.SetText("")
		r.trouble.Hide()
	}
}

// restFor is how long nothing is typed before what was typed is saved: on the way to a port of 11600 there are 1, 11 and 116, and on the way to
// 99999, which is none, there is 9999, which nobody wanted.
const restFor = 600 * time.Millisecond

// change takes one value in, and saves all if they hold: what is chosen at once, what is typed when the typing rests.
func (v *settingsWindow) change(r *settingRow, text string) {
	if v.filling {
		return
	}
	next, err := r.field.With(v.value, text)
	if err == nil {
		err = next.Validate()
	}
	r.trouble.SetText("")
	if err != nil {
		r.trouble.SetText(sentence(err.Error()))
	}
	if r.trouble.Visible() != (err != nil) {
		show(r.trouble, err != nil)
		v.w.Content().Refresh()
	}
	v.edits++
	if err != nil { // what was typed on the way there is not wanted either
		if before, e := r.field.With(v.value, r.field.Text(v.saved)); e == nil {
			v.value = before
		}
		v.drawStatus()
		return
	}
	keyMade := next.Key != v.value.Key && r.field.Key != "api_key"
	v.value = next
	if keyMade {
		v.refill() // the key that the network switch made
	}
	switch r.field.Kind {
	case settings.Toggle, settings.Choice:
		v.save()
		return
	}
	v.unsaved = true
	n := v.edits
	time.AfterFunc(restFor, func() {
		v.u.Post(func() {
			if n == v.edits {
				v.flush()
			}
		})
	})
}

// flush saves what was typed and is not saved yet.
func (v *settingsWindow) flush() {
	if v.unsaved {
		v.save()
	}
}

func (v *settingsWindow) write(s settings.Settings) error {
	v.writing.Lock()
	defer v.writing.Unlock()
	return v.u.controls.SaveSettings(s)
}

// saveNow saves what is not saved, and waits for it: the program is about to end.
func (v *settingsWindow) saveNow() error {
	if !v.unsaved && !v.saving {
		return nil
	}
	v.unsaved, v.wanted = false, false
	return v.write(v.value)
}

// troubled tells whether a value in the window makes no sense.
func (v *settingsWindow) troubled() bool {
	return slices.ContainsFunc(v.rows, func(r *settingRow) bool { return r.trouble.Visible() })
}

// drawStatus says how the last saving went.
func (v *settingsWindow) drawStatus() {
	switch {
	case v.troubled():
		v.status.SetText("The value in red is not saved.")
	case v.failed != nil:
		v.status.SetText(sentence(v.failed.Error()))
	default:
		v.status.SetText("Saved.")
	}
}

// save writes the settings, elsewhere; changes that come meanwhile are written behind.
func (v *settingsWindow) save() {
	if v.saving {
		v.wanted = true
		return
	}
	v.saving, v.wanted, v.unsaved = true, false, false
	value := v.value
	v.saved = value
	v.u.elsewhere(func() error { return v.write(value) }, func(err error) {
		v.saving, v.failed = false, err
		v.drawStatus()
		if v.u.chat != nil {
			v.u.chat.drawState(v.u.state)
		}
		if v.wanted {
			v.save()
		}
	})
}
