package ui

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/storage"

	"pond/app"
	"pond/app/chats"
	"pond/inference/chat"
)

func command(key fyne.KeyName) fyne.Shortcut {
	return &desktop.CustomShortcut{KeyName: key, Modifier: fyne.KeyModifierShortcutDefault}
}

func TestAskingAndAnswering(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	c := st.openChat()
	st.player.says("Still ", "**water**.")
	st.ask("What is a pond?")
	if got := texts(c.w); !strings.Contains(got, "Still water.") || !strings.Contains(got, "50 tok/s") || !strings.Contains(got, "What is a pond?") {
		t.Errorf("got\n%s", got)
	}
	if c.title.Text != "What is a pond?" || c.entry.Text != "" {
		t.Errorf("got title %q, box %q", c.title.Text, c.entry.Text)
	}
	st.until("the list", func() bool { return len(c.side.found) == 1 })

	st.player.says("More.")
	answer := c.messages[1]
	answer.hooks.regenerate(answer.shown.ID)
	st.until("another answer", func() bool {
		return len(c.view.Messages) == 2 && c.view.Messages[1].Versions == 2 && c.view.Work == chats.Idle
	})
	if got := texts(c.w); !strings.Contains(got, "2 of 2") || !strings.Contains(got, "More.") {
		t.Errorf("got\n%s", got)
	}
	c.messages[1].hooks.version(c.messages[1].shown.ID, -1)
	st.until("the first answer", func() bool { return c.view.Messages[1].Text == "Still **water**." })

	c.messages[0].hooks.edit(c.messages[0].shown.Message)
	if c.entry.Text != "What is a pond?" || !c.edit.Visible() {
		t.Errorf("editing: got %q", c.entry.Text)
	}
	c.entry.SetText("What is a lake?")
	c.submit()
	st.until("the edited question", func() bool { return len(c.view.Messages) == 2 && c.view.Messages[0].Text == "What is a lake?" })
	if c.edit.Visible() {
		t.Error("the question is still being edited")
	}
	c.messages[0].hooks.copy("x")
	if st.app.Clipboard().Content() != "x" {
		t.Error("nothing was copied")
	}
	c.messages[1].setPlain(true)
}

func TestKeys(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	st.player.says("yes")
	c := st.openChat()
	typed := func(keys ...fyne.KeyName) {
		for _, k := range keys {
			c.entry.TypedKey(&fyne.KeyEvent{Name: k})
		}
	}
	c.entry.SetText("a")
	c.entry.TypedKey(&fyne.KeyEvent{Name: fyne.KeyEnd})
	c.entry.KeyDown(&fyne.KeyEvent{Name: desktop.KeyShiftLeft})
	typed(fyne.KeyReturn)
	c.entry.KeyUp(&fyne.KeyEvent{Name: desktop.KeyShiftLeft})
	c.entry.TypedRune('b')
	if c.entry.Text != "a\nb" || len(c.view.Messages) != 0 {
		t.Errorf("Shift-Return: got %q, %d messages", c.entry.Text, len(c.view.Messages))
	}
	typed(fyne.KeyReturn)
	st.until("the question", func() bool { return len(c.view.Messages) == 2 && c.view.Work == chats.Idle })
	if c.view.Messages[0].Text != "a\nb" {
		t.Errorf("Return: got %q", c.view.Messages[0].Text)
	}

	st.mu.Lock()
	st.chosen.CmdEnterSends = true
	st.mu.Unlock()
	c.drawState(st.ui.state)
	c.entry.SetText("c")
	typed(fyne.KeyReturn)
	if len(c.view.Messages) != 2 {
		t.Error("Return sent what may be half composed")
	}
	c.entry.TypedShortcut(command(fyne.KeyReturn))
	st.until("the second question", func() bool { return len(c.view.Messages) == 4 && c.view.Work == chats.Idle })

	st.player.mu.Lock()
	st.player.hold = make(chan struct{})
	st.player.mu.Unlock()
	c.entry.SetText("long")
	c.submit()
	st.until("work", func() bool { return c.view.Work == chats.Answering })
	typed(fyne.KeyEscape)
	st.until("the stop", func() bool { return c.view.Work == chats.Idle })
	if last := c.view.Messages[5]; last.End != chats.Stopped || !strings.Contains(texts(c.w), "Stopped.") {
		t.Errorf("Escape: got %+v", last)
	}

	before := c.view.ID
	c.entry.TypedShortcut(command(fyne.KeyN))
	if c.view.ID == before || len(c.view.Messages) != 0 {
		t.Error("Command-N began no new chat")
	}
	c.entry.TypedShortcut(command(fyne.KeyK))
	if c.w.Canvas().Focused() != c.side.search {
		t.Errorf("Command-K: got focus on %T", c.w.Canvas().Focused())
	}
	c.side.search.TypedKey(&fyne.KeyEvent{Name: fyne.KeyEscape})
	if c.w.Canvas().Focused() != c.entry {
		t.Error("Escape did not leave the search")
	}
}

func TestAnswerNow(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	c := st.openChat()
	st.player.events = []chat.Event{{Kind: chat.Reasoning, Text: "Let me think about all of it."}}
	st.player.hold = make(chan struct{})
	c.entry.SetText("hard")
	c.submit()
	st.until("thinking", func() bool { return c.view.Work == chats.Thinking })
	if c.hurry.object.Visible() {
		t.Error("it is offered at once")
	}
	st.ui.now = func() time.Time { return time.Now().Add(11 * time.Second) }
	c.draw(c.view)
	if !c.hurry.object.Visible() {
		t.Error("it is not offered after 11 seconds")
	}
	if strings.Contains(texts(c.w), "Let me think") {
		t.Error("thinking is not folded")
	}
	c.messages[1].fold()
	if !strings.Contains(texts(c.w), "Let me think") {
		t.Error("thinking stays folded")
	}
	press(t, c.w, "Answer now")
	st.until("the word to the engine", func() bool { st.player.mu.Lock(); defer st.player.mu.Unlock(); return st.player.hurried == 1 })
	c.stop()
	st.until("the end", func() bool { return c.view.Work == chats.Idle })
	if c.hurry.object.Visible() {
		t.Error("it is offered after the end")
	}
}

func TestHiddenThinkingStaysHidden(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	st.chosen.HideThinking = true
	c := st.openChat()
	st.player.events = []chat.Event{{Kind: chat.Reasoning, Text: "secret"}, {Kind: chat.Text, Text: "open"}}
	st.ask("x")
	if !c.messages[1].think.Disabled() || strings.Contains(texts(c.w), "secret") {
		t.Errorf("got\n%s", texts(c.w))
	}
}

func TestTroubleIsSaidInSentences(t *testing.T) {
	st := newStage(t, stateOf(app.Stopped))
	c := st.openChat()
	if !c.state.object.Visible() || !strings.Contains(texts(c.w), "Start") {
		t.Error("nothing says that the model does not run")
	}
	st.player.fail = chats.ErrNotRunning
	st.ask("hello")
	if got := texts(c.w); !strings.Contains(got, "The model is not running. Start it and ask again.") {
		t.Errorf("got\n%s", got)
	}
	st.player.fail = errors.New("boom")
	st.ask("hello")
	if got := texts(c.w); !strings.Contains(got, "The answer failed: boom.") {
		t.Errorf("got\n%s", got)
	}
	st.ui.Draw(stateOf(app.Running))
	if c.state.object.Visible() {
		t.Error("the model runs, and the banner stays")
	}
	c.openPage()
}

func TestAttaching(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	c := st.openChat()
	dir := t.TempDir()
	write := func(name, text string) fyne.URI {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return storage.NewFileURI(path)
	}
	c.attach(write("notes.txt", "a pond"))
	st.until("the file", func() bool { return len(c.files) == 1 })
	st.app.Clipboard().SetContent(strings.Repeat("a long text ", 2000))
	c.entry.TypedShortcut(&fyne.ShortcutPaste{Clipboard: st.app.Clipboard()})
	st.until("the paste", func() bool { return len(c.files) == 2 })
	c.files = c.files[:1]
	if c.entry.Text != "" {
		t.Errorf("%d bytes were pasted into the box", len(c.entry.Text))
	}
	c.attach(write("cat.png", "\x89PNG\x00"))
	st.until("the refusal", func() bool { return len(c.w.Canvas().Overlays().List()) == 1 })
	if got := texts(c.w); !strings.Contains(got, "Cat.png cannot be attached: it is not a text file in UTF-8.") {
		t.Errorf("got\n%s", got)
	}
	press(t, c.w, "OK")
	st.player.says("ok")
	st.ask("what is in it?")
	if got := c.view.Messages[0]; len(got.Files) != 1 || got.Files[0].Text != "a pond" || len(c.files) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestTheListOfChats(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	writeChats(st)
	c := st.openChat()
	st.until("the list", func() bool { return len(c.side.found) == 6 })
	c.side.search.SetText("moves litres")
	st.until("nothing", func() bool { return len(c.side.found) == 0 && c.side.none.Text != "" })
	c.side.search.SetText("pump_rate")
	st.until("the search", func() bool { return len(c.side.found) == 1 })
	if !strings.Contains(c.side.found[0].Found, "pump_rate") {
		t.Errorf("got %+v", c.side.found[0])
	}
	c.side.list.Select(0)
	st.until("the chat", func() bool { return len(c.view.Messages) == 4 })
	c.side.remove(c.side.found[0])
	press(t, c.w, "Delete")
	st.until("the removal", func() bool { return len(c.side.found) == 0 && len(c.view.Messages) == 0 })
	c.side.search.SetText("")
	st.until("the rest", func() bool { return len(c.side.found) == 5 })
	c.side.rename(c.side.found[0])
	press(t, c.w, "Rename")
	st.settle()
}

// TestTheFeedFollowsOnlyAtItsEnd: who reads further up is not torn away.
func TestTheFeedFollowsOnlyAtItsEnd(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	c := st.openChat()
	c.w.Resize(fyne.NewSize(900, 500))
	st.player.says(strings.Repeat("a line\n\n", 80))
	st.ask("long")
	if !c.atBottom() {
		t.Error("the end is not in sight")
	}
	c.scroll.ScrollToTop()
	st.player.hold = make(chan struct{})
	st.player.says(strings.Repeat("more\n\n", 40))
	v := c.view
	v.Messages[1].Text += "\n\nand one more"
	c.draw(v)
	if c.scroll.Offset.Y != 0 {
		t.Errorf("the feed moved to %v", c.scroll.Offset.Y)
	}
}

// TestLongChatsArePaged: a chat of hundreds of messages opens with its last ones.
func TestLongChatsArePaged(t *testing.T) {
	st := newStage(t, stateOf(app.Running))
	c := st.openChat()
	st.player.says("yes")
	var v chats.View
	v.ID = c.view.ID
	for i := range 200 {
		role := chats.User
		if i%2 == 1 {
			role = chats.Assistant
		}
		v.Messages = append(v.Messages, chats.Shown{Message: chats.Message{ID: i + 1, Parent: i, Role: role, Text: "text", End: chats.Complete}, Version: 1, Versions: 1})
	}
	c.draw(v)
	if len(c.messages) != pageMessages || c.feed.objects[0] != c.older {
		t.Errorf("got %d messages", len(c.messages))
	}
	c.showOlder()
	if len(c.messages) != 2*pageMessages {
		t.Errorf("after asking for more: got %d messages", len(c.messages))
	}
}
