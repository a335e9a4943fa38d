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

// Where the kernels come from. An app that was built where Apple's compiler is has them compiled; any other build has their texts alone, and compiles those
// when a model is opened. Both give the same kernels.
//
//   - A compiled library is loaded only when its seal names the text in this binary and the library's own bytes.
//   - Whatever is wrong with one is told by Device.Kernels; the text is compiled then.

// CompiledKernels says why an app's compiled library of a text cannot be used; nil: its seal is right. resources is the folder that would hold it; empty: this
// program is in no app.
func CompiledKernels(resources string, t kernels.Text) error {
	if resources == "" {
		return errors.New("this program is in no app, which would hold a compiled library")
	}
	library, err := os.ReadFile(filepath.Join(resources, t.LibraryFile()))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the app has no %s: it was built without Apple's Metal compiler, or with an older one", t.LibraryFile())
	}
	if err != nil {
		return fmt.Errorf("compiled library: %w", err)
	}
	seal, err := os.ReadFile(filepath.Join(resources, t.SealFile()))
	if err != nil {
		return fmt.Errorf("compiled library: %w", err)
	}
	return t.CheckSeal(seal, library)
}

// load takes the compiled library of a text where there is one that fits, else it compiles the text; from says which it was. planted, where not empty, is what
// a test has in the text's place. Owned.
func (d *Device) load(t kernels.Text, planted, label string) (l mtl.Library, from string, err error) {
	text := planted
	from = "their text"
	if planted == "" {
		text = t.Source()
		reason := CompiledKernels(d.options.Resources, t)
		if reason == nil {
			if l, reason = d.dev.NewLibraryWithURL(d.rt.FileURLWithPath(filepath.Join(d.options.Resources, t.LibraryFile()))); reason == nil {
				l.SetLabel(d.rt.StringWithUTF8String(label))
				return l, "the app's compiled library", nil
			}
			reason = fmt.Errorf("%s: Metal does not load it: %w", t.LibraryFile(), reason)
		}
		from += ", because " + reason.Error()
	}
	o := d.rt.NewCompileOptions()
	defer o.Release()
	o.SetLanguageVersion(mtl.LanguageVersion(t.Language))
	o.SetSafeMath() // and the quick forms of exp and its like, by default; Text.CompilerFlags says the same to the offline compiler
	if l, err = d.dev.NewLibraryWithSource(text, o); err != nil {
		return l, from, fmt.Errorf("%s do not compile: %w", label, err)
	}
	l.SetLabel(d.rt.StringWithUTF8String(label))
	return l, from, nil
}

// Kernels says what the kernels were loaded from, and why not from a compiled library where they were not.
func (d *Device) Kernels() string {
	if len(d.tensors.kernels) > 0 {
		return d.from + "; those with tensor operations from " + d.tensors.from
	}
	return d.from
}
