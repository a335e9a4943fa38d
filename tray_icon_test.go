package main

import (
	"testing"

	"pond/app"
	"pond/assets"
)

func TestTrayIcon(t *testing.T) {
	served := app.State{}.After(app.Served{})
	for _, c := range []struct {
		name  string
		state app.State
		want  assets.Tray
	}{
		{"stopped", app.State{}, assets.TrayStopped},
		{"nothing downloaded", app.State{Phase: app.NeedModel}, assets.TrayStopped},
		{"half downloaded", app.State{}.After(app.JobChanged{Job: app.Job{Kind: app.DownloadJob, DoneBytes: 5, TotalBytes: 10}}), "working_4"},
		{"verified whole", app.State{}.After(app.JobChanged{Job: app.Job{Kind: app.VerifyJob, DoneBytes: 10, TotalBytes: 10}}), "working_8"},
		{"loading", app.State{}.After(app.LoadStarted{}).After(app.Loaded{DoneBytes: 1, TotalBytes: 4}), "working_2"},
		{"running", served, assets.TrayRunning},
		{"taking in a prompt", served.After(app.Worked{Work: app.Work{Active: 1, PrefillDone: 3, PrefillTotal: 4}}), "working_6"},
		{"answering", served.After(app.Worked{Work: app.Work{Active: 1, TokensPerSecond: 60}}), assets.TrayRunning},
		{"resting", served.After(app.Rested{}), assets.TrayStopped},
		{"paused", served.After(app.Held{}), assets.TrayStopped},
		{"failed", app.State{Phase: app.Failed}, assets.TrayFailed},
	} {
		if got := trayIcon(c.state); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
