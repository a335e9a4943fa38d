// Package adopt finds the copies of a model that other tools downloaded, verifies them against the manifest, and makes them Pond's
// without a second download: used where they are, or cloned.
//
// It never writes to, renames or removes anything that is another tool's; what it reads it follows through symbolic links. It
// neither locks nor creates the folder that it adopts into. Start with Search (places.go, search.go), then Run, then Check, which
// notices a copy that changed since.
package adopt

import (
	"fmt"

	"pond/inference/checkpoint/manifest"
)

// Mode is how a verified file becomes Pond's. The user chooses it.
type Mode uint8

const (
	// InPlace leaves the file where it is and puts a symbolic link into Pond's folder. It takes no space, and it is lost when the
	// other tool removes or changes the file, which Check notices.
	InPlace Mode = iota
	// Clone shares the file's blocks until one of the two changes (clonefile on APFS, FICLONE on Btrfs, XFS and others). It takes
	// no space and outlives the original. Where Linux cannot, it is a hard link, and Outcome says so.
	Clone
	// Link is a hard link: the same file by a second name. It takes no space and outlives the original's removal, but not its being
	// rewritten in place.
	Link
	// Copy takes the whole space a second time.
	Copy
)

func (m Mode) String() string {
	switch m {
	case Clone:
		return "clone"
	case Link:
		return "link"
	case Copy:
		return "copy"
	}
	return "in place"
}

// MarshalText writes the mode's name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads a mode's name.
func (m *Mode) UnmarshalText(text []byte) error {
	for _, mode := range []Mode{InPlace, Clone, Link, Copy} {
		if mode.String() == string(text) {
			*m = mode
			return nil
		}
	}
	return fmt.Errorf("mode: got %q, want in place, clone, link or copy", text)
}

// Candidate is a folder of another tool with files of the model, judged by their names and sizes alone.
type Candidate struct {
	Tool    string // "Hugging Face", "LM Studio", "oMLX", or "folder"
	Dir     string // as a person would look for it
	Files   []Found
	Missing []Lack
}

// Found is a file of the right size.
type Found struct {
	manifest.File
	Path string // of the file itself, links resolved
}

// Lack is a file that is not there, or is another.
type Lack struct {
	manifest.File
	Got int64 // its size; -1 when it is not there
}

// Complete reports whether every file is there with the right size.
func (c Candidate) Complete() bool { return len(c.Missing) == 0 }

// Bytes is the size of the files that are there.
func (c Candidate) Bytes() int64 {
	var n int64
	for _, f := range c.Files {
		n += f.Bytes
	}
	return n
}

// MissingBytes is the size of the files that would have to be downloaded.
func (c Candidate) MissingBytes() int64 {
	var n int64
	for _, f := range c.Missing {
		n += f.Bytes
	}
	return n
}
