package app

import (
	"context"
	"time"
)

// Why new work waits, when the user did not ask for it. Each reason ends by itself; the user's Resume ends all of them, until the next change.
const (
	reasonUser    = ""
	reasonBattery = "on battery"
	reasonMemory  = "memory is short"
)

// hold lets new work wait until a moment (zero: until unhold or Resume); running work goes on.
func (p *Pond) hold(until time.Time, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.engine == nil {
		return
	}
	if p.state.Phase == Paused && p.state.PauseReason == reasonUser && reason != reasonUser {
		return // the user's own pause lasts longer than a reason's
	}
	p.endPause()
	p.engine.Pause()
	p.happen(Held{until, reason})
	if until.IsZero() {
		return
	}
	ctx, release := context.WithCancel(context.Background())
	p.release = release
	go p.resumeAt(ctx, until)
}

// resumeAt ends a pause at a moment of the wall clock: a machine that slept through it goes on when it wakes.
func (p *Pond) resumeAt(ctx context.Context, until time.Time) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for p.now().Before(until) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil {
		p.endPause()
	}
}

// unhold ends a pause that has this reason.
func (p *Pond) unhold(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state.Phase == Paused && p.state.PauseReason == reason {
		p.endPause()
	}
}

// endPause ends a pause, if there is one. The caller holds mu.
func (p *Pond) endPause() {
	if p.release != nil {
		p.release()
		p.release = nil
	}
	if p.state.Phase != Paused {
		return
	}
	if p.engine != nil {
		p.engine.Resume()
	}
	p.happen(Released{})
}

// PauseUntil lets new work wait until then; answers that are being written go on. Zero is until Resume.
func (p *Pond) PauseUntil(t time.Time) {
	p.hold(t.Round(0), reasonUser) // by the wall clock: the other one stands still while the machine sleeps
}

// Resume ends every pause.
func (p *Pond) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endPause()
}

// Unload lets the model go and keeps the endpoint: the next request loads it again.
func (p *Pond) Unload() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rest == nil {
		return
	}
	select {
	case p.rest <- struct{}{}:
	default: // it was asked already
	}
}

// tomorrowMorning is eight o'clock of the next day, by the user's clock.
func tomorrowMorning(now time.Time) time.Time {
	y, m, d := now.Date()
	return time.Date(y, m, d+1, 8, 0, 0, 0, now.Location())
}
