package tray

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFresh compares the drawings with the files that are built in.
func TestFresh(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "assets", "icons")
	all := All()
	for name, want := range all {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is stale (%v); make icons draws it", name, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(all) {
		t.Errorf("got %d files, %v, want %d", len(entries), err, len(all))
	}
}
