package app

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"pond/app/settings"
)

// Do carries out an action that needs no toolkit, without waiting for it: what comes of it is a state. It reports whether the action was
// one of these; the windows, the clipboard and the end are the caller's.
func (p *Pond) Do(ctx context.Context, a Action) bool {
	job := func(begin func() error) {
		go func() {
			if err := begin(); err != nil {
				p.tell(JobEnded{err})
			}
		}()
	}
	switch a {
	case Download:
		job(p.Download)
	case PauseDownload:
		go p.PauseDownload()
	case CancelDownload:
		job(p.CancelDownload)
	case Verify:
		job(p.Verify)
	case Repair:
		job(p.Repair)
	case CancelJob:
		go p.CancelJob()
	case Start:
		go p.start(ctx, false) // its outcome is a state, as below
	case StartAnyway:
		go p.start(ctx, true)
	case Stop:
		go p.Stop()
	case Unload:
		p.Unload()
	case UseNextPort:
		go p.useNextPort(ctx)
	case UseDemo:
		go p.useDemo(ctx)
	case PauseQuarter:
		p.PauseUntil(p.now().Add(15 * time.Minute))
	case PauseHour:
		p.PauseUntil(p.now().Add(time.Hour))
	case PauseTomorrow:
		p.PauseUntil(tomorrowMorning(p.now()))
	case Resume:
		p.Resume()
	case CheckUpdates:
		p.askForUpdate()
	case ToggleQuiet:
		go p.toggleQuiet()
	default:
		return false
	}
	return true
}

// Settings are the user's choices as they stand.
func (p *Pond) Settings() settings.Settings {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settings
}

// SaveSettings checks and saves the user's choices. Those that concern the endpoint count from its next start; the others at once.
func (p *Pond) SaveSettings(s settings.Settings) error {
	if p.home == nil {
		return errors.New("settings: this Pond keeps none")
	}
	if err := s.Save(p.home.Paths.File); err != nil {
		return err
	}
	p.mu.Lock()
	before := p.settings
	p.settings = s
	p.mu.Unlock()
	p.follow(before, s)
	p.Look()
	return nil
}

// useNextPort serves at the free port that the failure named, from now on.
func (p *Pond) useNextPort(ctx context.Context) {
	_, port, err := net.SplitHostPort(p.State().NextAddress)
	if err != nil {
		return // no port was taken
	}
	s := p.Settings()
	if s.Port, err = strconv.Atoi(port); err != nil {
		return
	}
	if s.Address != "" {
		s.Address = p.State().NextAddress
	}
	p.saveAndStart(ctx, s)
}

// useDemo chooses the built-in model and starts it.
func (p *Pond) useDemo(ctx context.Context) {
	s := p.Settings()
	s.Model = DemoModel
	p.saveAndStart(ctx, s)
}

func (p *Pond) saveAndStart(ctx context.Context, s settings.Settings) {
	if err := p.SaveSettings(s); err != nil {
		p.tell(Failure{err})
		return
	}
	p.Stop()
	p.start(ctx, false)
}

// log writes a line about what happens; never what is said in chats.
func (p *Pond) log(text string, args ...any) {
	if l := p.logger(); l != nil {
		l.Info(text, args...)
	}
}
