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
	Version string // empty: none is known
	Ready   bool   // it takes the app's place when Pond quits
	Trouble string // why it cannot be had
}

// Line tells of it in one line; empty while there is nothing to tell.
func (u Update) Line() string {
	switch {
	case u.Trouble != "":
		return "Pond " + u.Version + " could not be fetched: " + u.Trouble
	case u.Ready:
		return "Pond " + u.Version + " is ready: it is installed when you quit"
	}
	return ""
}

// WatchUpdates looks for newer releases until ctx is done: at most daily, only while the user wants it, and only while nobody works and nothing
// is done to a model's files. Work that begins ends a download; it is taken up later. Where this Pond is not updated by itself it returns at once.
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
	for !u.Ready() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if p.Settings().LookForUpdates && p.State().quiet() && (found != nil || u.Due()) {
			found = p.lookForUpdate(ctx, u, found)
		}
	}
}

// lookForUpdate asks the feed, unless a release is known already, and fetches what is newer. It returns what is still to be fetched.
func (p *Pond) lookForUpdate(ctx context.Context, u *update.Updater, found *update.Release) *update.Release {
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
	if found == nil {
		r, err := u.Check(ctx)
		if err != nil {
			p.log("looking for updates failed", "error", err)
			return nil
		}
		if r == nil {
			p.log("no update")
			return nil
		}
		found = r
	}
	told := Update{Version: found.Version.String()}
	switch err := u.Fetch(ctx, *found); {
	case err != nil && ctx.Err() != nil:
		p.log("fetching an update waits for a quiet moment", "version", told.Version)
		return found
	case err != nil:
		p.log("fetching an update failed", "error", err)
		told.Trouble = err.Error()
	default:
		p.log("an update is ready", "version", told.Version)
		told.Ready = true
		p.notify("Pond "+told.Version+" is ready", "It is installed when you quit Pond.")
	}
	p.tell(UpdateKnown{told})
	return nil
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
