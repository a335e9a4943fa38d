package kernels

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.metal
var metalFiles embed.FS

// prelude is the file that comes first: what all others use.
const prelude = "prelude.metal"

// Source is the whole Metal text for newLibraryWithSource: the prelude, then every other file in order of name, each behind a
// #line so that a compiler's message names the file and its line.
func Source() string {
	names, err := fs.Glob(metalFiles, "*.metal")
	if err != nil {
		panic(fmt.Sprintf("kernels: internal error: %v", err)) // the pattern is a constant
	}
	var b strings.Builder
	for _, n := range append([]string{prelude}, names...) {
		if n == prelude && b.Len() > 0 {
			continue
		}
		text, err := metalFiles.ReadFile(n)
		if err != nil {
			panic(fmt.Sprintf("kernels: internal error: %v", err)) // the file is in the binary
		}
		fmt.Fprintf(&b, "#line 1 %q\n%s\n", n, text)
	}
	return b.String()
}
