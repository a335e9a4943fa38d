package checkpoint_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pond/inference/checkpoint"
	"pond/inference/tinymodel"
	"pond/inference/tinymodel/fullsize"
)

// writeSmall writes a model of two weight files whose data start at any offset, and opens it.
func writeSmall(t *testing.T) (string, *checkpoint.Checkpoint) {
	t.Helper()
	made, err := fullsize.Small()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := made.Write(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	return dir, openDir(t, dir)
}

func openDir(t *testing.T, dir string) *checkpoint.Checkpoint {
	t.Helper()
	c, err := checkpoint.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// writeLarge writes a model with a tensor longer than a slice of Load and a span of Copy, and opens it.
func writeLarge(t *testing.T) (string, *checkpoint.Checkpoint) {
	t.Helper()
	fill := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i * 7 >> 3)
		}
		return b
	}
	const rows = 65 << 20 / 4
	text, err := tinymodel.Encode([]tinymodel.Tensor{
		{Name: "large", DType: "U32", Shape: []int{rows}, Data: fill(4 * rows)},
		{Name: "small", DType: "BF16", Shape: []int{3}, Data: fill(6)},
		{Name: "empty", DType: "BF16", Shape: []int{0}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, openDir(t, dir)
}

func TestLoadTellsOfAllBytes(t *testing.T) {
	for name, write := range map[string]func(*testing.T) (string, *checkpoint.Checkpoint){"two files": writeSmall, "long tensor": writeLarge} {
		t.Run(name, func(t *testing.T) {
			_, c := write(t)
			var want, last int64
			for _, name := range c.Names() {
				tensor, _ := c.Tensor(name)
				want += int64(len(tensor.Data))
			}
			calls := 0
			err := c.Load(t.Context(), c.Names(), func(done, total int64) {
				calls++
				if total != want || done <= last || done > total {
					t.Errorf("got %d of %d after %d, want progress up to %d", done, total, last, want)
				}
				last = done
			})
			if err != nil || last != want {
				t.Errorf("got %v at %d bytes, want no error at %d", err, last, want)
			}
			if name == "long tensor" && calls != 3 {
				t.Errorf("got %d steps, want 3: the long tensor takes two", calls)
			}
		})
	}
}

func TestLoadStops(t *testing.T) {
	_, c := writeSmall(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	calls := 0
	err := c.Load(ctx, c.Names(), func(done, total int64) {
		if calls++; calls == 5 {
			cancel(why)
		}
	})
	if !errors.Is(err, why) || calls != 5 {
		t.Errorf("got %v after %d steps, want %v after 5", err, calls, why)
	}
	if err := c.Load(t.Context(), []string{"nothing"}, nil); err == nil || !strings.Contains(err.Error(), "tensor nothing: missing") {
		t.Errorf("got %v, want an error that names the tensor", err)
	}
}

// A file that is cut off after it was opened is an error with the tensor's name, and not the end of the program.
func TestCutFile(t *testing.T) {
	dir, c := writeSmall(t)
	const file = "model-00002-of-00002.safetensors"
	st, err := os.Stat(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	kept := st.Size() / 2
	if err := os.Truncate(filepath.Join(dir, file), kept); err != nil {
		t.Fatal(err)
	}
	err = c.Load(t.Context(), c.Names(), nil)
	if err == nil || !strings.Contains(err.Error(), file+": tensor language_model.") {
		t.Errorf("load: got %v, want an error that names file and tensor", err)
	}

	// The page in which the file ends is still there; the last one is not.
	last := checkpoint.Tensor{}
	for _, name := range c.Names() {
		if tensor, _ := c.Tensor(name); tensor.File == file && (last.Data == nil || checkpoint.At(tensor) > checkpoint.At(last)) {
			last = tensor
		}
	}
	var sum byte
	err = c.Guard(func() error {
		for _, b := range last.Data {
			sum += b
		}
		return nil
	})
	var fault *checkpoint.FaultError
	if !errors.As(err, &fault) || fault.File != file || fault.Tensor != last.Name || fault.Offset < kept {
		t.Errorf("guard: got %v (sum %d), want a fault in %s of %s", err, sum, last.Name, file)
	}
	fault = nil
	if err := checkpoint.Touch(c, last); !errors.As(err, &fault) || fault.File != file || fault.Offset < kept {
		t.Errorf("touch: got %v, want a fault in %s", err, file)
	}
	norm, _ := c.Tensor("language_model.model.layers.0.input_layernorm.weight")
	if err := checkpoint.Touch(c, norm); err != nil {
		t.Errorf("touch: the other file: got %v, want no error", err)
	}
	if err := c.Guard(func() error { return io.EOF }); err != io.EOF {
		t.Errorf("guard: got %v, want the function's own error", err)
	}
}

func TestGuardLetsOtherPanicsThrough(t *testing.T) {
	_, c := writeSmall(t)
	defer func() {
		if r := recover(); r != "other" {
			t.Errorf("got %v, want the panic", r)
		}
	}()
	_ = c.Guard(func() error { panic("other") })
}
