package tinymodel

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// The digests, counts and first words are those published with the generator's recipe; an independent implementation in
// Python made them.
func TestGolden(t *testing.T) {
	for _, want := range []struct {
		kind           Kind
		digest         string
		tensors, bytes int
	}{
		{Tiny, "538613067c90416b2780d6fe7770ac71a99949ae14f364edd0fee4d6232df01b", 182, 1_181_008},
		{KernelTrue, "0dddc8226e0b28102e7fc76775a2be88ee289f988b282a34f177670fe62e6351", 182, 33_404_592},
		{DemoShaped, "", 2*182 - 7, 31_401_312},
	} {
		t.Run(want.kind.String(), func(t *testing.T) {
			m, err := Generate(want.kind)
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for _, tensor := range m.Tensors {
				got += len(tensor.Data)
			}
			if len(m.Tensors) != want.tensors || got != want.bytes {
				t.Errorf("got %d tensors of %d bytes, want %d of %d", len(m.Tensors), got, want.tensors, want.bytes)
			}
			if digest := m.Digest(); want.digest != "" && digest != want.digest {
				t.Errorf("digest: got %s, want %s", digest, want.digest)
			}
		})
	}
}

func TestTinyFirstValues(t *testing.T) {
	const embed = "language_model.model.embed_tokens"
	if got := fnv1a(embed + ".weight"); got != 0xdec43c721d10b8a6 {
		t.Errorf("seed of the embedding: got %x, want dec43c721d10b8a6", got)
	}
	stream := splitMix64{state: fnv1a(embed + ".weight")}
	for i, want := range []float64{0.732814371585846, 0.8120536208152771, 0.027917325496673584} {
		if got := stream.unit(); got != want {
			t.Errorf("u[%d]: got %v, want %v", i, got, want)
		}
	}
	m, err := Generate(Tiny)
	if err != nil {
		t.Fatal(err)
	}
	bf16 := func(name string, i int) float32 {
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(m.Find(name).Data[2*i:])) << 16)
	}
	const router = "language_model.model.layers.0.mlp.gate"
	for _, c := range []struct {
		module       string
		word         uint32
		scale, shift float32
	}{
		{embed, 0x2fb6cf34, -0.1220703125, 0.9765625},
		{router, 0x9c2a3601, 0.0034637451171875, -0.443359375},
	} {
		if got := binary.LittleEndian.Uint32(m.Find(c.module + ".weight").Data); got != c.word {
			t.Errorf("%s: word 0: got %#x, want %#x", c.module, got, c.word)
		}
		if got := bf16(c.module+".scales", 0); got != c.scale {
			t.Errorf("%s: scale 0: got %v, want %v", c.module, got, c.scale)
		}
		if got := bf16(c.module+".biases", 0); got != c.shift {
			t.Errorf("%s: bias 0: got %v, want %v", c.module, got, c.shift)
		}
	}
	for i, want := range []float64{0.488281, 0.610352, -0.854492} {
		code := m.Find(embed + ".weight").Data[i/2] >> (4 * (i % 2)) & 15
		if got := float64(bf16(embed+".scales", 0))*float64(code) + float64(bf16(embed+".biases", 0)); math.Abs(got-want) > 5e-7 {
			t.Errorf("embedding[%d]: got %v, want %v", i, got, want)
		}
	}
	for i, want := range []float32{-0.62109375, 1.8671875, 1.078125, -0.8359375} {
		if got := bf16("language_model.model.layers.0.linear_attn.A_log", i); got != want {
			t.Errorf("A_log[%d]: got %v, want %v", i, got, want)
		}
	}
}

// TestWrite checks the files as bytes: every one there, JSON valid, the weights' data at an odd offset.
func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tiny")
	if err := Write(dir, Tiny); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(data) {
			t.Errorf("%s: got invalid JSON", name)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "chat_template.jinja")); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if headerBytes := binary.LittleEndian.Uint64(data); headerBytes%2 == 0 {
		t.Errorf("header length: got %d, want an odd number", headerBytes)
	}
}

func TestTokenizerIDs(t *testing.T) {
	m, err := Generate(Tiny)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		AddedTokens []struct {
			ID      int
			Content string
		} `json:"added_tokens"`
		Model struct{ Vocab map[string]int }
	}
	if err := json.Unmarshal(m.Side["tokenizer.json"], &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Model.Vocab) != 256 || len(file.AddedTokens) != 33 {
		t.Fatalf("got %d byte tokens and %d added ones, want 256 and 33", len(file.Model.Vocab), len(file.AddedTokens))
	}
	// Corners of the alphabet: the first and last byte without a glyph of its own, and bytes that stand for themselves.
	for token, want := range map[string]int{"Ā": 0, "Ġ": 32, "!": 33, "~": 126, "ġ": 127, "ł": 160, "¡": 161, "Ń": 173, "ÿ": 255} {
		if got, ok := file.Model.Vocab[token]; !ok || got != want {
			t.Errorf("byte token %s: got %d, want %d", token, got, want)
		}
	}
	for i, want := range []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"} {
		if got := file.AddedTokens[i]; got.ID != 256+i || got.Content != want {
			t.Errorf("added token %d: got %+v, want %s", 256+i, got, want)
		}
	}
	if last := file.AddedTokens[32]; last.ID != 288 || last.Content != "<|audio_pad|>" {
		t.Errorf("last added token: got %+v, want <|audio_pad|> with id 288", last)
	}
}
