// Package store keeps models in folders, one a model, and says of each what can be relied on. A model is Ready when every byte of every
// file of its manifest was verified against the manifest's digests, and no file has changed since.
//
// It downloads with package fetch and knows nothing of the network itself. Start with Store; record.go is what is remembered of a
// folder, pull.go, verify.go and remove.go are what changes one.
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/fetch"
	"pond/inference/checkpoint/manifest"
)

// Store is a folder of models. Its rules:
//
//   - What changes a model's folder holds its lock. Looking takes none.
//   - A file is verified when the record names it with the manifest's digest and it is still the file of that time by size, time of the
//     last write and inode. Nothing else makes it so.
//   - A folder that the user chose is never created: if it is missing, its drive is not connected, and a folder of that name on another
//     disk would fill that one.
type Store struct {
	Root   string
	Create bool // Root is Pond's own place and may be created
}

// Dir is the folder of a model.
func (s Store) Dir(id string) string { return filepath.Join(s.Root, id) }

// MissingRootError says that the folder of models is not there: the drive that it lies on is not connected. Nothing was created, and
// nothing is forgotten.
type MissingRootError struct{ Root, Volume string }

func (e *MissingRootError) Error() string {
	if e.Volume != "" {
		return fmt.Sprintf("the folder of models %s is not there: the drive %s is not connected", e.Root, e.Volume)
	}
	return fmt.Sprintf("the folder of models %s is not there; if it is on a drive, connect it, else create the folder", e.Root)
}

// FolderError says that the folder of models, or a model's in it, cannot be made or used.
type FolderError struct {
	Dir string
	Err error
}

func (e *FolderError) Error() string {
	var path *fs.PathError
	if errors.As(e.Err, &path) { // it names the part of Dir that failed
		return fmt.Sprintf("the folder %s cannot be used: %s %s: %v", e.Dir, path.Op, path.Path, path.Err)
	}
	return fmt.Sprintf("the folder %s cannot be used: %v", e.Dir, e.Err)
}

func (e *FolderError) Unwrap() error { return e.Err }

// Check reports whether Root is there, or may be made. The error is a *MissingRootError or a *FolderError.
func (s Store) Check() error {
	info, err := os.Stat(s.Root)
	switch {
	case err == nil && !info.IsDir():
		return &FolderError{s.Root, errors.New("got a file, want a folder")}
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return &FolderError{s.Root, err}
	}
	if volume := volumeOf(s.Root); volume != "" {
		if _, err := os.Stat(volume); errors.Is(err, fs.ErrNotExist) {
			return &MissingRootError{s.Root, volume}
		}
	}
	if !s.Create {
		return &MissingRootError{Root: s.Root}
	}
	return nil
}

// FreeBytes is the space on the disk that Root lies on, or will.
func (s Store) FreeBytes() (int64, error) {
	dir, err := filepath.Abs(s.Root)
	if err != nil {
		return 0, err
	}
	for {
		free, err := disk.Free(dir)
		up := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || up == dir {
			return free, err
		}
		dir = up
	}
}

// volumeOf is the mount point that a path names by its place, where systems mount removable drives; empty for other paths.
func volumeOf(path string) string {
	parts := strings.Split(filepath.ToSlash(filepath.Clean(path)), "/")
	for prefix, depth := range map[string]int{"/Volumes": 3, "/media": 4, "/run/media": 5, "/mnt": 3} {
		if strings.HasPrefix(path, prefix+"/") && len(parts) >= depth {
			return strings.Join(parts[:depth], "/")
		}
	}
	return ""
}

// State is how far a model is.
type State int

// The states of a model.
const (
	Absent  State = iota // nothing of it is there
	Partial              // a download stopped on the way
	Unsure               // all files are there, and some were never verified or have changed since
	Ready                // every byte was verified
)

func (s State) String() string {
	return [...]string{"not installed", "partly downloaded", "not verified", "ready"}[s]
}

// Status is what a look at a model's folder tells; nothing was read but names, sizes, times and records.
type Status struct {
	ID         string
	Dir        string
	State      State
	DoneBytes  int64 // on the disk, verified or on the way
	DiskBytes  int64 // the room that it takes there: more than DoneBytes where a download holds room for what is to come
	TotalBytes int64
	Changed    []string // files that were verified and are not what they were, or of another size than the manifest's
}

// Line says the status in words.
func (s Status) Line() string {
	switch {
	case s.State == Partial:
		return fmt.Sprintf("%s, %s of %s", s.State, size(s.DoneBytes), size(s.TotalBytes))
	case len(s.Changed) > 0:
		return fmt.Sprintf("%s: %s changed", s.State, strings.Join(s.Changed, ", "))
	}
	return s.State.String()
}

func size(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}

// Status looks at a model. The error is a *MissingRootError where the drive is not connected, or a *FolderError.
func (s Store) Status(m manifest.Manifest) (Status, error) {
	st := Status{ID: m.ID, Dir: s.Dir(m.ID), TotalBytes: m.Bytes()}
	if err := s.Check(); err != nil {
		return st, err
	}
	look(&st, m)
	return st, nil
}

// LookAt is Status for a folder that is no Store's.
func LookAt(dir string, m manifest.Manifest) Status {
	st := Status{ID: m.ID, Dir: dir, TotalBytes: m.Bytes()}
	look(&st, m)
	return st
}

// Keeps reports whether a folder is or was Pond's: it has a record, or a download on the way.
func Keeps(dir string) bool {
	for _, name := range []string{RecordName, disk.LockName} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// look judges the folder that st names.
func look(st *Status, m manifest.Manifest) {
	r, err := readRecord(st.Dir)
	if err != nil {
		r = record{} // a record that cannot be read vouches for nothing
	}
	verified, there := 0, 0
	for _, f := range m.Files {
		name := filepath.Join(st.Dir, f.Name)
		id, err := disk.IdentityOf(name)
		switch {
		case err != nil:
			st.DoneBytes += fetch.PartialBytes(st.Dir, f)
			if info, err := os.Stat(name + fetch.PartSuffix); err == nil {
				st.DiskBytes += disk.Allocated(info) // a part that nothing is known of takes room too
			}
			continue
		case r.vouches(f, id):
			verified++
		case r.names(f.Name) || id.Bytes != f.Bytes:
			st.Changed = append(st.Changed, f.Name)
		}
		there++
		st.DoneBytes += min(id.Bytes, f.Bytes)
		st.DiskBytes += id.Bytes
	}
	switch {
	case len(m.Files) == 0 || there == 0 && st.DoneBytes == 0 && st.DiskBytes == 0:
		st.State = Absent
	case verified == len(m.Files) && r.Checked:
		st.State = Ready
	case there == len(m.Files):
		st.State = Unsure
	default:
		st.State = Partial
	}
}

// open locks a model's folder and reads its record; where create is set it makes the folder first.
func (s Store) open(m manifest.Manifest, create bool) (*folder, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	dir := s.Dir(m.ID)
	if create {
		if s.Create {
			if err := os.MkdirAll(s.Root, 0o755); err != nil {
				return nil, &FolderError{s.Root, err}
			}
		}
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, &FolderError{dir, err}
		}
	}
	release, err := disk.Lock(dir)
	var locked *disk.LockedError
	switch {
	case errors.As(err, &locked), errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, &FolderError{dir, err}
	}
	r, err := readRecord(dir)
	if err != nil {
		r = record{Version: recordVersion, Model: m.ID} // its files are verified again
	}
	return &folder{dir: dir, model: m, record: r, release: release}, nil
}

// folder is a model's folder under its lock.
type folder struct {
	dir     string
	model   manifest.Manifest
	record  record
	release func() error
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }
