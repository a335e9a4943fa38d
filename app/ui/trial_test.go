package ui

import (
	"errors"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"

	"pond/app"
	"pond/app/chats"
	"pond/app/settings"
	"pond/inference/chat"
)

// typeInto types a text key by key, as a person does.
func typeInto(o fyne.Focusable, text string) {
	for _, r := range text {
		o.TypedRune(r)
	}
}

// TestRenamingByKeyboard: the dialog did not have the keyboard; what was typed went nowhere, and Return did nothing.
func TestRenamingByKeyboard(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	c := st.openChat()
	st.player.says("yes")
	st.ask("What is a pond?")
	st.until("the list", func() bool { return len(c.side.found) == 1 })
	c.side.rename(c.side.found[0])
	typeInto(c.w.Canvas().Focused(), "Water")
	c.w.Canvas().Focused().TypedKey(&fyne.KeyEvent{Name: fyne.KeyReturn})
	st.until("the name", func() bool { return c.title.Text == "Water" })
	if n := len(c.w.Canvas().Overlays().List()); n != 0 {
		t.Errorf("%d dialogs are open still", n)
	}
	c.side.rename(c.side.found[0])
	c.w.Canvas().Focused().TypedKey(&fyne.KeyEvent{Name: fyne.KeyEscape})
	if n := len(c.w.Canvas().Overlays().List()); n != 0 {
		t.Error("Escape did not leave the dialog")
	}
}

// TestDialogsHearTheKeyboard: a message could only be left with the mouse, and Return on a question that deletes must delete nothing.
func TestDialogsHearTheKeyboard(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	c := st.openChat()
	open := func() int { return len(c.w.Canvas().Overlays().List()) }
	for _, key := range []fyne.KeyName{fyne.KeyReturn, fyne.KeyEscape, fyne.KeySpace} {
		showError(errors.New("one\ntwo"), c.w)
		if got := texts(c.w); !strings.Contains(got, "One.\nTwo.") {
			t.Errorf("got\n%s", got)
		}
		focused := c.w.Canvas().Focused()
		focused.TypedKey(&fyne.KeyEvent{Name: key})
		st.until("the end of the dialog", func() bool { return open() == 0 })
		deleted := false
		confirm("Delete?", "All of it.", "Delete", "Cancel", c.w, func() { deleted = true })
		c.w.Canvas().Focused().TypedKey(&fyne.KeyEvent{Name: key})
		st.until("the end of the question", func() bool { return open() == 0 })
		if deleted {
			t.Errorf("%s deleted", key)
		}
	}
}

// TestSendingTooEarly: Return during an answer opened a dialog in front of it. The question stays in the box, and a line says why.
func TestSendingTooEarly(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	c := st.openChat()
	st.player.says("a long answer")
	st.player.hold = make(chan struct{})
	c.entry.SetText("first")
	c.submit()
	st.until("the answer", func() bool { return c.view.Work == chats.Answering })
	c.entry.SetText("second")
	c.submit()
	c.drawState(stateOf(app.Busy)) // states come all the time
	if n := len(c.w.Canvas().Overlays().List()); n != 0 || c.entry.Text != "second" || !strings.Contains(c.hint.Text, "Esc stops it") {
		t.Errorf("got %d dialogs, %q in the box, %q below", n, c.entry.Text, c.hint.Text)
	}
	c.stop()
	st.until("the end", func() bool { return c.view.Work == chats.Idle })
	if strings.Contains(c.hint.Text, "Esc stops it") {
		t.Errorf("after the end: got %q", c.hint.Text)
	}
	if got := texts(c.w); !strings.Contains(got, "Stopped.") || !strings.Contains(got, "tok/s") || !strings.Contains(got, "first token after") {
		t.Errorf("a stopped answer has no figures:\n%s", got)
	}
}

// TestFiguresAreNotCut: beside an open drawer the speed read "111 tok/s · first token a…".
func TestFiguresAreNotCut(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	c := st.openChat()
	c.w.Resize(fyne.NewSize(980, 700))
	st.player.says("Still water.")
	st.ask("What is a pond?")
	m := c.messages[1]
	short := m.figures.Size().Height
	m.figures.SetText("111 tok/s · first token after 0.2 s · 37 tokens · 85 of 90 prompt tokens reused")
	c.toggleDrawer()
	c.w.Resize(fyne.NewSize(880, 700))
	c.feed.forget()
	c.relayout(false)
	c.feed.arrange()
	need := fyne.MeasureText(m.figures.Text, theme.CaptionTextSize(), fyne.TextStyle{}).Width
	if got := m.figures.Size(); got.Width < need && got.Height <= short {
		t.Errorf("got %v for a line of %v", got, need)
	}
	if end := m.foot.Position().Y + m.foot.Size().Height; m.figures.Position().Y+m.figures.Size().Height > end+8 {
		t.Errorf("the figures end at %v, below the message's foot at %v", m.figures.Position().Y+m.figures.Size().Height, end)
	}
}

// TestAnAnswerOfThinkingAlone: under the thinking there was nothing, and nothing said that it was over.
func TestAnAnswerOfThinkingAlone(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	c := st.openChat()
	st.player.events = []chat.Event{{Kind: chat.Reasoning, Text: "hm"}}
	st.ask("x")
	if got := texts(c.w); !strings.Contains(got, "The model ended without an answer.") {
		t.Errorf("got\n%s", got)
	}
}

// TestGoingRoundInCircles: an answer that repeats itself is told of at once, with what ends it; it is not ended by itself.
func TestGoingRoundInCircles(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	c := st.openChat()
	st.player.circles = true
	for _, part := range []struct {
		kind  chat.EventKind
		work  chats.Work
		press string
	}{{chat.Reasoning, chats.Thinking, "Answer now"}, {chat.Text, chats.Answering, "Stop"}} {
		st.player.events = []chat.Event{{Kind: part.kind, Text: "again and again"}}
		st.player.hold = make(chan struct{})
		c.entry.SetText("x")
		c.submit()
		st.until("the circles", func() bool { return c.view.Work == part.work && c.view.Circles })
		if got := texts(c.w); !strings.Contains(got, "It repeats itself.") {
			t.Errorf("got\n%s", got)
		}
		press(t, c.w, part.press)
		c.stop()
		st.until("the end", func() bool { return c.view.Work == chats.Idle })
		if c.hurry.object.Visible() || c.view.Circles {
			t.Error("it is told of after the end")
		}
	}
	if st.player.hurried != 1 {
		t.Errorf("got %d wishes for an answer, want 1", st.player.hurried)
	}
}

// TestTheDrawer: every parameter has a field, and what makes no sense is said in sentences with the fields' names.
func TestTheDrawer(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	c := st.openChat()
	c.toggleDrawer()
	d := c.drawer
	d.temperature.SetText("7")
	d.topP.SetText("abc")
	if got := d.trouble.Text; got != "Top-p: got \"abc\", want a number.\nTemperature: got 7, want 0 to 2." {
		t.Errorf("got %q", got)
	}
	d.topP.SetText("0,9")
	d.temperature.SetText("0.7")
	d.topK.SetText("12")
	d.most.SetText("-4")
	if got := d.trouble.Text; !strings.HasPrefix(got, "Longest answer: got -4") {
		t.Errorf("got %q", got)
	}
	d.most.SetText("400")
	if p := c.talk.View().Params; d.trouble.Text != "" || *p.Temperature != 0.7 || *p.TopP != 0.9 || *p.TopK != 12 || p.MaxTokens != 400 {
		t.Errorf("got %q, %+v", d.trouble.Text, p)
	}
	d.topK.SetText("")
	if p := c.talk.View().Params; p.TopK != nil {
		t.Errorf("an empty top-k: got %d", *p.TopK)
	}
}

// TestWhatIsTypedIsSavedWhenItRests: on the way to a port of 99999, which is refused, 9999 was saved; and the window said "Saved." below the
// refusal.
func TestWhatIsTypedIsSavedWhenItRests(t *testing.T) {
	st := newStage(t, stateOf(app.Stopped))
	st.ui.Open(app.OpenSettings)
	v := st.ui.settings
	st.settle()
	var port, login *settingRow
	for _, r := range v.rows {
		switch r.field.Key {
		case "port":
			port = r
		case "start_serving":
			login = r
		}
	}
	for _, text := range []string{"9", "99", "999", "9999", "99999"} {
		v.change(port, text)
	}
	v.change(login, "true") // saves at once
	chosen := func() settings.Settings { st.mu.Lock(); defer st.mu.Unlock(); return st.chosen }
	st.until("the switch", func() bool { return chosen().StartServing && !v.saving })
	if got := chosen().Port; got != settings.Default().Port {
		t.Errorf("got port %d, which nobody wanted", got)
	}
	if v.status.Text != "The value in red is not saved." {
		t.Errorf("got %q", v.status.Text)
	}
	v.change(port, "11600")
	st.until("the port", func() bool { return chosen().Port == 11600 && !v.saving })
	if v.status.Text != "Saved." {
		t.Errorf("got %q", v.status.Text)
	}
	v.change(port, "11601")
	v.w.Close()
	st.until("what was typed before the window closed", func() bool { return chosen().Port == 11601 })
}

// TestAFolderIsSeenToItsEnd: the welcome cut where the download goes, and the machine's name.
func TestAFolderIsSeenToItsEnd(t *testing.T) {
	s := stateOf(app.NeedModel)
	s.Disk.Dir = "/Volumes/A long name of a drive/and a folder on it/pond/models/qwen3.6-35b-a3b"
	s.Machine.System = "Debian GNU/Linux 12 (bookworm), amd64, and a long name behind it"
	st := newStage(t, s)
	st.ui.Open(app.OpenWelcome)
	v := st.ui.welcome
	v.w.Resize(fyne.NewSize(620, 700))
	v.w.Content().Refresh() // as the canvas does when a text has another height
	one := v.size.Size().Height
	if one == 0 || v.where.Size().Height < 1.5*one || v.machine.Size().Height < 1.5*one {
		t.Errorf("got heights %v and %v for two lines, %v for one", v.where.Size().Height, v.machine.Size().Height, one)
	}
	if v.where.Position().Y != 0 {
		t.Errorf("the folder stands at %v of its row", v.where.Position())
	}
}

// TestBoxesCanBeSeen: an empty check box was all but invisible on its surface (WCAG 2.2, 1.4.11: at least 3 to 1).
func TestBoxesCanBeSeen(t *testing.T) {
	light := func(c uint8) float64 {
		v := float64(c) / 255
		return v * v // near enough to sRGB's curve
	}
	border, _ := colorOf(theme.ColorNameInputBorder)
	for _, on := range []fyne.ThemeColorName{theme.ColorNameBackground, theme.ColorNameInputBackground, colorSurface} {
		under, _ := colorOf(on)
		for i, pair := range [][2][3]uint8{{{border.light.R, border.light.G, border.light.B}, {under.light.R, under.light.G, under.light.B}}, {{border.dark.R, border.dark.G, border.dark.B}, {under.dark.R, under.dark.G, under.dark.B}}} {
			var l [2]float64
			for j, c := range pair {
				l[j] = 0.2126*light(c[0]) + 0.7152*light(c[1]) + 0.0722*light(c[2]) + 0.05
			}
			if ratio := max(l[0], l[1]) / min(l[0], l[1]); ratio < 2.9 {
				t.Errorf("%s, variant %d: got %.2f to 1", on, i, ratio)
			}
		}
	}
}

// TestTheHolderOfThePortIsNamedOnce: the window said "python3 has it. It is held by python3."
func TestTheHolderOfThePortIsNamedOnce(t *testing.T) {
	s := stateOf(app.Stopped).After(app.Failure{Err: &app.AddressError{Err: errors.New("address 127.0.0.1:11535 is in use"), Holder: "python3"}})
	st := newStage(t, s)
	st.ui.welcomed = true
	st.ui.Open(app.OpenWindow)
	if got := st.ui.home.trouble.Text; strings.Count(got, "python3") != 1 {
		t.Errorf("got %q", got)
	}
}

// TestThinkingIsOverWhenTheAnswerBegins: the fold said "Thinking" while the answer below it was being written.
func TestThinkingIsOverWhenTheAnswerBegins(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	c := st.openChat()
	st.player.events = []chat.Event{{Kind: chat.Reasoning, Text: "hm"}, {Kind: chat.Text, Text: "Still water."}}
	st.player.hold = make(chan struct{})
	c.entry.SetText("x")
	c.submit()
	st.until("the answer", func() bool { return c.view.Work == chats.Answering })
	if got := c.messages[1].think.Text; !strings.HasPrefix(got, "Thought for ") {
		t.Errorf("got %q", got)
	}
	c.stop()
	st.until("the end", func() bool { return c.view.Work == chats.Idle })
}
