package store

import (
	"errors"
	"io/fs"
	"os"

	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/manifest"
)

// adoptedRecord is where package adopt notes what it made Pond's, and adoptingSuffix ends the file that it has on the way.
const (
	adoptedRecord  = ".pond.adopted.json"
	adoptingSuffix = ".adopting"
)

// Remove deletes what Pond keeps of a model: its files, what is on the way, and the record. A link is removed and not what it leads to.
// Files that are not Pond's stay, and so does the folder then; left names them. The error is a *MissingRootError, a *disk.LockedError,
// fs.ErrNotExist where there is nothing, or the system's.
func (s Store) Remove(m manifest.Manifest) (left []string, err error) {
	f, err := s.open(m, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.release()) }()
	// The record goes first: a removal that is interrupted leaves no model that looks ready.
	names := []string{RecordName, RecordName + disk.TempSuffix, adoptedRecord, adoptedRecord + disk.TempSuffix}
	for _, file := range m.Files {
		names = append(names, file.Name, file.Name+adoptingSuffix)
	}
	for _, name := range names {
		if err := os.Remove(f.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if err := f.sweep(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Name() != disk.LockName {
			left = append(left, e.Name())
		}
	}
	if err := os.Remove(f.path(disk.LockName)); err != nil {
		return left, err
	}
	if len(left) > 0 {
		return left, nil
	}
	if err := os.Remove(f.dir); err != nil {
		return nil, err
	}
	return nil, disk.SyncDir(s.Root)
}
