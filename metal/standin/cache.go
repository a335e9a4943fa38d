package standin

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed src/msl_*
var mslSources embed.FS

// metalHeaders may be included by kernel text. They are empty: what they declare is always there.
var metalHeaders = []string{
	"metal_stdlib", "metal_atomic", "metal_common", "metal_compute", "metal_geometric", "metal_integer", "metal_limits", "metal_math",
	"metal_matrix", "metal_numeric", "metal_pack", "metal_relational", "metal_simdgroup", "metal_simdgroup_matrix", "metal_tensor",
	"metal_type_traits", "metal_types", "metal_cooperative_tensor", "MetalPerformancePrimitives/MetalPerformancePrimitives.h",
}

// digest hashes its parts, each with its length, so that no two lists collide.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))[:24]
}

// shimDigest names the state of the embedded sources, runtimeDigest that of those the runtime is made of.
func shimDigest() (string, error) { return sourceDigest("src/msl_*") }
func runtimeDigest() (string, error) {
	return sourceDigest("src/msl_*.cpp", "src/msl_fiber.h", "src/msl_internal.h", "src/msl_run.h", "src/msl_runtime.h")
}

func sourceDigest(patterns ...string) (string, error) {
	parts := append([]string{}, metalHeaders...)
	for _, p := range patterns {
		names, err := fs.Glob(mslSources, p)
		if err != nil {
			return "", err
		}
		for _, n := range names { // sorted
			b, err := mslSources.ReadFile(n)
			if err != nil {
				return "", err
			}
			parts = append(parts, n, string(b))
		}
	}
	return digest(parts...), nil
}

// writeShim puts the embedded sources and the empty Metal headers into dir.
func writeShim(dir string) error {
	names, err := fs.Glob(mslSources, "src/msl_*")
	if err != nil {
		return err
	}
	for _, n := range names {
		b, err := mslSources.ReadFile(n)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, strings.TrimPrefix(n, "src/")), b, 0o644); err != nil {
			return err
		}
	}
	for _, n := range metalHeaders {
		p := filepath.Join(dir, "metal", n)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(p, nil, 0o644); err != nil {
			return err
		}
	}
	return nil
}
