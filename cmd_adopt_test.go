package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pond/inference/checkpoint/adopt"
	"pond/inference/checkpoint/manifest"
	"pond/inference/checkpoint/store"
	"pond/inference/tinymodel"
)

// TestAdoption plays the command with a generated model.
func TestAdoption(t *testing.T) {
	source := t.TempDir()
	if err := tinymodel.Write(source, tinymodel.Tiny); err != nil {
		t.Fatal(err)
	}
	m := manifest.Manifest{ID: "small", Sources: []manifest.Source{{Repo: "owner/small", Revision: "1"}}}
	files := map[string][]byte{}
	for _, name := range []string{"config.json", "tokenizer.json", "model.safetensors"} {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
		m.Files = append(m.Files, manifest.File{Name: name, Bytes: int64(len(data)), SHA256: sha256.Sum256(data)})
	}
	home := t.TempDir()
	theirs := filepath.Join(home, ".lmstudio", "models", "owner", "small")
	var out strings.Builder
	a := adoption{
		s: streams{out: &out, err: &out}, model: m, store: store.Store{Root: filepath.Join(home, "pond"), Create: true},
		env: adopt.Environment{Home: home}, mode: adopt.InPlace,
	}
	dir := a.store.Dir("small")
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
	if _, err := os.Stat(dir); err == nil {
		t.Error("a folder was made for nothing")
	}

	if err := os.MkdirAll(theirs, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(theirs, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("model.safetensors", bytes.Repeat([]byte("x"), len(files["model.safetensors"])))
	put("tokenizer.json", files["tokenizer.json"])
	put("config.json", []byte("other"))
	if err := a.list(); err != nil {
		t.Error(err)
	}
	says("LM Studio  "+theirs, "2 of 3 files", "missing  config.json (another file: got 5 bytes, want ", "--in-place")
	fails(a.run(context.Background()), exitBadModel, "1 of the files")
	says("rejected  " + filepath.Join(theirs, "model.safetensors") + ": got SHA-256")

	put("model.safetensors", files["model.safetensors"])
	fails(a.run(context.Background()), exitNoModel, "1 files are missing; pond pull")
	says("verified  model.safetensors (in place)", "missing  config.json")

	put("config.json", files["config.json"])
	if err := a.run(context.Background()); err != nil {
		t.Error(err)
	}
	says("verified  config.json (in place)", "kept      model.safetensors", "small is ready in "+dir)

	if st := store.LookAt(dir, m); st.State != store.Ready {
		t.Errorf("got %s, want it ready", st.Line())
	}

	a.from = filepath.Join(home, "elsewhere")
	fails(a.list(), exitNoModel, "elsewhere")
	a.from = theirs
	if err := a.list(); err != nil {
		t.Error(err)
	}
	says("folder  "+theirs, "3 of 3 files")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a.mode = adopt.Copy
	if err := a.run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it cancelled", err)
	}

	// The other tool replaces a file: the model is no longer ready, and adopting again makes it so.
	put("config.json.new", files["config.json"])
	if err := os.Rename(filepath.Join(theirs, "config.json.new"), filepath.Join(theirs, "config.json")); err != nil {
		t.Fatal(err)
	}
	if st := store.LookAt(dir, m); st.State == store.Ready {
		t.Error("a replaced file is trusted")
	}
	out.Reset()
	a.mode = adopt.Copy
	if err := a.run(context.Background()); err != nil {
		t.Error(err)
	}
	says("verified  config.json (copy)", "verified  model.safetensors (copy)", "small is ready in "+dir)
	if err := os.RemoveAll(theirs); err != nil {
		t.Fatal(err)
	}
	if st := store.LookAt(dir, m); st.State != store.Ready {
		t.Errorf("without the other tool's copy: got %s, want it ready", st.Line())
	}
}
