package checkpoint

import "path/filepath"

// At is the offset of a tensor in its file.
func At(t Tensor) int64 { return t.at }

// Path is where a weight file lies.
func Path(c *Checkpoint, name string) string { return filepath.Join(c.dir, name) }
