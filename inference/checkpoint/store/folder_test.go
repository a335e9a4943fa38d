package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFolderCannotBeMade: a home that the user may not write to gave the system's error, as any other failure does.
func TestFolderCannotBeMade(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	closed := filepath.Join(t.TempDir(), "closed")
	must(t, os.Mkdir(closed, 0o555))
	for what, root := range map[string]string{"below a file": filepath.Join(file, "pond", "models"), "a file": file, "may not": filepath.Join(closed, "pond", "models")} {
		t.Run(what, func(t *testing.T) {
			if root != file && !strings.HasPrefix(root, file) && os.Geteuid() == 0 {
				t.Skip("root may write anywhere")
			}
			w.store = Store{Root: root, Create: true}
			var bad *FolderError
			if err := w.pull(t); !errors.As(err, &bad) || !strings.Contains(err.Error(), root) {
				t.Errorf("got %v, want a FolderError that names %s", err, root)
			}
			if w.hub.Requests() != 0 {
				t.Error("the hub was asked all the same")
			}
		})
	}
}
