// Package bundle makes Pond.app out of a linked binary: the property list, the icon, the licences and an ad-hoc signature over all of it; and
// the archives it travels in.
//
// It compiles nothing and has no certificates: what a real identity signs is signed again by Apple's codesign on a Mac. The same input gives
// the same bytes. Start with Write.
package bundle

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

//go:embed Info.plist.tmpl
var infoTemplate string

// What every bundle has.
const (
	Executable    = "pond" // in Contents/MacOS; the command line's link points at it
	MinimumSystem = "15.0" // macOS: the kernels need its Metal
	pkgInfo       = "APPL????"
)

// Spec is what a bundle is made of.
type Spec struct {
	Product
	Binary   string    // path of the Mach-O executable for arm64
	Icon     []byte    // SVG, square
	Licences []byte    // text: Pond's own, then those of all that is linked in
	Time     time.Time // of every file: the commit's

	// Resources are more files of the app, by their names in Contents/Resources.
	Resources map[string][]byte

	// Feed is where the app looks for updates and Key what they are signed with, base64 of an Ed25519 public key. Both or neither: an app
	// without them never looks.
	Feed, Key string
}

// Write makes dir/Name.app, signed ad hoc, and returns its path. What stood there is replaced.
func Write(dir string, s Spec) (app string, err error) {
	info, err := s.info()
	if err != nil {
		return "", err
	}
	icon, err := icns(s.Icon)
	if err != nil {
		return "", err
	}
	binary, err := os.ReadFile(s.Binary)
	if err != nil {
		return "", fmt.Errorf("bundle: %w", err)
	}
	resources := map[string][]byte{"Resources/icon.icns": icon, "Resources/LICENSES.txt": s.Licences}
	for name, content := range s.Resources {
		resources["Resources/"+name] = content
	}
	sealed := codeResources(resources)
	binary, err = sign(binary, identity{ID: s.ID, Info: info, Resources: sealed})
	if err != nil {
		return "", fmt.Errorf("bundle: %s: %w", s.Binary, err)
	}

	app = filepath.Join(dir, s.Name+".app")
	if err := os.RemoveAll(app); err != nil {
		return "", fmt.Errorf("bundle: %w", err)
	}
	files := map[string][]byte{"Info.plist": info, "PkgInfo": []byte(pkgInfo), "MacOS/" + Executable: binary, "_CodeSignature/CodeResources": sealed}
	for name, content := range resources {
		files[name] = content
	}
	for name, content := range files {
		if err := writeFile(filepath.Join(app, "Contents", filepath.FromSlash(name)), content, name == "MacOS/"+Executable); err != nil {
			return "", fmt.Errorf("bundle: %w", err)
		}
	}
	return app, setTimes(app, s.Time)
}

// info fills the property list.
func (s Spec) info() ([]byte, error) {
	if (s.Feed == "") != (s.Key == "") {
		return nil, fmt.Errorf("bundle: updates: got feed %q and key %q, want both or neither", s.Feed, s.Key)
	}
	if s.Time.IsZero() {
		return nil, errors.New("bundle: got no time, want the commit's")
	}
	escape := func(text string) string {
		var b strings.Builder
		if xml.EscapeText(&b, []byte(text)) != nil {
			panic("bundle: internal error: a builder does not fail")
		}
		return b.String()
	}
	t, err := template.New("Info.plist").Option("missingkey=error").Parse(infoTemplate)
	if err != nil {
		return nil, fmt.Errorf("bundle: Info.plist: %w", err)
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{
		"Name": escape(s.Name), "ID": escape(s.ID), "Version": escape(s.Version), "Build": s.Build, "Year": s.Time.Year(),
		"Executable": Executable, "MinimumSystem": MinimumSystem, "Feed": escape(s.Feed), "Key": escape(s.Key),
	})
	if err != nil {
		return nil, fmt.Errorf("bundle: Info.plist: %w", err)
	}
	return b.Bytes(), nil
}

func writeFile(path string, content []byte, executable bool) error {
	mode := os.FileMode(0o644)
	if executable {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode) // whatever the umask was
}

// setTimes gives a tree one time.
func setTimes(root string, t time.Time) error {
	return filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if err := os.Chmod(path, 0o755); err != nil {
				return err
			}
		}
		return os.Chtimes(path, t, t)
	})
}
