package tokenizer_test

import (
	"io/fs"
	"testing"

	"pond/inference/tinymodel"
	"pond/inference/tokenizer"
)

// The golden models carry a tokenizer of 256 bytes, no merges and the 33 added
// tokens.
func TestTinyModel(t *testing.T) {
	m, err := tinymodel.Generate(tinymodel.Tiny)
	if err != nil {
		t.Fatal(err)
	}
	files, err := m.FS()
	if err != nil {
		t.Fatal(err)
	}
	file, err := fs.ReadFile(files, "tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	tk, err := tokenizer.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tk.Vocab(), 289; got != want {
		t.Errorf("Vocab: got %d, want %d", got, want)
	}
	text := "Hi, été 🌍<think>"
	if got := tk.Encode(text); len(got) != len(text) || tk.Decode(got) != text {
		t.Errorf("Encode(%q): got %v, want one id for each byte", text, got)
	}
}
