package main

import (
	"archive/zip"
	"bytes"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"pond/app/update"
	"pond/packaging/bundle"
	"pond/packaging/homebrew"
	"pond/packaging/inspect"
)

// check lists what a release must show, with yes or no before each, and fails where anything is missing.
func check(f *flag.FlagSet, args []string) error {
	var r release
	f.StringVar(&r.root, "root", ".", "folder of Pond's sources")
	f.StringVar(&r.dir, "dir", "", "folder of the release")
	f.StringVar(&r.url, "url", "", "address that the folder will have")
	if err := f.Parse(args); err != nil {
		return err
	}
	if r.dir == "" || r.url == "" {
		return errWants(f, "-dir and -url")
	}
	var err error
	if r.product, err = bundle.ReadProduct(filepath.Join(r.root, "FyneApp.toml")); err != nil {
		return err
	}
	var wrong error
	for _, c := range r.claims() {
		err := c.holds()
		var skip *notHere
		switch {
		case err == nil:
			fmt.Printf("yes      %s\n", c.what)
		case errors.As(err, &skip):
			fmt.Printf("not run  %s: %v\n", c.what, err)
		default:
			fmt.Printf("NO       %s: %v\n", c.what, err)
			wrong = errors.Join(wrong, fmt.Errorf("%s: %w", c.what, err))
		}
	}
	return wrong
}

// notHere says that a claim cannot be looked at on this machine.
type notHere struct{ why string }

func (e *notHere) Error() string { return e.why }

// claim is one thing that a release must show.
type claim struct {
	what  string
	holds func() error
}

func (r release) claims() []claim {
	in := func(name string) string { return filepath.Join(r.dir, name) }
	version := r.product.Version
	return []claim{
		{"the digests are those of the files", func() error {
			got, err := os.ReadFile(in(sumsName))
			if err != nil {
				return err
			}
			want, err := r.sums()
			if err == nil && !bytes.Equal(got, want) {
				err = fmt.Errorf("%s is not of these files", sumsName)
			}
			return err
		}},
		{"the zip holds an app with nothing wrong, of this version, with its window", r.checkZip},
		{"the kernels in it are compiled, from the text of these sources", r.checkKernels},
		{"the feed offers the zip, signed with the key that the app has", r.checkFeed},
		{"the cask and the formula name these files, and are Ruby", r.checkRecipes},
		{"a tarball for each system, with program, terms and agent", r.checkTars},
		{"there is a disk image", func() error { _, err := os.Stat(in(imageName(version))); return err }},
		{"the change log begins with this version", func() error {
			text, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
			if err == nil && !strings.Contains(string(text), "\n## "+version) {
				err = fmt.Errorf("no ## %s", version)
			}
			return err
		}},
		{"the commit has this version's tag", func() error {
			said, err := exec.Command("git", "-C", r.root, "tag", "--points-at", "HEAD").Output()
			if err == nil && !strings.Contains("\n"+string(said), "\nv"+version+"\n") {
				err = fmt.Errorf("HEAD has no tag v%s", version)
			}
			return err
		}},
		{"Apple's Gatekeeper lets the app in", func() error {
			tool, err := exec.LookPath("spctl")
			if err != nil {
				return &notHere{"only a Mac can say"}
			}
			dir, err := os.MkdirTemp("", "pond-check")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			app, err := unzip(in(zipName(version)), dir)
			if err != nil {
				return err
			}
			if said, err := exec.Command(tool, "--assess", "--type", "execute", app).CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, said)
			}
			return nil
		}},
	}
}

func (r release) facts() (inspect.Facts, error) {
	dir, err := os.MkdirTemp("", "pond-check")
	if err != nil {
		return inspect.Facts{}, err
	}
	defer os.RemoveAll(dir)
	app, err := unzip(filepath.Join(r.dir, zipName(r.product.Version)), dir)
	if err != nil {
		return inspect.Facts{}, err
	}
	return inspect.App(app)
}

func (r release) checkZip() error {
	facts, err := r.facts()
	if err != nil {
		return err
	}
	if facts.Version != r.product.Version || facts.ID != r.product.ID || facts.Build != fmt.Sprint(r.product.Build) {
		return fmt.Errorf("got %s %s (%s), want %s %s (%d)", facts.ID, facts.Version, facts.Build, r.product.ID, r.product.Version, r.product.Build)
	}
	if !facts.Windowed() {
		return errors.New("the program in it has no window: build on a Mac, or with MACOS_SDK")
	}
	return nil
}

// checkKernels: an app without them works, and is slower to open its first model.
func (r release) checkKernels() error {
	dir, err := os.MkdirTemp("", "pond-check")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	app, err := unzip(filepath.Join(r.dir, zipName(r.product.Version)), dir)
	if err != nil {
		return err
	}
	found, err := compiledKernels(filepath.Join(app, "Contents", "Resources"))
	for _, t := range texts() {
		if err == nil && found[t.LibraryFile()] == nil {
			err = &notHere{"the app has no " + t.LibraryFile() + ": it was built without Apple's Metal compiler, or with an older one, and compiles that text itself"}
		}
	}
	return err
}

func (r release) checkFeed() error {
	facts, err := r.facts()
	if err != nil {
		return err
	}
	named, _ := facts.Info["PondUpdateKey"].(string)
	key, err := update.ParseKey(named)
	if err != nil {
		return err
	}
	if got := facts.Info["PondUpdateFeed"]; got == nil || !strings.HasSuffix(fmt.Sprint(got), "/"+feedName) {
		return fmt.Errorf("the app looks at %v, want a %s", got, feedName)
	}
	text, err := os.ReadFile(filepath.Join(r.dir, feedName))
	if err != nil {
		return err
	}
	releases, err := update.ReadFeed(text, key)
	if err != nil {
		return err
	}
	archive, err := os.ReadFile(filepath.Join(r.dir, zipName(r.product.Version)))
	if err != nil {
		return err
	}
	for _, offered := range releases {
		if offered.Version.String() != r.product.Version {
			continue
		}
		if offered.URL != r.url+"/"+zipName(r.product.Version) || offered.LengthBytes != int64(len(archive)) || !ed25519.Verify(key, archive, offered.Signature) {
			return fmt.Errorf("it offers %s with %d bytes, and the signature is not of this zip", offered.URL, offered.LengthBytes)
		}
		return nil
	}
	return fmt.Errorf("it does not offer %s", r.product.Version)
}

func (r release) checkRecipes() error {
	for name, archives := range map[string][]string{caskName: {zipName(r.product.Version)}, formulaName: tars(r.product.Version)} {
		file := filepath.Join(r.dir, name)
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, archive := range archives {
			sum, err := digestFile(filepath.Join(r.dir, archive))
			if err != nil {
				return err
			}
			if !strings.Contains(string(text), sum) {
				return fmt.Errorf("%s: the digest of %s is not in it", name, archive)
			}
		}
		if ruby, err := exec.LookPath("ruby"); err == nil {
			if said, err := exec.Command(ruby, "-c", file).CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, said)
			}
		}
	}
	return nil
}

func tars(version string) []string {
	var names []string
	for _, t := range homebrew.Targets() {
		names = append(names, tarName(version, t))
	}
	return names
}

func (r release) checkTars() error {
	for _, name := range tars(r.product.Version) {
		said, err := exec.Command("tar", "-tzf", filepath.Join(r.dir, name)).Output()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if got, want := string(said), "pond\nLICENSES.txt\n"+filepath.Base(agentPlist)+"\n"; got != want {
			return fmt.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	return nil
}

// unzip unpacks an archive of ours into a folder, and returns the app.
func unzip(archive, dir string) (string, error) {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return "", err
	}
	defer z.Close()
	for _, f := range z.File {
		if !filepath.IsLocal(f.Name) {
			return "", fmt.Errorf("%s: it leads out of the archive", f.Name)
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if f.Mode().IsDir() {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return "", err
			}
			continue
		}
		from, err := f.Open()
		if err != nil {
			return "", err
		}
		content, err := io.ReadAll(from)
		if err := errors.Join(err, from.Close(), os.MkdirAll(filepath.Dir(path), 0o755)); err != nil {
			return "", err
		}
		if err := errors.Join(os.WriteFile(path, content, f.Mode().Perm()), os.Chmod(path, f.Mode().Perm())); err != nil {
			return "", err
		}
	}
	apps, err := filepath.Glob(filepath.Join(dir, "*.app"))
	if err != nil || len(apps) != 1 {
		return "", fmt.Errorf("got %d apps in %s, %v, want one", len(apps), filepath.Base(archive), err)
	}
	return apps[0], nil
}
