// Package licences gathers the licence texts of everything that is linked into a binary, from the sources they were linked from.
//
// It judges no licence: a person reads the list. A dependency without a text is an error. Start with Gather.
package licences

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// Gather writes one text: Pond's licence, the demo model's sources, Go's, and those of each module that a binary's build information lists.
// root is the folder of Pond's sources.
func Gather(root, binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("licences: %w", err)
	}
	var out bytes.Buffer
	if err := add(&out, "Pond", root, []string{"LICENSE"}); err != nil {
		return nil, err
	}
	if err := add(&out, "The demo model inside Pond", filepath.Join(root, "assets", "demo"), []string{"LICENSES.md"}); err != nil {
		return nil, err
	}
	goRoot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("licences: go env GOROOT: %w", err)
	}
	if err := add(&out, "The Go runtime and standard library, "+info.GoVersion, strings.TrimSpace(string(goRoot)), []string{"LICENSE"}); err != nil {
		return nil, err
	}
	folders, err := sources(root, info.Deps)
	if err != nil {
		return nil, err
	}
	for i, m := range info.Deps {
		files, err := texts(folders[i])
		if err != nil {
			return nil, fmt.Errorf("licences: %s: %w", m.Path, err)
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("licences: %s: got no licence in %s, want one", m.Path, folders[i])
		}
		if err := add(&out, m.Path+" "+m.Version, folders[i], files); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// sources finds the folder of each module in Go's module cache.
func sources(root string, modules []*debug.Module) ([]string, error) {
	if len(modules) == 0 {
		return nil, nil
	}
	args := []string{"list", "-mod=mod", "-m", "-json"}
	for _, m := range modules {
		args = append(args, m.Path)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	said, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("licences: go list: %w", err)
	}
	found := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(said)); d.More(); {
		var m struct{ Path, Version, Dir string }
		if err := d.Decode(&m); err != nil {
			return nil, fmt.Errorf("licences: go list: %w", err)
		}
		found[m.Path+" "+m.Version] = m.Dir
	}
	var folders []string
	for _, m := range modules {
		dir := found[m.Path+" "+m.Version]
		if dir == "" {
			return nil, fmt.Errorf("licences: %s %s: got no sources; is the binary older than go.mod?", m.Path, m.Version)
		}
		folders = append(folders, dir)
	}
	return folders, nil
}

// text is a file with terms in it, whatever its ending; a source file is none.
var text = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|copyright|notice|ofl|patents)([-_.].*)?$`)

// texts lists the files with terms of a module, those of what it carries inside too: C libraries and fonts.
func texts(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "cmd" || d.Name() == "examples") {
			return fs.SkipDir
		}
		if !d.IsDir() && text.MatchString(d.Name()) && !slices.Contains([]string{".go", ".c", ".h"}, filepath.Ext(d.Name())) {
			rel, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			out = append(out, rel)
		}
		return nil
	})
	return out, err
}

// add writes a heading and files. A text that a module has twice is written once.
func add(out *bytes.Buffer, title, dir string, files []string) error {
	rule := strings.Repeat("=", 100)
	fmt.Fprintf(out, "%s\n%s\n%s\n\n", rule, title, rule)
	var seen [][]byte
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("licences: %s: %w", title, err)
		}
		content = bytes.TrimSpace(content)
		if slices.ContainsFunc(seen, func(s []byte) bool { return bytes.Equal(s, content) }) {
			continue
		}
		seen = append(seen, content)
		if len(files) > 1 {
			fmt.Fprintf(out, "-- %s\n\n", filepath.ToSlash(name))
		}
		fmt.Fprintf(out, "%s\n\n", content)
	}
	return nil
}
