// Package parity compares Pond with implementations of the model that nobody here wrote: transformers (float32) and mlx-lm.
// Their numbers lie in transformers.json and mlx.json; README.md says how they were made and what each proves.
//
// It holds no code of the program: the record that `pond eval` compares with when it is given no other, and tests. Start with TestParity.
package parity

import _ "embed"

//go:embed transformers.json
var transformers string

// Transformers is the record of the demo model and the golden ones, made by Hugging Face transformers in float32. Its form is that of
// inference/eval/FORMAT.md.
func Transformers() []byte { return []byte(transformers) }
