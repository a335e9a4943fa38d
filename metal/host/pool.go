package host

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"pond/metal/host/simd"
)

// Rules of the pool:
//   - the caller is a worker too, and takes chunks like the others;
//   - a chunk is a range of one dispatch's items; chunks of all dispatches of a level are handed out together;
//   - chunks are claimed one by one, and a level ends when every claimed chunk is done: a worker that the system has put aside before
//     its claim holds up nobody;
//   - a worker without work spins for a while before it parks: waking one costs about 50 us here, and a token has 250 levels;
//   - a level whose traffic is under inlineBytes stays with the caller.
const (
	inlineBytes = 48 << 10
	chunkBytes  = 256 << 10 // smaller ones start the prefetcher anew too often: 64 KiB cost 6 %
	chunksEach  = 8         // chunks a worker gets at most, on average
	spins       = 2000      // about 100 us
)

// chunk is a range of work items of one dispatch.
type chunk struct {
	b      *bound
	lo, hi int
	id     uint64 // of this dispatch in this run: what a worker prepared for it serves its next chunks too
}

// claims is one word: the generation of the level, how many chunks it has, and how many were claimed. Whoever adds one to it owns the
// chunk of that number, if there is one, and no later level can begin before it is done; so the chunks need no lock.
type claims struct{ atomic.Uint64 }

const (
	claimBits = 20
	claimMask = 1<<claimBits - 1
	maxChunks = claimMask >> 1 // over-claims, one a worker and level, must not overflow
)

func (c *claims) open(generation uint64, chunks int) {
	c.Store(generation<<(2*claimBits) | uint64(chunks)<<claimBits)
}

func (c *claims) generation() uint64 { return c.Load() >> (2 * claimBits) }

// take claims the next chunk.
func (c *claims) take() (i int, ok bool) {
	v := c.Add(1)
	claimed, chunks := int(v&claimMask), int(v>>claimBits&claimMask)
	return claimed - 1, claimed <= chunks
}

type pool struct {
	n      int
	claims claims
	chunks []chunk // of the level
	done   atomic.Int64
	err    atomic.Pointer[error]

	parked  atomic.Int64
	wake    chan struct{} // a token may be stale; a woken worker looks for itself
	stopped atomic.Bool
	wg      sync.WaitGroup

	generation uint64
	runs       uint64  // dispatches begun
	own        scratch // the caller's
}

func newPool(threads int) *pool {
	p := &pool{n: threads, wake: make(chan struct{}, threads)}
	for range threads - 1 {
		p.wg.Add(1)
		go p.worker()
	}
	return p
}

func (p *pool) threads() int { return p.n }

func (p *pool) stop() {
	p.stopped.Store(true)
	close(p.wake)
	p.wg.Wait()
}

func (p *pool) worker() {
	defer p.wg.Done()
	var s scratch
	seen := p.claims.generation()
	for {
		for i := 0; p.claims.generation() == seen && i < spins; i++ {
			simd.Pause()
		}
		if p.claims.generation() == seen {
			p.parked.Add(1)
			if p.claims.generation() == seen { // else the level came before the count did
				<-p.wake
			}
			p.parked.Add(-1)
		}
		if p.stopped.Load() {
			return
		}
		seen = p.claims.generation()
		p.help(&s)
	}
}

// help does chunks until none is left to claim.
func (p *pool) help(s *scratch) {
	for {
		i, ok := p.claims.take()
		if !ok {
			return
		}
		if err := p.chunks[i].run(s); err != nil {
			p.fail(err)
		}
		p.done.Add(1)
	}
}

// fail keeps the first error. Apart from help, so that only a failure allocates.
func (p *pool) fail(err error) { p.err.CompareAndSwap(nil, &err) }

func (c chunk) run(s *scratch) (err error) {
	// Without it a page of a mapped file that is gone ends the program.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		s.prepared = 0
		if fault, ok := r.(interface{ Addr() uintptr }); ok {
			if name, off, ok := c.b.weightsAt(fault.Addr()); ok {
				err = fmt.Errorf("%s: %s: byte %d cannot be read: its file was cut off after it was opened, or its disk fails", c.b.label, name, off)
				return
			}
		}
		err = fmt.Errorf("%s: items [%d, %d): %v\n%s", c.b.label, c.lo, c.hi, r, debug.Stack())
	}()
	s.begin(c.id)
	c.b.run(c.b.args, c.b.params, c.lo, c.hi, s)
	return nil
}

// cut divides a dispatch into about so many chunks.
func (p *pool) cut(b *bound, pieces int) {
	p.runs++
	step := max(1, (b.items+pieces-1)/pieces)
	switch { // products work on 4 rows at a time, or on tiles of 32
	case step > 32:
		step = (step + 31) &^ 31
	case step > 4:
		step = (step + 3) &^ 3
	}
	for lo := 0; lo < b.items; lo += step {
		p.chunks = append(p.chunks, chunk{b, lo, min(lo+step, b.items), p.runs})
	}
}

func (p *pool) run(level []bound) error {
	var work int64
	for i := range level {
		work += level[i].work
	}
	p.chunks = p.chunks[:0]
	wide := p.n > 1 && work >= inlineBytes
	for i := range level {
		pieces := 1
		if wide {
			pieces = p.n * int(min(max(1, level[i].work/chunkBytes/int64(p.n)), chunksEach))
		}
		p.cut(&level[i], pieces)
	}
	if !wide || len(p.chunks) == 1 || len(p.chunks) > maxChunks {
		for _, c := range p.chunks {
			if err := c.run(&p.own); err != nil {
				return err
			}
		}
		return nil
	}
	p.err.Store(nil)
	p.done.Store(0)
	p.generation++
	p.claims.open(p.generation, len(p.chunks))
	for range p.parked.Load() {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	p.help(&p.own)
	for i := 0; p.done.Load() < int64(len(p.chunks)); i++ {
		if simd.Pause(); i > spins {
			runtime.Gosched()
		}
	}
	if e := p.err.Load(); e != nil {
		return *e
	}
	return nil
}

// runShuffled runs the items of all dispatches of a level in random small pieces, one after the other.
func (p *pool) runShuffled(level []bound, r *rand.Rand) error {
	p.chunks = p.chunks[:0]
	for i := range level {
		b := &level[i]
		p.runs++
		step := 1 + r.IntN(max(1, b.items/3))
		for lo := 0; lo < b.items; lo += step {
			p.chunks = append(p.chunks, chunk{b, lo, min(lo+step, b.items), p.runs})
		}
	}
	r.Shuffle(len(p.chunks), func(i, k int) { p.chunks[i], p.chunks[k] = p.chunks[k], p.chunks[i] })
	for _, c := range p.chunks {
		if err := c.run(&p.own); err != nil {
			return err
		}
	}
	return nil
}
