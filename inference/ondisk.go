package inference

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"pond/inference/cache"
)

// Disk says where conversations are kept beyond the life of an engine. The zero value keeps none. What lies there tells what was said, to
// whoever can read the user's files.
type Disk struct {
	Dir        string // folder of such files, created where it is missing; empty: none
	LimitBytes int64  // of all files there; 0: none is kept, and what was is removed
	Build      string // of the program: what another one computed may differ in its last bits

	lull time.Duration // see onDisk; 0: diskLull. Tests are impatient
}

// DiskStats says what is kept on the disk.
type DiskStats struct {
	On            bool
	Trouble       string // why it is not on although it was asked for, or why the last conversations could not be written
	LenBytes      int64
	Conversations int // places that can be gone back to
	Tokens        int // that lead to them
	Removed       int // files that were damaged or foreign, since the start
}

// onDisk keeps conversations in files: it reads before a job begins, and writes when the device has nothing to do.
//
//   - A prompt that the disk has more of than the memory waits until that is read, in the queue: the device goes on meanwhile.
//   - Snapshots never change, so they are written while answers go on; but only when nothing was asked for a while, or at the latest after
//     diskPatience: an agent's turns follow each other within moments, and only the last is worth a file.
//   - Close writes what is left, for closeTime at most, so that a quit stays quick.
type onDisk struct {
	files   *cache.Disk
	lull    time.Duration
	wake    chan struct{}
	stop    context.CancelFunc
	stopped chan struct{}
	trouble atomic.Pointer[string] // of the last writing; nil: none
	reading sync.Mutex             // one prompt at a time
	fetches sync.WaitGroup
}

const (
	diskLull     = 5 * time.Second
	diskPatience = time.Minute
	closeTime    = 2 * time.Second
	// readBytesAToken is how much may be read to spare a token; as in package cache.
	readBytesAToken = 1 << 20
	savingsFile     = "today.json"
)

// openDisk takes the folder, and empties it where none is to be kept. A folder that cannot be used leaves the engine without it, and the status
// says why.
func (e *Engine) openDisk(o Disk, facts ...string) error {
	if o.Dir == "" {
		return nil
	}
	if o.LimitBytes <= 0 {
		if freed, err := cache.ClearFolder(o.Dir); err != nil || freed > 0 {
			e.log.Info("no conversations are kept on the disk, and those there were removed", "bytes", freed, "error", err)
		}
		return nil
	}
	digest, err := e.modelDigest()
	if err != nil {
		return err
	}
	facts = append([]string{digest}, append(facts, o.Build)...)
	specs := e.model.StateSpecs()
	files, err := cache.OpenDisk(cache.DiskOptions{Dir: o.Dir, BudgetBytes: o.LimitBytes, Key: cache.KeyOf(facts, specs), Specs: specs, Log: e.log})
	if err != nil {
		e.diskTrouble = err.Error()
		e.log.Warn("conversations are not kept on the disk", "error", err)
		return nil
	}
	d := &onDisk{files: files, lull: o.lull, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	if d.lull == 0 {
		d.lull = diskLull
	}
	var ctx context.Context
	ctx, d.stop = context.WithCancel(context.Background())
	e.disk = d
	go d.run(ctx, e)
	if err := e.reuse.load(files.Path(savingsFile)); err != nil {
		e.log.Warn("what was spared today before this start is not known", "error", err)
	}
	s := files.Stats()
	e.log.Info("conversations on the disk", "bytes", s.LenBytes, "snapshots", s.Snapshots, "removed", s.Removed)
	return nil
}

// modelDigest tells models apart: configuration, tokenizer, when each weight file was last written to, and of each tensor its form and some of
// its bytes. Reading all would take as long as loading a model; a file that was repaired differs from the damaged one by its time alone.
func (e *Engine) modelDigest() (string, error) {
	const sample = 64
	h := sha256.New()
	for _, name := range []string{"config.json", "tokenizer.json"} {
		text, err := e.ckpt.File(name)
		if err != nil {
			return "", err
		}
		h.Write(text)
	}
	for _, name := range e.ckpt.Files() {
		if at := e.ckpt.Written(name); !at.IsZero() {
			fmt.Fprintf(h, "%q %d\n", name, at.UnixNano())
		}
	}
	err := e.ckpt.Guard(func() error {
		for _, name := range e.ckpt.Names() {
			t, _ := e.ckpt.Tensor(name)
			fmt.Fprintf(h, "%q %v %v %d\n", name, t.DType, t.Shape, len(t.Data))
			for _, at := range []int{0, len(t.Data) / 2, len(t.Data) - sample} {
				at = max(at, 0)
				h.Write(t.Data[at:min(at+sample, len(t.Data))])
			}
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// run writes until ctx ends.
func (d *onDisk) run(ctx context.Context, e *Engine) {
	defer close(d.stopped)
	for {
		select {
		case <-d.wake:
		case <-ctx.Done():
			return
		}
		d.wait(ctx, e)
		if ctx.Err() == nil {
			e.saveTo(ctx)
		}
	}
}

// wait returns when nothing was asked for a while.
func (d *onDisk) wait(ctx context.Context, e *Engine) {
	for begun := time.Now(); time.Since(begun) < diskPatience; {
		select {
		case <-d.wake: // another answer ended
			continue
		case <-time.After(d.lull):
		case <-ctx.Done():
			return
		}
		if s := e.queue.stats(); s.Active+s.Queued == 0 {
			return
		}
	}
}

// ended says that there may be something to write.
func (d *onDisk) ended() {
	select {
	case d.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// saveTo writes what is worth it, until ctx ends.
func (e *Engine) saveTo(ctx context.Context) {
	if e.disk.files.Stats().BudgetBytes == 0 {
		return
	}
	var list []cache.Saving
	e.kept.do(func() { list = e.kept.store.Savings(e.disk.files) })
	start, saved := time.Now(), 0
	var trouble error
	for _, s := range list {
		err := e.disk.files.Write(ctx, s.Tokens, s.Snapshot)
		if errors.Is(err, cache.ErrRoom) {
			trouble = err
			continue // a smaller one may find room
		}
		if err != nil {
			trouble = err
			break
		}
		saved++
	}
	e.disk.tell(ctx, trouble, e.log)
	if err := e.reuse.save(e.disk.files.Path(savingsFile)); err != nil {
		e.log.Warn("what was spared today is not noted", "error", err)
	}
	if len(list) > 0 {
		e.log.Info("conversations written to the disk", "snapshots", saved, "of", len(list), "seconds", time.Since(start).Seconds(), "bytes", e.disk.files.Stats().LenBytes)
	}
}

// tell notes why not all could be written, and logs it when that is news. That there was no time is no trouble.
func (d *onDisk) tell(ctx context.Context, trouble error, log *slog.Logger) {
	if trouble == nil {
		d.trouble.Store(nil)
		return
	}
	if ctx.Err() != nil {
		return
	}
	text := trouble.Error()
	if old := d.trouble.Swap(&text); old == nil || *old != text {
		log.Warn("conversations were not written to the disk", "error", trouble)
	}
}

// Save writes what is kept of conversations to the disk, where they are to be kept there, until ctx ends. Close does so for two seconds at most.
func (e *Engine) Save(ctx context.Context) {
	if e.disk != nil {
		e.saveTo(ctx)
	}
}

// ClearDisk forgets all conversations, on the disk and in memory, and returns how many bytes of the disk that were.
func (e *Engine) ClearDisk() (freedBytes int64) {
	e.DropSnapshots()
	if e.disk != nil {
		freedBytes = e.disk.files.Clear()
	}
	return freedBytes
}

// LimitDisk changes how many bytes conversations may take on the disk, where they are kept there; with 0 what is there goes, and no more is written.
func (e *Engine) LimitDisk(bytes int64) {
	if e.disk != nil {
		e.disk.files.SetBudget(bytes)
	}
}

func (e *Engine) diskStats() DiskStats {
	if e.disk == nil {
		return DiskStats{Trouble: e.diskTrouble}
	}
	s := e.disk.files.Stats()
	var trouble string
	if text := e.disk.trouble.Load(); text != nil {
		trouble = *text
	}
	return DiskStats{On: true, Trouble: trouble, LenBytes: s.LenBytes, Conversations: s.Snapshots, Tokens: s.Tokens, Removed: s.Removed}
}

// close writes what is left, and gives the folder back. The worker has ended.
func (d *onDisk) close(e *Engine) error {
	d.fetches.Wait()
	d.stop()
	<-d.stopped
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	e.saveTo(ctx)
	return d.files.Close()
}

// fetch brings what the disk has of a job's prompt into memory, if that is more than is there, and puts the job back into the queue. It
// reports false where there is nothing to wait for.
func (e *Engine) fetch(j *job) bool {
	d := e.disk
	if d == nil || j.task != nil || j.fetched || !e.diskHasMore(j) {
		return false
	}
	j.fetched = true
	e.queue.leave(j)
	d.fetches.Go(func() {
		d.reading.Lock()
		if e.diskHasMore(j) && e.life.Err() == nil && j.ctx.Err() == nil { // another job may have brought it
			start := time.Now()
			j.fromDisk = e.read(j.prompt)
			j.readTime = time.Since(start)
		}
		d.reading.Unlock()
		e.queue.back(j)
	})
	return true
}

// diskHasMore reports whether reading from the disk spares computing.
func (e *Engine) diskHasMore(j *job) bool {
	limit := len(j.prompt) - 1
	there, have := e.disk.files.Longest(j.prompt, limit), 0
	if there == 0 {
		return false
	}
	e.kept.do(func() {
		if c := e.kept.store.Find(j.prompt, limit); c != nil {
			have = c.Pos()
		}
	})
	return there > have && e.disk.files.Cost(j.prompt, limit) <= readBytesAToken*int64(there-have)
}

// read keeps the longest beginning of a prompt that the disk has, and returns its length; 0 where there is no room.
func (e *Engine) read(prompt []int32) (tokens int) {
	limit := len(prompt) - 1
	bytes := e.disk.files.Cost(prompt, limit)
	if !e.kept.expect(bytes) {
		return 0
	}
	c := e.disk.files.Read(prompt, limit)
	if c != nil && e.kept.arrived(bytes, prompt[:c.Pos()], c) {
		tokens = c.Pos()
	} else if c == nil {
		e.kept.arrived(bytes, nil, nil)
	}
	e.log.Info("a conversation was read from the disk", "tokens", tokens, "bytes", bytes)
	return tokens
}
