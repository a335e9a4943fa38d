package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"pond/metal/kernels"
)

// packKernels compiles the two texts of the Metal kernels with Apple's offline compiler and seals what comes out. Where that compiler is not, it says so and
// leaves nothing: the app has the texts then, and compiles them when it opens a model. The text by tensor operations wants a compiler of macOS 26; an
// older one leaves that to the app too.
func packKernels(f *flag.FlagSet, args []string) error {
	out := f.String("out", "", "folder that takes the libraries and their seals")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *out == "" {
		return errWants(f, "-out")
	}
	for _, t := range texts() {
		for _, file := range []string{t.LibraryFile(), t.SealFile()} { // of another text, perhaps
			if err := os.Remove(filepath.Join(*out, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if why := noCompiler(); why != "" {
		fmt.Println("the Metal kernels are not compiled, the app compiles their text when it opens a model:", why)
		return nil
	}
	for _, t := range texts() {
		switch err := compileText(*out, t); {
		case err != nil && t.Name == kernels.Main().Name:
			return err
		case err != nil:
			first, _, _ := strings.Cut(err.Error(), "\n")
			fmt.Printf("%s is not compiled, which wants a compiler of macOS %s; the app compiles its text where it is used: %s\n", t.LibraryFile(), t.System, first)
		}
	}
	return nil
}

// texts are those that an app has compiled.
func texts() []kernels.Text { return []kernels.Text{kernels.Main(), kernels.Tensor()} }

// compileText compiles one text and seals the library.
func compileText(dir string, t kernels.Text) error {
	source := t.Name + ".metal"
	if err := os.WriteFile(filepath.Join(dir, source), []byte(t.Source()), 0o644); err != nil {
		return err
	}
	cmd := xcrun(append(t.CompilerFlags(), "-o", t.LibraryFile(), source)...)
	cmd.Dir = dir // so that no path of this machine gets into the library
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", t.LibraryFile(), err, said)
	}
	library, err := os.ReadFile(filepath.Join(dir, t.LibraryFile()))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, t.SealFile()), t.Seal(library), 0o644); err != nil {
		return err
	}
	fmt.Printf("compiled %s, %.1f MB\n", t.LibraryFile(), float64(len(library))/1e6)
	return nil
}

// xcrun is Apple's Metal compiler of the macOS SDK.
func xcrun(args ...string) *exec.Cmd {
	return exec.Command("xcrun", append([]string{"-sdk", "macosx", "metal"}, args...)...)
}

// noCompiler says why there is no Metal compiler here: xcrun comes with Apple's command line tools, the compiler with Xcode or as a download of its own.
func noCompiler() string {
	if _, err := exec.LookPath("xcrun"); err != nil {
		return "this machine has no xcrun"
	}
	if said, err := xcrun("--version").CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
		return fmt.Sprintf("xcrun has no metal: %v: %s", err, first)
	}
	return ""
}

// compiledKernels are the files of packKernels in a folder; nil where there are none.
func compiledKernels(dir string) (map[string][]byte, error) {
	var files map[string][]byte
	for _, t := range texts() {
		library, err := os.ReadFile(filepath.Join(dir, t.LibraryFile()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		seal, err := os.ReadFile(filepath.Join(dir, t.SealFile()))
		if err != nil {
			return nil, err
		}
		if err := t.CheckSeal(seal, library); err != nil {
			return nil, err
		}
		if files == nil {
			files = map[string][]byte{}
		}
		files[t.LibraryFile()], files[t.SealFile()] = library, seal
	}
	return files, nil
}
