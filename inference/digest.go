package inference

import (
	"crypto/sha256"
	"encoding/hex"
)

// WeightsSHA256 is the digest over all tensors' bytes in byte-wise name order, by which a recorded reference names the model it was made
// with (parity/README.md). It reads every byte of the checkpoint.
func (e *Engine) WeightsSHA256() (string, error) {
	h := sha256.New()
	err := e.ckpt.Guard(func() error {
		for _, name := range e.ckpt.Names() {
			t, _ := e.ckpt.Tensor(name)
			h.Write(t.Data)
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
