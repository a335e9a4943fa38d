package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/manifest"
)

// file is one file on its way.
//
//   - have grows with what was written to the part; claimed is have and what requests in flight were given. No two requests hold the
//     same byte.
//   - front is the part of have that went through the hash, from the first byte on. The request that writes at the front hashes what it
//     holds in memory; what was written ahead of the front is read back once by hashLoop.
//   - What save records was synced before: have and front may say less than the disk holds, never more.
//   - The file gets its name when front is its size and the digest is the manifest's, and has no part and no state from then on.
//
// Order of locks: saving, then hashing, then runner.mu.
type file struct {
	manifest.File
	small bool // fetched whole, hashed in memory, written at once

	saving sync.Mutex  // one save, or the end of the file, at a time
	taking sync.Mutex  // one takeRoom at a time
	roomy  atomic.Bool // the part has its room on the disk

	hashing sync.Mutex // protects hash and front
	hash    hash.Hash
	front   int64
	ahead   chan struct{} // there may be something to hash

	// The rest is protected by runner.mu.
	part       *os.File // nil: not opened, or done
	opening    bool
	resumed    bool // the hash came from a state
	done       bool
	have       extents
	claimed    extents
	active     int // requests in flight
	ctx        context.Context
	cancel     context.CancelFunc // ends the requests
	validators map[string]string
	restart    error // not nil: the requests are ending, then the part is thrown away
	forgiven   bool  // a changed validator cost a restart already
	wrong      int   // digests that were not the manifest's
	whole      bool  // no source knows ranges
	trouble    []trouble
	credit     int64 // bytes since the last that counted as progress
	dirty      bool  // have or front grew since the last save
}

// trouble is what a source did with a file lately.
type trouble struct {
	faults    int // in a row
	refusals  int // in a row
	rangeless bool
	until     time.Time // not asked before
	last      error
}

// smallBytes is up to where a file is fetched in one request and from the start each time.
const smallBytes = 1 << 20

func (f *file) path(dir string) string { return filepath.Join(dir, f.Name) }

// open creates or takes up the part. It is called with opening set and without locks.
func (r *runner) open(f *file) error {
	s, err := readState(r.Dir, f.File)
	fresh := err != nil
	if fresh && !errors.Is(err, fs.ErrNotExist) {
		r.report(Event{Kind: Restarted, File: f.Name, Err: err})
	}
	name := f.path(r.Dir) + PartSuffix
	flags := os.O_RDWR | os.O_CREATE
	if fresh {
		flags |= os.O_TRUNC
		if err := remove(f.path(r.Dir) + StateSuffix); err != nil {
			return err
		}
	}
	part, err := os.OpenFile(name, flags, 0o644)
	if err != nil {
		return err
	}
	f.hashing.Lock()
	defer f.hashing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	f.hash, f.front, f.have, f.validators = sha256.New(), 0, nil, map[string]string{}
	if !fresh {
		f.hash, f.front = s.resume()
		for _, e := range s.Have {
			f.have.add(e[0], e[1])
		}
		for k, v := range s.Validators {
			f.validators[k] = v
		}
	}
	f.resumed = !fresh
	f.roomy.Store(!fresh)
	f.claimed = append(extents(nil), f.have...)
	f.part = part
	f.ctx, f.cancel = context.WithCancel(r.ctx())
	return nil
}

func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// takeRoom takes the room of the whole file on the disk. That waits for the first bytes: a source that has nothing, or a network that is
// not there, leaves no gigabytes behind.
func (f *file) takeRoom() error {
	if f.roomy.Load() {
		return nil
	}
	f.taking.Lock()
	defer f.taking.Unlock()
	if f.roomy.Load() {
		return nil
	}
	if err := disk.Preallocate(f.part, f.Bytes); err != nil {
		return err
	}
	f.roomy.Store(true)
	return nil
}

// close gives back what a file holds when the job ends; a part that nothing came for goes.
func (f *file) close(dir string) error {
	if f.cancel != nil {
		f.cancel()
	}
	if f.part == nil {
		return nil
	}
	f.part.Close() // what counts was synced
	if f.have.bytes() > 0 || f.done {
		return nil
	}
	return errors.Join(remove(f.path(dir)+StateSuffix), remove(f.path(dir)+PartSuffix))
}

// wrote records that b was written at at, and hashes it where it lies at the front and nobody else is hashing.
func (r *runner) wrote(f *file, at int64, b []byte) {
	r.mu.Lock()
	f.have.add(at, at+int64(len(b)))
	f.dirty = true
	r.received += int64(len(b))
	f.credit += int64(len(b))
	if f.credit >= stallBytes || f.have.bytes() == f.Bytes {
		f.credit = 0
		r.progress = time.Now()
	}
	r.mu.Unlock()
	if !r.skipHash && f.hashing.TryLock() {
		if skip := f.front - at; skip >= 0 && skip < int64(len(b)) {
			f.hash.Write(b[skip:])
			f.front = at + int64(len(b))
		}
		f.hashing.Unlock()
	}
	f.nudge()
}

func (f *file) nudge() {
	select {
	case f.ahead <- struct{}{}:
	default:
	}
}

// hashLoop hashes what lies ahead of the front, and ends the file when all of it is there.
func (r *runner) hashLoop(ctx context.Context, f *file) {
	const stepBytes = 1 << 20
	buf := make([]byte, stepBytes)
	for {
		select {
		case <-f.ahead:
		case <-ctx.Done():
			return
		}
		for ctx.Err() == nil {
			complete, more, err := r.hashStep(f, buf)
			if err != nil {
				r.fail(r.diskError(err))
				return
			}
			if complete {
				if done, err := r.finish(f); err != nil {
					r.fail(err)
					return
				} else if done {
					return
				}
			}
			if !more {
				break
			}
		}
	}
}

// hashStep reads back and hashes one step; more is false when the front has reached what is there.
func (r *runner) hashStep(f *file, buf []byte) (complete, more bool, err error) {
	f.hashing.Lock()
	defer f.hashing.Unlock()
	r.mu.Lock()
	part, end, stopped := f.part, f.have.reach(f.front), f.restart != nil
	r.mu.Unlock()
	if stopped || part == nil {
		return false, false, nil
	}
	if r.skipHash {
		return end == f.Bytes, false, nil
	}
	if n := min(end-f.front, int64(len(buf))); n > 0 {
		if _, err := part.ReadAt(buf[:n], f.front); err != nil {
			return false, false, err
		}
		f.hash.Write(buf[:n])
		f.front += n
	}
	return f.front == f.Bytes, f.front < end, nil
}

// finish gives a file that is there whole its name, or throws it away. done is true when there is nothing more to hash.
func (r *runner) finish(f *file) (done bool, err error) {
	f.saving.Lock()
	defer f.saving.Unlock()
	got := manifest.Digest(f.hash.Sum(nil)) // nobody hashes any more: the front is at the end
	if r.skipHash {
		got = f.SHA256
	}
	if got != f.SHA256 && f.resumed {
		// The hash came through a file that something may have damaged: ask the bytes themselves before giving them up.
		if got, err = digest(r.ctx(), f.part, f.Bytes); err != nil {
			return false, r.diskError(err)
		}
	}
	if got != f.SHA256 {
		return false, r.wrongDigest(f, got)
	}
	if err := errors.Join(f.part.Sync(), f.part.Close()); err != nil {
		return false, r.diskError(err)
	}
	r.mu.Lock()
	f.part, f.opening = nil, true // nobody opens it again
	r.mu.Unlock()
	if err := r.settle(f); err != nil {
		return false, err
	}
	return true, nil
}

// settle renames a synced part to its name, last of all, and tells.
func (r *runner) settle(f *file) error {
	name := f.path(r.Dir)
	if err := os.Rename(name+PartSuffix, name); err != nil {
		return r.diskError(err)
	}
	if err := errors.Join(remove(name+StateSuffix), remove(name+StateSuffix+disk.TempSuffix), disk.SyncDir(r.Dir)); err != nil {
		return r.diskError(err)
	}
	r.telling.Lock()
	err := r.Done(f.File)
	r.telling.Unlock()
	if err != nil {
		return err
	}
	r.mu.Lock()
	f.done = true
	f.have = extents{{0, f.Bytes}}
	r.wakeAll()
	r.mu.Unlock()
	r.report(Event{Kind: Finished, File: f.Name})
	return nil
}

// wrongDigest decides about a file whose digest is not the manifest's: it is fetched once more from every source, each first in its turn.
func (r *runner) wrongDigest(f *file, got manifest.Digest) error {
	err := &DigestError{f.Name, got, f.SHA256}
	r.mu.Lock()
	f.wrong++
	last := f.wrong > len(r.Sources)
	if last {
		f.restart = err // nobody saves or fetches it any more
	}
	r.mu.Unlock()
	if !last {
		r.discard(f, err)
		return nil
	}
	name := f.path(r.Dir)
	if rerr := errors.Join(remove(name+PartSuffix), remove(name+StateSuffix), remove(name+StateSuffix+disk.TempSuffix)); rerr != nil {
		return r.diskError(rerr)
	}
	return err
}

// discard makes a file begin anew once its requests have ended.
func (r *runner) discard(f *file, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.restart != nil || f.done {
		return
	}
	f.restart = why
	if f.cancel != nil {
		f.cancel()
	}
	if f.active == 0 {
		f.opening = true
		r.hashers.Go(func() { r.reopen(f) })
	}
}

// reopen throws the part away and opens a new one. No request for the file is in flight.
func (r *runner) reopen(f *file) {
	r.mu.Lock()
	why := f.restart
	r.mu.Unlock()
	r.report(Event{Kind: Restarted, File: f.Name, Err: why})
	f.saving.Lock()
	defer f.saving.Unlock()
	name := f.path(r.Dir)
	f.hashing.Lock() // nobody reads from the part
	err := errors.Join(remove(name+StateSuffix), f.part.Close())
	f.hashing.Unlock()
	if err == nil {
		err = r.open(f)
	}
	if err != nil {
		r.mu.Lock()
		f.part = nil
		r.mu.Unlock()
		r.fail(r.diskError(err))
		return
	}
	r.mu.Lock()
	f.restart, f.opening = nil, false
	r.wakeAll()
	r.mu.Unlock()
}

// save syncs a part and records what it holds.
func (r *runner) save(f *file) error {
	f.saving.Lock()
	defer f.saving.Unlock()
	f.hashing.Lock()
	r.mu.Lock()
	part := f.part
	if !f.dirty || f.restart != nil || f.opening || part == nil {
		r.mu.Unlock()
		f.hashing.Unlock()
		return nil
	}
	f.dirty = false
	s, err := newState(f.File, f.hash, f.front, f.have, f.validators)
	r.mu.Unlock()
	f.hashing.Unlock()
	if err != nil {
		return fmt.Errorf("fetch: internal error: %w", err)
	}
	if err := part.Sync(); err != nil {
		return err
	}
	return s.write(r.Dir)
}

// digest hashes the first lenBytes of a file.
func digest(ctx context.Context, f io.ReaderAt, lenBytes int64) (manifest.Digest, error) {
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for at := int64(0); at < lenBytes; {
		if ctx.Err() != nil {
			return manifest.Digest{}, context.Cause(ctx)
		}
		n, err := f.ReadAt(buf[:min(int64(len(buf)), lenBytes-at)], at)
		if n == 0 && err != nil {
			return manifest.Digest{}, err
		}
		h.Write(buf[:n])
		at += int64(n)
	}
	return manifest.Digest(h.Sum(nil)), nil
}

// keepWhole writes a small file that is there in memory.
func (r *runner) keepWhole(f *file, data []byte) error {
	if got := manifest.Digest(sha256.Sum256(data)); got != f.SHA256 && !r.skipHash {
		return &DigestError{f.Name, got, f.SHA256}
	}
	part, err := os.OpenFile(f.path(r.Dir)+PartSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return r.diskError(err)
	}
	_, err = io.Copy(part, bytes.NewReader(data))
	if err := errors.Join(err, part.Sync(), part.Close()); err != nil {
		return r.diskError(err)
	}
	return r.settle(f)
}
