package main

import (
	"pond/app"
	"pond/assets"
)

// trayIcon is the icon of the menu bar for a state: stopped, working with a ring (a download, a load, a prompt that is taken in), running, or
// failed.
func trayIcon(s app.State) assets.Tray {
	fraction := func(done, total int64) float64 {
		if total <= 0 {
			return 0
		}
		return float64(done) / float64(total)
	}
	switch s.Phase {
	case app.Downloading, app.Verifying:
		return assets.TrayWorking(s.Job.Fraction())
	case app.Loading:
		return assets.TrayWorking(fraction(s.Load.DoneBytes, s.Load.TotalBytes))
	case app.Busy:
		if w := s.Work; w.PrefillTotal > 0 && w.PrefillDone < w.PrefillTotal {
			return assets.TrayWorking(fraction(int64(w.PrefillDone), int64(w.PrefillTotal)))
		}
		return assets.TrayRunning
	case app.Running:
		if s.Unloaded {
			return assets.TrayStopped
		}
		return assets.TrayRunning
	case app.Failed:
		return assets.TrayFailed
	}
	return assets.TrayStopped
}
