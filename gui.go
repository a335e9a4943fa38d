//go:build cgo || ci

package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"

	"fyne.io/fyne/v2"
	fyneapp "fyne.io/fyne/v2/app"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"

	"pond/app"
	"pond/app/ui"
	"pond/assets"
)

// hasWindow says that this binary has its window.
const hasWindow = true

// runDefault is pond without a command: the window and the icon in the menu bar, or the endpoint alone where there is no screen.
func runDefault(ctx context.Context, s streams) error {
	if runtime.GOOS != "darwin" && os.Getenv("DISPLAY") == "" {
		return serveHeadless(ctx, s, "there is no screen here")
	}
	home, err := defaultHome(s)
	if err != nil {
		return err
	}
	p, err := app.Open(home)
	if err != nil {
		return err
	}
	return runWindow(ctx, p)
}

// runWindow shows Pond until the user quits. Everything that Fyne owns is touched on its thread only; the engine and the endpoint
// never wait for that thread, because an open menu holds it.
func runWindow(ctx context.Context, p *app.Pond) error {
	a := fyneapp.NewWithID(app.ID)
	a.SetIcon(fyne.NewStaticResource("icon.svg", assets.Icon()))

	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	var u *ui.UI
	controls := ui.Controls{
		Do: func(action app.Action) {
			if p.Do(ctx, action) {
				return
			}
			switch action {
			case app.CopyDiagnostics:
				a.Clipboard().SetContent(p.CopyDiagnostics())
			case app.Quit:
				u.End()
				a.Quit()
			case app.CopyEndpoint, app.CopyCurl, app.CopyPython, app.CopyJavaScript, app.CopyEnvironment:
				a.Clipboard().SetContent(p.State().Snippet(action))
			default:
				u.Show()
			}
		},
		Ask: func(ctx context.Context, question string, emit func(string), done func(error)) {
			go func() { done(p.Ask(ctx, question, emit)) }()
		},
	}
	u = ui.New(a, controls, p.State())
	tray, hasTray := a.(desktop.App)
	if hasTray {
		tray.SetSystemTrayMenu(u.TrayMenu(p.State()))
		tray.SetSystemTrayIcon(theme.NewThemedResource(fyne.NewStaticResource("tray.svg", assets.TrayIcon())))
	}
	a.Lifecycle().SetOnStarted(func() {
		u.Show()
		if p.Settings().StartServing {
			p.Do(ctx, app.Start)
		}
	})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		p.Watch(ctx, func(s app.State) {
			u.Post(func() {
				u.Draw(s)
				if hasTray {
					tray.SetSystemTrayMenu(u.TrayMenu(s))
				}
			})
		})
	}()
	go func() { // on a signal Fyne quits by itself
		<-ctx.Done()
		u.End()
	}()
	a.Run()
	u.End()
	cancel()
	<-watched
	p.Close()
	return nil
}
