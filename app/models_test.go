package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func install(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.json", "tokenizer.json", "model.safetensors"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCatalog(t *testing.T) {
	models := t.TempDir()
	install(t, filepath.Join(models, FullModel))
	if err := os.Mkdir(filepath.Join(models, "half"), 0o755); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "My-Model")
	install(t, folder)
	demo := fstest.MapFS{"config.json": {Data: []byte("{}")}, "tokenizer.json": {Data: []byte("{}")}, "model.safetensors": {}}
	c := Catalog{ModelsDir: models, Demo: demo}

	for name, want := range map[string]Model{
		"":        {ID: DemoModel},
		DemoModel: {ID: DemoModel},
		FullModel: {ID: FullModel, Dir: filepath.Join(models, FullModel)},
		folder:    {ID: "my-model", Dir: folder},
	} {
		got, err := c.Find(name)
		if err != nil || got.ID != want.ID || got.Dir != want.Dir || (got.Dir == "") != (got.Files != nil) {
			t.Errorf("%q: got %+v, %v; want %+v", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"half":               "not installed (looked in " + models,
		"nothing":            "built in: pond-demo",
		"./nothing":          "config.json is missing",
		"qwen3.6-35b-a3b ":   "not installed",
		filepath.Dir(models): "no model in this folder",
	} {
		_, err := c.Find(name)
		var missing *MissingModelError
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want a MissingModelError with %q", name, err, want)
		}
	}
	var ids []string
	for _, m := range c.List() {
		ids = append(ids, m.ID)
	}
	if got := strings.Join(ids, " "); got != DemoModel+" "+FullModel {
		t.Errorf("list: got %s", got)
	}
	if _, err := (Catalog{ModelsDir: models}).Find(DemoModel); err == nil || !strings.Contains(err.Error(), "not in this build") {
		t.Errorf("no demo: got %v", err)
	}
}
