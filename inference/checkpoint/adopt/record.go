package adopt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/manifest"
)

// RecordName is the file in Pond's folder of a model that tells what was adopted. It is JSON:
//
//	version  number  1; another one is a file of another Pond, and an error
//	files    list    one object a file:
//	  name      string  in the folder
//	  mode      string  "in place", "clone", "link" or "copy": how it really came
//	  source    string  the other tool's file, links resolved
//	  sha256    string  what was verified, hexadecimal
//	  identity  object  bytes, mtime_ns and inode at that time (disk.Identity)
const RecordName = ".pond.adopted.json"

const recordVersion = 1

type record struct {
	Version int     `json:"version"`
	Files   []entry `json:"files"`
}

type entry struct {
	Name     string          `json:"name"`
	Mode     Mode            `json:"mode"`
	Source   string          `json:"source"`
	SHA256   manifest.Digest `json:"sha256"`
	Identity disk.Identity   `json:"identity"`
}

// readRecord reads a folder's record; none is an empty one.
func readRecord(dir string) (record, error) {
	r := record{Version: recordVersion}
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

func (r *record) put(e entry) {
	r.Files = slices.DeleteFunc(r.Files, func(old entry) bool { return old.Name == e.Name })
	r.Files = append(r.Files, e)
}

// keeps reports whether a file that has its name may stay: Pond's own, or adopted in the same mode and unchanged. A clone that became a
// link for want of better is the same mode.
func (r record) keeps(dir, name string, mode Mode) (bool, error) {
	info, err := os.Lstat(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, e := range r.Files {
		if e.Name != name || !e.stands(dir, info) {
			continue
		}
		_, changed := e.change(dir)
		same := e.Mode == mode || (mode == Clone && e.Mode == Link)
		return same && !changed, nil
	}
	return info.Mode().IsRegular(), nil // a link that nobody recorded is not trusted
}

// stands reports whether the name is still what was adopted, and not a file that Pond downloaded in its place.
func (e entry) stands(dir string, info fs.FileInfo) bool {
	if e.Mode == InPlace {
		to, err := os.Readlink(filepath.Join(dir, e.Name))
		return err == nil && to == e.Source
	}
	id, err := disk.IdentityOf(filepath.Join(dir, e.Name))
	return info.Mode().IsRegular() && err == nil && id.Inode == e.Identity.Inode
}

// Change is an adopted file that is no longer what was verified.
type Change struct {
	Name, Source string
	Mode         Mode
	Gone         bool // removed, or on a drive that is not connected
	Got, Want    disk.Identity
}

func (c Change) Error() string {
	what := c.Source
	if c.Mode == Clone || c.Mode == Copy {
		what = "Pond's copy"
	}
	if c.Gone {
		return fmt.Sprintf("%s: %s is gone", c.Name, what)
	}
	return fmt.Sprintf("%s: %s changed since it was verified: got %s, want %s", c.Name, what, identityText(c.Got), identityText(c.Want))
}

func identityText(id disk.Identity) string {
	return fmt.Sprintf("%d bytes, written %s, inode %d", id.Bytes, time.Unix(0, id.MTime).UTC().Format("2006-01-02 15:04:05.999999999"), id.Inode)
}

// Check looks at what was adopted into a folder and returns what may not be trusted any more. It reads no contents: size, time of the
// last write and inode tell. Files that Pond put in the place of adopted ones are not its concern.
func Check(dir string) ([]Change, error) {
	r, err := readRecord(dir)
	if err != nil {
		return nil, err
	}
	var out []Change
	for _, e := range r.Files {
		info, err := os.Lstat(filepath.Join(dir, e.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is missing from Pond's folder, which whoever lists the folder says
		}
		if err != nil {
			return nil, err
		}
		if c, changed := e.change(dir); changed && e.stands(dir, info) {
			out = append(out, c)
		}
	}
	return out, nil
}

// change compares an adopted file with what was verified.
func (e entry) change(dir string) (Change, bool) {
	c := Change{Name: e.Name, Source: e.Source, Mode: e.Mode, Want: e.Identity}
	var err error
	if c.Got, err = disk.IdentityOf(filepath.Join(dir, e.Name)); err != nil {
		c.Gone = true
		return c, true
	}
	return c, c.Got != e.Identity
}
