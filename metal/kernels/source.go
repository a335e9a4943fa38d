package kernels

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.metal
var metalFiles embed.FS

// sourceFiles are the Metal files in the order of the text: what a file uses stands before it.
var sourceFiles = []string{"prelude", "elementwise", "product_row", "moe_row", "product_tile", "moe_tile", "gdn", "attention", "attention_prefill", "unfused"}

// Source is the whole Metal text for newLibraryWithSource, each file behind a #line so that a compiler's message names the file and
// its line.
func Source() string {
	var b strings.Builder
	for _, n := range sourceFiles {
		text, err := metalFiles.ReadFile(n + ".metal")
		if err != nil {
			panic(fmt.Sprintf("kernels: internal error: %v", err)) // the files are in the binary
		}
		fmt.Fprintf(&b, "#line 1 \"%s.metal\"\n%s\n", n, text)
	}
	return b.String()
}
