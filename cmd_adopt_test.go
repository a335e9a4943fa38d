package main

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

// TestAdoption plays the command with a model of two files.
func TestAdoption(t *testing.T) {
	files := map[string]string{"config.json": "{}", "model.safetensors": "weights"}
	m := manifest.Manifest{ID: "small", Sources: []manifest.Source{{Repo: "owner/small", Revision: "1"}}}
	for _, name := range []string{"config.json", "model.safetensors"} {
		m.Files = append(m.Files, manifest.File{Name: name, Bytes: int64(len(files[name])), SHA256: sha256.Sum256([]byte(files[name]))})
	}
	home := t.TempDir()
	theirs := filepath.Join(home, ".lmstudio", "models", "owner", "small")
	var out strings.Builder
	a := adoption{s: streams{out: &out, err: &out}, model: m, dir: filepath.Join(home, "pond", "small"), env: adopt.Environment{Home: home}, mode: adopt.InPlace}
	fails := func(err error, code int, text string) {
		t.Helper()
		var e *exitError
		if !errors.As(err, &e) || e.code != code || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want exit code %d, %q", err, code, text)
		}
	}
	says := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("got\n%swant %q in it", out.String(), w)
			}
		}
		out.Reset()
	}

	fails(a.list(), exitNoModel, "no copy found")
	fails(a.run(context.Background()), exitNoModel, "no copy found")
	if _, err := os.Stat(a.dir); err == nil {
		t.Error("a folder was made for nothing")
	}

	if err := os.MkdirAll(theirs, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(theirs, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("model.safetensors", "weighTs")
	put("config.json", "other")
	if err := a.list(); err != nil {
		t.Error(err)
	}
	says("LM Studio  "+theirs, "1 of 2 files", "missing  config.json (another file: got 5 bytes, want 2)", "--in-place")
	fails(a.run(context.Background()), exitBadModel, "1 of the files")
	says("rejected  " + filepath.Join(theirs, "model.safetensors") + ": got SHA-256")

	put("model.safetensors", "weights")
	fails(a.run(context.Background()), exitNoModel, "1 files are missing; pond pull")
	says("verified  model.safetensors (in place)", "missing  config.json")

	put("config.json", "{}")
	if err := a.run(context.Background()); err != nil {
		t.Error(err)
	}
	says("verified  config.json (in place)", "kept      model.safetensors", "small is ready in "+a.dir)

	a.from = filepath.Join(home, "elsewhere")
	fails(a.list(), exitNoModel, "elsewhere")
	a.from = theirs
	if err := a.list(); err != nil {
		t.Error(err)
	}
	says("folder  "+theirs, "2 of 2 files")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a.mode = adopt.Copy
	if err := a.run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it cancelled", err)
	}
}
