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

// packKernels compiles the Metal kernels with Apple's offline compiler and seals what comes out. Where that compiler is not, it says so and leaves nothing:
// the app has the text then, and compiles it when it opens a model.
func packKernels(f *flag.FlagSet, args []string) error {
	out := f.String("out", "", "folder that takes "+kernels.LibraryFile+" and its seal")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *out == "" {
		return errWants(f, "-out")
	}
	library, seal := filepath.Join(*out, kernels.LibraryFile), filepath.Join(*out, kernels.SealFile)
	for _, file := range []string{library, seal} { // of another text, perhaps
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if why := noCompiler(); why != "" {
		fmt.Println("the Metal kernels are not compiled, the app compiles their text when it opens a model:", why)
		return nil
	}
	const text = "kernels.metal"
	if err := os.WriteFile(filepath.Join(*out, text), []byte(kernels.Source()), 0o644); err != nil {
		return err
	}
	cmd := xcrun(append(kernels.CompilerFlags(), "-o", kernels.LibraryFile, text)...)
	cmd.Dir = *out // so that no path of this machine gets into the library
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kernels: %w: %s", err, said)
	}
	content, err := os.ReadFile(library)
	if err != nil {
		return err
	}
	if err := os.WriteFile(seal, kernels.Seal(content), 0o644); err != nil {
		return err
	}
	fmt.Printf("compiled the Metal kernels, %.1f MB\n", float64(len(content))/1e6)
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
	library, err := os.ReadFile(filepath.Join(dir, kernels.LibraryFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	seal, err := os.ReadFile(filepath.Join(dir, kernels.SealFile))
	if err != nil {
		return nil, err
	}
	if err := kernels.CheckSeal(seal, library); err != nil {
		return nil, err
	}
	return map[string][]byte{kernels.LibraryFile: library, kernels.SealFile: seal}, nil
}
