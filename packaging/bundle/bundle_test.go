package bundle_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gomacho "github.com/blacktop/go-macho"

	"pond/assets"
	"pond/packaging/bundle"
	"pond/packaging/inspect"
)

const root = "../.."

// commitTime stands for a commit's.
var commitTime = time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)

// copySources copies what Pond is built from.
func copySources(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"build", "testdata", "screenshots", "train", "node_modules"}, d.Name())) {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		if !d.Type().IsRegular() || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), content, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// build links Pond for a Mac without its window, as scripts/app.sh does.
func build(t *testing.T, dir, out string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X pond/app.stamp=0123456789ab,2026-11-30T01:02:03Z", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
}

func spec(t *testing.T, binary string) bundle.Spec {
	t.Helper()
	p, err := bundle.ReadProduct(root + "/FyneApp.toml")
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Spec{Product: p, Binary: binary, Icon: assets.Icon(), Licences: bytes.Repeat([]byte("terms\n"), 2000), Time: commitTime}
}

// TestBundle builds the app twice from two folders, and looks at it: the same bytes, and nothing wrong with them.
func TestBundle(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("this machine has no go command")
	}
	var zips [2][]byte
	var app, binary string
	for i, name := range []string{"one", "another/and deeper"} {
		dir := filepath.Join(t.TempDir(), name)
		copySources(t, dir)
		binary = filepath.Join(dir, "linked")
		build(t, dir, binary)
		var err error
		if app, err = bundle.Write(filepath.Join(dir, "out"), spec(t, binary)); err != nil {
			t.Fatal(err)
		}
		archive := filepath.Join(dir, "Pond.zip")
		if err := bundle.Zip(archive, app, commitTime); err != nil {
			t.Fatal(err)
		}
		if zips[i], err = os.ReadFile(archive); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := sha256.Sum256(zips[0]), sha256.Sum256(zips[1]); a != b {
		t.Errorf("two builds of the same sources: got archives %x and %x, want the same", a[:8], b[:8])
	}

	facts, err := inspect.App(app)
	if err != nil {
		t.Fatal(err)
	}
	product := spec(t, binary).Product
	if facts.ID != product.ID || facts.Version != product.Version || facts.Build != "1" || facts.MinimumSystem != "15.0" || facts.Windowed() {
		t.Errorf("got %+v", facts)
	}
	if facts.LinkedFor != "12.0" { // what Go's linker writes without a window; with one it is 15.0, which inspect holds it to
		t.Errorf("LC_BUILD_VERSION: got %s, want 12.0", facts.LinkedFor)
	}
	if facts.TotalBytes < 40_000_000 { // the demo model is 31 MB
		t.Errorf("got %d bytes, want the demo model in it", facts.TotalBytes)
	}
	if code, err := os.ReadFile(filepath.Join(app, "Contents", "MacOS", bundle.Executable)); err != nil || !bytes.Contains(code, []byte("0123456789ab,2026-11-30T01:02:03Z")) {
		t.Errorf("the executable does not say which commit it is of: %v", err)
	}
	t.Run("foreign reader", func(t *testing.T) { readWithForeignEyes(t, app, facts) })
	t.Run("zip", func(t *testing.T) { listZip(t, zips[0]) })
	t.Run("image", func(t *testing.T) { listImage(t, app) })
	t.Run("signed again", func(t *testing.T) { signAgain(t, app, facts) })
	t.Run("tampered", func(t *testing.T) { tamper(t, app) })
}

// readWithForeignEyes: a library that nobody here wrote reads the same signature.
func readWithForeignEyes(t *testing.T, app string, facts inspect.Facts) {
	m, err := gomacho.Open(filepath.Join(app, "Contents", "MacOS", bundle.Executable))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	cs := m.CodeSignature()
	if cs == nil || len(cs.CodeDirectories) != 1 {
		t.Fatalf("got signature %+v, want one code directory", cs)
	}
	d := cs.CodeDirectories[0]
	if d.CDHash != facts.CodeHash || d.ID != facts.ID || uint32(d.Header.Flags) != facts.Flags || facts.Flags != 0x10002 {
		t.Errorf("got %s %s flags %#x, want %s %s %#x", d.CDHash, d.ID, d.Header.Flags, facts.CodeHash, facts.ID, 0x10002)
	}
	if len(d.SpecialSlots) != 3 || len(cs.CMSSignature) != 0 || cs.Entitlements != "" {
		t.Errorf("got %d slots, %d bytes of CMS, entitlements %q, want 3, 0 and none", len(d.SpecialSlots), len(cs.CMSSignature), cs.Entitlements)
	}
}

func listZip(t *testing.T, archive []byte) {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]fs.FileMode{}
	for _, f := range r.File {
		modes[f.Name] = f.Mode()
		if !strings.HasPrefix(f.Name, "Pond.app/") || !f.Modified.Equal(commitTime.Truncate(2*time.Second)) && !f.Modified.Equal(commitTime) {
			t.Errorf("%s of %v: want everything in Pond.app, of %v", f.Name, f.Modified, commitTime)
		}
	}
	for name, want := range map[string]fs.FileMode{"Pond.app/Contents/MacOS/pond": 0o755, "Pond.app/Contents/Info.plist": 0o644, "Pond.app/Contents/_CodeSignature/CodeResources": 0o644, "Pond.app/": fs.ModeDir | 0o755} {
		if modes[name] != want {
			t.Errorf("%s: got %v, want %v", name, modes[name], want)
		}
	}
}

func listImage(t *testing.T, app string) {
	image := filepath.Join(t.TempDir(), "Pond.dmg")
	err := bundle.Image(image, app, "Pond", commitTime)
	if errors.Is(err, bundle.ErrNoImager) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	tool := exec.Command("xorriso", "-indev", image, "-find", "/", "-exec", "lsdl")
	if _, err := exec.LookPath("xorriso"); err != nil { // a Mac
		tool = exec.Command("hdiutil", "imageinfo", image)
	}
	said, err := tool.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if tool.Args[0] == "hdiutil" {
		return
	}
	for _, want := range []string{"'/Applications' -> '/Applications'", "'/Pond.app/Contents/MacOS/pond'", "'/Pond.app/Contents/Info.plist'"} {
		if !bytes.Contains(said, []byte(want)) {
			t.Errorf("the image has no %s:\n%s", want, said)
		}
	}
	again := filepath.Join(t.TempDir(), "Again.dmg")
	if err := bundle.Image(again, app, "Pond", commitTime); err != nil {
		t.Fatal(err)
	}
	a, errA := os.ReadFile(image)
	b, errB := os.ReadFile(again)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("two images of one app: got different bytes (%v, %v)", errA, errB)
	}
}

// signAgain: an app that is bundled from a signed executable is the same.
func signAgain(t *testing.T, app string, first inspect.Facts) {
	again, err := bundle.Write(t.TempDir(), spec(t, filepath.Join(app, "Contents", "MacOS", bundle.Executable)))
	if err != nil {
		t.Fatal(err)
	}
	facts, err := inspect.App(again)
	if err != nil || facts.CodeHash != first.CodeHash {
		t.Errorf("got %s, %v, want %s", facts.CodeHash, err, first.CodeHash)
	}
}

// tamper changes one thing after the other; each is found.
func tamper(t *testing.T, app string) {
	for _, c := range []struct {
		file, want string
		change     func([]byte) []byte
	}{
		{"MacOS/pond", "page 1", func(b []byte) []byte { b[5000] ^= 1; return b }},
		{"MacOS/pond", "names a path of the machine that built it: /home/me/pond/x.go", func(b []byte) []byte { copy(b[len(b)/2:], "/home/me/pond/x.go\x00"); return b }},
		{"MacOS/pond", "want an executable for arm64", func(b []byte) []byte { b[4] = 7; return b }}, // CPU_TYPE_X86_64
		{"Resources/icon.icns", "icon: ", func(b []byte) []byte { return b[:len(b)-1] }},
		{"Resources/icon.icns", "icon: ic", func(b []byte) []byte { return bytes.Replace(b, []byte("IHDR"), []byte("IHDX"), -1) }},
		{"Resources/more.bin", "size: got ", func([]byte) []byte { return make([]byte, inspect.MaxBytes) }},
		{"Info.plist", "Info.plist: its hash", func(b []byte) []byte { return bytes.Replace(b, []byte("15.0"), []byte("15.0 "), 1) }},
		{"Resources/LICENSES.txt", "is not what was sealed", func(b []byte) []byte { return append(b, '!') }},
		{"Resources/more.txt", "resources: got 3 files", func([]byte) []byte { return []byte("more") }},
		{"_CodeSignature/CodeResources", "CodeResources: its hash", func(b []byte) []byte { return append(b, '\n') }},
		{"PkgInfo", "want APPL????", func([]byte) []byte { return []byte("BNDL????") }},
	} {
		path := filepath.Join(app, "Contents", filepath.FromSlash(c.file))
		before, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		mode := fs.FileMode(0o644)
		if st, err := os.Stat(path); err == nil {
			mode = st.Mode()
		}
		if err := os.WriteFile(path, c.change(bytes.Clone(before)), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := inspect.App(app); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q in it", c.file, err, c.want)
		}
		if before == nil {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, before, mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := inspect.App(app); err != nil {
		t.Errorf("put back: %v", err)
	}
}

// TestRefusals: what cannot become an app says why.
func TestRefusals(t *testing.T) {
	s := spec(t, filepath.Join(t.TempDir(), "x"))
	if err := os.WriteFile(s.Binary, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.Write(t.TempDir(), s); err == nil || !strings.Contains(err.Error(), s.Binary) {
		t.Errorf("a script: got %v, want its name", err)
	}
	half := s
	half.Feed = "https://example.org/appcast.xml"
	if _, err := bundle.Write(t.TempDir(), half); err == nil || !strings.Contains(err.Error(), "want both or neither") {
		t.Errorf("a feed without a key: got %v", err)
	}
	toml := filepath.Join(t.TempDir(), "FyneApp.toml")
	if err := os.WriteFile(toml, []byte("Name = \"Pond\"\nID = \"x\"\nVersion = \"1.0-beta\"\nBuild = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.ReadProduct(toml); err == nil || !strings.Contains(err.Error(), "want three numbers") {
		t.Errorf("1.0-beta: got %v", err)
	}
}
