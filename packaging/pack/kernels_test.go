package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pond/metal/kernels"
)

// compiler puts an xcrun into the PATH that does what a shell script says.
func compiler(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "xcrun"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// fakeMetal notes what it is called with, and makes a library that begins like one of Apple's.
const fakeMetal = `[ "$4" != --version ] || exit 0
echo "$@" >>calls
printf MTLB >"$9"
cat "${10}" >>"$9"
`

// TestKernelsAreCompiledWhereTheCompilerIs: with the flags that mean what the device asks for at run time, in the folder itself, sealed.
func TestKernelsAreCompiledWhereTheCompilerIs(t *testing.T) {
	compiler(t, fakeMetal)
	dir := t.TempDir()
	if err := run([]string{"kernels", "-out", dir}); err != nil {
		t.Fatal(err)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	want := "-sdk macosx metal -std=metal3.1 -fmetal-math-mode=safe -fmetal-math-fp32-functions=fast -mmacosx-version-min=15.0 -o kernels.metallib kernels.metal\n" +
		"-sdk macosx metal -std=metal4.0 -fmetal-math-mode=safe -fmetal-math-fp32-functions=fast -mmacosx-version-min=26.0 -o tensors.metallib tensors.metal\n"
	if err != nil || string(calls) != want {
		t.Errorf("got %q, %v, want %q", calls, err, want)
	}
	files, err := compiledKernels(dir)
	if err != nil || len(files) != 4 || !bytes.Equal(files["kernels.metallib"], []byte("MTLB"+kernels.Source())) || !bytes.Equal(files["tensors.metallib"], []byte("MTLB"+kernels.TensorSource())) {
		t.Errorf("got %d files, %v, want two libraries and their seals", len(files), err)
	}
	if err := os.WriteFile(filepath.Join(dir, kernels.Main().LibraryFile()), []byte("MTLB and something else"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := compiledKernels(dir); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a library that was changed: got %v", err)
	}
}

// TestNoCompiler: without Apple's compiler there is no library, not even one of an older text; a text that does not compile is an error.
func TestNoCompiler(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   string // of the error; empty: none
		files  int    // that are left
	}{
		"tools without Xcode": {`echo 'xcrun: error: unable to find utility "metal", not a developer tool or in PATH' >&2; exit 72`, "", 0},
		"does not compile":    {`[ "$4" != --version ] || exit 0; echo "kernels.metal:1:1: error: planted" >&2; exit 1`, "planted", 0},
		"an older compiler":   {`case "$4" in --version) exit 0 ;; *4.0) echo "error: invalid value 'metal4.0' in '-std=metal4.0'" >&2; exit 1 ;; esac; printf MTLB >"$9"`, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			compiler(t, c.script)
			dir := t.TempDir()
			if err := errors.Join(os.WriteFile(filepath.Join(dir, kernels.Main().LibraryFile()), []byte("MTLB old"), 0o644), os.WriteFile(filepath.Join(dir, kernels.Main().SealFile()), nil, 0o644)); err != nil {
				t.Fatal(err)
			}
			err := run([]string{"kernels", "-out", dir})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if files, err := compiledKernels(dir); len(files) != c.files || err != nil {
				t.Errorf("got %d files, %v, want %d", len(files), err, c.files)
			}
		})
	}
}
