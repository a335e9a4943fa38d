package gpu_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pond/metal"
	"pond/metal/gpu"
	"pond/metal/gputest"
	"pond/metal/kernels"
	"pond/metal/standin"
)

// appOf is a folder of resources with what stands in for the compiled libraries of texts, sealed.
func appOf(t *testing.T, texts ...kernels.Text) string {
	t.Helper()
	if gputest.OnCUDA() {
		t.Skip("a compiled library of the stand-in's holds the processor's code")
	}
	dir := t.TempDir()
	for _, text := range texts {
		version := text.Language>>16*100 + text.Language&0xffff*10
		if err := standin.Precompile(filepath.Join(dir, text.LibraryFile()), text.Source(), standin.CompileOptions{Language: version}, ""); err != nil {
			t.Skip(err)
		}
		seal(t, dir, text)
	}
	return dir
}

// seal seals what lies in a folder as the library of a text.
func seal(t *testing.T, dir string, text kernels.Text) {
	t.Helper()
	library, err := os.ReadFile(filepath.Join(dir, text.LibraryFile()))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, text.SealFile()), text.Seal(library), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCompiledKernels: an app's compiled library is loaded when it is whole and of this build's text; else the text is compiled, and the reason is told.
// Either way the kernels are there.
func TestCompiledKernels(t *testing.T) {
	rewrite := func(name string, change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			content, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, change(content), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	sealed := func(change func(*testing.T, string)) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			change(t, dir)
			seal(t, dir, kernels.Main())
		}
	}
	half := func(b []byte) []byte { return b[:len(b)/2] }
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   string
	}{
		"present":          {func(*testing.T, string) {}, "the app's compiled library"},
		"missing":          {remove(kernels.Main().LibraryFile()), "built without Apple's Metal compiler"},
		"without its seal": {remove(kernels.Main().SealFile()), "no such file"},
		"of another text": {rewrite(kernels.Main().SealFile(), func(b []byte) []byte {
			return []byte("text " + strings.Repeat("0", 64) + string(b[strings.Index(string(b), "\n"):]))
		}), "compiled from another text than this build's"},
		"half a seal": {rewrite(kernels.Main().SealFile(), half), "want two lines"},
		"a bit flipped": {rewrite(kernels.Main().LibraryFile(), func(b []byte) []byte {
			b[len(b)/2] ^= 1
			return b
		}), "is damaged"},
		"truncated": {rewrite(kernels.Main().LibraryFile(), half), "is damaged"},
		"one of Apple's, which the stand-in cannot load": {sealed(rewrite(kernels.Main().LibraryFile(), func([]byte) []byte { return []byte("MTLB\x01\x80\x02\x00") })), "Metal does not load it: "},
		"sealed when it was cut short":                   {sealed(rewrite(kernels.Main().LibraryFile(), func(b []byte) []byte { return b[:100] })), "Metal does not load it: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := appOf(t, kernels.Main())
			c.change(t, dir)
			d := gputest.Open(t, gputest.Options{GPU: gpu.Options{Resources: dir}})
			needStandin(t, d)
			got := d.Kernels()
			if fits := got == c.want; !fits && (c.want == "the app's compiled library" || !strings.HasPrefix(got, "their text, because ") || !strings.Contains(got, c.want)) {
				t.Errorf("got kernels from %q, want %q", got, c.want)
			}
			activate(t, d)
		})
	}
}

// activate runs one of Pond's kernels, over gates of 0 to 3 and ups of 4 to 7.
func activate(t *testing.T, d metal.Device) {
	t.Helper()
	gateUp, act := newBuffer(t, d, "gate and up", 8), newBuffer(t, d, "act", 4)
	run(t, d, compile(t, d, []metal.Dispatch{{Label: "silu_mul", Kernel: "silu_mul", Params: kernels.SiluMulParams{M: 1, I: 4}, Items: 1,
		Args: []metal.Slice{{Buffer: gateUp, Len: 32}, {Buffer: act, Len: 16}}}}))
	for i, got := range act.F32() {
		if want := float64(i) / (1 + math.Exp(-float64(i))) * float64(4+i); math.Abs(float64(got)-want) > 1e-4 {
			t.Errorf("silu_mul: got %v of %d, want %v", got, i, want)
		}
	}
}

// TestCompiledTensorKernels: the text by tensor operations has a library of its own, and each of the two is judged by itself.
func TestCompiledTensorKernels(t *testing.T) {
	for name, c := range map[string]struct {
		texts []kernels.Text
		want  string
	}{
		"both":            {[]kernels.Text{kernels.Main(), kernels.Tensor()}, "the app's compiled library; those with tensor operations from the app's compiled library"},
		"an older Xcode":  {[]kernels.Text{kernels.Main()}, "the app's compiled library; those with tensor operations from their text, because the app has no tensors.metallib: it was built without Apple's Metal compiler, or with an older one"},
		"only the second": {[]kernels.Text{kernels.Tensor()}, "their text, because the app has no kernels.metallib: it was built without Apple's Metal compiler, or with an older one; those with tensor operations from the app's compiled library"},
	} {
		t.Run(name, func(t *testing.T) {
			d := gputest.Open(t, gputest.Options{Standin: m5(), GPU: gpu.Options{Resources: appOf(t, c.texts...)}})
			needStandin(t, d)
			if got := d.Kernels(); got != c.want || len(d.TensorKernels()) == 0 {
				t.Errorf("got kernels from %q, %v by tensor operations, want %q and some", got, d.TensorKernels(), c.want)
			}
			activate(t, d)
		})
	}
}

// TestKernelsWithoutAnApp: a program that is in no app says that it compiles the text, and why.
func TestKernelsWithoutAnApp(t *testing.T) {
	d := gputest.Open(t, gputest.Options{})
	if got := d.Kernels(); !strings.Contains(got, "in no app") {
		t.Errorf("got %q", got)
	}
}
