package fetch

import (
	"context"
	"sync"
	"time"
)

// limiter lets at most a number of bytes a second pass, over all connections; nil lets everything pass.
type limiter struct {
	perSecond float64

	mu   sync.Mutex // protects next
	next time.Time  // when the bytes that were let pass are paid for
}

func newLimiter(bytesPerSecond int64) *limiter {
	if bytesPerSecond <= 0 {
		return nil
	}
	return &limiter{perSecond: float64(bytesPerSecond)}
}

// wait returns when n more bytes may pass, or when ctx is done.
func (l *limiter) wait(ctx context.Context, n int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	now := time.Now()
	if l.next.Before(now) {
		l.next = now
	}
	l.next = l.next.Add(time.Duration(float64(n) / l.perSecond * float64(time.Second)))
	until := l.next
	l.mu.Unlock()
	sleep(ctx, until.Sub(now))
}

// sleep waits for d or for ctx.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// rateWindow is over how long the rate is taken; a rate from less than rateMin would say little.
const (
	rateWindow = 10 * time.Second
	rateMin    = time.Second
)

// meter measures the rate of received bytes over a window.
type meter struct {
	samples []sample // in order of time, the first one about rateWindow old
}

type sample struct {
	at    time.Time
	bytes int64 // received since the start
}

// rate notes how many bytes were received until now and returns bytes a second; 0 while too little is known.
func (m *meter) rate(now time.Time, bytes int64) float64 {
	m.samples = append(m.samples, sample{now, bytes})
	for len(m.samples) > 2 && now.Sub(m.samples[1].at) >= rateWindow {
		m.samples = m.samples[1:]
	}
	first := m.samples[0]
	if past := now.Sub(first.at); past >= rateMin {
		return float64(bytes-first.bytes) / past.Seconds()
	}
	return 0
}
