// Package manifest says which files a model consists of: name, size and SHA-256 of each, and the places that publish them. It is
// what Pond trusts; nothing that a network says about size or content is believed over it.
//
// It downloads nothing and looks at no folder (packages fetch and store do). Start with Manifest; full.go and z_demo.go hold
// the manifests of the models that Pond knows.
package manifest

import (
	"encoding/hex"
	"fmt"
)

// Digest is a SHA-256.
type Digest [32]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes the digest in hexadecimal.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads 64 hexadecimal digits.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return fmt.Errorf("sha-256: got %d characters, want %d", len(text), hex.EncodedLen(len(d)))
	}
	if _, err := hex.Decode(d[:], text); err != nil {
		return fmt.Errorf("sha-256: %w", err)
	}
	return nil
}

// mustDigest reads a digest that stands in the source.
func mustDigest(text string) Digest {
	var d Digest
	if err := d.UnmarshalText([]byte(text)); err != nil {
		panic("manifest: internal error: " + err.Error())
	}
	return d
}

// File is one file of a model.
type File struct {
	Name   string // inside the model's folder, without a folder of its own
	Bytes  int64
	SHA256 Digest
}

// Source is a repository of a model hub that publishes the files of a manifest, byte for byte.
type Source struct {
	Repo     string   // owner/name
	Revision string   // commit, or a branch: then only the digests pin the content
	Lacks    []string // files that this source has not, or has with other bytes
}

// Manifest is one model at one revision.
type Manifest struct {
	ID      string   // model id on the wire, and the name of its folder
	Files   []File   // in the order in which they are wanted: what is small first
	Sources []Source // in order of preference; none for a model that is built in
}

// Bytes is the size of all files together.
func (m Manifest) Bytes() int64 {
	var total int64
	for _, f := range m.Files {
		total += f.Bytes
	}
	return total
}

// File finds a file by its name.
func (m Manifest) File(name string) (File, bool) {
	for _, f := range m.Files {
		if f.Name == name {
			return f, true
		}
	}
	return File{}, false
}

// All lists the models that Pond knows: the built-in one first.
func All() []Manifest { return []Manifest{Demo(), Full()} }
