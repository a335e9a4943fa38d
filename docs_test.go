package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pond/app"
	"pond/app/settings"
	"pond/assets"
	"pond/inference"
)

// The manuals are held to the program: what they name exists, and what a user can meet is named.

// read is a file of the tree.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestVersionsAgree: the release and the id are said in several files, because each has a reader of its own.
func TestVersionsAgree(t *testing.T) {
	fyne := read(t, "FyneApp.toml")
	for _, want := range []string{`Version = "` + app.Version + `"`, `ID = "` + app.ID + `"`} {
		if !strings.Contains(fyne, want) {
			t.Errorf("FyneApp.toml: want %s in it", want)
		}
	}
	if first := regexp.MustCompile(`(?m)^## (\S+)`).FindStringSubmatch(read(t, "CHANGELOG.md")); first == nil || first[1] != app.Version {
		t.Errorf("CHANGELOG.md: got %v first, want %s", first, app.Version)
	}
}

// TestBuildNumber: macOS and Homebrew compare it, so it grows with every release: it is how many the change log has.
func TestBuildNumber(t *testing.T) {
	releases := regexp.MustCompile(`(?m)^## \d+\.\d+\.\d+$`).FindAllString(read(t, "CHANGELOG.md"), -1)
	if want := fmt.Sprintf("Build = %d\n", len(releases)); !strings.Contains(read(t, "FyneApp.toml"), want) {
		t.Errorf("FyneApp.toml: want %q for the %d releases of CHANGELOG.md", want, len(releases))
	}
}

// TestUninstallListsAgree: what `pond uninstall --everything` removes on a Mac and what the cask's zap does are one list. Elsewhere the folders are others, and
// the cask is compared with the names that they have on a Mac.
func TestUninstallListsAgree(t *testing.T) {
	cask := strings.ReplaceAll(read(t, "packaging/homebrew/cask.rb.tmpl"), "{{.ID}}", app.ID)
	want := []string{"~/Library/Application Support/pond", "~/Library/Caches/pond", "~/Library/Preferences/fyne/app.pond.Pond", "~/Library/LaunchAgents/app.pond.serve.plist", "~/Library/Logs/pond.log"}
	if home, err := os.UserHomeDir(); err == nil && runtime.GOOS == "darwin" {
		want = nil
		for _, path := range settings.DefaultPaths().All() {
			want = append(want, "~"+strings.TrimPrefix(path, home))
		}
	}
	for _, path := range want {
		if !strings.Contains(cask, `"`+path+`",`) {
			t.Errorf("cask.rb.tmpl: zap does not name %s", path)
		}
	}
}

// manuals are the pages for users and developers.
func manuals(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("docs: got %v, %v, want pages", pages, err)
	}
	return append(pages, "README.md", "ARCHITECTURE.md", "CHANGELOG.md")
}

// TestDocsExitCodes: docs/commands.md has a row for every exit code and for no other.
func TestDocsExitCodes(t *testing.T) {
	want := map[int]bool{exitOK: true, exitFailed: true, exitUsage: true, exitNoModel: true, exitBadModel: true, exitAddress: true, exitExecutor: true, exitMemory: true, exitSources: true, exitSpace: true, exitFolder: true, exitInterrupted: true}
	got := map[int]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(read(t, "docs/commands.md"), -1) {
		code, err := strconv.Atoi(row[1])
		if err != nil || !want[code] || got[code] {
			t.Errorf("docs/commands.md: exit code %s: unknown or twice", row[1])
		}
		got[code] = true
	}
	if len(got) != len(want) {
		t.Errorf("docs/commands.md: got rows for %d exit codes, want %d", len(got), len(want))
	}
}

// TestDocsCommands: README.md has a row for every command.
func TestDocsCommands(t *testing.T) {
	readme := read(t, "README.md")
	for _, c := range newRoot(streams{}).Commands() {
		if c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		if !strings.Contains(readme, "`"+c.CommandPath()) {
			t.Errorf("README.md: no row for %s", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			if !strings.Contains(readme, "`"+sub.CommandPath()) {
				t.Errorf("README.md: no row for %s", sub.CommandPath())
			}
		}
	}
}

// TestDocsFlags: a flag that a page names belongs to one of Pond's commands, or to the program that the page speaks of.
func TestDocsFlags(t *testing.T) {
	known := map[string]bool{"help": true, "version": true, "install": true, // xcode-select's
		"cask": true, "zap": true, "agent": true, "link": true, "uninstall": true} // Homebrew's and install.sh's
	var collect func(c *cobra.Command)
	collect = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		for _, sub := range c.Commands() {
			collect(sub)
		}
	}
	collect(newRoot(streams{}))
	for _, page := range manuals(t) {
		for _, m := range regexp.MustCompile(`(?:^|[\s`+"`"+`(])--([a-z][a-z-]*)`).FindAllStringSubmatch(read(t, page), -1) {
			if !known[m[1]] {
				t.Errorf("%s: no command has --%s", page, m[1])
			}
		}
	}
}

// TestDocsMakeTargets: a target that a page names is in the Makefile.
func TestDocsMakeTargets(t *testing.T) {
	makefile := read(t, "Makefile")
	for _, page := range manuals(t) {
		for _, m := range regexp.MustCompile("(?m)(?:`|^)make ([a-z][a-z-]*)").FindAllStringSubmatch(read(t, page), -1) {
			if !strings.Contains(makefile, "\n"+m[1]+": ") {
				t.Errorf("%s: the Makefile has no target %s", page, m[1])
			}
		}
	}
}

// TestDocsPaths: docs/api.md has every path of the endpoint's own description, and no other.
func TestDocsPaths(t *testing.T) {
	var description struct{ Paths map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(read(t, "server/openapi.json")), &description); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, m := range regexp.MustCompile("`(?:GET|POST|DELETE) (/[^`]*)`").FindAllStringSubmatch(read(t, "docs/api.md"), -1) {
		got[m[1]] = true
		if description.Paths[m[1]] == nil {
			t.Errorf("docs/api.md: server/openapi.json has no path %s", m[1])
		}
	}
	for p := range description.Paths {
		if !got[p] {
			t.Errorf("docs/api.md: want a row for %s", p)
		}
	}
}

// TestDocsSettings: docs/app.md has every key of the settings file.
func TestDocsSettings(t *testing.T) {
	page := read(t, "docs/app.md")
	for _, f := range settings.Fields() {
		if !strings.Contains(page, "`"+f.Key+"`") {
			t.Errorf("docs/app.md: want the setting `%s` in it", f.Key)
		}
	}
}

// TestDocsExecutors: docs/executors.md has a row for every executor.
func TestDocsExecutors(t *testing.T) {
	page := read(t, "docs/executors.md")
	for _, x := range []inference.Executor{inference.Auto, inference.Host, inference.HostExact, inference.HostInt8, inference.Metal, inference.Standin} {
		if !strings.Contains(page, "\n| `"+string(x)+"` |") {
			t.Errorf("docs/executors.md: no row for %s", x)
		}
	}
}

// TestDocsCases: a test that docs/cases.md names exists.
func TestDocsCases(t *testing.T) {
	tests := map[string]bool{}
	walkSources(t, func(file string, text []byte) {
		if strings.HasSuffix(file, "_test.go") {
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(text, -1) {
				tests[string(m[1])] = true
			}
		}
	})
	for _, m := range regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(read(t, "docs/cases.md"), -1) {
		if !tests[m[1]] {
			t.Errorf("docs/cases.md: there is no test %s", m[1])
		}
	}
}

// TestDocsLinks: a relative link leads to a file that is there, and to a heading that the page has.
func TestDocsLinks(t *testing.T) {
	anchor := func(heading string) string {
		heading = strings.ToLower(strings.NewReplacer("`", "", ",", "", ".", "", ":", "", "/", "", "?", "", "(", "", ")", "").Replace(heading))
		return strings.ReplaceAll(strings.TrimSpace(heading), " ", "-")
	}
	for _, page := range manuals(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = path.Join(path.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: %v", page, m[1], err)
				continue
			}
			if heading == "" {
				continue
			}
			var headings []string
			for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(read(t, target), -1) {
				headings = append(headings, anchor(h[1]))
			}
			if !slices.Contains(headings, heading) {
				t.Errorf("%s: link to %s: %s has %v", page, m[1], target, headings)
			}
		}
	}
}

// TestArchitectureLibraries: ARCHITECTURE.md has a row for every module that go.mod requires directly.
func TestArchitectureLibraries(t *testing.T) {
	page := read(t, "ARCHITECTURE.md")
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(read(t, "go.mod"), -1) {
		if !regexp.MustCompile(`(?m)^\|[^|]*\b` + regexp.QuoteMeta(m[1]) + `\b[^|]*\|`).MatchString(page) {
			t.Errorf("ARCHITECTURE.md: no row for the library %s", m[1])
		}
	}
}

// TestArchitectureMap: the map in ARCHITECTURE.md has every folder with Go code in it.
func TestArchitectureMap(t *testing.T) {
	_, page, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "## The map")
	page, _, _ = strings.Cut(page, "\n## ")
	seen := map[string]bool{".": true}
	walkSources(t, func(file string, text []byte) {
		dir := path.Dir(file)
		if seen[dir] || bytes.HasPrefix(text, []byte("//go:build ignore")) {
			return
		}
		seen[dir] = true
		if !regexp.MustCompile(`(?m)(^|[\s/(])` + regexp.QuoteMeta(path.Base(dir)) + `/`).MatchString(page) {
			t.Errorf("ARCHITECTURE.md: the map has no %s", dir)
		}
	})
}

// walkSources calls f with every Go file of the tree, by its path from the root.
func walkSources(t *testing.T, f func(file string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "build" || d.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(file, ".go"):
			return nil
		}
		text, err := os.ReadFile(file)
		f(filepath.ToSlash(file), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTrayIconIsATemplate: every icon of the menu bar is one black on nothing, as a template image has to be.
func TestTrayIconIsATemplate(t *testing.T) {
	kinds := []assets.Tray{assets.TrayStopped, assets.TrayRunning, assets.TrayFailed}
	for step := range assets.TraySteps + 1 {
		kinds = append(kinds, assets.TrayWorking(float64(step)/assets.TraySteps))
	}
	for _, kind := range kinds {
		for _, color := range regexp.MustCompile(`(?:fill|stroke)="([^"]+)"`).FindAllStringSubmatch(string(assets.TrayIcon(kind)), -1) {
			if color[1] != "#000000" && color[1] != "none" {
				t.Errorf("%s: got colour %s, want black alone", kind, color[1])
			}
		}
	}
}
