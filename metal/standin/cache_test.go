package standin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// privateToolchain has a cache of its own, but for the runtime, which takes long to build.
func privateToolchain(t *testing.T) *Toolchain {
	t.Helper()
	for _, shared := range toolchains(t) {
		path, err := shared.Runtime()
		if err != nil {
			t.Fatal(err)
		}
		tc, err := NewToolchain("", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tc.dir, filepath.Base(path)), data, 0o755); err != nil {
			t.Fatal(err)
		}
		return tc
	}
	return nil
}

// TestTheSameTextIsCompiledOnce: many ask at the same time, as toolchains of their own like processes would; all get the one library.
func TestTheSameTextIsCompiledOnce(t *testing.T) {
	tc := privateToolchain(t)
	const text = "#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device float* y [[buffer(0)]]) { y[0] = 1; }\n"
	var all sync.WaitGroup
	paths := make([]string, 6)
	for i := range paths {
		all.Go(func() {
			other := *tc
			path, err := other.Build(text, CompileOptions{})
			if err != nil {
				t.Error(err)
			}
			paths[i] = path
		})
	}
	all.Wait()
	for _, p := range paths {
		if p != paths[0] {
			t.Errorf("got %s and %s for one text", p, paths[0])
		}
	}
	before, err := os.Stat(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	if again, err := tc.Build(text, CompileOptions{}); err != nil || again != paths[0] {
		t.Errorf("again: got %s, %v, want %s", again, err, paths[0])
	}
	if after, err := os.Stat(paths[0]); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the library was built again (%v)", err)
	}
	left, err := filepath.Glob(filepath.Join(tc.dir, "build-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	// Text, options and access hooks tell libraries apart.
	for i, o := range []CompileOptions{{Checked: true}, {Macros: map[string]string{"A": "1"}}, {Language: 400}} {
		if p, err := tc.Build(text, o); err != nil || p == paths[0] {
			t.Errorf("options %d: got %s, %v, want another library", i, p, err)
		}
	}
}

// TestFailedCompileLeavesNothing: a text at fault gives its error each time, and no library.
func TestFailedCompileLeavesNothing(t *testing.T) {
	tc := privateToolchain(t)
	for range 2 {
		_, err := tc.Build("kernel void k(device float* y [[buffer(0)]]) { y[0] = nothing; }", CompileOptions{})
		var bad *CompileError
		if !errors.As(err, &bad) || !strings.Contains(bad.Text, "program_source:1:") {
			t.Fatalf("got %v, want an error in line 1", err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(tc.dir, "kernels-*.so")); err != nil || len(left) > 0 {
		t.Errorf("got %v (%v), want no library", left, err)
	}
}

// TestCompileOptions: macros reach the text, and what the Objective-C half says of MTLCompileOptions is understood.
func TestCompileOptions(t *testing.T) {
	o, err := parseCompileOptions("language=196610\nmath=fast\nmacro WIDTH=4\nmacro EMPTY=\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(o.Language, o.Macros); got != "320 map[EMPTY: WIDTH:4]" {
		t.Errorf("got %s", got)
	}
	if _, err := parseCompileOptions("optimise=yes\n"); err == nil {
		t.Error("an unknown option passed")
	}
	for _, tc := range toolchains(t) {
		k, err := tc.Compile("kernel void k(device float* y [[buffer(0)]]) { y[0] = WIDTH + __METAL_VERSION__; }", CompileOptions{Macros: map[string]string{"WIDTH": "4"}})
		if err != nil {
			t.Fatal(err)
		}
		y := k.NewMemory("y", 4)
		run(t, k, "k", []KernelArg{{Memory: y}}, KernelGrid{}, KernelOptions{})
		if got := y.F32()[0]; got != 324 {
			t.Errorf("got %v, want 324", got)
		}
		y.Free()
	}
}

// TestCacheFolder: without a home, or with one that takes no writes, what is compiled goes into a folder that only this user can write to.
func TestCacheFolder(t *testing.T) {
	for _, home := range []string{"", "/proc/no-such-home"} {
		tmp := t.TempDir()
		for name, value := range map[string]string{"HOME": home, "XDG_CACHE_HOME": "", "TMPDIR": tmp, CacheVariable: ""} {
			t.Setenv(name, value)
		}
		for range 2 { // made, then found
			dir, err := cacheDir("")
			if err != nil {
				t.Fatalf("home %q: %v", home, err)
			}
			if info, err := os.Stat(dir); err != nil || filepath.Dir(dir) != tmp || info.Mode().Perm() != 0o700 {
				t.Errorf("home %q: got %s %v (%v), want a folder of this user alone in %s", home, dir, info.Mode(), err, tmp)
			}
		}
		dir, _ := cacheDir("")
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if got, err := cacheDir(""); err == nil || !strings.Contains(err.Error(), CacheVariable) {
			t.Errorf("home %q: got %s (%v), want a refusal of a folder that others can write to", home, got, err)
		}
	}
	if got, err := cacheDir("/proc/no-such-folder"); err == nil {
		t.Errorf("got %s for a folder that cannot be made, want an error: it was asked for", got)
	}
}
