// Package fetch downloads the files of a model into a folder: from several sources, over several connections, checked against the
// manifest, and so that whatever happens in between costs little: a file bears its name only when every byte of it was verified,
// and what was received before an interruption is not asked for again.
//
// It does not decide what is installed, and it neither locks nor creates the folder (package store does). Start with Run, then
// schedule.go (who fetches what), reach.go (is there a network), file.go (one file on its way to the disk), state.go (what is remembered of it) and client.go
// (what a server may answer).
package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/manifest"
)

// Endings of the files that exist while a file is on its way: its bytes, and what is known of them.
const (
	PartSuffix  = ".part"
	StateSuffix = ".part.state"
)

// Job is what to download and how. Zero options mean the default in their comment.
type Job struct {
	Dir     string // exists, and is this process's alone
	Files   []manifest.File
	Sources []Source // in order of preference
	Options
}

// Options are the knobs of a job.
type Options struct {
	Connections int           // requests at once; 8
	FilesAtOnce int           // large files at once; 2
	ChunkBytes  int64         // what a crash can cost for each connection, in bytes; 16 MiB
	RateBytes   int64         // most bytes a second, all connections together; 0: no limit
	Stall       time.Duration // a connection that brings next to nothing for so long is left; 20 s
	Backoff     time.Duration // wait after a source's second failure in a row, doubled for each further one up to 1 min; 500 ms
	Patience    time.Duration // the job fails when nothing came for so long from any source; 15 min
	Offline     time.Duration // the job fails when no connection could be made for so long since its start; 1 min
	SaveEvery   time.Duration // what was received is made to outlast a crash at least so often; 2 s
	Proxy       func(*http.Request) (*url.URL, error)
	Report      func(Event)               // told what happens, one call at a time; must not wait
	Done        func(manifest.File) error // a file is verified and has its name; one call at a time

	skipHash bool // benchmarks alone: what hashing costs is the difference
}

func (o Options) withDefaults() Options {
	def := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	if o.Connections <= 0 {
		o.Connections = 8
	}
	if o.FilesAtOnce <= 0 {
		o.FilesAtOnce = 2
	}
	if o.ChunkBytes <= 0 {
		o.ChunkBytes = 16 << 20
	}
	def(&o.Stall, 20*time.Second)
	def(&o.Backoff, 500*time.Millisecond)
	def(&o.Patience, 15*time.Minute)
	def(&o.Offline, time.Minute)
	def(&o.SaveEvery, 2*time.Second)
	if o.Proxy == nil {
		o.Proxy = http.ProxyFromEnvironment
	}
	if o.Report == nil {
		o.Report = func(Event) {}
	}
	if o.Done == nil {
		o.Done = func(manifest.File) error { return nil }
	}
	return o
}

// Kind is what an Event tells of.
type Kind int

// The kinds of events.
const (
	Moving    Kind = iota // Progress, a few times a second
	Trouble               // a request failed (Err) and will be tried again
	Restarted             // what was received of File is thrown away, because of Err
	Finished              // File is verified and has its name
)

// Event is one piece of news. Progress is filled in for all kinds.
type Event struct {
	Kind     Kind
	File     string
	Source   string
	Host     string // of Trouble: which was asked, the source's or one that it led to
	Cause    string // of Trouble: why, the same text for the same cause whatever the file and the bytes
	Err      error
	Progress Progress
}

// Progress is how far a job is.
type Progress struct {
	Done, Total int64   // bytes on the disk, of all files of the job
	Rate        float64 // bytes a second over the last 10 s; 0 while unknown
	Active      int     // requests that bring bytes or are expected to; 0: waiting for a source
	Offline     bool    // no source can be reached; they are tried again and again
}

// ETA is the time left at the present rate; ok is false while it is unknown.
func (p Progress) ETA() (left time.Duration, ok bool) {
	if p.Rate <= 0 || p.Done > p.Total {
		return 0, false
	}
	seconds := float64(p.Total-p.Done) / p.Rate
	if seconds > 1e8 { // three years: the rate says nothing
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// SourceError says that a file cannot be had: every source refused it, or none brought anything for as long as Options.Patience
// allows. What was received is kept.
type SourceError struct {
	File    string
	Faults  []error       // the last one of each source
	Waited  time.Duration // since the last bytes, or the start; 0: every source refused
	Offline bool          // no source could be reached at the end
}

func (e *SourceError) Error() string {
	var texts []string
	for _, err := range e.Faults {
		text := err.Error()
		var f *fault
		if errors.As(err, &f) && e.Offline {
			text = fmt.Sprintf("%s cannot be reached (%s)", f.host, f.cause())
		} else if errors.As(err, &f) {
			text = fmt.Sprintf("%s: %v", f.source, plain(f.err))
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		texts = append(texts, "no source has it")
	}
	all := strings.Join(texts, "; ")
	switch {
	case e.Offline:
		return fmt.Sprintf("no connection for %s: %s", about(e.Waited), all)
	case e.Waited > 0:
		return fmt.Sprintf("%s: no source delivers it, waited for %s: %s", e.File, about(e.Waited), all)
	}
	return fmt.Sprintf("%s: no source delivers it: %s", e.File, all)
}

// DigestError says that a file was received whole, more than once, and was never the file of the manifest. Nothing of it is kept.
type DigestError struct {
	File      string
	Got, Want manifest.Digest
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("%s: the sources deliver another file: got SHA-256 %s, want %s", e.File, e.Got, e.Want)
}

// SpaceError says that the disk is full. What was received is kept.
type SpaceError struct {
	Dir       string
	NeedBytes int64 // still to be written, with what is to be left free
	FreeBytes int64
	Err       error // the system's own words; nil where space was only counted
}

func (e *SpaceError) Error() string {
	text := fmt.Sprintf("%s: not enough space: %.2f GB are needed, %.2f GB are free", e.Dir, float64(e.NeedBytes)/1e9, float64(e.FreeBytes)/1e9)
	if e.Err != nil {
		text += fmt.Sprintf(" (%v)", e.Err)
	}
	return text
}

func (e *SpaceError) Unwrap() error { return e.Err }

// DiskError says that the folder cannot be written to or read: its drive was ejected, or it fails.
type DiskError struct {
	Dir string
	Err error
}

func (e *DiskError) Error() string { return fmt.Sprintf("%s: %v", e.Dir, e.Err) }
func (e *DiskError) Unwrap() error { return e.Err }

// Run downloads the job's files and returns when all of them are verified and have their names. Files that have theirs already must
// not be in the job. An interrupted job is taken up where it stopped by running it again.
//
// The error is a *SourceError, *DigestError, *SpaceError or *DiskError, one of Options.Done, or ctx's; in each case what was
// received, but for a file that proved wrong, is on the disk and recorded there.
func Run(ctx context.Context, job Job) error {
	job.Options = job.Options.withDefaults()
	if len(job.Sources) == 0 {
		return errors.New("fetch: got no sources, want at least one")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := newRunner(ctx, job, cancel)
	defer r.client.close()
	var workers, others sync.WaitGroup
	aside, enough := context.WithCancel(ctx)
	defer enough()
	others.Go(func() { r.reportLoop(aside) })
	others.Go(func() { r.saveLoop(aside) })
	for range job.Connections {
		workers.Go(func() { r.work(ctx) })
	}
	workers.Wait()
	r.hashers.Wait()
	enough()
	others.Wait()
	err := r.saveAll() // what came after the last one
	for _, f := range r.files {
		if cerr := f.close(r.Dir); cerr != nil {
			err = errors.Join(err, &DiskError{r.Dir, cerr})
		}
	}
	r.report(Event{Kind: Moving})

	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.failure != nil:
		return r.failure
	case r.unfinished() > 0 && err != nil:
		return err // a pause that loses something is more than a pause
	case r.unfinished() > 0:
		return context.Cause(ctx)
	}
	return nil
}

// diskError sorts an error of the folder.
func (r *runner) diskError(err error) error {
	if !disk.Full(err) {
		return &DiskError{r.Dir, err}
	}
	free, ferr := disk.Free(r.Dir)
	if ferr != nil {
		return &DiskError{r.Dir, errors.Join(err, ferr)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var need int64
	for _, f := range r.files {
		if !f.done {
			need += f.Bytes - f.have.bytes()
		}
	}
	return &SpaceError{Dir: r.Dir, NeedBytes: need, FreeBytes: free, Err: err}
}
