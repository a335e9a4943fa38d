package app

import (
	"os/exec"

	"pond/app/settings"
)

// ThisSystem is what macOS does around Pond. What it cannot do is nil, and trouble says why.
func ThisSystem(settings.Paths) (s System, trouble error) {
	s = System{LoginItem: loginItem, SetLoginItem: setLoginItem, WatchSleep: watchSleep, Reveal: func(path string) error { return exec.Command("open", "-R", path).Run() }}
	p, err := loadPower()
	if err != nil {
		return s, err
	}
	s.KeepAwake, s.OnBattery = p.keepAwake, p.onBattery
	return s, nil
}
