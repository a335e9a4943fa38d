package kernels

import (
	"bytes"
	"crypto/sha256"
	"fmt"
)

// Text is one of the two Metal texts of the kernels. Each is compiled where an app is built beside Apple's compiler, and when a device is opened where it was
// not. A compiled library travels as two files: what the compiler wrote, and a seal that says of which text it is, how it was compiled, and which bytes it
// has. A library of another text has other kernels under the same names, and a damaged one may crash the GPU's driver, so nothing is loaded before the
// seal was compared.
type Text struct {
	Name     string // of its files
	Language int    // as MTLLanguageVersion has it: 3<<16 | 1 is 3.1
	System   string // oldest macOS that has the language
	Source   func() string
}

// Main is the text of all kernels, Tensor the one by tensor operations.
func Main() Text   { return Text{"kernels", 3<<16 | 1, "15.0", Source} }
func Tensor() Text { return Text{"tensors", 4 << 16, "26.0", TensorSource} }

// LibraryFile is the name of the compiled library.
func (t Text) LibraryFile() string { return t.Name + ".metallib" }

// SealFile is the name of its seal: two lines, "text " and "library ", each with a SHA-256 in hexadecimal.
func (t Text) SealFile() string { return t.LibraryFile() + ".seal" }

// CompilerFlags are the words for Apple's offline compiler that mean what the device asks of the one at run time (mtl.CompileOptions): the language, and
// arithmetic that is not rewritten, because fast arithmetic may assume that no value is infinite and masked scores are. The quick forms of exp and its like
// are MTLCompileOptions' default and have to be named here: -fno-fast-math would choose the precise ones, and other bits. Source: Metal Shading Language
// Specification 3.2, section 1.6.3; MTLCompileOptions.mathMode and mathFloatingPointFunctions.
func (t Text) CompilerFlags() []string {
	return []string{fmt.Sprintf("-std=metal%d.%d", t.Language>>16, t.Language&0xffff), "-fmetal-math-mode=safe", "-fmetal-math-fp32-functions=fast", "-mmacosx-version-min=" + t.System}
}

// Seal is the seal of a library that was compiled from the text with CompilerFlags.
func (t Text) Seal(library []byte) []byte {
	text := sha256.New()
	fmt.Fprintf(text, "%q\n%s", t.CompilerFlags(), t.Source())
	return fmt.Appendf(nil, "text %x\nlibrary %x\n", text.Sum(nil), sha256.Sum256(library))
}

// CheckSeal compares a seal with a library and with the text of this build.
func (t Text) CheckSeal(seal, library []byte) error {
	want := bytes.SplitAfter(t.Seal(library), []byte("\n"))
	got := bytes.SplitAfter(seal, []byte("\n"))
	switch {
	case len(got) != len(want):
		return fmt.Errorf("%s: got %d bytes, want two lines", t.SealFile(), len(seal))
	case !bytes.Equal(got[0], want[0]):
		return fmt.Errorf("%s was compiled from another text than this build's", t.LibraryFile())
	case !bytes.Equal(got[1], want[1]):
		return fmt.Errorf("%s is damaged: its bytes are not the ones that were sealed", t.LibraryFile())
	}
	return nil
}
