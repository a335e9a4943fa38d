package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pond/inference/checkpoint"
	"pond/inference/tinymodel"
)

// fused is what Fuse must make, put together one byte range after the other.
func fused(c *checkpoint.Checkpoint, stack int, names ...string) []byte {
	var out []byte
	for i := range stack {
		for _, name := range names {
			t, _ := c.Tensor(name)
			piece := len(t.Data) / stack
			out = append(out, t.Data[i*piece:(i+1)*piece]...)
		}
	}
	return out
}

func TestCopyFuses(t *testing.T) {
	const layers = "language_model.model.layers."
	_, c := writeSmall(t)
	odd, files := 0, map[string]bool{}
	for _, group := range []struct {
		stack int
		names []string
	}{
		{1, []string{layers + "0.linear_attn.in_proj_qkv.weight", layers + "0.linear_attn.in_proj_z.weight"}},
		{1, []string{layers + "1.linear_attn.in_proj_qkv.scales", layers + "1.linear_attn.in_proj_qkv.biases"}}, // over two files
		{16, []string{layers + "2.mlp.switch_mlp.gate_proj.weight", layers + "2.mlp.switch_mlp.up_proj.weight"}},
		{16, []string{layers + "2.mlp.switch_mlp.down_proj.scales"}},
		{1, []string{"language_model.model.norm.weight"}},
	} {
		want := fused(c, group.stack, group.names...)
		dst := bytes.Repeat([]byte{0xaa}, len(want))
		segments, err := c.Fuse(dst, group.stack, group.names...)
		if err != nil {
			t.Fatal(err)
		}
		var last int64
		if err := c.Copy(t.Context(), segments, checkpoint.CopyOptions{Told: func(done, total int64) {
			if last = done; total != int64(len(want)) {
				t.Errorf("%s: got a total of %d, want %d", group.names, total, len(want))
			}
		}}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(dst, want) || last != int64(len(want)) {
			t.Errorf("%s: got other bytes than the mapping has, or progress up to %d of %d", group.names, last, len(want))
		}
		for _, name := range group.names {
			tensor, _ := c.Tensor(name)
			files[tensor.File] = true
			odd += int(checkpoint.At(tensor) % 2)
		}
	}
	if odd == 0 || len(files) != 2 {
		t.Errorf("got %d tensors at odd offsets and %d files, want some and two: the test proves less than it says", odd, len(files))
	}
}

// TestCopyAll copies every tensor at once, also with one reader, from memory, and in long spans.
func TestCopyAll(t *testing.T) {
	gen, err := tinymodel.Generate(tinymodel.Tiny)
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := gen.FS()
	if err != nil {
		t.Fatal(err)
	}
	inMemory, err := checkpoint.OpenFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	_, small := writeSmall(t)
	_, large := writeLarge(t)
	for name, c := range map[string]*checkpoint.Checkpoint{"memory": inMemory, "two files": small, "long tensor": large} {
		for _, readers := range []int{0, 1, 7} {
			var segments []checkpoint.Segment
			for _, name := range c.Names() {
				if tensor, _ := c.Tensor(name); len(tensor.Data) > 0 {
					segments = append(segments, checkpoint.Segment{Tensor: name, Dst: make([]byte, len(tensor.Data)+3), Off: 3})
				}
			}
			if err := c.Copy(t.Context(), segments, checkpoint.CopyOptions{Readers: readers}); err != nil {
				t.Fatal(err)
			}
			for _, s := range segments {
				tensor, _ := c.Tensor(s.Tensor)
				if !bytes.Equal(s.Dst[3:], tensor.Data) || !bytes.Equal(s.Dst[:3], []byte{0, 0, 0}) {
					t.Errorf("%s, %d readers: %s: got other bytes than the mapping has", name, readers, s.Tensor)
				}
			}
		}
	}
}

// TestCopyLongPieces takes pieces on both sides of the length from which they are read by themselves.
func TestCopyLongPieces(t *testing.T) {
	_, c := writeLarge(t)
	tensor, _ := c.Tensor("large")
	for _, stack := range []int{1, 5, 65, 130, 65 << 10} {
		dst := make([]byte, len(tensor.Data)+stack)
		piece := int64(len(tensor.Data) / stack)
		err := c.Copy(t.Context(), []checkpoint.Segment{{Tensor: "large", Dst: dst, PieceBytes: piece, StrideBytes: piece + 1}}, checkpoint.CopyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(stack) {
			if !bytes.Equal(dst[i*(piece+1):][:piece], tensor.Data[i*piece:][:piece]) || dst[i*(piece+1)+piece] != 0 {
				t.Fatalf("%d pieces: piece %d has other bytes", stack, i)
			}
		}
	}
}

func TestCopyStops(t *testing.T) {
	dir, c := writeLarge(t)
	dst := make([]byte, 65<<20)
	segments, err := c.Fuse(dst, 1, "large")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	if err := c.Copy(ctx, segments, checkpoint.CopyOptions{Readers: 1, Told: func(done, total int64) { cancel(why) }}); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}

	file := filepath.Join(dir, "model.safetensors")
	stat, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, stat.Size()/2); err != nil {
		t.Fatal(err)
	}
	if err := c.Copy(t.Context(), segments, checkpoint.CopyOptions{}); err == nil || !strings.Contains(err.Error(), "weight file model.safetensors: got") {
		t.Errorf("a file cut off since it was opened: got %v, want a refusal", err)
	}
	// Cut off while it is read: the reader that comes to the end names the tensor.
	_, c = writeLarge(t)
	segments, err = c.Fuse(dst, 1, "large")
	if err != nil {
		t.Fatal(err)
	}
	once := false
	err = c.Copy(t.Context(), segments, checkpoint.CopyOptions{Readers: 1, Told: func(done, total int64) {
		if !once {
			once = true
			if err := os.Truncate(checkpoint.Path(c, "model.safetensors"), 20<<20); err != nil {
				t.Error(err)
			}
		}
	}})
	if err == nil || !strings.Contains(err.Error(), "model.safetensors: tensor large: got") || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("got %v, want an error that names the tensor", err)
	}
	if err := os.Remove(checkpoint.Path(c, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	if err := c.Copy(t.Context(), segments, checkpoint.CopyOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed file: got %v, want no such file", err)
	}
}

func TestCopyRefusals(t *testing.T) {
	_, c := writeSmall(t)
	const norm = "language_model.model.norm.weight" // 256 bytes
	for want, s := range map[string]checkpoint.Segment{
		"tensor x: missing":          {Tensor: "x"},
		"in memory of 255":           {Tensor: norm, Dst: make([]byte, 255)},
		"pieces of 100 at 0 + i*100": {Tensor: norm, Dst: make([]byte, 300), PieceBytes: 100, StrideBytes: 100},
		"at -1":                      {Tensor: norm, Dst: make([]byte, 300), Off: -1},
		"at 0 + i*200":               {Tensor: norm, Dst: make([]byte, 300), PieceBytes: 128, StrideBytes: 200},
	} {
		if err := c.Copy(t.Context(), []checkpoint.Segment{s}, checkpoint.CopyOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	for want, f := range map[string]func() error{
		"tensor x: missing":         func() error { _, err := c.Fuse(nil, 1, "x"); return err },
		"want 3 equal matrices":     func() error { _, err := c.Fuse(make([]byte, 256), 3, norm); return err },
		"got memory of 255 bytes":   func() error { _, err := c.Fuse(make([]byte, 255), 1, norm); return err },
		"got 256 bytes, want 0 equ": func() error { _, err := c.Fuse(nil, 0, norm); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
