package kernels

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.metal
var metalFiles embed.FS

// Source is the whole Metal text for newLibraryWithSource, each file behind a #line so that a compiler's message names the file and
// its line. What a file uses stands before it.
func Source() string {
	return text("prelude", "elementwise", "product_row", "moe_row", "product_tile", "tile_matrix", "product_gemm", "moe_tile", "gdn", "attention_places", "attention", "attention_decode", "prefill_matrix",
		"attention_prefill", "sample", "unfused")
}

// TensorSource is the text of the products of many rows and of a chunk's attention by tensor operations: Metal 4.0, so macOS 26. Its kernels have the names and
// signatures of those in Source; those that TensorKernels lists may take their place where Tuning.TensorOps says how they are launched.
func TensorSource() string {
	return text("prelude", "product_tile", "tile_tensor", "product_gemm", "moe_tile", "attention_places", "prefill_tensor", "attention_prefill")
}

// TensorKernels are the kernels of TensorSource that are worth it, sorted. The router's products stay in float32: a logit that is rounded may
// choose another expert.
func TensorKernels() []string {
	return []string{"attn_prefill_bf16", "attn_prefill_split_bf16", "moe_down_grouped", "moe_down_grouped_bf16", "moe_gate_up_grouped", "q4_gemm", "q4_gemm_add", "q4_gemm_split"}
}

func text(files ...string) string {
	var b strings.Builder
	for _, n := range files {
		text, err := metalFiles.ReadFile(n + ".metal")
		if err != nil {
			panic(fmt.Sprintf("kernels: internal error: %v", err)) // the files are in the binary
		}
		fmt.Fprintf(&b, "#line 1 \"%s.metal\"\n%s\n", n, text)
	}
	return b.String()
}
