package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"pond/app/update"
	"pond/assets"
	"pond/packaging/bundle"
	"pond/packaging/homebrew"
	"pond/packaging/inspect"
)

var commitTime = time.Date(2026, 11, 30, 1, 2, 4, 0, time.UTC)

const root = "../.."

// program links a little program for a system.
func program(t *testing.T, target, says string) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("this machine has no go command")
	}
	dir := t.TempDir()
	source := "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(" + strconv.Quote(says) + ") }\n"
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644), os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module little\n\ngo 1.26\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	goos, goarch, _ := strings.Cut(target, "-")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", "pond", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return filepath.Join(dir, "pond")
}

// fakeRelease is a whole release around little programs, on a server; the app of version is the new one.
func fakeRelease(t *testing.T, version string) (r release, key ed25519.PrivateKey, binary string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	product, err := bundle.ReadProduct(filepath.Join(root, "FyneApp.toml"))
	if err != nil {
		t.Fatal(err)
	}
	product.Version = version
	r = release{root: root, dir: dir, url: server.URL, homepage: "https://example.org/pond", product: product, time: commitTime}
	binary = program(t, "darwin-arm64", "new")
	resources, library := map[string][]byte{}, []byte("MTLB, a library")
	for _, text := range texts() {
		resources[text.LibraryFile()], resources[text.SealFile()] = library, text.Seal(library)
	}
	app, err := bundle.Write(t.TempDir(), bundle.Spec{Product: product, Binary: binary, Icon: assets.Icon(), Licences: bytes.Repeat([]byte("terms\n"), 2000), Time: commitTime,
		Feed: server.URL + "/" + feedName, Key: encodeKey(public), Resources: resources})
	if err != nil {
		t.Fatal(err)
	}
	if err := bundle.Zip(filepath.Join(dir, zipName(version)), app, commitTime); err != nil {
		t.Fatal(err)
	}
	host := program(t, runtime.GOOS+"-"+runtime.GOARCH, "pond "+version+", little\n")
	content, err := os.ReadFile(host)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(agentPlist)))
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range homebrew.Targets() {
		err := bundle.Tar(filepath.Join(dir, tarName(version, target)), []bundle.Part{{Name: "pond", Content: content, Mode: 0o755},
			{Name: "LICENSES.txt", Content: []byte("terms"), Mode: 0o644}, {Name: filepath.Base(agentPlist), Content: agent, Mode: 0o644}}, commitTime)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := r.publish(private); err != nil {
		t.Fatal(err)
	}
	return r, private, binary
}

// TestReleaseGoesThroughTheUpdater: an app of the version before finds the release, and has the new one in its place at the end, whole.
func TestReleaseGoesThroughTheUpdater(t *testing.T) {
	r, key, binary := fakeRelease(t, "0.9.0")
	older := r.product
	older.Version = "0.8.0"
	app, err := bundle.Write(t.TempDir(), bundle.Spec{Product: older, Binary: binary, Icon: assets.Icon(), Licences: bytes.Repeat([]byte("terms\n"), 2000), Time: commitTime,
		Feed: r.url + "/" + feedName, Key: encodeKey(key.Public().(ed25519.PublicKey))})
	if err != nil {
		t.Fatal(err)
	}
	u, err := update.Of(filepath.Join(app, "Contents", "MacOS", bundle.Executable), "0.8.0", "macOS 15.5", filepath.Join(t.TempDir(), "checked"))
	if err != nil {
		t.Fatal(err)
	}
	u.Verify = func(app string) error { _, err := inspect.App(app); return err }
	found, err := u.Check(context.Background())
	if err != nil || found == nil {
		t.Fatalf("got %v, %v, want a release", found, err)
	}
	if err := u.Fetch(context.Background(), *found); err != nil {
		t.Fatal(err)
	}
	if err := u.Install(); err != nil {
		t.Fatal(err)
	}
	if facts, err := inspect.App(app); err != nil || facts.Version != "0.9.0" || !facts.Kernels {
		t.Errorf("got %s, %v, want 0.9.0 with nothing wrong", facts.Version, err)
	}
}

// TestCheck: a release shows what it must, and what is missing or changed is named.
func TestCheck(t *testing.T) {
	r, key, _ := fakeRelease(t, "0.9.0")
	claims := func() map[string]error {
		got := map[string]error{}
		for _, c := range r.claims() {
			got[c.what] = c.holds()
		}
		return got
	}
	got := claims()
	for what, want := range map[string]string{
		"the digests are those of the files":                                        "",
		"the kernels in it are compiled, from the text of these sources":            "",
		"the feed offers the zip, signed with the key that the app has":             "",
		"the cask and the formula name these files, and are Ruby":                   "",
		"a tarball for each system, with program, terms and agent":                  "",
		"the zip holds an app with nothing wrong, of this version, with its window": "has no window",
		"there is a disk image":                                                     "no such file",
		"the commit has this version's tag":                                         "v0.9.0",
	} {
		err, known := got[what]
		if !known || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v (known: %v), want %q", what, err, known, want)
		}
	}

	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.publish(stranger); err != nil {
		t.Fatal(err)
	}
	if err := r.checkFeed(); !errors.Is(err, update.ErrSignature) {
		t.Errorf("a feed of another key: got %v, want %v", err, update.ErrSignature)
	}
	if err := r.publish(key); err != nil {
		t.Fatal(err)
	}
	zip := filepath.Join(r.dir, zipName("0.9.0"))
	content, err := os.ReadFile(zip)
	if err == nil {
		err = os.WriteFile(zip, append(content, 0), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	got = claims()
	for _, what := range []string{"the digests are those of the files", "the feed offers the zip, signed with the key that the app has", "the cask and the formula name these files, and are Ruby"} {
		if got[what] == nil {
			t.Errorf("%s: got yes for another zip", what)
		}
	}
}

// TestKeygen: a key is written once, for its owner alone, and never over another.
func TestKeygen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := run([]string{"keygen", "-out", file}); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want 0600", st.Mode(), err)
	}
	first, err := readKey(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"keygen", "-out", file}); err == nil {
		t.Error("a key was written over another")
	}
	if again, err := readKey(file); err != nil || !first.Equal(again) {
		t.Errorf("the key changed, %v", err)
	}
}

// TestAgent: the property list of launchd is one, and names what it starts.
func TestAgent(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(agentPlist)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := inspect.ParsePlist(text)
	if err != nil {
		t.Fatal(err)
	}
	arguments, _ := p["ProgramArguments"].([]any)
	if p["Label"] != "app.pond.serve" || len(arguments) != 2 || arguments[0] != "@POND@" || arguments[1] != "serve" || p["RunAtLoad"] != true {
		t.Errorf("got %v", p)
	}
}

// installer runs the install script with a home of its own.
func installer(t *testing.T, home, url string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{filepath.Join(root, "packaging", "install.sh")}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+home, "POND_RELEASE_URL="+url)
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// TestInstaller: from a release to a program that runs and back; a tarball that is not the release's is refused, and the program that was there stays.
func TestInstaller(t *testing.T) {
	for _, tool := range []string{"sh", "curl", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("this machine has no %s", tool)
		}
	}
	if runtime.GOOS == "darwin" && runtime.GOARCH != "arm64" {
		t.Skip("the installer wants Apple Silicon")
	}
	r, key, _ := fakeRelease(t, "0.9.0")
	home := t.TempDir()
	installed := filepath.Join(home, ".local", "bin", "pond")
	if said, err := installer(t, home, r.url); err != nil || !strings.Contains(said, "installed pond 0.9.0 as "+installed) || !strings.Contains(said, "not in your PATH") {
		t.Fatalf("%v: %s", err, said)
	}
	if said, err := exec.Command(installed).Output(); err != nil || string(said) != "pond 0.9.0, little\n" {
		t.Errorf("got %q, %v", said, err)
	}

	tarball := filepath.Join(r.dir, tarName("0.9.0", runtime.GOOS+"-"+runtime.GOARCH))
	content, err := os.ReadFile(tarball)
	if err == nil {
		err = os.WriteFile(tarball, content[:len(content)-9], 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if said, err := installer(t, home, r.url); err == nil || !strings.Contains(said, "nothing was installed") {
		t.Errorf("a truncated tarball: %v: %s", err, said)
	}
	if _, err := exec.Command(installed).Output(); err != nil {
		t.Errorf("the program that was there: %v", err)
	}
	if err := r.publish(key); err != nil {
		t.Fatal(err)
	}
	if said, err := installer(t, home, r.url, "--version", "7.0.0"); err == nil || !strings.Contains(said, "has no pond-7.0.0") {
		t.Errorf("an unknown version: %v: %s", err, said)
	}

	if said, err := installer(t, home, "", "--uninstall"); err != nil || !strings.Contains(said, "removed "+installed) || !strings.Contains(said, "what is yours stays") {
		t.Errorf("%v: %s", err, said)
	}
	if _, err := os.Lstat(installed); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after --uninstall: got %v, want nothing there", err)
	}
}

// TestScripts: shellcheck finds nothing in any script of the tree.
func TestScripts(t *testing.T) {
	tool, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("this machine has no shellcheck")
	}
	scripts := []string{filepath.Join(root, ".ci", "run")}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "build" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".sh" {
			scripts = append(scripts, path)
		}
		return err
	})
	if err != nil || len(scripts) < 15 {
		t.Fatalf("got %d scripts, %v, want all", len(scripts), err)
	}
	if said, err := exec.Command(tool, scripts...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
