package app

import (
	"context"
	"time"
)

// lookEvery is how often a Pond that does not run looks at the machine again: what fits changes with what other programs do.
const lookEvery = 15 * time.Second

// Attend keeps the State true until ctx is done while nobody does anything: the memory verdict as other programs come and go, the disk after
// somebody else changed it, and the time after the machine slept.
func (p *Pond) Attend(ctx context.Context) {
	woke := make(chan bool, 4)
	if p.home != nil && p.home.System.WatchSleep != nil {
		err := p.home.System.WatchSleep(ctx, func(awake bool) {
			select {
			case woke <- awake:
			default: // it never waits: on a Mac this is the main thread
			}
		})
		if err != nil {
			p.log("sleep and wake are not told", "error", err)
		}
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if s := p.State(); !s.Phase.Serving() && s.Phase != Loading && s.Job.Kind == NoJob {
				p.Look()
			}
		case awake := <-woke:
			p.log("sleep", "awake", awake)
			if awake {
				p.Look()
			}
		case <-ctx.Done():
			return
		}
	}
}
