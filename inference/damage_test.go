package inference

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"pond/inference/tinymodel"
)

// TestDamagedScales: damage that loading cannot see, numbers far too large, was told as "logits[0]: got NaN, want a number or -Inf".
func TestDamagedScales(t *testing.T) {
	m, err := tinymodel.Generate(tinymodel.Tiny)
	if err != nil {
		t.Fatal(err)
	}
	scales := m.Find("language_model.lm_head.scales").Data
	for i := 0; i < len(scales); i += 2 {
		binary.LittleEndian.PutUint16(scales[i:], 0x7f7f) // 3.4e38
	}
	files, err := m.FS()
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(t.Context(), Options{Model: FromFS(files), ContextTokens: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	a, err := e.Chat(t.Context(), ChatRequest{Conversation: user("hi"), Generation: Generation{MaxTokens: 2}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Wait(); !errors.As(err, new(*DamagedError)) || !strings.Contains(err.Error(), "its files are damaged") {
		t.Errorf("got %v, want an error that says that the files are damaged", err)
	}
}
