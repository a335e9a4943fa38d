package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// programs are an app's program in a folder of the test's own, and the test itself, which is what runs.
func programs(t *testing.T) (dir, inApp, own string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	inApp = filepath.Join(dir, "Pond.app", "Contents", "MacOS", "pond")
	if err := errors.Join(os.MkdirAll(filepath.Dir(inApp), 0o755), os.WriteFile(inApp, []byte("program"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if own, err = os.Executable(); err == nil {
		own, err = filepath.EvalSymlinks(own)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, inApp, own
}

// TestLinkFolders: the terminal's own folder first, the user's unless only the system's is looked into.
func TestLinkFolders(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/bin:/bin":                             "/h/.local/bin /usr/local/bin",
		"/usr/local/bin:/usr/bin":                   "/usr/local/bin /h/.local/bin",
		"/usr/local/bin:/h/.local/bin":              "/h/.local/bin /usr/local/bin",
		"/opt/homebrew/bin:/usr/local/binaries:/sb": "/h/.local/bin /usr/local/bin",
	} {
		if got := strings.Join(LinkFolders("/h", path), " "); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestLink: the first folder that can be written takes it, an older link is replaced, and what Pond did not make stays.
func TestLink(t *testing.T) {
	dir, inApp, own := programs(t)
	file := filepath.Join(dir, "file") // a folder below it cannot be made, not even by root
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "home", "bin")
	link, err := Link(inApp, []string{filepath.Join(file, "bin"), bin})
	if err != nil || link != filepath.Join(bin, "pond") {
		t.Fatalf("got %q, %v, want it in %s", link, err, bin)
	}
	if again, err := Link(link, []string{bin}); err != nil || again != link {
		t.Errorf("by the link itself: got %q, %v, want %s", again, err, link)
	}
	if to, err := os.Readlink(link); err != nil || to != inApp {
		t.Errorf("got a link to %s, %v, want %s", to, err, inApp)
	}
	if removed, err := Unlink([]string{bin}); err != nil || len(removed) != 0 {
		t.Errorf("the link of another app that is there: removed %v, %v, want none", removed, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "Pond.app")); err != nil {
		t.Fatal(err)
	}
	if removed, err := Unlink([]string{bin}); err != nil || len(removed) != 1 {
		t.Errorf("the link of an app that is gone: removed %v, %v, want one", removed, err)
	}
	if err := os.WriteFile(link+".new", nil, 0o644); err != nil { // of one that was killed
		t.Fatal(err)
	}
	if _, err := Link(own, []string{bin}); err != nil {
		t.Error(err)
	}
	if removed, err := Unlink([]string{filepath.Join(dir, "nowhere"), bin}); err != nil || len(removed) != 1 {
		t.Errorf("the link of this program: removed %v, %v, want one", removed, err)
	}
	if err := os.WriteFile(link, []byte("mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Link(own, []string{bin}); err == nil || !strings.Contains(err.Error(), "no link of Pond's") {
		t.Errorf("over a program of the user's: got %v", err)
	}
	if _, err := Link(filepath.Join(dir, "gone"), []string{bin}); err == nil {
		t.Error("a program that is not there was linked")
	}
	if _, err := Link(own, nil); err == nil {
		t.Error("no folder at all: got no error")
	}
}
