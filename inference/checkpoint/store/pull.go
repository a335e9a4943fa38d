package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/fetch"
	"pond/inference/checkpoint/manifest"
)

// Headroom is what a download leaves free on the disk: a system without any room does worse things than to stop a download.
const Headroom = 1 << 30

// PullOptions say how to pull.
type PullOptions struct {
	fetch.Options // Report and Done are told of the files that are downloaded
	Sources       []fetch.Source
	Repair        bool     // read every byte that is there, and replace the files that are not the manifest's
	Headroom      int64    // bytes to leave free; 0: Headroom
	Verifying     Progress // files that are there and were never verified are read first
}

// Pull makes a model Ready: what is there is kept, what is missing is downloaded. A Ready model is left alone.
//
// A file that bears a name of the manifest and has other bytes is nobody's to overwrite unasked: without Repair the error is a
// *DamagedError. Else it is a *MissingRootError, *FolderError, *disk.LockedError, *fetch.SpaceError (before anything is downloaded, or on the way),
// another of package fetch's, ctx's or the system's. In every case what was received is kept, and the next Pull takes it up.
func (s Store) Pull(ctx context.Context, m manifest.Manifest, o PullOptions) (err error) {
	_, before := os.Lstat(s.Dir(m.ID))
	f, err := s.open(m, true)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && errors.Is(before, fs.ErrNotExist) {
			f.unmake()
		}
		err = errors.Join(err, f.release())
	}()
	missing, err := f.wanted(ctx, o)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		f.record.Checked = false
		if err := f.space(missing, o.Headroom); err != nil {
			return err
		}
		done := o.Done
		o.Done = func(file manifest.File) error {
			if err := f.note(file); err != nil {
				return err
			}
			if done != nil {
				return done(file)
			}
			return nil
		}
		if err := fetch.Run(ctx, fetch.Job{Dir: f.dir, Files: missing, Sources: o.Sources, Options: o.Options}); err != nil {
			return err
		}
	}
	if n := f.unverified(); n > 0 {
		return fmt.Errorf("model %s: %d files changed while it was pulled", m.ID, n)
	}
	if err := f.sweep(); err != nil {
		return err
	}
	return f.check()
}

// wanted finds the files to download, after what is there was verified.
func (f *folder) wanted(ctx context.Context, o PullOptions) (missing []manifest.File, err error) {
	var unsure []manifest.File
	for _, file := range f.model.Files {
		id, err := disk.IdentityOf(f.path(file.Name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := f.dangling(file.Name); err != nil {
				return nil, err
			}
			missing = append(missing, file)
		case err == nil && f.record.vouches(file, id) && !o.Repair:
		default:
			unsure = append(unsure, file)
		}
	}
	faults, err := f.verify(ctx, unsure, o.Verifying)
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 && !o.Repair {
		return nil, &DamagedError{f.model.ID, faults}
	}
	for _, bad := range faults {
		// Its name goes first: whoever looks meanwhile sees a model that is not whole, not one that is wrong.
		if err := os.Remove(f.path(bad.File)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if file, ok := f.model.File(bad.File); ok {
			missing = append(missing, file)
		}
	}
	return missing, nil
}

// dangling removes a link that leads nowhere any more: the copy that it led to is gone, and the name is needed.
func (f *folder) dangling(name string) error {
	info, err := os.Lstat(f.path(name))
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return nil // nothing there
	}
	return os.Remove(f.path(name))
}

// space compares what is still to be written with what is free.
func (f *folder) space(missing []manifest.File, headroom int64) error {
	if headroom <= 0 {
		headroom = Headroom
	}
	need := headroom
	for _, file := range missing {
		need += file.Bytes
		if info, err := os.Stat(f.path(file.Name + fetch.PartSuffix)); err == nil {
			need -= min(disk.Allocated(info), file.Bytes)
		}
	}
	free, err := disk.Free(f.dir)
	if err != nil {
		return err
	}
	if free < need {
		return &fetch.SpaceError{Dir: f.dir, NeedBytes: need, FreeBytes: free}
	}
	return nil
}

// unmake removes the folder that a pull made and that nothing came into. Where it fails, an empty folder stays and does no harm.
func (f *folder) unmake() {
	entries, err := os.ReadDir(f.dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != disk.LockName {
		return
	}
	if os.Remove(f.path(disk.LockName)) == nil {
		os.Remove(f.dir)
	}
}

// sweep removes what a download left behind of files that are whole by now.
func (f *folder) sweep() error {
	for _, file := range f.model.Files {
		for _, suffix := range []string{fetch.PartSuffix, fetch.StateSuffix, fetch.StateSuffix + disk.TempSuffix} {
			if err := os.Remove(f.path(file.Name + suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
