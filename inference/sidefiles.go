package inference

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"pond/inference/checkpoint"
)

// templateDigest is the SHA-256 of the published chat_template.jinja, which package chat renders.
const templateDigest = "e84f32a23fdda27689f868aa4a1a5621f41133e51a48d7f3efcbea2839574259"

// checkUnused looks at the files of a model that Pond does not need, because what they say is written into it: one that is damaged or
// says something else belongs to another model or was changed by somebody who expects an effect.
func (e *Engine) checkUnused() error {
	const config, template = "tokenizer_config.json", "chat_template.jinja"
	text, err := e.ckpt.File(config)
	if err == nil {
		if err := checkTokenizerConfig(text); err != nil {
			return fmt.Errorf("%s: %w", config, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err = e.ckpt.File(template)
	if err == nil {
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != templateDigest {
			e.log.Warn(template + " differs from the one Pond renders; it is not used")
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// checkTokenizerConfig wants an object, and of its regular expression that it knows combining marks, as tokenizer.json must.
func checkTokenizerConfig(text []byte) error {
	fields, err := checkpoint.Object(text)
	if err != nil {
		return err
	}
	raw, ok := fields["pretokenize_regex"]
	if !ok || string(raw) == "null" {
		return nil
	}
	var pattern string
	if json.Unmarshal(raw, &pattern) != nil || !strings.Contains(pattern, `\p{M}`) {
		return fmt.Errorf(`pretokenize_regex: got %.60s, want an expression with \p{M}`, raw)
	}
	return nil
}
