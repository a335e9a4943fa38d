package ui

import (
	"fmt"
	"slices"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"pond/app"
)

// modelWindow is the model's files: what is there, what is being done to them, and what can be.
type modelWindow struct {
	u *UI
	w fyne.Window

	name, status         *widget.Label
	where, size, room    *widget.Label
	reuse, kept, miss    *widget.Label
	talks                fyne.CanvasObject // what is known of conversations
	verdict              *widget.Label
	trouble              *widget.Label
	progress             fyne.CanvasObject
	bar                  *thinBar
	rate                 *widget.Label
	files                *widget.List
	shown                []app.FileProgress
	main                 *nextButton
	pause, cancel        *widget.Button
	verify, repair       *widget.Button
	reveal, remove, pick *widget.Button
	dir                  string
}

func layoutSpacer() fyne.CanvasObject { return layout.NewSpacer() }

func seconds(bytes int64, rate float64) time.Duration {
	return time.Duration(float64(bytes) / rate * float64(time.Second))
}

func newModelWindow(u *UI) *modelWindow {
	m := &modelWindow{u: u}
	m.name = widget.NewLabelWithStyle("", fyne.TextAlignLeading, fyne.TextStyle{Bold: true})
	m.name.SizeName = theme.SizeNameSubHeadingText
	m.name.Truncation = fyne.TextTruncateEllipsis
	m.status, m.where, m.size, m.room = note(""), widget.NewLabel(""), widget.NewLabel(""), widget.NewLabel("")
	m.reuse, m.kept, m.miss = widget.NewLabel(""), widget.NewLabel(""), note("")
	m.verdict = wrapped("")
	m.trouble = wrapped("")
	m.trouble.Importance = widget.WarningImportance
	m.bar = newThinBar()
	m.rate = widget.NewLabel("")
	m.rate.Truncation = fyne.TextTruncateEllipsis
	m.main = newNextButton(u)
	action := func(text string, icon fyne.Resource, a app.Action) *widget.Button {
		return widget.NewButtonWithIcon(text, icon, func() { u.act(a) })
	}
	m.pause = action("Pause", theme.MediaPauseIcon(), app.PauseDownload)
	m.cancel = widget.NewButtonWithIcon("Cancel", theme.CancelIcon(), m.confirmCancel)
	m.verify = action("Verify", theme.ConfirmIcon(), app.Verify)
	m.repair = action("Repair", theme.ViewRefreshIcon(), app.Repair)
	m.reveal = widget.NewButtonWithIcon("Show files", theme.FolderOpenIcon(), func() {
		dir := m.dir
		u.elsewhere(func() error { return u.controls.Reveal(dir) }, m.fail)
	})
	m.pick = widget.NewButtonWithIcon("Find a copy…", theme.SearchIcon(), m.pickCopy)
	m.remove = widget.NewButtonWithIcon("Remove…", theme.DeleteIcon(), m.confirmRemove)
	m.remove.Importance = widget.DangerImportance
	m.files = widget.NewList(func() int { return len(m.shown) }, newFileRow, func(i widget.ListItemID, o fyne.CanvasObject) {
		if i < len(m.shown) {
			o.(*fileRow).draw(m.shown[i])
		}
	})
	m.files.HideSeparators = true

	head := container.NewBorder(nil, nil, nil, container.NewCenter(m.main.Button), container.New(stacked{-12}, m.name, m.status))
	forget := linkTo("Clear…", m.confirmForget)
	m.talks = card(facts(fact("Reused", m.reuse), fact("Kept", m.kept)), container.NewBorder(nil, nil, nil, container.NewVBox(forget), m.miss))
	facts := card(facts(fact("Kept in", m.where), fact("On the disk", m.size), fact("Free there", m.room)), m.verdict)
	m.progress = container.NewVBox(m.bar, container.NewBorder(nil, nil, nil, container.NewHBox(m.pause, m.cancel), m.rate))
	tools := container.NewHBox(m.verify, m.repair, m.reveal, m.pick, layout.NewSpacer(), m.remove)
	top := container.NewVBox(head, facts, m.talks, m.trouble, m.progress)
	m.w = u.window("Pond · Model", 700, 560, page(container.NewBorder(top, tools, nil, nil, m.files)))
	m.draw(u.state)
	return m
}

func (m *modelWindow) fail(err error) {
	if err != nil {
		showError(err, m.w)
	}
}

func (m *modelWindow) draw(s app.State) {
	builtIn := s.Disk.TotalBytes == 0
	m.dir = s.Disk.Dir
	say(m.name, s.Model)
	say(m.status, statusLine(s))
	say(m.where, tidy(s.Disk.Dir))
	if builtIn {
		say(m.where, "in the app itself")
	}
	say(m.size, fmt.Sprintf("%s of %s", bytes(s.Disk.DoneBytes), bytes(s.Disk.TotalBytes)))
	say(m.room, roomLine(s.Disk))
	if builtIn {
		say(m.size, "about 31 MB, built in")
		say(m.room, "needs none")
	}
	say(m.reuse, s.ReuseLine())
	say(m.kept, s.KeptLine())
	say(m.miss, s.MissLine())
	show(m.talks, s.Job.Kind == app.NoJob && (s.Phase.Serving() || s.KeptBytes > 0))
	say(m.verdict, sentence(s.Verdict.Sentence))
	show(m.verdict, s.Verdict.Sentence != "")
	trouble := s.Disk.Trouble
	if trouble == "" {
		trouble = s.Job.Trouble
	}
	if trouble == "" && s.Phase == app.Failed {
		trouble = s.Failure
	}
	say(m.trouble, sentence(trouble))
	show(m.trouble, trouble != "")

	busy := s.Job.Kind != app.NoJob
	m.bar.set(s.Job.Fraction())
	say(m.rate, rateLine(s.Job))
	show(m.progress, busy)
	show(m.pause, s.Job.Kind == app.DownloadJob && !s.Job.Paused)
	show(m.cancel, busy && s.Job.Kind != app.RemoveJob)
	m.main.draw(s)
	show(m.main.Button, !busy || s.Job.Paused)
	idle := !busy && !builtIn
	enable(m.verify, idle && s.Disk.DoneBytes > 0)
	enable(m.repair, idle && s.Disk.DoneBytes > 0)
	enable(m.reveal, s.Disk.Dir != "")
	enable(m.pick, idle && !s.Ready)
	enable(m.remove, idle && s.Disk.UsedBytes > 0 && !s.Phase.Serving() && s.Phase != app.Loading)
	if !slices.Equal(m.shown, s.Job.Files) {
		m.shown = s.Job.Files
		m.files.Refresh()
	}
}

func statusLine(s app.State) string {
	switch {
	case s.Job.Kind != app.NoJob:
		return s.Job.Line()
	case s.Ready && s.Disk.TotalBytes == 0:
		return "Built in, and always ready."
	case s.Ready:
		return "Every byte is verified."
	case len(s.Disk.Changed) > 0:
		return fmt.Sprintf("%d files are not what was verified; Repair fetches them again.", len(s.Disk.Changed))
	}
	return sentence(s.Disk.Line)
}

// rateLine is "8.8 GB of 20.4 GB · 46.0 MB/s · 4 min left".
func rateLine(j app.Job) string {
	text := fmt.Sprintf("%s of %s", bytes(j.DoneBytes), bytes(j.TotalBytes))
	switch {
	case j.Paused:
		return text + " · paused; what came is kept"
	case j.Offline:
		return text + " · no network; it goes on by itself"
	case j.Waiting:
		return text + " · waiting for a source"
	}
	if j.Rate > 0 {
		text += " · " + bytes(int64(j.Rate)) + "/s"
	}
	if j.ETA > 0 {
		text += " · " + app.About(j.ETA) + " left"
	}
	return text
}

func (m *modelWindow) confirmCancel() {
	job := m.u.state.Job
	if job.Kind != app.DownloadJob {
		m.u.act(app.CancelJob)
		return
	}
	confirm("Cancel the download?", fmt.Sprintf("The %s that came are deleted. Pause keeps them.", bytes(job.DoneBytes)), "Delete them", "Keep on", m.w, func() {
		m.u.act(app.CancelDownload)
	})
}

func (m *modelWindow) confirmRemove() {
	s := m.u.state
	text := fmt.Sprintf("%s in %s are deleted. To use the model again it has to be downloaded again.", bytes(s.Disk.UsedBytes), tidy(s.Disk.Dir))
	confirm("Remove the model?", text, "Remove", "Cancel", m.w, func() { m.u.elsewhere(m.u.controls.Remove, m.fail) })
}

func (m *modelWindow) confirmForget() {
	confirm("Clear what is kept of conversations?", "The next answer in each reads its conversation from the beginning. Your chats stay.", "Clear", "Cancel", m.w, func() {
		m.u.elsewhere(m.u.controls.Forget, m.fail)
	})
}

// pickCopy looks for a copy of the model in a folder of the user's choice.
func (m *modelWindow) pickCopy() {
	dialog.ShowFolderOpen(func(dir fyne.ListableURI, err error) {
		if err != nil || dir == nil {
			m.fail(err)
			return
		}
		var found []app.Copy
		m.u.elsewhere(func() error {
			found = m.u.controls.CopiesIn(dir.Path())
			return nil
		}, func(error) {
			if len(found) == 0 {
				m.fail(fmt.Errorf("there is no copy of %s in %s", m.u.state.Model, dir.Path()))
				return
			}
			m.u.elsewhere(func() error { return m.u.controls.Adopt(found[0], app.AdoptClone) }, m.fail)
		})
	}, m.w)
}

// fileRow is the progress of one file.
type fileRow struct {
	widget.BaseWidget
	name, size *widget.Label
	bar        *thinBar
	done       *widget.Icon
	box        *fyne.Container
}

func newFileRow() fyne.CanvasObject {
	r := &fileRow{name: quiet(""), size: quiet(""), bar: newThinBar(), done: widget.NewIcon(theme.ConfirmIcon())}
	r.name.Truncation = fyne.TextTruncateEllipsis
	r.size.Alignment = fyne.TextAlignTrailing
	right := container.New(atWidth{250}, container.NewBorder(nil, nil, nil, container.New(atWidth{130}, r.size), container.NewStack(container.NewCenter(container.NewGridWrap(fyne.NewSquareSize(18), r.done)), container.New(margins{right: 8}, r.bar))))
	r.box = container.New(margins{top: -4, bottom: -4}, container.NewBorder(nil, nil, nil, right, r.name))
	r.ExtendBaseWidget(r)
	return r
}

func (r *fileRow) CreateRenderer() fyne.WidgetRenderer { return widget.NewSimpleRenderer(r.box) }

func (r *fileRow) draw(f app.FileProgress) {
	r.name.SetText(f.Name)
	r.size.SetText(bytes(f.TotalBytes))
	if !f.Verified && f.DoneBytes < f.TotalBytes && f.DoneBytes > 0 {
		r.size.SetText(bytes(f.DoneBytes) + " of " + bytes(f.TotalBytes))
	}
	if f.TotalBytes > 0 {
		r.bar.set(float64(f.DoneBytes) / float64(f.TotalBytes))
	}
	show(r.bar, !f.Verified)
	show(r.done, f.Verified)
}
