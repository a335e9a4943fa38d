// Package checkpoint opens a model directory: safetensors files, the index that ties them together, and the small files
// beside them (config.json, tokenizer.json, ...).
//
// It knows names, dtypes, shapes and bytes. It does not know what a tensor is for: which tensors a model must have, and
// in which dtype and shape, is the business of the model's own package, and so is every refusal of a wrong one.
//
// Start with Checkpoint here, then side.go for the small files, header.go for one file's header and index.go for the map of several files. load.go brings the
// bytes into memory where they are mapped, copy.go copies them into memory of a device's choice.
package checkpoint

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Names of the files that hold or map the weights.
const (
	singleFile = "model.safetensors"
	indexFile  = "model.safetensors.index.json"
)

// Tensor is one named array as it lies in its file.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	// Data is the file's own bytes, little-endian, row-major, at any alignment. It is read-only: with OpenDir it is a
	// window on the mapped file and writing to it faults. It is valid until Checkpoint.Close.
	Data []byte
	File string // the file that holds it, a name inside the directory

	at int64 // offset of Data in the file
}

// Checkpoint is an open model directory.
//
//   - Every tensor of every file is known, checked and unique by name; an index, if there is one, agrees with the files exactly.
//   - It does not change after it was opened, and may be read by several goroutines.
//   - With OpenDir the bytes are mapped, not read: opening costs no memory, and the first touch of a page reads it. The
//     files must stay as they are until Close. Where one shrinks or its disk vanishes, touching its lost pages is a fault (SIGBUS),
//     which ends the program unless the goroutine that touches them asked for a panic instead: Guard does, and so do Load and the
//     host executor. A device that copies the bytes at load is safe from then on.
type Checkpoint struct {
	fsys     fs.FS
	dir      string // empty with OpenFS
	tensors  map[string]Tensor
	names    []string  // sorted
	files    []string  // sorted
	mappings []mapping // of files, in the same order
	closed   bool
}

// mapping is the whole content of one weight file and the way to give it back.
type mapping struct {
	data    []byte
	info    fs.FileInfo // of the mapped file; nil with OpenFS
	release func() error
}

// OpenDir maps the weight files of dir: those that model.safetensors.index.json names, or model.safetensors alone. The
// caller closes the checkpoint when nothing reads its tensors any more. On an error nothing stays mapped.
func OpenDir(dir string) (*Checkpoint, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("model directory: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("model directory: got the file %s, want a directory", dir)
	}
	return open(dir, os.DirFS(dir), func(name string) (mapping, error) { return mapFile(filepath.Join(dir, name)) })
}

// OpenFS reads the weight files of fsys into memory, for a model that is embedded in the program. It makes the same
// checks as OpenDir. Close only forgets the bytes.
func OpenFS(fsys fs.FS) (*Checkpoint, error) {
	return open("", fsys, func(name string) (mapping, error) {
		data, err := readRegular(fsys, name, math.MaxInt64)
		return mapping{data: data}, err
	})
}

func open(dir string, fsys fs.FS, load func(name string) (mapping, error)) (_ *Checkpoint, err error) {
	c := &Checkpoint{fsys: fsys, dir: dir, tensors: map[string]Tensor{}}
	defer func() {
		if err != nil {
			c.Close() // the first error is the one to tell
		}
	}()
	idx, err := readIndex(fsys)
	if err != nil {
		return nil, err
	}
	if idx != nil {
		c.files = idx.files()
	} else {
		c.files = []string{singleFile}
	}
	var totalBytes uint64
	for _, file := range c.files {
		m, err := load(file)
		if err != nil {
			return nil, fmt.Errorf("weight file %s: %w", file, err)
		}
		c.mappings = append(c.mappings, m)
		var tensors []Tensor
		if err := c.Guard(func() (err error) {
			tensors, err = parseFile(file, m.data)
			return err
		}); err != nil {
			return nil, err
		}
		for _, t := range tensors {
			if other, twice := c.tensors[t.Name]; twice {
				return nil, fmt.Errorf("%s: tensor %s: got a second copy, want one: %s holds it too", file, t.Name, other.File)
			}
			c.tensors[t.Name] = t
			c.names = append(c.names, t.Name)
			totalBytes += uint64(len(t.Data))
		}
	}
	slices.Sort(c.names)
	if idx != nil {
		if err := idx.agree(c, totalBytes); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Tensor returns the tensor called name.
func (c *Checkpoint) Tensor(name string) (Tensor, bool) {
	t, ok := c.tensors[name]
	return t, ok
}

// Names returns the names of all tensors, sorted. The slice is the caller's.
func (c *Checkpoint) Names() []string { return slices.Clone(c.names) }

// Files returns the names of the weight files, sorted. The slice is the caller's.
func (c *Checkpoint) Files() []string { return slices.Clone(c.files) }

// Written is when a weight file was last written to, as it was mapped; zero with OpenFS.
func (c *Checkpoint) Written(file string) (at time.Time) {
	if i := slices.Index(c.files, file); i >= 0 && i < len(c.mappings) && c.mappings[i].info != nil {
		at = c.mappings[i].info.ModTime()
	}
	return at
}

// File reads a small file beside the weights, such as config.json: ReadSide in the model's directory.
func (c *Checkpoint) File(name string) ([]byte, error) {
	return ReadSide(c.fsys, name)
}

// Close unmaps the files. Every Tensor's Data is invalid afterwards, and the checkpoint has no tensors any more. A second
// Close does nothing. It must not run while another goroutine reads the checkpoint or its bytes.
func (c *Checkpoint) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	var first error
	for _, m := range c.mappings {
		if m.release == nil {
			continue
		}
		if err := m.release(); err != nil && first == nil {
			first = err
		}
	}
	c.mappings, c.tensors, c.names = nil, nil, nil
	return first
}

// plainName reports whether name is a file directly inside the model directory, so that no index can lead elsewhere.
func plainName(name string) bool {
	return fs.ValidPath(name) && name != "." && !strings.ContainsAny(name, `/\:`+"\x00")
}

// fitsInt reports whether v is a length that this machine can index.
func fitsInt(v uint64) bool { return v <= math.MaxInt }
