package fullsize

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pond/inference/checkpoint"
	"pond/inference/checkpoint/manifest"
	"pond/inference/qwen36"
	"pond/inference/tokenizer"
)

func real(t testing.TB) *Checkpoint {
	t.Helper()
	c, err := Real()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestReal makes the checkpoint once: its vocabulary takes a second or more when it is wanted.
func TestReal(t *testing.T) {
	c := real(t)
	for _, sub := range []struct {
		name string
		run  func(*testing.T, *Checkpoint)
	}{
		{"published form", testPublishedForm}, {"published files", testPublishedFiles}, {"headers", testHeaders},
		{"tokenizer", testTokenizer}, {"chunkings", testChunkings},
	} {
		t.Run(sub.name, func(t *testing.T) { sub.run(t, c) })
	}
}

// testPublishedForm compares sizes with the manifest of the real revision, and small files with its digests.
func testPublishedForm(t *testing.T, c *Checkpoint) {
	full := manifest.Full()
	if c.Bytes() != full.Bytes() || len(c.Files()) != len(full.Files) {
		t.Errorf("got %d files, %d bytes; want %d and %d", len(c.Files()), c.Bytes(), len(full.Files), full.Bytes())
	}
	madeUp := []string{"chat_template.jinja", "tokenizer.json"}
	for _, want := range full.Files {
		f, ok := c.File(want.Name)
		if !ok || f.Bytes != want.Bytes {
			t.Errorf("%s: got %v, want %d bytes", want.Name, f, want.Bytes)
			continue
		}
		if want.Bytes > 1<<30 { // hashing these is the rehearsal's
			continue
		}
		got, err := f.Digest(t.Context())
		if err != nil || got != Digests()[f.Name] {
			t.Errorf("%s: got digest %s, %v; want %s as in z_digests.go", f.Name, got, err, Digests()[f.Name])
		}
		if published := want.SHA256.String(); !slices.Contains(madeUp, f.Name) && got != published {
			t.Errorf("%s: got digest %s, want the published %s", f.Name, got, published)
		}
	}
	var headers []int
	for i, f := range c.Files()[len(c.Files())-4:] {
		headers = append(headers, len(f.head)-8)
		if got := int(binary.LittleEndian.Uint64(f.head)); got != headers[i] {
			t.Errorf("%s: header length: got %d, want %d", f.Name, got, headers[i])
		}
	}
	if want := []int{88_906, 67_237, 67_875, 50_269}; !slices.Equal(headers, want) {
		t.Errorf("headers: got %d bytes, want %d", headers, want)
	}
}

// testPublishedFiles compares the small files with the published ones, byte for byte, where these are there.
func testPublishedFiles(t *testing.T, c *Checkpoint) {
	const dir = "../../../../shared/spec/files"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the folder with files of the published checkpoint is not there")
	}
	for _, name := range []string{"model.safetensors.index.json", "config.json", "generation_config.json", "tokenizer_config.json"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		f, _ := c.File(name)
		if !bytes.Equal(f.head, want) {
			at := 0
			for at < min(len(f.head), len(want)) && f.head[at] == want[at] {
				at++
			}
			t.Errorf("%s: got %d bytes, want %d; they differ from byte %d: got %.60q, want %.60q", name, len(f.head), len(want), at, f.head[at:], want[at:])
		}
	}
}

// testHeaders reads the headers as any reader would: tensors follow one another without a hole, in an order that is not that of
// their names, at the counts and odd offsets of the published files.
func testHeaders(t *testing.T, c *Checkpoint) {
	config, generation := realConfig(), []byte(realGeneration)
	shape, quant, err := qwen36.ParseConfig(config, generation)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]qwen36.Want{}
	for _, w := range qwen36.Wanted(shape, quant) {
		want[w.Name] = w
	}
	counts := []int{716, 498, 504, 372}
	skipped := int64(0)
	for i, f := range c.Files()[len(c.Files())-4:] {
		var header map[string]struct {
			Offsets [2]int64 `json:"data_offsets"`
			DType   string
			Shape   []int
		}
		if err := json.Unmarshal(f.head[8:], &header); err != nil {
			t.Fatal(err)
		}
		delete(header, "__metadata__")
		if len(header) != counts[i] {
			t.Errorf("%s: got %d tensors, want %d", f.Name, len(header), counts[i])
		}
		if odd := len(f.head) % 2; i > 0 && odd == 0 {
			t.Errorf("%s: data start at %d, want an odd offset", f.Name, len(f.head))
		}
		for name, h := range header {
			w, ok := want[name]
			delete(want, name)
			if !ok {
				skipped += h.Offsets[1] - h.Offsets[0]
				continue
			}
			if string(w.DType) != h.DType || !slices.Equal(w.Shape, h.Shape) || w.Bytes() != h.Offsets[1]-h.Offsets[0] {
				t.Errorf("%s: got %+v, want %+v", name, h, w)
			}
		}
	}
	if len(want) > 0 || skipped != 893_142_496 {
		t.Errorf("got %d tensors missing and %d bytes of the vision tower, want none and 893142496", len(want), skipped)
	}
}

func testTokenizer(t *testing.T, c *Checkpoint) {
	f, _ := c.File("tokenizer.json")
	text, err := f.text()
	if err != nil || int64(len(text)) != f.Bytes {
		t.Fatalf("got %d bytes, %v; want %d", len(text), err, f.Bytes)
	}
	tok, err := tokenizer.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	if tok.Vocab() != 248_077 {
		t.Errorf("got %d ids, want 248077", tok.Vocab())
	}
	if id, ok := tok.ID("<|im_end|>"); !ok || id != 248_046 {
		t.Errorf("<|im_end|>: got %d, want 248046", id)
	}
	const said = "Hello there, how are you?\n"
	if ids := tok.Encode(said); tok.Decode(ids) != said || len(ids) >= len(said) {
		t.Errorf("got %d ids that decode to %q, want fewer than %d and %q", len(ids), tok.Decode(ids), len(said), said)
	}
}

// testChunkings reads the same bytes in other pieces, across the borders of tensors and of words.
func testChunkings(t *testing.T, c *Checkpoint) {
	r := rand.New(rand.NewPCG(3, 5))
	for _, f := range c.Files() {
		starts := []int64{0, f.Bytes - 70_001, int64(len(f.head)) - 33}
		for range 6 {
			starts = append(starts, r.Int64N(f.Bytes))
		}
		for range min(6, len(f.tensors)) {
			a := f.tensors[r.IntN(len(f.tensors))]
			starts = append(starts, a.begin-5, a.end-40_000)
		}
		for _, start := range starts {
			start = min(max(start, 0), f.Bytes)
			whole := make([]byte, min(70_001, f.Bytes-start))
			if n, err := f.ReadAt(whole, start); n != len(whole) || err != nil {
				t.Fatalf("%s: %d bytes from %d: got %d, %v", f.Name, len(whole), start, n, err)
			}
			pieces := make([]byte, len(whole))
			for at := 0; at < len(pieces); {
				n := min(1+r.IntN(3000), len(pieces)-at)
				if r.IntN(3) == 0 {
					n = min(n, 9)
				}
				if _, err := f.ReadAt(pieces[at:at+n], start+int64(at)); err != nil {
					t.Fatal(err)
				}
				at += n
			}
			if !bytes.Equal(whole, pieces) {
				t.Fatalf("%s: bytes from %d depend on how they are read", f.Name, start)
			}
		}
		if n, err := f.ReadAt(make([]byte, 8), f.Bytes-3); n != min(3, int(f.Bytes)) || err != io.EOF {
			t.Errorf("%s: at the end: got %d, %v; want 3 and EOF", f.Name, n, err)
		}
	}
}

// TestSmallLoads writes the small model, loads it strictly and finds sane values.
func TestSmallLoads(t *testing.T) {
	c, err := Small()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var done, total int64
	if err := c.Write(t.Context(), dir, func(d, all int64) { done, total = d, all }); err != nil {
		t.Fatal(err)
	}
	if done != c.Bytes() || total != done {
		t.Errorf("progress: got %d of %d, want %d", done, total, c.Bytes())
	}
	opened, err := checkpoint.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	config, err := opened.File("config.json")
	if err != nil {
		t.Fatal(err)
	}
	shape, quant, err := qwen36.ParseConfig(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := qwen36.LoadWeights(opened, shape, quant)
	if err != nil {
		t.Fatal(err)
	}
	if w.SkippedTensors != 1 || w.SkippedBytes != 33*3*2 {
		t.Errorf("skipped: got %d tensors of %d bytes, want 1 of 198", w.SkippedTensors, w.SkippedBytes)
	}
	if _, err := opened.File("chat_template.jinja"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("chat_template.jinja: got %v, want no such file", err)
	}
}

func BenchmarkReadAt(b *testing.B) {
	f, _ := real(b).File("model-00002-of-00004.safetensors")
	block := make([]byte, blockBytes)
	b.SetBytes(blockBytes)
	off := int64(0)
	for b.Loop() {
		if _, err := f.ReadAt(block, off); err != nil {
			b.Fatal(err)
		}
		if off += blockBytes; off+blockBytes > f.Bytes {
			off = 0
		}
	}
}
