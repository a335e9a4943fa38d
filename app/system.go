package app

import (
	"context"
	"errors"
	"log/slog"

	"pond/inference/memgate"
)

// System is what the operating system does around Pond. What it cannot do here is nil.
type System struct {
	// KeepAwake keeps the machine from falling asleep by itself until release is called; the screen may go dark.
	KeepAwake func(reason string) (release func(), err error)
	// OnBattery reports whether the machine runs on its battery; known is false where that cannot be told.
	OnBattery func() (on, known bool)
	// WatchSleep tells when the machine is about to sleep and when it woke, until ctx is done; told must not wait.
	WatchSleep func(ctx context.Context, told func(awake bool)) error
	// LoginItem reads from the system whether Pond is opened at login, and SetLoginItem asks the system to. Pond remembers nothing of it: the user may change it in the
	// system's settings too, and what stands there holds.
	LoginItem    func() (LoginStatus, error)
	SetLoginItem func(on bool) error
	// Pressure is how short of memory the system says it is; nil asks memgate.
	Pressure func() memgate.Pressure
	// Notify shows a message of the system; best effort.
	Notify func(title, text string)
	// Reveal shows a file or folder in the file manager.
	Reveal func(path string) error
}

// LoginStatus is what the system says of the login item.
type LoginStatus int

// The statuses.
const (
	LoginOff LoginStatus = iota
	LoginOn
	LoginNeedsApproval // asked for, and the user has to allow it in the system's settings
	LoginUnavailable   // not from here: on a Mac only a bundled app can be one
)

// ErrNotHere answers what this system or this build cannot do.
var ErrNotHere = errors.New("not on this system")

// StartAtLogin reads from the system whether Pond is opened at login.
func (p *Pond) StartAtLogin() (LoginStatus, error) {
	if p.home == nil || p.home.System.LoginItem == nil {
		return LoginUnavailable, nil
	}
	return p.home.System.LoginItem()
}

// SetStartAtLogin asks the system to open Pond at login, or not to. Only the user's click leads here.
func (p *Pond) SetStartAtLogin(on bool) error {
	if p.home == nil || p.home.System.SetLoginItem == nil {
		return ErrNotHere
	}
	return p.home.System.SetLoginItem(on)
}

// Reveal shows a file or folder in the file manager.
func (p *Pond) Reveal(path string) error {
	if p.home == nil || p.home.System.Reveal == nil {
		return ErrNotHere
	}
	return p.home.System.Reveal(path)
}

// notify shows a message of the system, if the user wants any.
func (p *Pond) notify(title, text string) {
	if p.home == nil || p.home.System.Notify == nil || !p.Settings().Notifications {
		return
	}
	p.home.System.Notify(title, text)
}

func (p *Pond) logger() *slog.Logger {
	if p.home != nil {
		return p.home.Logger
	}
	return p.config.Logger // never changed without a home
}
