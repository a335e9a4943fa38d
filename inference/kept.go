package inference

import (
	"runtime"
	"runtime/debug"
	"sync"

	"pond/inference/cache"
	"pond/inference/qwen36"
)

// kept is the memory of conversations: the snapshots, and the sequences that work or may be used again. The ceiling is what the memory gate
// counted for it. What is let go first: idle sequences, then the snapshots worth least; the rows of what is worked on stay.
//
// The worker alone uses sequences; other goroutines count and drop.
type kept struct {
	mu      sync.Mutex // protects what follows
	store   *cache.Store
	ceiling int64
	held    int64              // bytes of all sequences
	idle    []*qwen36.Sequence // the latest used last
	freed   int64              // bytes of sequences let go of since the last collection
	coming  int64              // bytes of a snapshot that is being read from the disk
}

// Bounds of the garbage that is left to the collector's own pace: the least, and the part of the ceiling.
const (
	leastGarbage = 64 << 20
	garbagePart  = 16
)

func newKept(ceiling int64) *kept { return &kept{ceiling: ceiling, store: cache.NewStore(ceiling)} }

func (k *kept) do(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// lenBytes is what drop would free of each share.
func (k *kept) lenBytes() (snapshots, contexts int64) {
	k.do(func() {
		snapshots = k.store.LenBytes() - k.store.AtWork()
		for _, q := range k.idle {
			contexts += q.LenBytes(q.Rows())
		}
	})
	return snapshots, contexts
}

// drop lets go of shares of what is not worked on, and has the memory given back to the system.
func (k *kept) drop(shares ...Share) (freedBytes int64) {
	k.do(func() {
		for _, s := range shares {
			switch s {
			case Snapshots:
				freedBytes += k.store.Clear()
			case Contexts:
				before := k.held
				for len(k.idle) > 0 {
					k.dropIdle()
				}
				freedBytes += before - k.held
			}
		}
		k.freed = 0
		k.store.TakeFreed()
	})
	if freedBytes > 0 {
		debug.FreeOSMemory()
	}
	return freedBytes
}

// dropIdle lets the idle sequence go that was used longest ago. The lock is held.
func (k *kept) dropIdle() {
	n := k.idle[0].LenBytes(k.idle[0].Rows())
	k.held -= n
	k.freed += n
	k.idle = append(k.idle[:0], k.idle[1:]...)
}

// reserve makes room for so many bytes of sequences more. It reports false, and changes no count, where what is worked on leaves none. The
// lock is held.
func (k *kept) reserve(bytes int64) bool {
	for len(k.idle) > 0 && k.held+bytes+k.store.LenBytes() > k.ceiling {
		k.dropIdle()
	}
	left := k.left() - bytes
	if left < k.store.AtWork() {
		return false
	}
	k.held += bytes
	k.store.SetBudget(left)
	return true
}

// collect has garbage collected where there is much: Go's own pace would let the memory double.
func (k *kept) collect() {
	garbage := false
	k.do(func() {
		k.freed += k.store.TakeFreed()
		if garbage = k.freed > max(leastGarbage, k.ceiling/garbagePart); garbage {
			k.freed = 0
		}
	})
	if garbage {
		runtime.GC()
	}
}

// keep takes a snapshot where a job stands, where there is room for it and none yet.
func (k *kept) keep(l *live) {
	k.do(func() {
		if len(l.tokens) == 0 || k.store.Has(l.tokens) {
			return
		}
		cost := l.seq.SnapshotBytes() + 4*int64(len(l.tokens))
		if !k.roomFor(cost) {
			return
		}
		k.store.Keep(l.tokens, l.seq.Snapshot())
		k.rebase(l)
	})
}

// left is what snapshots may take. The lock is held, as for roomFor.
func (k *kept) left() int64 { return k.ceiling - k.held - k.coming }

// roomFor reports whether a snapshot of so many bytes can be kept; idle sequences make room for it, all but one, which spares the next request
// allocating.
func (k *kept) roomFor(bytes int64) bool {
	for len(k.idle) > 1 && bytes+k.store.LenBytes() > k.left() {
		k.dropIdle()
	}
	k.store.SetBudget(k.left())
	return k.store.Room(bytes)
}

// expect makes room for a snapshot that is about to be read, so that memory never holds more than the ceiling. It reports false where there
// is none. arrived must follow.
func (k *kept) expect(bytes int64) (ok bool) {
	k.do(func() {
		if ok = k.roomFor(bytes); ok {
			k.coming += bytes
			k.store.SetBudget(k.left())
		}
	})
	return ok
}

// arrived keeps what was expected; nil: it did not come. It reports whether it is kept.
func (k *kept) arrived(bytes int64, tokens []int32, c *cache.Snapshot) (ok bool) {
	k.do(func() {
		k.coming -= bytes
		k.store.SetBudget(k.left())
		ok = c != nil && k.store.Keep(tokens, c)
	})
	return ok
}

// rebase counts the rows that a job's sequence builds on now. The lock is held.
func (k *kept) rebase(l *live) {
	var now *cache.Rows
	if l.seq != nil {
		now = l.seq.Base()
	}
	k.store.Hold(now)
	k.store.Release(l.base)
	l.base = now
}

// take returns an idle sequence, one in whose memory most of the snapshot lies if there is such; nil where none is idle.
func (k *kept) take(c *cache.Snapshot) (q *qwen36.Sequence) {
	k.do(func() {
		best, most := -1, -1
		for i, q := range k.idle {
			if n := q.Shares(c); n >= most {
				best, most = i, n
			}
		}
		if best >= 0 {
			q = k.idle[best]
			k.idle = append(k.idle[:best], k.idle[best+1:]...)
		}
	})
	return q
}

// rest makes a job's sequence idle; a damaged one forgets everything.
func (k *kept) rest(l *live) {
	if l.seq == nil {
		return
	}
	k.do(func() {
		q := l.seq
		l.seq = nil
		k.rebase(l)
		if q.Rest(); l.broken {
			q.Reset()
		}
		k.idle = append(k.idle, q)
	})
}
