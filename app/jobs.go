package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"pond/inference/cache"
	"pond/inference/checkpoint/adopt"
	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/fetch"
	"pond/inference/checkpoint/manifest"
	"pond/inference/checkpoint/store"
)

// running is a job on its way.
type running struct {
	kind   JobKind
	cancel context.CancelFunc
	done   chan struct{}
}

// errNoModel answers a job where the chosen model is none that Pond downloads.
var errNoModel = errors.New("this model is not one that Pond downloads")

// errAtWork answers a job while another is on its way, or while the model is loaded and its files are needed.
var errAtWork = errors.New("something else is being done to the model's files")

// Look reads the settings' model anew: is it on the disk, may it be loaded, who else has it. It asks the disk, so it is not for Fyne's
// thread.
func (p *Pond) Look() {
	if p.home == nil {
		return
	}
	p.mu.Lock()
	chosen := p.settings
	p.mu.Unlock()
	m, known, err := p.home.pick(chosen)
	c := p.home.config(chosen, m)
	d := p.home.disk(chosen, known)
	if err != nil && d.Trouble == "" && len(known.Sources) == 0 {
		d.Trouble, d.Unknown = err.Error(), true
	}
	verdict := p.home.verdict(m.ID, m, chosen)
	machine := ThisMachine()
	if p.home.Memory != nil {
		machine.Memory = p.home.Memory()
	}
	var found []Copy
	if err != nil && len(known.Sources) > 0 {
		found = p.home.copies(known)
	}
	kept, _ := cache.UseOf(p.home.Paths.Sessions) // what cannot be read counts as nothing
	p.mu.Lock()
	defer p.mu.Unlock()
	p.happen(Chosen{Model: m.ID, Ready: err == nil, Disk: d, Address: c.Address, NeedsKey: c.APIKey != "", Quiet: chosen.Quiet, Kept: kept.LenBytes})
	p.happen(Judged{verdict, facts(machine)})
	p.happen(CopiesFound{found})
}

// copies are what other tools have of a model.
func (h Home) copies(m manifest.Manifest) []Copy {
	var out []Copy
	for _, c := range adopt.Search(h.Tools, m) {
		out = append(out, Copy{Tool: c.Tool, Dir: c.Dir, Bytes: c.Bytes(), MissingBytes: c.MissingBytes(), candidate: c})
	}
	return out
}

// CopiesIn looks for copies of the model in a folder that the user picked.
func (p *Pond) CopiesIn(dir string) []Copy {
	at, m, err := p.files()
	if err != nil || at.Root == "" {
		return nil
	}
	var out []Copy
	for _, c := range adopt.SearchDir(dir, m) {
		out = append(out, Copy{Tool: c.Tool, Dir: c.Dir, Bytes: c.Bytes(), MissingBytes: c.MissingBytes(), candidate: c})
	}
	return out
}

// files is where the chosen model is kept, and what its files are.
func (p *Pond) files() (store.Store, manifest.Manifest, error) {
	if p.home == nil {
		return store.Store{}, manifest.Manifest{}, errNoModel
	}
	p.mu.Lock()
	chosen := p.settings
	p.mu.Unlock()
	m, known, _ := p.home.pick(chosen) // a model that is not there is what jobs are for
	if len(known.Sources) == 0 {
		return store.Store{}, known, fmt.Errorf("%s: %w", m.ID, errNoModel)
	}
	return p.home.store(chosen), known, nil
}

// Download downloads the chosen model, or goes on with it. What is there is kept. Its outcome is a state.
func (p *Pond) Download() error {
	return p.begin(DownloadJob, func(ctx context.Context, at store.Store, m manifest.Manifest, tell *telling) error {
		return p.pull(ctx, at, m, tell, false)
	})
}

// Repair reads every byte of the model and downloads the files that are wrong or missing.
func (p *Pond) Repair() error {
	return p.begin(RepairJob, func(ctx context.Context, at store.Store, m manifest.Manifest, tell *telling) error {
		return p.pull(ctx, at, m, tell, true)
	})
}

func (p *Pond) pull(ctx context.Context, at store.Store, m manifest.Manifest, tell *telling, repair bool) error {
	sources, err := fetch.Sources(m, p.home.Tools.Getenv)
	if err != nil {
		return err
	}
	o := store.PullOptions{Sources: sources, Repair: repair, Verifying: tell.reading}
	o.Report, o.Done = tell.fetched, tell.verified
	return at.Pull(ctx, m, o)
}

// Verify reads every byte of the model and compares it with what was published.
func (p *Pond) Verify() error {
	return p.begin(VerifyJob, func(ctx context.Context, at store.Store, m manifest.Manifest, tell *telling) error {
		return at.Verify(ctx, m, tell.reading)
	})
}

// Adopt verifies another tool's copy and makes it Pond's. What it lacks is downloaded afterwards by Download.
func (p *Pond) Adopt(c Copy, how AdoptMode) error {
	return p.begin(AdoptJob, func(ctx context.Context, at store.Store, m manifest.Manifest, tell *telling) error {
		out, err := Adopt(ctx, at, m, c.candidate, how, func(g adopt.Progress) { tell.reading(g.Done, g.Total) })
		if err == nil && len(out.Rejected) > 0 {
			err = fmt.Errorf("%d of the files in %s have other bytes than were published; a download replaces them", len(out.Rejected), c.Dir)
		}
		return err
	})
}

// Remove deletes the model's files, and what is on the way of them. A model that is loaded is stopped first.
func (p *Pond) Remove() error {
	p.endJob()
	return p.begin(RemoveJob, func(ctx context.Context, at store.Store, m manifest.Manifest, tell *telling) error {
		if p.State().Model == m.ID {
			p.Stop()
		}
		_, err := at.Remove(m)
		return err
	})
}

// PauseDownload stops the download and keeps what came.
func (p *Pond) PauseDownload() {
	p.mu.Lock()
	job := p.job
	p.mu.Unlock()
	if job == nil || job.kind != DownloadJob {
		return
	}
	job.cancel()
	<-job.done
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.job == nil && !p.closed && !p.state.Ready {
		d := p.state.Disk
		p.happen(JobChanged{Job{Kind: DownloadJob, Model: p.state.Model, Paused: true, DoneBytes: d.DoneBytes, TotalBytes: d.TotalBytes}})
	}
}

// ResumeDownload goes on with a download.
func (p *Pond) ResumeDownload() error { return p.Download() }

// CancelDownload stops the download and removes what came of it.
func (p *Pond) CancelDownload() error {
	if p.State().Ready {
		return nil // it was finished meanwhile
	}
	return p.Remove()
}

// CancelJob stops what is being done to the files, and waits for it; nothing that is verified is lost.
func (p *Pond) CancelJob() { p.endJob() }

func (p *Pond) endJob() {
	p.mu.Lock()
	job := p.job
	p.mu.Unlock()
	if job != nil {
		job.cancel()
		<-job.done
	}
}

// begin starts a job; the error says why it cannot begin. How it ends is a state.
func (p *Pond) begin(kind JobKind, do func(context.Context, store.Store, manifest.Manifest, *telling) error) error {
	at, m, err := p.files()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	job := &running{kind, cancel, make(chan struct{})}
	p.mu.Lock()
	if p.job != nil || p.closed {
		p.mu.Unlock()
		cancel()
		return errAtWork
	}
	p.job = job
	tell := newTelling(p, kind, m, at)
	p.happen(JobChanged{tell.job})
	p.mu.Unlock()
	p.log("job begins", "job", int(kind), "model", m.ID)
	go func() {
		err := do(ctx, at, m, tell)
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = nil // asked to end
		}
		cancel()
		if err != nil {
			p.log("job failed", "job", int(kind), "error", err)
		}
		p.mu.Lock()
		p.job = nil
		p.happen(JobEnded{advise(err)})
		p.mu.Unlock()
		p.Look()
		close(job.done)
		if err == nil && kind != RemoveJob && p.State().Ready {
			p.notify("Pond is ready", m.ID+" is on the disk, every byte verified")
		}
		if err != nil {
			p.notify("Pond could not finish", advise(err).Error())
		}
	}()
	return nil
}

// advise adds to the errors of a job what the user can do about them in the window.
func advise(err error) error {
	var damaged *store.DamagedError
	var space *fetch.SpaceError
	var sources *fetch.SourceError
	var locked *disk.LockedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &damaged):
		return fmt.Errorf("%w; Repair fetches them anew", err)
	case errors.As(err, &space):
		return fmt.Errorf("%w; what came is kept, and the download goes on when there is room", err)
	case errors.As(err, &sources):
		return fmt.Errorf("%w; what came is kept, and the download goes on from there", err)
	case errors.As(err, &locked):
		return fmt.Errorf("%w; another pond is at work on it", err)
	}
	return err
}

// telling makes states of what a job reports, a few times a second at most.
type telling struct {
	pond *Pond
	kind JobKind
	dir  string
	m    manifest.Manifest
	all  int64 // bytes of the model

	mu    sync.Mutex // protects all below: downloading and verifying tell from goroutines of their own
	job   Job
	left  countdown
	drawn time.Time
	files time.Time // when the files were looked at
}

// tellEvery spaces the states of a job: nobody reads faster, and each is drawn.
const tellEvery = 200 * time.Millisecond

func newTelling(p *Pond, kind JobKind, m manifest.Manifest, at store.Store) *telling {
	t := &telling{pond: p, kind: kind, dir: at.Dir(m.ID), m: m, all: m.Bytes(), job: Job{Kind: kind, Model: m.ID, TotalBytes: m.Bytes()}}
	for _, f := range m.Files {
		done := doneBytes(at.Dir(m.ID), f)
		t.job.DoneBytes += done
		t.job.Files = append(t.job.Files, FileProgress{Name: f.Name, TotalBytes: f.Bytes, DoneBytes: done})
	}
	if kind != DownloadJob {
		t.job.DoneBytes = 0
	}
	return t
}

// reading tells that files that are there are read.
func (t *telling) reading(done, total int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.job.Reading, t.job.DoneBytes, t.job.TotalBytes = true, done, total
	t.draw(done == total)
}

// fetched is the downloader's report.
func (t *telling) fetched(e fetch.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, g := t.pond.now(), e.Progress
	j := &t.job
	j.Reading, j.TotalBytes, j.DoneBytes = false, t.all, t.all-g.Total+g.Done
	j.Rate, j.Offline, j.Waiting = g.Rate, g.Offline, g.Active == 0 && g.Done < g.Total
	guess, known := g.ETA()
	if !known || j.Offline || j.Waiting {
		guess = 0
	}
	j.ETA = t.left.left(now, guess)
	switch e.Kind {
	case fetch.Trouble:
		j.Trouble = e.Host + ": " + e.Cause
	case fetch.Restarted:
		j.Trouble = fmt.Sprintf("%s begins anew: %v", e.File, e.Err)
	default:
		if g.Rate > 0 {
			j.Trouble = ""
		}
	}
	t.draw(e.Kind != fetch.Moving)
}

// verified tells that a file is whole.
func (t *telling) verified(f manifest.File) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	files := append([]FileProgress(nil), t.job.Files...) // states before share the slice
	for i := range files {
		if files[i].Name == f.Name {
			files[i].DoneBytes, files[i].Verified = f.Bytes, true
		}
	}
	t.job.Files = files
	t.draw(true)
	return nil
}

// draw makes it a state, if it is time or must be now. The caller holds mu.
func (t *telling) draw(must bool) {
	now := t.pond.now()
	if !must && now.Sub(t.drawn) < tellEvery {
		return
	}
	t.drawn = now
	if now.Sub(t.files) >= filesEvery && (t.kind == DownloadJob || t.kind == RepairJob) && !t.job.Reading {
		t.files = now
		files := append([]FileProgress(nil), t.job.Files...)
		for i, f := range t.m.Files {
			if !files[i].Verified {
				files[i].DoneBytes = doneBytes(t.dir, f)
			}
		}
		t.job.Files = files
	}
	t.pond.tell(JobChanged{t.job})
}

// filesEvery spaces the looks at each file: its state on the disk is not newer than its last save.
const filesEvery = time.Second

// doneBytes is how much of a file is on the disk.
func doneBytes(dir string, f manifest.File) int64 {
	if id, err := disk.IdentityOf(filepath.Join(dir, f.Name)); err == nil {
		return min(id.Bytes, f.Bytes)
	}
	return fetch.PartialBytes(dir, f)
}
