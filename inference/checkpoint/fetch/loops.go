package fetch

import (
	"context"
	"time"
)

// urge asks for a save soon.
func (r *runner) urge() {
	select {
	case r.hurry <- struct{}{}:
	default:
	}
}

// waitSaved returns when the save of that number has ended, or ctx is done.
func (r *runner) waitSaved(ctx context.Context, number uint64) {
	for {
		r.mu.Lock()
		saved, wake := r.saved, r.wake
		r.mu.Unlock()
		if saved >= number || ctx.Err() != nil {
			return
		}
		r.urge()
		select {
		case <-wake:
		case <-ctx.Done():
		}
	}
}

// saveLoop saves when somebody urges, and every Options.SaveEvery.
func (r *runner) saveLoop(ctx context.Context) {
	tick := time.NewTicker(r.SaveEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.hurry:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := r.saveAll(); err != nil {
			r.fail(err)
			return
		}
	}
}

// saveAll makes what was received until now outlast a crash.
func (r *runner) saveAll() error {
	r.mu.Lock()
	r.begun++
	number := r.begun
	r.mu.Unlock()
	for _, f := range r.files {
		if err := r.save(f); err != nil {
			return r.diskError(err)
		}
	}
	r.mu.Lock()
	r.saved = number
	r.wakeAll()
	r.mu.Unlock()
	return nil
}

// reportLoop tells how far the job is.
func (r *runner) reportLoop(ctx context.Context) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			r.mu.Lock()
			r.rate = r.meter.rate(now, r.received)
			r.mu.Unlock()
			r.report(Event{Kind: Moving})
		case <-ctx.Done():
			return
		}
	}
}

// report tells an event, with the progress of the moment.
func (r *runner) report(e Event) {
	r.telling.Lock()
	defer r.telling.Unlock()
	r.mu.Lock()
	p := Progress{Rate: r.rate, Offline: r.offline()}
	for _, f := range r.files {
		p.Total += f.Bytes
		p.Done += f.have.bytes()
		p.Active += f.active
	}
	r.mu.Unlock()
	e.Progress = p
	r.Report(e)
}
