// Package fullsize makes a checkpoint with the names, dtypes, shapes, shard borders, header lengths and file sizes of the published
// one, 20.4 GB, whose every byte is a pure function of file and offset: test support. A server hands out ranges of it with nothing
// stored, and a machine without the published files can still rehearse downloading, loading and decoding at full size.
//
// What it says is noise: codes are random, scales are such that activations keep their size through 40 layers. Start with Real;
// layout.go places the tensors, content.go makes their bytes, side.go the small files. `go run ./scripts/fullsize DIR` writes it.
package fullsize

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"pond/inference/tinymodel"
)

// Checkpoint is the files of a model. It does not change and may be read by any number of goroutines.
type Checkpoint struct {
	files []*File
}

// File is one of them.
type File struct {
	Name  string
	Bytes int64

	head    []byte                 // the header of a weight file; the whole of any other
	late    func() ([]byte, error) // makes head when it is first wanted, where that takes long
	once    sync.Once
	lateErr error
	tensors []array
}

// text is head, made if need be.
func (f *File) text() ([]byte, error) {
	f.once.Do(func() {
		if f.late != nil {
			f.head, f.lateErr = f.late()
		}
	})
	return f.head, f.lateErr
}

// Real makes the checkpoint in the published form: ten files of the published sizes. config.json, generation_config.json,
// tokenizer_config.json and the index are the published bytes too; the weights, tokenizer.json and the chat template are made up.
func Real() (*Checkpoint, error) {
	list, err := tinymodel.List(tinymodel.Real)
	if err != nil {
		return nil, err
	}
	c, err := place(append(visionTower(), list...), realShards(), true)
	if err != nil {
		return nil, err
	}
	side, err := realSide()
	if err != nil {
		return nil, err
	}
	c.files = append(side, c.files...)
	return c, nil
}

// Small makes a model of a megabyte in the same way: two weight files with a border inside a module, and a tensor to skip.
func Small() (*Checkpoint, error) {
	list, err := tinymodel.List(tinymodel.Tiny)
	if err != nil {
		return nil, err
	}
	skipped := tinymodel.Tensor{Name: visionPrefix + "pos_embed.weight", DType: "BF16", Shape: []int{33, 3}}
	c, err := place(append([]tinymodel.Tensor{skipped}, list...), []shard{
		{last: "language_model.model.layers.1.linear_attn.in_proj_qkv.scales"}, {last: "language_model.lm_head.biases"},
	}, false)
	if err != nil {
		return nil, err
	}
	side, err := smallSide()
	if err != nil {
		return nil, err
	}
	c.files = append(side, c.files...)
	return c, nil
}

// Files lists the files, small ones first. The slice and the files are not to be changed.
func (c *Checkpoint) Files() []*File { return c.files }

// File finds a file by its name.
func (c *Checkpoint) File(name string) (*File, bool) {
	for _, f := range c.files {
		if f.Name == name {
			return f, true
		}
	}
	return nil, false
}

// Bytes is the size of all files together.
func (c *Checkpoint) Bytes() int64 {
	var n int64
	for _, f := range c.files {
		n += f.Bytes
	}
	return n
}

// blockBytes is how much Write and Digest make at once: few enough bytes to stay in a processor's cache until they are used.
const blockBytes = 1 << 20

// Write writes the files into dir, which it makes where it is missing. told, where not nil, hears of the bytes written.
func (c *Checkpoint) Write(ctx context.Context, dir string, told func(done, total int64)) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("fullsize: %w", err)
	}
	var done int64
	for _, f := range c.files {
		err := f.write(ctx, filepath.Join(dir, f.Name), func(n int) {
			if done += int64(n); told != nil {
				told(done, c.Bytes())
			}
		})
		if err != nil {
			return fmt.Errorf("fullsize: %w", err)
		}
	}
	return nil
}

func (f *File) write(ctx context.Context, path string, told func(n int)) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	err = f.each(ctx, func(block []byte) error {
		_, err := out.Write(block)
		told(len(block))
		return err
	})
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}

// Digest is the file's SHA-256, computed.
func (f *File) Digest(ctx context.Context) (string, error) {
	sum := sha256.New()
	if err := f.each(ctx, func(block []byte) error {
		sum.Write(block)
		return nil
	}); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func (f *File) each(ctx context.Context, use func(block []byte) error) error {
	block := make([]byte, blockBytes)
	for off := int64(0); off < f.Bytes; off += blockBytes {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.ReadAt(block, off)
		if err != nil && err != io.EOF {
			return err
		}
		if err := use(block[:n]); err != nil {
			return err
		}
	}
	return nil
}
