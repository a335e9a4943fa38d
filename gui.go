//go:build cgo || ci

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"time"

	"fyne.io/fyne/v2"
	fyneapp "fyne.io/fyne/v2/app"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"

	"pond/app"
	"pond/app/chats"
	"pond/app/ui"
	"pond/assets"
)

// hasWindow says that this binary has its window.
const hasWindow = true

// runDefault is pond without a command: the icon in the menu bar and its windows, or the endpoint alone where there is no screen. A Pond
// that runs already shows its window instead.
func runDefault(ctx context.Context, s streams) error {
	if runtime.GOOS != "darwin" && os.Getenv("DISPLAY") == "" {
		return serveHeadless(ctx, s, "there is no screen here")
	}
	home, err := defaultHome(s)
	if err != nil {
		return err
	}
	defer home.Log.Close()
	shows := make(chan struct{}, 1)
	instance, err := app.Claim(home.Paths.Logs, func() {
		select {
		case shows <- struct{}{}:
		default: // it will be shown already
		}
	})
	if errors.Is(err, app.ErrShown) {
		fmt.Fprintln(s.out, "Pond is open already; its window is shown")
		return nil
	}
	if err != nil {
		return err
	}
	defer instance.Close()
	d, err := newDesk(ctx, home)
	if err != nil {
		return err
	}
	return d.run(shows)
}

// desk is the composition of Pond and its windows. Everything that Fyne owns is touched on its thread only; the engine and the endpoint
// never wait for that thread, because an open menu holds it.
type desk struct {
	pond   *app.Pond
	fyne   fyne.App
	ui     *ui.UI
	chats  *chats.Store
	tray   desktop.App // nil: this driver has none
	icon   assets.Tray // as it is drawn
	ctx    context.Context
	cancel context.CancelFunc
}

func newDesk(ctx context.Context, home app.Home) (*desk, error) {
	d := &desk{fyne: fyneapp.NewWithID(app.ID)}
	d.fyne.SetIcon(fyne.NewStaticResource("icon.svg", assets.Icon()))
	home.System.Notify = func(title, text string) {
		d.ui.Post(func() { d.fyne.SendNotification(fyne.NewNotification(title, text)) })
	}
	var err error
	if d.pond, err = app.Open(home); err != nil {
		return nil, err
	}
	d.ctx, d.cancel = signal.NotifyContext(ctx, os.Interrupt)
	d.chats = ui.NewStore(d.pond, home.Paths.Chats)
	d.ui = ui.New(d.fyne, ui.ControlsOf(d.pond, d.chats, d.do), d.pond.State())
	d.tray, _ = d.fyne.(desktop.App)
	return d, nil
}

// do carries out what the user chose, on Fyne's thread.
func (d *desk) do(action app.Action) {
	if d.pond.Do(d.ctx, action) {
		return
	}
	switch action {
	case app.NoAction:
	case app.CopyDiagnostics:
		go func() {
			text := d.pond.CopyDiagnostics() // asks the machine
			d.ui.Post(func() { d.fyne.Clipboard().SetContent(text) })
		}()
	case app.CopyEndpoint, app.CopyCurl, app.CopyPython, app.CopyJavaScript, app.CopyEnvironment:
		d.fyne.Clipboard().SetContent(d.pond.State().Snippet(action))
	case app.Quit:
		d.ui.End()
		d.fyne.Quit()
	default:
		d.show(action)
	}
}

// show brings a window to the front. Only what a user did leads here: a window that takes the focus by itself is rude.
func (d *desk) show(window app.Action) { d.ui.Open(window) }

// iconPatience is how long the menu bar may take to show the icon.
const iconPatience = 3 * time.Second

// findIcon shows a window where the icon is not to be seen: behind the notch, switched off in the system's settings, put away by an organizer of
// the menu bar, or on a desktop without a tray. Without it there would be no way in.
func (d *desk) findIcon() {
	d.ui.Post(func() {
		if app.IconHidden() {
			d.ui.Open(app.OpenWindow)
		}
	})
}

// run shows Pond until the user quits.
func (d *desk) run(shows <-chan struct{}) error {
	d.drawTray(d.pond.State())
	d.fyne.Lifecycle().SetOnStarted(func() {
		app.BecomeAccessory() // after Fyne's driver made it an ordinary app
		if d.pond.Settings().StartServing && d.pond.State().Ready {
			d.pond.Do(d.ctx, app.Start)
		}
		switch {
		case d.pond.FirstRun():
			d.show(app.OpenWelcome)
		case d.tray == nil || d.pond.State().Phase != app.Stopped:
			d.show(app.OpenWindow)
		default:
			time.AfterFunc(iconPatience, d.findIcon)
		}
	})
	d.fyne.Settings().AddListener(func(fyne.Settings) { // dark or light
		d.icon = ""
		d.drawIcon(d.pond.State())
	})
	watched := make(chan struct{}, 5)
	watch := func(f func()) {
		go func() {
			defer func() { watched <- struct{}{} }()
			f()
		}()
	}
	watch(func() {
		last := assets.Tray("")
		d.pond.Watch(d.ctx, func(s app.State) {
			d.ui.Publish(s)
			if kind := trayIcon(s); kind != last { // an open menu holds Fyne's thread: nothing is piled up before it
				last = kind
				d.ui.Post(func() { d.drawIcon(s) })
			}
		})
	})
	watch(func() { d.pond.WatchMenu(d.ctx, func(s app.State) { d.ui.Post(func() { d.drawMenu(s) }) }) })
	watch(func() { d.pond.Attend(d.ctx) })
	watch(func() { d.pond.WatchUpdates(d.ctx) })
	watch(func() {
		for {
			select {
			case <-shows:
				d.ui.Post(func() { d.show(app.OpenWindow) })
			case <-d.ctx.Done(): // on a signal Fyne quits by itself
				d.ui.End()
				return
			}
		}
	})
	d.fyne.Run()
	d.ui.End()
	if err := d.ui.Save(); err != nil {
		fmt.Fprintln(os.Stderr, "pond: the settings were not saved:", err)
	}
	d.cancel()
	for range cap(watched) {
		<-watched
	}
	d.chats.Close() // before the model goes, so that a running answer is marked as interrupted and not as failed
	d.pond.Close()
	d.pond.InstallUpdate()
	return nil
}

func (d *desk) drawTray(s app.State) {
	d.drawMenu(s)
	d.drawIcon(s)
}

// drawMenu rebuilds the menu whole.
func (d *desk) drawMenu(s app.State) {
	if d.tray != nil {
		d.tray.SetSystemTrayMenu(d.ui.TrayMenu(s))
	}
}

// drawIcon shows in the menu bar what Pond is doing; the same icon is not drawn twice.
func (d *desk) drawIcon(s app.State) {
	kind := trayIcon(s)
	if d.tray == nil || kind == d.icon {
		return
	}
	d.icon = kind
	d.tray.SetSystemTrayIcon(theme.NewThemedResource(fyne.NewStaticResource("tray_"+string(kind)+".svg", assets.TrayIcon(kind))))
}
