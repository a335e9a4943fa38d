package checkpoint

import "path/filepath"

// At is the offset of a tensor in its file.
func At(t Tensor) int64 { return t.at }

// Path is where a weight file lies.
func Path(c *Checkpoint, name string) string { return filepath.Join(c.dir, name) }

// Touch reads a byte of each page of a tensor, as Load does where the system has no call for it.
func Touch(c *Checkpoint, t Tensor) error { return c.touch(pages(t.Data)) }
