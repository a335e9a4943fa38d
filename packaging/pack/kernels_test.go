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
echo "$@" >calls
echo "in $PWD" >>calls
printf MTLB >kernels.metallib
cat kernels.metal >>kernels.metallib
`

// TestKernelsAreCompiledWhereTheCompilerIs: with the flags that mean what the device asks for at run time, in the folder itself, sealed.
func TestKernelsAreCompiledWhereTheCompilerIs(t *testing.T) {
	compiler(t, fakeMetal)
	dir := t.TempDir()
	if err := run([]string{"kernels", "-out", dir}); err != nil {
		t.Fatal(err)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	want := "-sdk macosx metal -std=metal3.1 -fmetal-math-mode=safe -fmetal-math-fp32-functions=fast -mmacosx-version-min=15.0 -o kernels.metallib kernels.metal\n"
	if err != nil || !strings.HasPrefix(string(calls), want) {
		t.Errorf("got %q, %v, want %q", calls, err, want)
	}
	files, err := compiledKernels(dir)
	if err != nil || len(files) != 2 || !bytes.Equal(files[kernels.LibraryFile], []byte("MTLB"+kernels.Source())) {
		t.Errorf("got %d files, %v, want the library and its seal", len(files), err)
	}
	if err := os.WriteFile(filepath.Join(dir, kernels.LibraryFile), []byte("MTLB and something else"), 0o644); err != nil {
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
	}{
		"tools without Xcode": {`echo 'xcrun: error: unable to find utility "metal", not a developer tool or in PATH' >&2; exit 72`, ""},
		"does not compile":    {`[ "$4" != --version ] || exit 0; echo "kernels.metal:1:1: error: planted" >&2; exit 1`, "planted"},
	} {
		t.Run(name, func(t *testing.T) {
			compiler(t, c.script)
			dir := t.TempDir()
			if err := errors.Join(os.WriteFile(filepath.Join(dir, kernels.LibraryFile), []byte("MTLB old"), 0o644), os.WriteFile(filepath.Join(dir, kernels.SealFile), nil, 0o644)); err != nil {
				t.Fatal(err)
			}
			err := run([]string{"kernels", "-out", dir})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if files, err := compiledKernels(dir); files != nil || err != nil {
				t.Errorf("got %d files, %v, want none", len(files), err)
			}
		})
	}
}
