package standin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"pond/metal/standin/mslpp"
)

// ErrNoLint says that the compiler has no address spaces: lint needs clang.
var ErrNoLint = errors.New("lint needs clang++-19: other compilers have no address spaces")

// Lint type-checks kernel text with address spaces as real types, so that a missing or wrong `device`, `constant`, `threadgroup` or `thread` is an
// error here and not first on a Mac. It returns a *CompileError with the lines, or ErrNoLint. A text that passed is not looked at again.
func (t *Toolchain) Lint(source string, o CompileOptions) error {
	if !t.clang {
		return ErrNoLint
	}
	path := filepath.Join(t.dir, "lint-"+digest(t.cxx, t.version, t.headers, fmt.Sprint(preprocessorFlags(o)), source))
	return once(path, func(tmp string) error {
		text, err := t.rewrite(source, o, mslpp.Lint)
		if err != nil {
			return err
		}
		cpp := filepath.Join(tmp, "lint.cpp")
		if err := os.WriteFile(cpp, []byte(text), 0o644); err != nil {
			return err
		}
		if err := t.run("-std=c++20", "-fsyntax-only", "-w", "-ferror-limit=50", "-I"+t.shim, cpp); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(tmp, "out.so"), []byte("clean\n"), 0o644) // the name that once publishes
	})
}
