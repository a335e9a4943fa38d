package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pond/inference/checkpoint/adopt"
	"pond/inference/checkpoint/manifest"
)

// TestAdoptedModelThatChanged: another tool's copy runs in place, and is neither trusted nor called missing when that tool changes it.
func TestAdoptedModelThatChanged(t *testing.T) {
	theirs := tiny(t).Dir
	m := manifest.Manifest{ID: "tiny"}
	entries, err := os.ReadDir(theirs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(theirs, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		m.Files = append(m.Files, manifest.File{Name: e.Name(), Bytes: int64(len(data)), SHA256: sha256.Sum256(data)})
	}
	c := Catalog{ModelsDir: t.TempDir()}
	dir := filepath.Join(c.ModelsDir, "tiny")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := adopt.Run(t.Context(), adopt.Job{Dir: dir, Candidate: adopt.SearchDir(theirs, m)[0], Mode: adopt.InPlace}); err != nil {
		t.Fatal(err)
	}
	model, err := c.Find("tiny")
	if err != nil {
		t.Fatal(err)
	}
	engine, err := Config{Model: model}.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	engine.Close()

	weights := filepath.Join(theirs, "model.safetensors")
	data, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.Remove(weights); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(weights, data, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Config{Model: model}.Open(context.Background())
	if !errors.As(err, new(*OpenError)) || !strings.Contains(err.Error(), weights+" changed since it was verified") {
		t.Errorf("got %v, want an OpenError that names the file", err)
	}
	if err := os.Remove(weights); err != nil {
		t.Fatal(err)
	}
	_, err = c.Find("tiny")
	if !errors.As(err, new(*MissingModelError)) || !strings.Contains(err.Error(), weights+" is gone") {
		t.Errorf("got %v, want a MissingModelError that names the file", err)
	}
}
