package gpu

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"pond/metal/kernels"
	"pond/metal/mtl"
)

// Where the kernels come from. An app that was built where Apple's compiler is has them compiled; any other build has their text alone, and compiles it
// when a model is opened. Both give the same kernels.
//
//   - A compiled library is loaded only when its seal names the text in this binary and the library's own bytes.
//   - Whatever is wrong with one is told by Device.Kernels; the text is compiled then.

// CompiledKernels says why an app's compiled library cannot be used; nil: its seal is right. resources is the folder that would hold it; empty: this
// program is in no app.
func CompiledKernels(resources string) error {
	if resources == "" {
		return errors.New("this program is in no app, which would hold a compiled library")
	}
	library, err := os.ReadFile(filepath.Join(resources, kernels.LibraryFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the app has no %s: it was built without Apple's Metal compiler", kernels.LibraryFile)
	}
	if err != nil {
		return fmt.Errorf("compiled library: %w", err)
	}
	seal, err := os.ReadFile(filepath.Join(resources, kernels.SealFile))
	if err != nil {
		return fmt.Errorf("compiled library: %w", err)
	}
	return kernels.CheckSeal(seal, library)
}

// openLibrary takes the compiled library where there is one that fits, else it compiles the text, and says which it was.
func (d *Device) openLibrary() error {
	var reason error
	if d.options.Source == "" {
		if reason = CompiledKernels(d.options.Resources); reason == nil {
			if d.library, reason = d.dev.NewLibraryWithURL(d.rt.FileURLWithPath(filepath.Join(d.options.Resources, kernels.LibraryFile))); reason == nil {
				d.from = "the app's compiled library"
				d.library.SetLabel(d.rt.StringWithUTF8String("pond kernels"))
				return nil
			}
			reason = fmt.Errorf("%s: Metal does not load it: %w", kernels.LibraryFile, reason)
		}
	}
	d.from = "their text"
	if reason != nil {
		d.from += ", because " + reason.Error()
	}
	return d.compileText()
}

func (d *Device) compileText() (err error) {
	text := d.options.Source
	if text == "" {
		text = kernels.Source()
	}
	d.library, err = d.compile(text, "pond kernels", mtl.LanguageVersion(kernels.Language))
	return err
}

// compile makes a library of Metal text; owned.
func (d *Device) compile(text, label string, language mtl.LanguageVersion) (mtl.Library, error) {
	o := d.rt.NewCompileOptions()
	defer o.Release()
	o.SetLanguageVersion(language)
	o.SetSafeMath() // and the quick forms of exp and its like, by default; kernels.CompilerFlags says the same to the offline compiler
	l, err := d.dev.NewLibraryWithSource(text, o)
	if err != nil {
		return l, fmt.Errorf("%s do not compile: %w", label, err)
	}
	l.SetLabel(d.rt.StringWithUTF8String(label))
	return l, nil
}

// Kernels says what the kernels were loaded from, and why not from a compiled library where they were not.
func (d *Device) Kernels() string { return d.from }
