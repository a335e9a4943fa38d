package openai

import (
	"encoding/base64"
	"strings"
)

// sealPrefix marks a seal of ours.
const sealPrefix = "pond1:"

// Seal packs thinking into a text that clients keep and send back without looking into it: the encrypted_content of the Responses API, the
// signature of a hidden thinking block. It is not encrypted: the thinking belongs to the user, on whose machine it was made.
func Seal(thinking string) string {
	return sealPrefix + base64.StdEncoding.EncodeToString([]byte(thinking))
}

// Unseal reads a seal; false for a text that is none.
func Unseal(seal string) (string, bool) {
	rest, ok := strings.CutPrefix(seal, sealPrefix)
	if !ok {
		return "", false
	}
	text, err := base64.StdEncoding.DecodeString(rest)
	return strings.ToValidUTF8(string(text), "\ufffd"), err == nil
}
