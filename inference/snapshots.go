package inference

import (
	"sync"

	"pond/inference/cache"
)

// snapshots lets other goroutines than the worker count and drop what conversations can go back to. The worker alone uses the
// timelines; it takes the lock where it reads or changes their snapshots.
type snapshots struct {
	mu    sync.Mutex // protects the snapshots of the timelines, and the list
	lines []*cache.Timeline
}

func (s *snapshots) add(t *cache.Timeline) {
	s.do(func() { s.lines = append(s.lines, t) })
}

func (s *snapshots) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *snapshots) lenBytes() (n int64) {
	s.do(func() {
		for _, t := range s.lines {
			n += t.LenBytes()
		}
	})
	return n
}

func (s *snapshots) drop() (freedBytes int64) {
	s.do(func() {
		for _, t := range s.lines {
			freedBytes += t.LenBytes()
			t.Drop()
		}
	})
	return freedBytes
}
