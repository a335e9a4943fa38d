package inference

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestResources: the app's folder is found from the program in it and from a link to that, as `pond link` makes one; a program elsewhere has none.
func TestResources(t *testing.T) {
	dir := t.TempDir()
	inApp := filepath.Join(dir, "Pond.app", "Contents", "MacOS", "pond")
	bare := filepath.Join(dir, "bin", "pond")
	link := filepath.Join(dir, "linked")
	if err := errors.Join(os.MkdirAll(filepath.Dir(inApp), 0o755), os.MkdirAll(filepath.Dir(bare), 0o755), os.WriteFile(inApp, nil, 0o755), os.WriteFile(bare, nil, 0o755), os.Symlink(inApp, link)); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "Pond.app", "Contents", "Resources")
	for executable, want := range map[string]string{inApp: want, link: want, bare: "", filepath.Join(dir, "gone"): ""} {
		if got := resources(executable, nil); got != want {
			t.Errorf("%s: got %q, want %q", executable, got, want)
		}
	}
	if got := resources(inApp, errors.New("unknown")); got != "" {
		t.Errorf("an executable that is not known: got %q, want nothing", got)
	}
}
