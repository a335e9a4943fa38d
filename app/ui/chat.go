package ui

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"pond/app"
	"pond/app/chats"
)

// pageMessages is how many messages are drawn at first, and how many more each time the earlier ones are asked for.
const pageMessages = 30

// viewOf is a view and the chat that it is of: one that was left may still have one on its way.
type viewOf struct {
	talk *chats.Talk
	view chats.View
}

// chatWindow is the chats at the left, one of them in the middle, and its parameters at the right when they are asked for.
type chatWindow struct {
	u *UI
	w fyne.Window

	side   *sidebar
	drawer *drawer
	title  *widget.Label
	state  *banner
	notice *widget.Label
	feed   *column
	scroll *container.Scroll
	empty  fyne.CanvasObject
	older  *widget.Button
	hurry  *hurryRow
	entry  *composer
	send   *widget.Button
	hint   *widget.Label
	chips  *fyne.Container
	edit   fyne.CanvasObject
	root   *fyne.Container

	talk     *chats.Talk
	view     chats.View
	views    *mailbox[viewOf]
	leave    context.CancelFunc // ends watching the chat
	messages []*messageView
	limit    int          // messages that are drawn
	files    []chats.File // attached to the next question
	editing  int          // the question that is asked again; 0: a new one
	ticking  bool
	early    bool // a question was sent before the answer's end
}

func newChatWindow(u *UI) *chatWindow {
	c := &chatWindow{u: u, limit: pageMessages}
	c.views = &mailbox[viewOf]{thread: u.thread, draw: func(v viewOf) {
		if v.talk == c.talk {
			c.draw(v.view)
		}
	}}
	c.title = widget.NewLabelWithStyle("", fyne.TextAlignLeading, fyne.TextStyle{Bold: true})
	c.title.Truncation = fyne.TextTruncateEllipsis
	c.state = newBanner(u)
	c.notice = wrapped("")
	c.notice.Importance = widget.WarningImportance
	c.notice.Hide()

	c.older = widget.NewButton("Show earlier messages", c.showOlder)
	c.older.Importance = widget.LowImportance
	c.feed = newColumn(10)
	c.scroll = container.NewVScroll(container.New(margins{left: 18, right: 18, top: 8, bottom: 12}, c.feed))
	c.scroll.OnScrolled = func(fyne.Position) { c.lookAround() }
	c.empty = container.NewCenter(c.welcome())

	c.entry = newComposer()
	c.entry.SetPlaceHolder("Ask something")
	c.entry.send, c.entry.stop, c.entry.shortcut = c.submit, c.stop, c.shortcut
	c.entry.OnChanged = func(string) {
		if c.entry.grow() {
			c.root.Refresh()
		}
	}
	c.entry.paste = c.pasted
	c.send = widget.NewButtonWithIcon("", theme.MailSendIcon(), c.sendOrStop)
	c.send.Importance = widget.HighImportance
	attach := widget.NewButtonWithIcon("", theme.MailAttachmentIcon(), c.pickFile)
	attach.Importance = widget.LowImportance
	c.hint = quiet("")
	c.chips = container.NewVBox()
	c.edit = spread(quiet("You are editing an earlier question; its answers stay beside the new ones."), c.small("Cancel", c.endEdit))
	c.edit.Hide()
	c.hurry = newHurryRow(c)
	page := linkTo("Write in the browser", c.openPage)
	bottom := opaque(container.New(margins{14, 4, 14, 8}, container.NewVBox(c.hurry.object, c.edit, c.chips,
		container.NewBorder(nil, nil, container.NewVBox(attach), container.NewVBox(c.send), c.entry),
		container.NewBorder(nil, nil, nil, page, c.hint))))

	c.drawer = newDrawer(c)
	tools := container.NewHBox(c.icon(theme.ContentCopyIcon(), c.copyAll), c.icon(theme.SettingsIcon(), c.toggleDrawer))
	top := opaque(container.NewVBox(container.New(margins{12, 6, 8, 2}, container.NewBorder(nil, nil, nil, tools, c.title)), widget.NewSeparator(), c.state.object, c.notice))
	c.root = container.NewBorder(top, bottom, nil, nil, container.NewStack(c.scroll, c.empty))
	c.side = newSidebar(c)
	right := container.NewBorder(nil, nil, nil, c.drawer.object, c.root)
	split := container.NewHSplit(c.side.object, right)
	split.Offset = 0.27
	c.w = u.window("Pond · Chat", 980, 700, split)
	c.w.SetOnDropped(func(_ fyne.Position, uris []fyne.URI) {
		for _, uri := range uris {
			c.attach(uri)
		}
	})
	for _, key := range []fyne.KeyName{fyne.KeyN, fyne.KeyK} {
		s := &desktop.CustomShortcut{KeyName: key, Modifier: fyne.KeyModifierShortcutDefault}
		c.w.Canvas().AddShortcut(s, func(s fyne.Shortcut) { c.shortcut(s) })
	}
	c.w.Canvas().SetOnTypedKey(func(e *fyne.KeyEvent) {
		if e.Name == fyne.KeyEscape {
			c.stop()
		}
	})
	c.drawState(u.state)
	c.newChat()
	return c
}

func (c *chatWindow) small(text string, tapped func()) *widget.Button {
	b := widget.NewButton(text, tapped)
	b.Importance = widget.LowImportance
	return b
}

func (c *chatWindow) icon(icon fyne.Resource, tapped func()) *widget.Button {
	b := widget.NewButtonWithIcon("", icon, tapped)
	b.Importance = widget.LowImportance
	return b
}

// welcome is what a chat without a word shows.
func (c *chatWindow) welcome() fyne.CanvasObject {
	head := title("What is on your mind?")
	text := quiet("Nothing that you write here leaves this machine.")
	row := container.NewHBox()
	for _, q := range []string{"Explain how a pond stays clear", "Write a haiku about still water"} {
		row.Add(widget.NewButton(q, func() {
			c.entry.SetText(q)
			c.submit()
		}))
	}
	return container.NewVBox(container.NewCenter(head), container.NewCenter(text), container.New(margins{top: 8}, container.NewCenter(row)))
}

// shortcut carries out one of the window's; false: it is none.
func (c *chatWindow) shortcut(s fyne.Shortcut) bool {
	custom, ok := s.(*desktop.CustomShortcut)
	if !ok || custom.Modifier != fyne.KeyModifierShortcutDefault {
		return false
	}
	switch custom.KeyName {
	case fyne.KeyN:
		c.newChat()
	case fyne.KeyK:
		c.w.Canvas().Focus(c.side.search)
	default:
		return false
	}
	return true
}

func (c *chatWindow) focus() { c.w.Canvas().Focus(c.entry) }

// drawState follows the model: whether it runs, and what to do if not.
func (c *chatWindow) drawState(s app.State) {
	before := c.state.object.MinSize().Height
	seen := c.state.object.Visible()
	c.state.draw(s)
	if c.state.object.Visible() != seen || c.state.object.MinSize().Height != before {
		c.root.Refresh()
	}
	chosen := c.u.controls.Settings()
	c.entry.commanded = chosen.CmdEnterSends
	c.drawHint()
}

// drawHint says which keys do what, and why one just did nothing.
func (c *chatWindow) drawHint() {
	if c.early {
		say(c.hint, "The answer is still being written. Esc stops it.")
		return
	}
	say(c.hint, c.entry.hint())
}

// newChat begins a chat with the settings' parameters.
func (c *chatWindow) newChat() {
	s := c.u.controls.Settings()
	p := chats.Params{Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, System: s.SystemPrompt, MaxTokens: s.MaxTokens}
	if s.NoThinking {
		off := false
		p.Thinking = &off
	}
	c.attend(c.u.controls.Chats.Begin(p))
	c.focus()
}

// open goes to a chat of the list.
func (c *chatWindow) open(id string) {
	if c.talk != nil && c.view.ID == id {
		return
	}
	var talk *chats.Talk
	c.u.elsewhere(func() (err error) {
		talk, err = c.u.controls.Chats.Open(id)
		return err
	}, func(err error) {
		if err != nil {
			c.fail(err)
			return
		}
		c.attend(talk)
		c.focus()
	})
}

// attend watches a chat from now on, and no other.
func (c *chatWindow) attend(talk *chats.Talk) {
	if c.leave != nil {
		c.leave()
		c.u.controls.Chats.Leave(c.view.ID)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.talk, c.leave, c.messages, c.limit, c.early = talk, cancel, nil, pageMessages, false
	c.drawHint()
	c.endEdit()
	c.feed.set(nil)
	c.draw(talk.View())
	c.drawer.show(c.view.Params)
	c.scroll.ScrollToBottom()
	go talk.Watch(ctx, func(v chats.View) { c.views.put(viewOf{talk, v}) })
}

// draw shows a view of the chat. Only messages that changed are touched, and of the growing one only its last block.
func (c *chatWindow) draw(v chats.View) {
	before := c.view
	c.view = v
	say(c.title, v.Title)
	say(c.notice, v.Notice)
	c.reveal(c.notice, v.Notice != "")
	show(c.empty, len(v.Messages) == 0)
	follow := c.atBottom()
	c.drawMessages(v)
	c.relayout(follow || len(v.Messages) > len(before.Messages))

	running := v.Work != chats.Idle
	if icon := c.sendIcon(running); c.send.Icon != icon {
		c.send.SetIcon(icon)
	}
	if c.hurry.draw(v, c.u.now()) {
		c.root.Refresh()
	}
	if running {
		c.tick()
	} else if c.early {
		c.early = false
		c.drawHint()
	}
	if v.ID != before.ID || v.Title != before.Title || running != (before.Work != chats.Idle) {
		c.side.reload()
	}
}

func (c *chatWindow) sendIcon(running bool) fyne.Resource {
	if running {
		return theme.MediaStopIcon()
	}
	return theme.MailSendIcon()
}

// reveal shows something above or below the feed, or hides it, and gives the feed the rest of the room.
func (c *chatWindow) reveal(o fyne.CanvasObject, visible bool) {
	if o.Visible() != visible {
		show(o, visible)
		c.root.Refresh()
	}
}

// opaque covers what scrolls behind an object.
func opaque(o fyne.CanvasObject) fyne.CanvasObject {
	return container.NewStack(newTinted(theme.ColorNameBackground, 0), o)
}

func (c *chatWindow) drawMessages(v chats.View) {
	from := max(0, len(v.Messages)-c.limit)
	shown := v.Messages[from:]
	if len(c.messages) > 0 && len(shown) > 0 {
		// Messages that scrolled out of the limit at the top are let go one by one; the others stay.
		for len(c.messages) > 0 && c.messages[0].shown.ID != shown[0].ID && c.messages[0].shown.ID < shown[0].ID {
			c.messages = c.messages[1:]
		}
	}
	same := 0
	for same < len(c.messages) && same < len(shown) && c.messages[same].grows(shown[same]) {
		m := c.messages[same]
		if last := same == len(v.Messages)-from-1; last || m.shown.End != shown[same].End || m.shown.Versions != shown[same].Versions || m.shown.Version != shown[same].Version {
			work := chats.View{}
			if last {
				work = v
			}
			m.update(shown[same], work)
			c.feed.touch(m)
		}
		same++
	}
	c.messages = c.messages[:same]
	for i := same; i < len(shown); i++ {
		m := newMessageView(shown[i], c.hooks(), true)
		if i == len(shown)-1 {
			m.update(shown[i], v)
		}
		c.messages = append(c.messages, m)
	}
	objects := make([]fyne.CanvasObject, 0, len(c.messages)+1)
	if from > 0 {
		objects = append(objects, c.older)
	}
	for _, m := range c.messages {
		objects = append(objects, m)
	}
	c.feed.set(objects)
}

// relayout gives the feed its height; follow: its end is shown.
func (c *chatWindow) relayout(follow bool) {
	c.scroll.Refresh() // or the first overflow is missed
	if follow {
		c.scroll.ScrollToBottom()
	}
	c.lookAround()
}

// atBottom tells whether the end is in sight: only then does the feed follow what is written.
func (c *chatWindow) atBottom() bool {
	return c.scroll.Offset.Y+c.scroll.Size().Height >= c.scroll.Content.Size().Height-24
}

// lookAround hides what is far outside of the visible part.
func (c *chatWindow) lookAround() {
	h := max(200, c.scroll.Size().Height)
	c.feed.look(c.scroll.Offset.Y-h, c.scroll.Offset.Y+2*h)
}

func (c *chatWindow) showOlder() {
	height := c.scroll.Content.MinSize().Height
	c.limit += pageMessages
	c.messages = nil
	c.drawMessages(c.view)
	c.scroll.Refresh()
	c.scroll.ScrollToOffset(fyne.NewPos(0, c.scroll.Offset.Y+c.scroll.Content.MinSize().Height-height))
	c.lookAround()
}

func (c *chatWindow) hooks() messageHooks {
	return messageHooks{
		hide:       c.u.controls.Settings().HideThinking,
		copy:       func(text string) { c.u.app.Clipboard().SetContent(text) },
		regenerate: func(id int) { c.fail(c.talk.Regenerate(id)) },
		edit:       c.beginEdit,
		version:    func(id, by int) { c.fail(c.talk.Show(id, by)) },
		scrolled:   func(e *fyne.ScrollEvent) { c.scroll.Scrolled(e) },
		resized: func() {
			c.feed.forget()
			c.feed.arrange()
			c.relayout(false)
		},
	}
}

// tick draws the seconds of a running answer, which change without news of it.
func (c *chatWindow) tick() {
	if c.ticking {
		return
	}
	c.ticking = true
	time.AfterFunc(time.Second, func() {
		c.u.Post(func() {
			c.ticking = false
			if c.view.Work != chats.Idle {
				c.draw(c.view)
			}
		})
	})
}

func (c *chatWindow) sendOrStop() {
	if c.view.Work != chats.Idle {
		c.stop()
		return
	}
	c.submit()
}

// submit sends what is written, as a new question or in the place of the one that is edited.
func (c *chatWindow) submit() {
	var err error
	if c.editing != 0 {
		err = c.talk.Edit(c.editing, c.entry.Text)
	} else {
		err = c.talk.Send(c.entry.Text, c.files)
	}
	switch {
	case errors.Is(err, chats.ErrNothing):
		return
	case errors.Is(err, chats.ErrAnswering): // what is written stays in the box
		c.early = true
		c.drawHint()
		return
	case err != nil:
		c.fail(err)
		return
	}
	c.endEdit()
	c.scroll.ScrollToBottom()
	c.draw(c.talk.View())
}

func (c *chatWindow) stop() {
	if c.editing != 0 {
		c.endEdit()
		return
	}
	c.talk.Stop()
}

func (c *chatWindow) beginEdit(m chats.Message) {
	c.editing = m.ID
	c.entry.SetText(m.Text)
	c.edit.Show()
	c.root.Refresh()
	c.focus()
}

// endEdit empties the box.
func (c *chatWindow) endEdit() {
	c.editing, c.files = 0, nil
	c.entry.SetText("")
	c.edit.Hide()
	c.drawChips()
}

func (c *chatWindow) drawChips() {
	c.chips.RemoveAll()
	for i, f := range c.files {
		c.chips.Add(fileChip(f, func() {
			c.files = append(c.files[:i:i], c.files[i+1:]...)
			c.drawChips()
		}))
	}
	show(c.chips, len(c.files) > 0)
	c.root.Refresh()
}

func (c *chatWindow) pickFile() {
	dialog.ShowFileOpen(func(r fyne.URIReadCloser, err error) {
		switch {
		case err != nil:
			c.fail(err)
		case r != nil:
			c.attachFrom(r.URI().Name(), r)
		}
	}, c.w)
}

func (c *chatWindow) attach(uri fyne.URI) {
	r, err := openURI(uri)
	if err != nil {
		c.fail(&chats.AttachError{Name: uri.Name(), Reason: err.Error() + "."})
		return
	}
	c.attachFrom(uri.Name(), r)
}

// fail shows an error as a sentence; nil is none.
func (c *chatWindow) fail(err error) {
	if err != nil {
		showError(err, c.w)
	}
}

// copyAll puts the shown branch on the clipboard, as Markdown.
func (c *chatWindow) copyAll() {
	text := ""
	for _, m := range c.view.Messages {
		who := "Pond"
		if m.Role == chats.User {
			who = "You"
		}
		text += fmt.Sprintf("**%s**\n\n%s\n\n", who, m.Text)
	}
	c.u.app.Clipboard().SetContent(text)
}

func (c *chatWindow) toggleDrawer() {
	show(c.drawer.object, !c.drawer.object.Visible())
	c.drawer.show(c.view.Params)
	c.w.Content().Refresh()
}

// openPage opens the page that the endpoint serves: a browser knows every way of composing text.
func (c *chatWindow) openPage() {
	if !c.u.state.Phase.Serving() {
		c.fail(errors.New("the page is served by the model's endpoint, which is not running; start it first"))
		return
	}
	c.fail(c.u.openPage())
}
