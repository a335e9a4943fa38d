// Package ui draws Pond with Fyne: its windows and the tray menu, from an app.State and from chats.
//
// It takes a fyne.App, so it is tested without a screen; only gui.go in package main makes a real one. It decides nothing: what
// the user asks for goes to Controls. Start with New; one window a file, and chat.go is the largest.
//
// Its rules:
//   - Windows are made when they are first opened, and hidden when they are closed: closing one is not quitting.
//   - Everything of Fyne is touched on Fyne's thread. What comes from elsewhere is left in a mailbox, and only the newest of it is drawn.
//   - Nothing that may take long is done on that thread: disks, the model, the system.
package ui

import (
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"

	"pond/app"
	"pond/app/chats"
	"pond/app/settings"
)

// Controls is what the windows ask for. Do is called on Fyne's thread and must not block it; all others may take their time, and
// are called elsewhere.
type Controls struct {
	// Do carries out an action of the menu or a button, but for those that open a window.
	Do           func(app.Action)
	Chats        *chats.Store
	Settings     func() settings.Settings // does not take long
	SaveSettings func(settings.Settings) error
	LoginItem    func() (app.LoginStatus, error)
	SetLoginItem func(on bool) error
	Adopt        func(app.Copy, app.AdoptMode) error
	CopiesIn     func(dir string) []app.Copy
	Remove       func() error // of the model's files
	Forget       func() error // of what is kept of conversations, chats apart
	Reveal       func(path string) error
	Log          func() (lines []string, file string, err error) // the end of the log
	Version      string
	Built        string // from which sources; empty: unknown
	CommandLine  func() (link string)
	SetCommand   func(on bool) error // makes that link, or removes it
	Icon         fyne.Resource       // nil: the app's
	Front        func()              // makes the program the one in front, where showing a window does not; nil: it does
}

// UI is the windows and the menu. Its methods belong to Fyne's thread, but for Post, Publish and End.
type UI struct {
	app      fyne.App
	controls Controls
	thread   *thread
	states   *mailbox[app.State]
	state    app.State
	now      func() time.Time

	home     *homeWindow // nil: not opened yet, as with the others
	welcome  *welcomeWindow
	chat     *chatWindow
	model    *modelWindow
	settings *settingsWindow
	logs     *logWindow
	about    *aboutWindow
	welcomed bool
}

// thread leads to Fyne's thread as long as Fyne runs. Afterwards Fyne would run what it is given on the caller's goroutine,
// against windows that are gone, so from then on nothing is given to it.
type thread struct {
	ended atomic.Bool
	do    func(func())
}

func (t *thread) post(f func()) {
	if !t.ended.Load() {
		t.do(f)
	}
}

// mailbox keeps the newest value for Fyne's thread. However fast values come, one drawing waits at most.
type mailbox[T any] struct {
	thread *thread
	draw   func(T)

	mu      sync.Mutex // protects what follows
	value   T
	waiting bool
}

func (m *mailbox[T]) put(v T) {
	m.mu.Lock()
	m.value = v
	waiting := m.waiting
	m.waiting = true
	m.mu.Unlock()
	if waiting {
		return
	}
	m.thread.post(func() {
		m.mu.Lock()
		v := m.value
		m.waiting = false
		m.mu.Unlock()
		m.draw(v)
	})
}

// New takes the toolkit's app over: its theme becomes Pond's. No window is shown.
func New(a fyne.App, c Controls, s app.State) *UI { return newUI(a, c, s, fyne.Do) }

func newUI(a fyne.App, c Controls, s app.State, do func(func())) *UI {
	if _, ours := a.Settings().Theme().(*pondTheme); !ours {
		a.Settings().SetTheme(newTheme())
	}
	u := &UI{app: a, controls: c, thread: &thread{do: do}, state: s, now: time.Now}
	u.states = &mailbox[app.State]{thread: u.thread, draw: u.Draw}
	return u
}

// Post runs f on Fyne's thread, soon; from any goroutine.
func (u *UI) Post(f func()) { u.thread.post(f) }

// Publish draws a state soon; from any goroutine. Of states that follow each other fast the last is drawn, always.
func (u *UI) Publish(s app.State) { u.states.put(s) }

// Save saves what was typed in the settings and is not saved yet, and waits for what is being saved. It is called when Fyne has ended, or on its
// thread.
func (u *UI) Save() error {
	if u.settings == nil {
		return nil
	}
	return u.settings.saveNow()
}

// End says that Fyne is about to quit: nothing is posted any more.
func (u *UI) End() { u.thread.ended.Store(true) }

// Draw shows a state in the windows that there are.
func (u *UI) Draw(s app.State) {
	u.state = s
	if u.home != nil {
		u.home.draw(s)
	}
	if u.welcome != nil {
		u.welcome.draw(s)
	}
	if u.chat != nil {
		u.chat.drawState(s)
	}
	if u.model != nil {
		u.model.draw(s)
	}
}

// Open shows the window that an action names, in front; false: it names none. Only a user's click may lead here: a window that
// takes the focus by itself is rude.
func (u *UI) Open(a app.Action) bool {
	switch a {
	case app.OpenWindow:
		if u.state.Phase == app.NeedModel && !u.welcomed {
			return u.Open(app.OpenWelcome)
		}
		if u.home == nil {
			u.home = newHomeWindow(u)
		}
		u.show(u.home.w)
	case app.OpenWelcome:
		u.welcomed = true
		if u.welcome == nil {
			u.welcome = newWelcomeWindow(u)
		}
		u.show(u.welcome.w)
	case app.OpenChat:
		if u.chat == nil {
			u.chat = newChatWindow(u)
		}
		u.show(u.chat.w)
		u.chat.focus()
	case app.OpenModel:
		if u.model == nil {
			u.model = newModelWindow(u)
		}
		u.show(u.model.w)
	case app.OpenSettings:
		if u.settings == nil {
			u.settings = newSettingsWindow(u)
		}
		u.settings.load()
		u.show(u.settings.w)
	case app.OpenLogs:
		if u.logs == nil {
			u.logs = newLogWindow(u)
		}
		u.show(u.logs.w)
		u.logs.load()
	default:
		return false
	}
	return true
}

// OpenAbout shows the window with the version and the licences.
func (u *UI) OpenAbout() {
	if u.about == nil {
		u.about = newAboutWindow(u)
	}
	u.show(u.about.w)
}

// Show brings the window that fits the state to the front.
func (u *UI) Show() { u.Open(app.OpenWindow) }

func (u *UI) show(w fyne.Window) {
	if u.controls.Front != nil {
		u.controls.Front()
	}
	w.Show()
	w.RequestFocus()
}

// act carries out an action: a window here, all else through Controls.
func (u *UI) act(a app.Action) {
	if !u.Open(a) {
		u.controls.Do(a)
	}
}

// openPage opens the page that the endpoint serves in the browser.
func (u *UI) openPage() error {
	at, err := url.Parse(strings.TrimSuffix(u.state.Endpoint(), "/v1") + "/")
	if err != nil {
		return err
	}
	return u.app.OpenURL(at)
}

// elsewhere does what may take long, and then what follows on Fyne's thread.
func (u *UI) elsewhere(work func() error, then func(error)) {
	go func() {
		err := work()
		u.thread.post(func() { then(err) })
	}()
}

// window makes a window that is hidden when it is closed.
func (u *UI) window(title string, width, height float32, content fyne.CanvasObject) fyne.Window {
	w := u.app.NewWindow(title)
	w.SetPadded(false)
	w.SetContent(container.NewStack(newTinted(theme.ColorNameBackground, 0), content))
	w.Resize(fyne.NewSize(width, height))
	w.SetCloseIntercept(w.Hide)
	return w
}

// TrayMenu is the menu of a state. The tray rebuilds it whole on every change, so it keeps no reference to the last one.
func (u *UI) TrayMenu(s app.State) *fyne.Menu {
	return fyne.NewMenu("Pond", u.menuItems(app.Menu(s))...)
}

func (u *UI) menuItems(items []app.Item) []*fyne.MenuItem {
	var out []*fyne.MenuItem
	for _, i := range items {
		if i.Separator() {
			out = append(out, fyne.NewMenuItemSeparator())
			continue
		}
		item := fyne.NewMenuItem(i.Label, nil)
		if i.Action != app.NoAction {
			item.Action = func() { u.act(i.Action) }
		}
		if len(i.Children) > 0 {
			item.ChildMenu = fyne.NewMenu("", u.menuItems(i.Children)...)
		}
		item.Disabled = !i.Available
		item.Checked = i.Checked
		item.IsQuit = i.Action == app.Quit // or Fyne adds a Quit of its own
		out = append(out, item)
	}
	return out
}
