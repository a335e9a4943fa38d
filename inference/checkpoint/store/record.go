package store

import (
	"fmt"
	"path/filepath"
	"slices"

	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/manifest"
)

// RecordName is the file in a model's folder that remembers what was verified. It is JSON, replaced in one step:
//
//	version   number  1; another one is a file of another Pond and vouches for nothing
//	model     string  the model's id
//	checked   bool    all files are verified, and the headers of the weights agree with their index
//	files     list    one object a verified file:
//	  name      string  in the folder
//	  sha256    string  what its bytes had, hexadecimal
//	  identity  object  bytes, mtime_ns and inode at that time (disk.Identity), of the file that links lead to
const RecordName = ".pond.state.json"

const recordVersion = 1

type record struct {
	Version int     `json:"version"`
	Model   string  `json:"model"`
	Checked bool    `json:"checked"`
	Files   []entry `json:"files"`
}

type entry struct {
	Name     string          `json:"name"`
	SHA256   manifest.Digest `json:"sha256"`
	Identity disk.Identity   `json:"identity"`
}

// readRecord reads a folder's record; none is an empty one.
func readRecord(dir string) (record, error) {
	r := record{Version: recordVersion, Model: filepath.Base(dir)}
	file := filepath.Join(dir, RecordName)
	if err := disk.ReadRecord(file, &r); err != nil {
		return r, err
	}
	if r.Version != recordVersion {
		return r, fmt.Errorf("%s: got version %d, want %d", file, r.Version, recordVersion)
	}
	return r, nil
}

func (r record) write(dir string) error { return disk.WriteRecord(filepath.Join(dir, RecordName), r) }

// vouches reports whether a file was verified as f and is the same since.
func (r record) vouches(f manifest.File, id disk.Identity) bool {
	return slices.ContainsFunc(r.Files, func(e entry) bool {
		return e.Name == f.Name && e.SHA256 == f.SHA256 && e.Identity == id && id.Bytes == f.Bytes
	})
}

// names reports whether a file of that name was ever verified.
func (r record) names(name string) bool {
	return slices.ContainsFunc(r.Files, func(e entry) bool { return e.Name == name })
}

func (r *record) put(e entry) {
	r.drop(e.Name)
	r.Files = append(r.Files, e)
}

func (r *record) drop(name string) {
	r.Files = slices.DeleteFunc(r.Files, func(e entry) bool { return e.Name == name })
}

// note records that a file was verified, on the disk at once.
func (f *folder) note(file manifest.File) error {
	id, err := disk.IdentityOf(f.path(file.Name))
	if err != nil {
		return err
	}
	if id.Bytes != file.Bytes {
		return fmt.Errorf("%s: got %d bytes, want %d", file.Name, id.Bytes, file.Bytes)
	}
	f.record.put(entry{file.Name, file.SHA256, id})
	return f.record.write(f.dir)
}

// Note records that files of a model's folder were verified by somebody else, who holds the folder's lock: adopting a copy does. When
// they are all the model has, the headers are checked and the model is Ready.
func Note(dir string, m manifest.Manifest, verified ...manifest.File) error {
	r, err := readRecord(dir)
	if err != nil {
		r = record{Version: recordVersion, Model: m.ID}
	}
	f := &folder{dir: dir, model: m, record: r}
	for _, file := range verified {
		if err := f.note(file); err != nil {
			return err
		}
	}
	if f.unverified() > 0 {
		return nil
	}
	return f.check()
}

// unverified counts the files of the model that the record does not vouch for.
func (f *folder) unverified() int {
	n := 0
	for _, file := range f.model.Files {
		if id, err := disk.IdentityOf(f.path(file.Name)); err != nil || !f.record.vouches(file, id) {
			n++
		}
	}
	return n
}
