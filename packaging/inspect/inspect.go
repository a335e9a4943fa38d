// Package inspect looks at a finished Pond.app as a Mac and a wary user would, and says what is wrong with it. It shares nothing with package
// bundle, which makes what is looked at: page hashes and slots are computed again from the files.
//
// It cannot say what macOS says: whether Gatekeeper lets the app in is known on a Mac alone. Start with App.
package inspect

import (
	"bytes"
	"crypto/sha256"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// MaxBytes is the largest app that is let out, with the demo model in it.
const MaxBytes = 120_000_000

// Facts are what was found in an app.
type Facts struct {
	ID, Version, Build string
	MinimumSystem      string // of the property list
	LinkedFor          string // of the executable: LC_BUILD_VERSION
	Libraries          []string
	CodeHash           string // SHA-256 of the code directory, hexadecimal
	Flags              uint32
	TotalBytes         int64
	Kernels            bool // the Metal kernels are in it, compiled
	Info               map[string]any
}

// Windowed reports whether the executable has its window.
func (f Facts) Windowed() bool {
	return slices.ContainsFunc(f.Libraries, func(l string) bool {
		return strings.Contains(l, "/AppKit.framework/") || strings.Contains(l, "/Cocoa.framework/")
	})
}

// App looks at a bundle. Facts hold what could be read; the error joins everything that is wrong.
func App(dir string) (Facts, error) {
	var f Facts
	contents := filepath.Join(dir, "Contents")
	info, err := os.ReadFile(filepath.Join(contents, "Info.plist"))
	if err != nil {
		return f, fmt.Errorf("inspect: %w", err)
	}
	if f.Info, err = ParsePlist(info); err != nil {
		return f, fmt.Errorf("inspect: Info.plist: %w", err)
	}
	text := func(key string) string { s, _ := f.Info[key].(string); return s }
	f.ID, f.Version, f.Build, f.MinimumSystem = text("CFBundleIdentifier"), text("CFBundleShortVersionString"), text("CFBundleVersion"), text("LSMinimumSystemVersion")

	var wrong []error
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	for key, want := range map[string]string{"CFBundlePackageType": "APPL", "CFBundleInfoDictionaryVersion": "6.0", "LSMinimumSystemVersion": "15.0"} {
		if got := text(key); got != want {
			complain("Info.plist: %s: got %q, want %q", key, got, want)
		}
	}
	if got := f.Info["LSUIElement"]; got != true {
		complain("Info.plist: LSUIElement: got %v, want true: Pond lives in the menu bar", got)
	}
	if got, err := os.ReadFile(filepath.Join(contents, "PkgInfo")); err != nil || string(got) != "APPL????" {
		complain("PkgInfo: got %q, %v, want APPL????", got, err)
	}
	if err := checkIcon(filepath.Join(contents, "Resources", text("CFBundleIconFile"))); err != nil {
		complain("icon: %w", err)
	}
	if l, err := os.ReadFile(filepath.Join(contents, "Resources", "LICENSES.txt")); err != nil || len(l) < 10_000 {
		complain("LICENSES.txt: got %d bytes, %v, want Pond's licence and those of what is linked in", len(l), err)
	}
	for _, name := range []string{"kernels", "tensors"} {
		there, err := checkKernels(filepath.Join(contents, "Resources", name+".metallib"))
		if err != nil {
			complain("%s.metallib: %w", name, err)
		}
		f.Kernels = f.Kernels || there
	}
	executable := filepath.Join(contents, "MacOS", text("CFBundleExecutable"))
	code, err := os.ReadFile(executable)
	if err != nil {
		return f, errors.Join(append(wrong, err)...)
	}
	wrong = append(wrong, f.checkCode(code, info, contents)...)
	for _, path := range buildPaths(code) {
		complain("the executable names a path of the machine that built it: %s", path)
	}
	if st, err := os.Stat(executable); err != nil || st.Mode().Perm() != 0o755 {
		complain("executable: got mode %v, want 0755", st.Mode())
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err == nil && st.Mode().IsRegular() {
			f.TotalBytes += st.Size()
		}
		if err == nil && st.Mode()&fs.ModeSymlink != 0 {
			complain("%s: got a link, want files alone", path)
		}
		return err
	})
	if f.TotalBytes > MaxBytes {
		complain("size: got %d bytes, want at most %d", f.TotalBytes, MaxBytes)
	}
	return f, errors.Join(append(wrong, err)...)
}

// checkCode looks at the executable: what it is for, what it needs, and its signature.
func (f *Facts) checkCode(code, info []byte, contents string) []error {
	m, err := macho.NewFile(bytes.NewReader(code))
	if err != nil {
		return []error{fmt.Errorf("executable: %w", err)}
	}
	var wrong []error
	if m.Cpu != macho.CpuArm64 || m.Type != macho.TypeExec {
		wrong = append(wrong, fmt.Errorf("executable: got %v for %v, want an executable for arm64", m.Type, m.Cpu))
	}
	f.LinkedFor = linkedFor(m)
	libraries, err := m.ImportedLibraries()
	if err != nil {
		wrong = append(wrong, fmt.Errorf("executable: %w", err))
	}
	f.Libraries = libraries
	for _, l := range libraries {
		if !strings.HasPrefix(l, "/usr/lib/") && !strings.HasPrefix(l, "/System/Library/") {
			wrong = append(wrong, fmt.Errorf("executable: got library %s, want the system's alone: the hardened runtime loads no other", l))
		}
	}
	if got := f.LinkedFor; f.Windowed() && got != "15.0" {
		wrong = append(wrong, fmt.Errorf("executable: linked for macOS %s, want 15.0", got))
	}
	return append(wrong, f.checkSignature(code, m, info, contents)...)
}

// linkedFor is the oldest macOS that an executable says it runs on.
func linkedFor(m *macho.File) string {
	const buildVersion, platformMac = 0x32, 1
	for _, l := range m.Loads {
		raw := l.Raw()
		if len(raw) >= 16 && m.ByteOrder.Uint32(raw) == buildVersion && m.ByteOrder.Uint32(raw[8:]) == platformMac {
			v := m.ByteOrder.Uint32(raw[12:])
			return fmt.Sprintf("%d.%d", v>>16, v>>8&0xff)
		}
	}
	return "unknown"
}

// checkIcon opens every picture of an icns file: a header, then kind and length of each.
func checkIcon(file string) error {
	all, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if len(all) < 8 || string(all[:4]) != "icns" || int(binary.BigEndian.Uint32(all[4:])) != len(all) {
		return errors.New("got no icns header with the file's length, want one")
	}
	// Pixels of each kind: 16 to 512 points at one and two pixels a point.
	want := map[string]int{"ic07": 128, "ic08": 256, "ic09": 512, "ic10": 1024, "ic11": 32, "ic12": 64, "ic13": 256, "ic14": 512}
	for rest := all[8:]; len(rest) > 0; {
		if len(rest) < 8 {
			return fmt.Errorf("got %d bytes at the end, want an entry", len(rest))
		}
		kind, length := string(rest[:4]), int(binary.BigEndian.Uint32(rest[4:]))
		if length < 8 || length > len(rest) {
			return fmt.Errorf("%s: got %d bytes, want what the file has", kind, length)
		}
		if pixels, known := want[kind]; known {
			c, err := png.DecodeConfig(bytes.NewReader(rest[8:length]))
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			if c.Width != pixels || c.Height != pixels {
				return fmt.Errorf("%s: got %dx%d, want %d", kind, c.Width, c.Height, pixels)
			}
			delete(want, kind)
		}
		rest = rest[length:]
	}
	if len(want) > 0 {
		return fmt.Errorf("got no pictures of %v, want them", want)
	}
	return nil
}

// checkKernels compares a compiled library of kernels with its seal: two lines, the digests of the text and of the library. Which text it was is for those who
// have it.
func checkKernels(file string) (bool, error) {
	library, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	seal, err := os.ReadFile(file + ".seal")
	if err != nil {
		return false, err
	}
	if sum := fmt.Sprintf("\nlibrary %x\n", sha256.Sum256(library)); !strings.HasSuffix(string(seal), sum) || !strings.HasPrefix(string(seal), "text ") {
		return false, errors.New("the seal is not of this library")
	}
	if !bytes.HasPrefix(library, []byte("MTLB")) {
		return false, errors.New("got something else than a Metal library, which begins with MTLB")
	}
	if paths := buildPaths(library); len(paths) > 0 {
		return false, fmt.Errorf("they name a path of the machine that compiled them: %s", paths[0])
	}
	return true, nil
}

// buildPath is an absolute path where people and machines build.
var buildPath = regexp.MustCompile(`/(?:home|Users|root|tmp|work|build|private/tmp|var/folders)/[A-Za-z0-9_.-]+/[A-Za-z0-9_./-]*\.(?:go|c|m|h|s|o|metal)\b`)

// buildPaths lists absolute paths of sources in a binary.
func buildPaths(code []byte) []string {
	var out []string
	for _, m := range buildPath.FindAll(code, 4) {
		out = append(out, string(m))
	}
	return out
}
