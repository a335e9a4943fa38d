package kernels

import (
	"bytes"
	"crypto/sha256"
	"fmt"
)

// A compiled library of the kernels travels as two files: what Apple's compiler wrote, and a seal that says of which text it is, how it was compiled, and
// which bytes it has. A library of another text has other kernels under the same names, and a damaged one may crash the GPU's driver, so nothing is
// loaded before the seal was compared.
const (
	LibraryFile = "kernels.metallib"
	SealFile    = "kernels.metallib.seal" // two lines: "text " and "library ", each with a SHA-256 in hexadecimal
)

// Language is the version of the Metal language that the text is written in, as MTLLanguageVersion has it: 3.1.
const Language = 3<<16 | 1

// CompilerFlags are the words for Apple's offline compiler that mean what the device asks of the one at run time (mtl.CompileOptions): the language, and
// arithmetic that is not rewritten, because fast arithmetic may assume that no value is infinite and masked scores are. The quick forms of exp and its like
// are MTLCompileOptions' default and have to be named here: -fno-fast-math would choose the precise ones, and other bits. The oldest system is that of
// the app. Source: Metal Shading Language Specification 3.2, section 1.6.3; MTLCompileOptions.mathMode and mathFloatingPointFunctions.
func CompilerFlags() []string {
	return []string{fmt.Sprintf("-std=metal%d.%d", Language>>16, Language&0xffff), "-fmetal-math-mode=safe", "-fmetal-math-fp32-functions=fast", "-mmacosx-version-min=15.0"}
}

// Seal is the seal of a library that was compiled from Source with CompilerFlags.
func Seal(library []byte) []byte {
	text := sha256.New()
	fmt.Fprintf(text, "%q\n%s", CompilerFlags(), Source())
	return fmt.Appendf(nil, "text %x\nlibrary %x\n", text.Sum(nil), sha256.Sum256(library))
}

// CheckSeal compares a seal with a library and with the text of this build.
func CheckSeal(seal, library []byte) error {
	want := bytes.SplitAfter(Seal(library), []byte("\n"))
	got := bytes.SplitAfter(seal, []byte("\n"))
	switch {
	case len(got) != len(want):
		return fmt.Errorf("%s: got %d bytes, want two lines", SealFile, len(seal))
	case !bytes.Equal(got[0], want[0]):
		return fmt.Errorf("%s was compiled from another text than this build's", LibraryFile)
	case !bytes.Equal(got[1], want[1]):
		return fmt.Errorf("%s is damaged: its bytes are not the ones that were sealed", LibraryFile)
	}
	return nil
}
