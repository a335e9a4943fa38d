package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"pond/inference/checkpoint"
	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/manifest"
)

// Fault is a file that is not what the manifest says.
type Fault struct {
	File    string
	Missing bool
	Reason  string
}

func (f Fault) String() string { return f.File + ": " + f.Reason }

// DamagedError says that files are missing or are not the manifest's. Nothing was changed; a repair replaces them.
type DamagedError struct {
	Model  string
	Faults []Fault
}

func (e *DamagedError) Error() string {
	texts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		texts[i] = f.String()
	}
	return fmt.Sprintf("model %s: %s", e.Model, strings.Join(texts, "; "))
}

// Progress is told while bytes are read: done of total, all files together.
type Progress func(done, total int64)

// Verify reads every byte of a model and records what was found. The error is a *DamagedError, a *MissingRootError, a *disk.LockedError,
// ctx's, or the system's; fs.ErrNotExist where nothing of the model is there.
func (s Store) Verify(ctx context.Context, m manifest.Manifest, told Progress) (err error) {
	f, err := s.open(m, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.release()) }()
	faults, err := f.verify(ctx, m.Files, told)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return &DamagedError{m.ID, faults}
	}
	return f.check()
}

// VerifyFS compares a model that is built in with its manifest.
func VerifyFS(ctx context.Context, files fs.FS, m manifest.Manifest) error {
	e := &DamagedError{Model: m.ID}
	for _, want := range m.Files {
		data, err := fs.ReadFile(files, want.Name)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			e.Faults = append(e.Faults, Fault{want.Name, errors.Is(err, fs.ErrNotExist), err.Error()})
		case manifest.Digest(sha256.Sum256(data)) != want.SHA256:
			e.Faults = append(e.Faults, Fault{want.Name, false, fmt.Sprintf("got SHA-256 %x, want %s", sha256.Sum256(data), want.SHA256)})
		}
	}
	if len(e.Faults) > 0 {
		return e
	}
	return nil
}

// verify hashes files, a few at a time, and records the result of each.
func (f *folder) verify(ctx context.Context, files []manifest.File, told Progress) ([]Fault, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var total int64
	for _, file := range files {
		if id, err := disk.IdentityOf(f.path(file.Name)); err == nil && id.Bytes == file.Bytes {
			total += file.Bytes
		}
	}
	var done atomic.Int64
	var telling sync.Mutex // also protects f.record
	faults := make([]*Fault, len(files))
	next := make(chan int)
	var readers sync.WaitGroup
	for range min(4, runtime.GOMAXPROCS(0), max(len(files), 1)) {
		readers.Go(func() {
			for i := range next {
				bad, err := f.verifyFile(ctx, files[i], func(n int64) {
					sum := done.Add(n)
					if told != nil {
						telling.Lock()
						told(sum, total)
						telling.Unlock()
					}
				})
				if err != nil {
					cancel(err)
					continue
				}
				faults[i] = bad
				telling.Lock()
				if bad == nil {
					err = f.note(files[i])
				} else {
					f.record.drop(files[i].Name)
					f.record.Checked = false
					err = f.record.write(f.dir)
				}
				telling.Unlock()
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range files {
		next <- i
	}
	close(next)
	readers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var out []Fault
	for _, bad := range faults {
		if bad != nil {
			out = append(out, *bad)
		}
	}
	return out, nil
}

// verifyFile hashes one file; a fault is nil when it is the manifest's.
func (f *folder) verifyFile(ctx context.Context, want manifest.File, told func(int64)) (*Fault, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	name := f.path(want.Name)
	before, err := disk.IdentityOf(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Fault{want.Name, true, "missing"}, nil
	case err != nil:
		return &Fault{want.Name, false, err.Error()}, nil
	case before.Bytes != want.Bytes:
		return &Fault{want.Name, false, fmt.Sprintf("got %d bytes, want %d", before.Bytes, want.Bytes)}, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		n, err := file.Read(buf)
		h.Write(buf[:n])
		told(int64(n))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return &Fault{want.Name, false, err.Error()}, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if got := manifest.Digest(h.Sum(nil)); got != want.SHA256 {
		return &Fault{want.Name, false, fmt.Sprintf("got SHA-256 %s, want %s", got, want.SHA256)}, nil
	}
	if after, err := disk.IdentityOf(name); err != nil || after != before {
		return &Fault{want.Name, false, "it changed while it was read"}, nil
	}
	return nil, nil
}

// check is the last step to Ready: the headers of the weights must lie within their files and agree with the index.
func (f *folder) check() error {
	for _, file := range f.model.Files {
		if !strings.HasSuffix(file.Name, ".safetensors") {
			continue
		}
		c, err := checkpoint.OpenDir(f.dir)
		if err != nil {
			return fmt.Errorf("model %s: %w", f.model.ID, err)
		}
		if err := c.Close(); err != nil {
			return err
		}
		break
	}
	f.record.Checked = true
	if err := f.record.write(f.dir); err != nil {
		return err
	}
	return disk.SyncDir(f.dir)
}
