package app

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pond/inference/checkpoint/manifest"
	"pond/inference/checkpoint/store"
	"pond/inference/tinymodel"
)

// TestOnlyAReadyModelIsFound: of a model whose files are known, nothing but verified and unchanged ones will do, by its id and by its folder.
func TestOnlyAReadyModelIsFound(t *testing.T) {
	models := t.TempDir()
	dir := filepath.Join(models, FullModel)
	c := Catalog{ModelsDir: models, Known: []manifest.Manifest{{ID: FullModel, Sources: []manifest.Source{{Repo: "a/b"}}, Files: []manifest.File{{Name: "config.json", Bytes: 1}}}}}
	expect := func(want string) {
		t.Helper()
		for _, name := range []string{FullModel, dir} {
			_, err := c.Find(name)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
	}
	if _, err := c.Find(FullModel); err == nil || !strings.Contains(err.Error(), "pond pull downloads it") {
		t.Errorf("nothing there: got %v", err)
	}
	if err := tinymodel.Write(dir, tinymodel.Tiny); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Find(dir); err != nil {
		t.Errorf("a folder that was never Pond's is the user's own affair: got %v", err)
	}
	m := manifest.Manifest{ID: FullModel, Sources: c.Known[0].Sources}
	for _, name := range []string{"config.json", "tokenizer.json", "model.safetensors"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		m.Files = append(m.Files, manifest.File{Name: name, Bytes: int64(len(data)), SHA256: sha256.Sum256(data)})
	}
	c.Known = []manifest.Manifest{m}
	if err := store.Note(dir, m, m.Files[0]); err != nil {
		t.Fatal(err)
	}
	expect("not verified; pond verify")
	if err := store.Note(dir, m, m.Files...); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{FullModel, dir} {
		if found, err := c.Find(name); err != nil || found.ID != FullModel || found.Dir != dir {
			t.Errorf("%s: got %+v, %v", name, found, err)
		}
	}
	weights := filepath.Join(dir, "model.safetensors")
	if err := os.Chtimes(weights, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	expect("model.safetensors changed; pond verify")
	var opened *OpenError
	if _, err := c.Find(FullModel); !errors.As(err, &opened) {
		t.Errorf("changed: got %T, want an OpenError", err)
	}
	if err := os.Remove(weights); err != nil {
		t.Fatal(err)
	}
	var missing *MissingModelError
	if _, err := c.Find(FullModel); !errors.As(err, &missing) || !strings.Contains(err.Error(), "pond pull goes on") {
		t.Errorf("partly there: got %v, want a MissingModelError", err)
	}
}
