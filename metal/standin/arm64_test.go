package standin

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pond/metal/standin/mslpp"
)

// TestArm64 builds runtime and kernels for aarch64 and runs them under qemu: the switch between fibers, the exchanges between lanes, and faults.
func TestArm64(t *testing.T) {
	const root = "/usr/aarch64-linux-gnu"
	for _, name := range []string{"clang++-19", "qemu-aarch64"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("aarch64 cannot be tried here: ", err)
		}
	}
	if _, err := os.Stat(root); err != nil {
		t.Skip("aarch64 cannot be tried here: no libraries for it: ", err)
	}
	for _, tc := range toolchains(t, "clang++-19") {
		text, err := tc.rewrite(fixture(t, "basic.metal"), CompileOptions{}, mslpp.Host)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		file := func(name string) string { return filepath.Join(dir, name) }
		if err := os.WriteFile(file("kernels.cpp"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		sources, err := filepath.Glob(filepath.Join(tc.shim, "msl_*.cpp"))
		if err != nil {
			t.Fatal(err)
		}
		compile := func(args ...string) {
			t.Helper()
			all := append([]string{"--target=aarch64-linux-gnu", "-std=c++20", "-O1", "-fPIC", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-pthread", "-I" + tc.shim}, args...)
			if out, err := exec.Command(tc.cxx, all...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		compile(append(sources, "-shared", "-Wl,-soname,libmsl.so", "-o", file("libmsl.so"))...)
		compile("-fvisibility=hidden", "-shared", file("kernels.cpp"), file("libmsl.so"), "-o", file("kernels.so"))
		compile(filepath.Join("testdata", "arm64.cpp"), file("libmsl.so"), "-o", file("run"))
		out, err := exec.Command("qemu-aarch64", "-L", root, "-E", "LD_LIBRARY_PATH="+dir, file("run"), file("kernels.so")).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "all right" {
			t.Errorf("got %q (%v), want all right", out, err)
		}
	}
}
