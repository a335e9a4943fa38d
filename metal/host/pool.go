package host

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"pond/metal/kernels"
)

// Rules of the pool:
//   - the caller is a worker too, and takes chunks like the others;
//   - a chunk is a range of one dispatch's items; chunks of all dispatches of a level are handed out together;
//   - a level whose traffic is under inlineBytes stays with the caller: waking a parked goroutine costs about 50 us here, in which one
//     thread moves some 40 KB of weights;
//   - run returns only when every chunk is done, so no worker touches a buffer between levels.
const (
	inlineBytes = 48 << 10
	chunksEach  = 4 // chunks a worker gets on average, so that a slow one does not hold up the level
)

// chunk is a range of work items of one dispatch.
type chunk struct {
	b      *bound
	lo, hi int
}

// job is one level being run.
type job struct {
	chunks []chunk
	next   atomic.Int64
	err    atomic.Pointer[error]
	wg     sync.WaitGroup // workers that were woken for it
}

type pool struct {
	n    int
	wake chan *job
	own  kernels.Workspace // the caller's
	job  job               // reused: a pool runs one level at a time
	wg   sync.WaitGroup
}

func newPool(threads int) *pool {
	p := &pool{n: threads, wake: make(chan *job, threads)}
	for range threads - 1 {
		p.wg.Add(1)
		go func() {
			defer p.wg.Done()
			var ws kernels.Workspace
			for j := range p.wake {
				j.work(&ws)
				j.wg.Done()
			}
		}()
	}
	return p
}

func (p *pool) threads() int { return p.n }

func (p *pool) stop() {
	close(p.wake)
	p.wg.Wait()
}

// work takes chunks until none is left.
func (j *job) work(ws *kernels.Workspace) {
	for {
		i := int(j.next.Add(1)) - 1
		if i >= len(j.chunks) {
			return
		}
		if err := j.chunks[i].run(ws); err != nil {
			j.fail(err)
		}
	}
}

// fail keeps the first error. Apart from work, so that only a failure allocates.
func (j *job) fail(err error) { j.err.CompareAndSwap(nil, &err) }

func (c chunk) run(ws *kernels.Workspace) (err error) {
	// Without it a page of a mapped file that is gone ends the program.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if fault, ok := r.(interface{ Addr() uintptr }); ok {
			if name, off, ok := c.b.weightsAt(fault.Addr()); ok {
				err = fmt.Errorf("%s: %s: byte %d cannot be read: its file was cut off after it was opened, or its disk fails", c.b.label, name, off)
				return
			}
		}
		err = fmt.Errorf("%s: items [%d, %d): %v\n%s", c.b.label, c.lo, c.hi, r, debug.Stack())
	}()
	ws.Reset()
	c.b.run(c.b.args, c.b.params, c.lo, c.hi, ws)
	return nil
}

func (p *pool) run(level []bound) error {
	var work int64
	for i := range level {
		work += level[i].work
	}
	j := &p.job
	j.chunks = j.chunks[:0]
	j.next.Store(0)
	j.err.Store(nil)
	pieces := 1
	if p.n > 1 && work >= inlineBytes {
		pieces = p.n * chunksEach
	}
	for i := range level {
		b := &level[i]
		step := max(1, (b.items+pieces-1)/pieces)
		if step > 4 {
			step = (step + 3) &^ 3 // products work on four rows at a time
		}
		for lo := 0; lo < b.items; lo += step {
			j.chunks = append(j.chunks, chunk{b, lo, min(lo+step, b.items)})
		}
	}
	if pieces > 1 {
		for range min(p.n, len(j.chunks)) - 1 {
			j.wg.Add(1)
			p.wake <- j
		}
	}
	j.work(&p.own)
	j.wg.Wait()
	if e := j.err.Load(); e != nil {
		return *e
	}
	return nil
}

// runShuffled runs the items of all dispatches of a level in random small pieces, one after the other.
func (p *pool) runShuffled(level []bound, r *rand.Rand) error {
	var chunks []chunk
	for i := range level {
		b := &level[i]
		step := 1 + r.IntN(max(1, b.items/3))
		for lo := 0; lo < b.items; lo += step {
			chunks = append(chunks, chunk{b, lo, min(lo+step, b.items)})
		}
	}
	r.Shuffle(len(chunks), func(i, k int) { chunks[i], chunks[k] = chunks[k], chunks[i] })
	for _, c := range chunks {
		if err := c.run(&p.own); err != nil {
			return err
		}
	}
	return nil
}
