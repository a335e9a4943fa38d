package ui

import (
	"errors"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"

	"pond/app"
	"pond/app/settings"
	"pond/inference"
)

// walk visits what is seen below an object.
func walk(o fyne.CanvasObject, visit func(fyne.CanvasObject)) {
	if o == nil || !o.Visible() {
		return
	}
	visit(o)
	switch o := o.(type) {
	case *fyne.Container:
		for _, c := range o.Objects {
			walk(c, visit)
		}
	case fyne.Widget:
		for _, c := range test.WidgetRenderer(o).Objects() {
			walk(c, visit)
		}
	}
}

// texts is all that a window says.
func texts(w fyne.Window) string {
	var b strings.Builder
	see := func(o fyne.CanvasObject) {
		switch o := o.(type) {
		case *widget.Label:
			b.WriteString(o.Text + "\n")
		case *widget.Button:
			b.WriteString(o.Text + "\n")
		case *keyButton:
			b.WriteString(o.Text + "\n")
		case *widget.RichText:
			b.WriteString(o.String() + "\n")
		case *widget.Check:
			b.WriteString(o.Text + "\n")
		case *widget.Hyperlink:
			b.WriteString(o.Text + "\n")
		}
	}
	walk(w.Content(), see)
	for _, o := range w.Canvas().Overlays().List() {
		walk(o, see)
	}
	return b.String()
}

// press taps the button of a text, in an open dialog first.
func press(t *testing.T, w fyne.Window, text string) {
	t.Helper()
	var found *widget.Button
	see := func(o fyne.CanvasObject) {
		b, ok := o.(*widget.Button)
		if k, is := o.(*keyButton); is {
			b, ok = &k.Button, true
		}
		if ok && b.Text == text && found == nil {
			found = b
		}
	}
	for _, o := range w.Canvas().Overlays().List() {
		walk(o, see)
	}
	walk(w.Content(), see)
	if found == nil {
		t.Fatalf("no button %q among\n%s", text, texts(w))
	}
	if found.Disabled() {
		t.Fatalf("%q cannot be pressed", text)
	}
	test.Tap(found)
}

// TestTheHomeWindowOffersTheWholeMenu: the icon may be hidden by the notch, by a switch of the system or by another program.
func TestTheHomeWindowOffersTheWholeMenu(t *testing.T) {
	failed := stateOf(app.Stopped)
	failed.Phase, failed.Failure, failed.NextAddress = app.Failed, "the port is taken", "127.0.0.1:11536"
	for _, s := range []app.State{stateOf(app.Stopped), stateOf(app.NeedModel), stateOf(app.Downloading), stateOf(app.Loading), stateOf(app.Running), stateOf(app.Busy), stateOf(app.Paused), failed} {
		st := newStage(t, s)
		st.ui.welcomed = true
		st.ui.Open(app.OpenWindow)
		h := st.ui.home
		h.w.Resize(fyne.NewSize(700, 700))
		got := map[app.Action]bool{}
		walk(h.w.Content(), func(o fyne.CanvasObject) {
			switch o := o.(type) {
			case *widget.Button:
				if !o.Disabled() && o.OnTapped != nil {
					o.OnTapped()
				}
			case *widget.Hyperlink:
				if o.OnTapped != nil {
					o.OnTapped()
				}
			case *widget.Check:
				o.SetChecked(!o.Checked)
			}
		})
		for _, o := range h.w.Canvas().Overlays().List() { // the choices of a button that opens a menu
			if menu, ok := o.(*widget.PopUpMenu); ok {
				for _, i := range menu.Items {
					if item, ok := i.(interface{ Tapped(*fyne.PointEvent) }); ok {
						item.Tapped(nil)
					}
				}
			}
		}
		for _, a := range st.actions {
			got[a] = true
		}
		opened := map[app.Action]bool{app.OpenChat: st.ui.chat != nil, app.OpenModel: st.ui.model != nil, app.OpenSettings: st.ui.settings != nil, app.OpenLogs: st.ui.logs != nil, app.OpenWindow: true}
		var want func(items []app.Item)
		want = func(items []app.Item) {
			for _, i := range items {
				if len(i.Children) > 0 && i.Children[0].Action != app.CopyCurl {
					continue // its button opens a menu of the same entries
				}
				want(i.Children)
				if i.Available && i.Action != app.NoAction && !got[i.Action] && !opened[i.Action] {
					t.Errorf("%v: %q is only in the menu", s.Phase, i.Label)
				}
			}
		}
		want(app.Menu(s))
	}
}

func TestTheTrayMenu(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	quits := 0
	for _, item := range st.ui.TrayMenu(stateOf(app.Running)).Items {
		if item.IsQuit {
			quits++
		}
		if item.Label == "Chat" {
			item.Action()
		}
	}
	if quits != 1 || st.ui.chat == nil {
		t.Errorf("got %d quit entries, want 1; the chat is open: %v", quits, st.ui.chat != nil)
	}
}

func TestWelcome(t *testing.T) {
	st := newStage(t, stateOf(app.NeedModel))
	st.ui.Show()
	w := st.ui.welcome.w
	w.Resize(fyne.NewSize(620, 900))
	for _, want := range []string{"Apple M5 Pro, macOS 26.1, arm64", "Fits: needs 22.1 GB, and 31.2 GB are available.", "keys and values of 96K tokens", "20.4 GB, about 27 min at 100 Mbit/s", "212.6 GB", "96K tokens on this"} {
		if !strings.Contains(texts(w), want) {
			t.Errorf("no %q in\n%s", want, texts(w))
		}
	}
	press(t, w, "Download 20.4 GB")
	press(t, w, "Try the demo model now")
	if len(st.actions) != 2 || st.actions[0] != app.Download || st.actions[1] != app.UseDemo {
		t.Errorf("got %v", st.actions)
	}

	full := stateOf(app.NeedModel)
	full.Disk.FreeBytes = gb(10)
	full.Verdict = app.Verdict{Known: true, Sentence: "needs 22.1 GB, and 12.0 GB are available", NeedBytes: gb(22.1), HaveBytes: gb(12)}
	st.ui.Draw(full)
	if !st.ui.welcome.main.Disabled() || !strings.Contains(texts(w), "needs 12.4 GB more") {
		t.Errorf("a disk without room: got\n%s", texts(w))
	}

	found := stateOf(app.NeedModel)
	found.Found = []app.Copy{{Tool: "LM Studio", Dir: "/models/x", Bytes: gb(20.42)}}
	st.ui.Draw(found)
	st.ui.welcome.copyMode.SetSelected(modeLabel(app.AdoptInPlace))
	press(t, w, "Use the copy found in LM Studio")
	st.until("the adoption", func() bool { st.mu.Lock(); defer st.mu.Unlock(); return len(st.adopted) == 1 })
	if st.adopted[0] != app.AdoptInPlace {
		t.Errorf("got mode %v", st.adopted[0])
	}
	small := stateOf(app.Stopped)
	small.Model, small.Disk = app.DemoModel, app.DiskState{}
	st.ui.Draw(small)
	if !strings.Contains(texts(w), "needs a Mac with Apple Silicon") || st.ui.welcome.main.Text != tryDemo || st.ui.welcome.demo.Visible() {
		t.Errorf("a machine for the demo model alone: got\n%s", texts(w))
	}
	st.ui.Draw(stateOf(app.Downloading))
	press(t, w, "Show the progress")
	if st.ui.model == nil {
		t.Error("the model's window is not open")
	}
}

func TestModelWindow(t *testing.T) {
	st := newStage(t, stateOf(app.Downloading))
	st.ui.Open(app.OpenModel)
	m := st.ui.model
	m.w.Resize(fyne.NewSize(760, 600))
	for _, want := range []string{"8.8 GB of 20.4 GB · 46 MB/s · 4 min left", "model-00002-of-00004.safetensors", "3.7 GB of 5.1 GB", "212.6 GB"} {
		if !strings.Contains(texts(m.w), want) {
			t.Errorf("no %q in\n%s", want, texts(m.w))
		}
	}
	press(t, m.w, "Pause")
	press(t, m.w, "Cancel")
	if len(st.actions) != 1 {
		t.Errorf("cancelled without asking: %v", st.actions)
	}
	press(t, m.w, "Delete them")

	paused := stateOf(app.Downloading)
	paused.Job.Paused = true
	st.ui.Draw(paused)
	press(t, m.w, "Go on with the download")

	st.ui.Draw(stateOf(app.Stopped))
	press(t, m.w, "Verify")
	press(t, m.w, "Repair")
	press(t, m.w, "Show files")
	press(t, m.w, "Remove…")
	if !strings.Contains(texts(m.w), "20.4 GB in") {
		t.Errorf("the question does not say what is lost:\n%s", texts(m.w))
	}
	press(t, m.w, "Remove")
	st.until("the removal", func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return st.removed == 1 && len(st.reveals) == 1
	})
	want := []app.Action{app.PauseDownload, app.CancelDownload, app.Download, app.Verify, app.Repair}
	if len(st.actions) != len(want) {
		t.Fatalf("got %v, want %v", st.actions, want)
	}
	for i := range want {
		if st.actions[i] != want[i] {
			t.Errorf("got %v, want %v", st.actions, want)
		}
	}
	gone := stateOf(app.NeedModel)
	gone.Disk.Trouble = "the drive Models is not connected"
	st.ui.Draw(gone)
	if !strings.Contains(texts(m.w), "The drive Models is not connected.") {
		t.Errorf("got\n%s", texts(m.w))
	}
	st.ui.Draw(stateOf(app.Running))
	if !m.remove.Disabled() {
		t.Error("a model that is loaded can be removed")
	}
}

func TestSettingsWindow(t *testing.T) {
	st := newStage(t, stateOf(app.Stopped))
	st.ui.Open(app.OpenSettings)
	v := st.ui.settings
	st.settle()
	shown := 0
	for _, f := range settings.Fields() {
		if f.Section != "" {
			shown++
		}
	}
	if len(v.rows) != shown {
		t.Errorf("got %d rows, want one for each of %d settings", len(v.rows), shown)
	}
	row := func(key string) *settingRow {
		for _, r := range v.rows {
			if r.field.Key == key {
				return r
			}
		}
		t.Fatalf("no row %s", key)
		return nil
	}
	v.change(row("port"), "99999")
	if r := row("port"); !r.trouble.Visible() || !strings.Contains(r.trouble.Text, "65535") || st.saved != 0 {
		t.Errorf("a port of 99999: got %q, saved %d times", r.trouble.Text, st.saved)
	}
	v.change(row("port"), "8080")
	v.change(row("lan"), "true")
	st.until("saving", func() bool { st.mu.Lock(); defer st.mu.Unlock(); return st.chosen.LAN && !v.saving })
	if st.chosen.Port != 8080 || st.chosen.Key == "" || row("port").trouble.Visible() {
		t.Errorf("got %+v", st.chosen)
	}
	if !strings.Contains(v.status.Text, "Saved") {
		t.Errorf("got %q", v.status.Text)
	}
	v.command.SetChecked(true)
	st.until("the link's place", func() bool { return strings.HasPrefix(v.commandAt.Text, "Linked /usr/local/bin/pond") })
	st.mu.Lock()
	st.linkErr = errors.New("link: /usr/local/bin/pond is there already")
	st.mu.Unlock()
	v.command.SetChecked(false)
	st.until("why not", func() bool { return strings.Contains(texts(v.w), "is there already") })
	v.login.SetChecked(true)
	st.until("the system's answer", func() bool { return strings.Contains(v.loginUp.Text, "waits for your approval") })
	if v.login.Checked {
		t.Error("the box says what was asked for, not what the system says")
	}
}

// What was typed less than a moment before Quit was lost.
func TestQuitSavesWhatWasTyped(t *testing.T) {
	st := newStage(t, stateOf(app.Stopped))
	st.ui.Open(app.OpenSettings)
	v := st.ui.settings
	st.settle()
	for _, r := range v.rows {
		switch r.field.Key {
		case "port":
			v.change(r, "8080")
		case "temperature":
			v.change(r, "7") // no sense, and not saved
		}
	}
	st.ui.End()
	if err := st.ui.Save(); err != nil || st.chosen.Port != 8080 || st.chosen.Temperature != nil {
		t.Errorf("got port %d, temperature %v, %v; want 8080 and none", st.chosen.Port, st.chosen.Temperature, err)
	}
	st.saveErr = errors.New("the disk is full")
	v.unsaved = true
	if err := st.ui.Save(); err == nil {
		t.Error("a failed saving is not told")
	}
}

// TestConversationsAreShownAndCleared: what was reused, what is kept, why a prompt was read again, and a way to clear it.
func TestConversationsAreShownAndCleared(t *testing.T) {
	s := stateOf(app.Running)
	s.Work.Reuse = inference.Reuse{ReusedTokens: 12_000, ComputedTokens: 1000, Miss: &inference.Miss{PromptTokens: 900, CommonTokens: 8, Text: "15:09", WasBefore: "15:08"}}
	s.KeptBytes = gb(1.2)
	st := newStage(t, s)
	st.ui.Open(app.OpenModel)
	m := st.ui.model
	text := texts(m.w)
	for _, want := range []string{"12K of 13K prompt tokens", "1.2 GB on the disk", "15:09"} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%s\nwant %q in it", text, want)
		}
	}
	m.confirmForget()
	press(t, m.w, "Clear")
	st.until("cleared", func() bool { st.mu.Lock(); defer st.mu.Unlock(); return st.forgot == 1 })
	st.ui.Draw(stateOf(app.Downloading))
	if m.talks.Visible() {
		t.Error("conversations are shown beside a download")
	}
}

// TestLettingOthersGoFirst: the box of the window says what holds, and asks for the other.
func TestLettingOthersGoFirst(t *testing.T) {
	s := stateOf(app.Running)
	s.Quiet = true
	st := newStage(t, s)
	st.ui.Open(app.OpenWindow)
	h := st.ui.home
	if !h.quiet.Checked || len(st.actions) != 0 {
		t.Errorf("got checked %t, actions %v", h.quiet.Checked, st.actions)
	}
	h.quiet.SetChecked(false)
	if len(st.actions) != 1 || st.actions[0] != app.ToggleQuiet {
		t.Errorf("got %v", st.actions)
	}
}

func TestLogWindow(t *testing.T) {
	st := newStage(t, stateOf(app.Stopped))
	writeLog(st)
	st.ui.Open(app.OpenLogs)
	v := st.ui.logs
	st.until("the log", func() bool { return len(v.shown) == 7 })
	v.filter.SetText("memory FITS")
	if len(v.shown) != 1 || !strings.Contains(v.shown[0], "verdict=fits") {
		t.Errorf("got %v", v.shown)
	}
	v.list.Select(0)
	if got := st.app.Clipboard().Content(); got != v.shown[0] {
		t.Errorf("clipboard: got %q", got)
	}
	if got := shortLine(`time=2026-03-14T15:06:02.550Z level=WARN msg="memory pressure" level=warning`); got != `15:06:02  WARN   "memory pressure" level=warning` {
		t.Errorf("got %q", got)
	}
	press(t, v.w, "Copy diagnostics")
	if len(st.actions) != 1 || st.actions[0] != app.CopyDiagnostics {
		t.Errorf("got %v", st.actions)
	}
	st.ui.OpenAbout()
	for _, want := range []string{"Version 1.2.3", "commit 0123456789ab of 2026-11-30"} {
		if !strings.Contains(texts(st.ui.about.w), want) {
			t.Errorf("got\n%s\nwant %s in it", texts(st.ui.about.w), want)
		}
	}
}

// TestNothingIsPostedAfterTheEnd: an answer may still stream while the program quits.
func TestNothingIsPostedAfterTheEnd(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	st.ui.End()
	st.ui.Publish(stateOf(app.Stopped))
	st.ui.Post(func() {})
	if len(st.posts) != 0 {
		t.Errorf("got %d posts after the end", len(st.posts))
	}
}

func TestSentences(t *testing.T) {
	for in, want := range map[string]string{"": "", "the port is taken": "The port is taken.", "Ready.": "Ready.", "é (x)": "É (x).", "what?": "What?"} {
		if got := sentence(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
