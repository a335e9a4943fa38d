package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"pond/inference/checkpoint/adopt"
	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/manifest"
	"pond/inference/checkpoint/store"
)

// Adopt verifies another tool's copy of a model and makes it a store's, under the lock of the model's folder. Each file counts from the moment it is verified. The
// error is a store's, or one of adopt.Run.
func Adopt(ctx context.Context, at store.Store, m manifest.Manifest, c adopt.Candidate, how AdoptMode, report func(adopt.Progress)) (out adopt.Outcome, err error) {
	dir := at.Dir(m.ID)
	if _, err := at.Status(m); err != nil { // the drive with the models may not be connected
		return out, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return out, err
	}
	release, err := disk.Lock(dir)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, release()) }()
	out, err = adopt.Run(ctx, adopt.Job{Dir: dir, Candidate: c, Mode: how, Report: report, Done: func(f manifest.File) error { return store.Note(dir, m, f) }})
	out.Missing = stillMissing(dir, out.Missing)
	return out, err
}

// stillMissing leaves out what the store's folder has from before.
func stillMissing(dir string, missing []adopt.Lack) []adopt.Lack {
	var out []adopt.Lack
	for _, l := range missing {
		if info, err := os.Stat(filepath.Join(dir, l.Name)); err != nil || info.Size() != l.Bytes {
			out = append(out, l)
		}
	}
	return out
}
