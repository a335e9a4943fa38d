package tokenizer_test

import (
	"io/fs"
	"os"
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

// The demo model's vocabulary loads and gives its held-out text back.
func TestDemoModel(t *testing.T) {
	file, err := os.ReadFile("../../assets/demo/tokenizer.json")
	if err != nil {
		t.Skipf("the demo model is not here: %v", err)
	}
	tk, err := tokenizer.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tk.Vocab(), 4096; got > want {
		t.Errorf("Vocab: got %d, want at most %d, the model's rows", got, want)
	}
	text, err := os.ReadFile("../../assets/demo/heldout.txt")
	if err != nil {
		t.Skipf("the held-out text is not here: %v", err)
	}
	ids := tk.EncodeSpecial(string(text))
	if got := tk.Decode(ids); got != string(text) {
		t.Errorf("Decode(EncodeSpecial(held-out text)): got %d bytes that differ from the %d given", len(got), len(text))
	}
	if per := float64(len(text)) / float64(len(ids)); per < 2 {
		t.Errorf("held-out text: got %.2f bytes a token, want at least 2: merges are not applied", per)
	}
}
