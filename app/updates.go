package app

import (
	"context"
	"time"

	"pond/app/update"
)

// updateEvery is how often Pond asks itself whether it is time to look for an update; the feed is asked at most daily.
const updateEvery = 10 * time.Minute

// Update is what is known of a newer release.
type Update struct {
	Own     bool   // this Pond updates itself
	Looking bool   // the user asked, and the feed has not answered yet
	Newest  bool   // the user asked, and there is none
	Version string // empty: none is known
	Ready   bool   // it takes the app's place when Pond quits
	Trouble string // why it cannot be had, or why nothing is known
}

// Line tells of it in one line; empty while there is nothing to tell.
func (u Update) Line() string {
	switch {
	case u.Looking:
		return "Looking for updates…"
	case u.Trouble != "" && u.Version == "":
		return "Looking for updates failed: " + u.Trouble
	case u.Trouble != "":
		return "Pond " + u.Version + " could not be fetched: " + u.Trouble
	case u.Ready:
		return "Pond " + u.Version + " is ready: it is installed when you quit"
	case u.Version != "":
		return "Pond " + u.Version + " is fetched while nobody works"
	case u.Newest:
		return "Pond " + Version + " is the newest release"
	}
	return ""
}

// WatchUpdates looks for newer releases until ctx is done: at once when the user asks; else at most daily, only while the user wants it, and only while nobody
// works and nothing is done to a model's files. Work that begins ends a download; it is taken up later. Where this Pond is not updated by itself it returns at
// once.
func (p *Pond) WatchUpdates(ctx context.Context) {
	if p.home == nil || p.home.Updates == nil {
		return
	}
	u := p.home.Updates
	if err := u.Clean(); err != nil {
		p.log("what an update left cannot be removed", "error", err)
	}
	every := updateEvery
	if p.home.every > 0 {
		every = p.home.every
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var found *update.Release // waits to be fetched
	asked := false            // the user asked for it
	for !u.Ready() {
		select {
		case <-tick.C:
		case <-p.askedForUpdate:
			asked = true
			p.tell(UpdateKnown{Update{Own: true, Looking: true}})
			found = p.checkForUpdate(ctx, u, asked)
		case <-ctx.Done():
			return
		}
		if !p.State().quiet() {
			continue
		}
		wanted := p.Settings().LookForUpdates
		if found == nil && wanted && u.Due() {
			found = p.checkForUpdate(ctx, u, false)
		}
		if found != nil && (wanted || asked) && p.fetchUpdate(ctx, u, *found) {
			found, asked = nil, false
		}
	}
}

// checkForUpdate asks the feed. A user who asked is told what came of it; the daily look is for the log, unless there is something.
func (p *Pond) checkForUpdate(ctx context.Context, u *update.Updater, asked bool) *update.Release {
	r, err := u.Check(ctx)
	told := Update{Own: true}
	switch {
	case err != nil:
		p.log("looking for updates failed", "error", err)
		told.Trouble = err.Error()
	case r == nil:
		p.log("no update")
		told.Newest = true
	default:
		told.Version = r.Version.String()
	}
	if r != nil || asked {
		p.tell(UpdateKnown{told})
	}
	return r
}

// fetchUpdate makes a release ready, and reports whether that came to its end, good or bad. Work that begins breaks it off.
func (p *Pond) fetchUpdate(ctx context.Context, u *update.Updater, r update.Release) bool {
	ctx, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		p.Watch(ctx, func(s State) {
			if !s.quiet() {
				cancel()
			}
		})
	}()
	defer func() {
		cancel()
		<-watched
	}()
	told := Update{Own: true, Version: r.Version.String()}
	switch err := u.Fetch(ctx, r); {
	case err != nil && ctx.Err() != nil:
		p.log("fetching an update waits for a quiet moment", "version", told.Version)
		return false
	case err != nil:
		p.log("fetching an update failed", "error", err)
		told.Trouble = err.Error()
	default:
		p.log("an update is ready", "version", told.Version)
		told.Ready = true
		p.notify("Pond "+told.Version+" is ready", "It is installed when you quit Pond.")
	}
	p.tell(UpdateKnown{told})
	return true
}

// askForUpdate has WatchUpdates ask the feed at once.
func (p *Pond) askForUpdate() {
	select {
	case p.askedForUpdate <- struct{}{}:
	default: // it was asked already
	}
}

// InstallUpdate puts a newer release that is ready in the app's place: the last act, after Close.
func (p *Pond) InstallUpdate() {
	if p.home == nil || p.home.Updates == nil || !p.home.Updates.Ready() {
		return
	}
	if err := p.home.Updates.Install(); err != nil {
		p.log("installing an update failed", "error", err)
		return
	}
	p.log("an update is installed")
}

// quiet reports whether nobody works and nothing is done to a model's files.
func (s State) quiet() bool {
	return s.Phase != Loading && s.Job.Kind == NoJob && s.Work.Active+s.Work.Queued == 0
}
