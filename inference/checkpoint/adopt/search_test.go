package adopt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func env(pairs ...string) func(string) string {
	return func(key string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == key {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestPlaces(t *testing.T) {
	home := t.TempDir()
	hubOf := func(e Environment) string {
		for _, p := range e.places() {
			if p.hub {
				return p.dir
			}
		}
		return ""
	}
	for name, c := range map[string]struct {
		env  func(string) string
		want string
	}{
		"nothing set":       {nil, home + "/.cache/huggingface/hub"},
		"XDG_CACHE_HOME":    {env("XDG_CACHE_HOME", "/x"), "/x/huggingface/hub"},
		"HF_HOME":           {env("XDG_CACHE_HOME", "/x", "HF_HOME", "/y"), "/y/hub"},
		"the older name":    {env("HF_HOME", "/y", "HUGGINGFACE_HUB_CACHE", "/z"), "/z"},
		"HF_HUB_CACHE":      {env("HF_HOME", "/y", "HUGGINGFACE_HUB_CACHE", "/z", "HF_HUB_CACHE", "/w"), "/w"},
		"a tilde":           {env("HF_HOME", "~/hf"), home + "/hf/hub"},
		"a relative folder": {env("HF_HUB_CACHE", "hub"), ""},
	} {
		if got := hubOf(Environment{home, c.env}); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got := (Environment{}).places(); len(got) != 0 {
		t.Errorf("without a home: got %v", got)
	}

	write(t, home+"/.lmstudio-home-pointer", []byte(home+"/studio\n"))
	write(t, home+"/studio/settings.json", []byte(`{"downloadsFolder": "/volumes/models", "other": [1]}`))
	write(t, home+"/.lmstudio/settings.json", []byte(`{"downloadsFolder": `)) // not understood
	write(t, home+"/.omlx/settings.json", []byte(`{"model": {"model_dir": "~/m", "model_dirs": ["/a", "/b"]}}`))
	var got []string
	for _, p := range (Environment{home, nil}).places() {
		got = append(got, p.tool+" "+strings.Replace(p.dir, home, "~", 1))
	}
	want := "Hugging Face ~/.cache/huggingface/hub,LM Studio /volumes/models,LM Studio ~/studio/models,LM Studio ~/.lmstudio/models," +
		"LM Studio ~/.cache/lm-studio/models,oMLX /a,oMLX /b,oMLX ~/m,oMLX ~/.omlx/models"
	if text := strings.Join(got, ","); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestSearch(t *testing.T) {
	home := t.TempDir()
	e := Environment{home, nil}
	if got := Search(e, model()); len(got) != 0 {
		t.Errorf("an empty home: got %v", got)
	}
	hub := home + "/.cache/huggingface/hub"
	old := hubCopy(t, hub, "mlx-community/Small-4bit", "old", map[string][]byte{
		"config.json": []byte("{}"), "model-00001-of-00002.safetensors": []byte("other weights"), "model-00002-of-00002.safetensors": nil,
	})
	whole := hubCopy(t, hub, "mlx-community/Small-4bit", "new", nil)
	write(t, hub+"/models--mlx-community--Small-4bit/blobs/ffff.incomplete", []byte("half"))
	if err := os.Symlink("../../blobs/gone", old+"/model.safetensors"); err != nil {
		t.Fatal(err)
	}
	plainCopy(t, home+"/.lmstudio/models/lmstudio-community/Small-MLX-4bit")
	write(t, home+"/.lmstudio/models/lmstudio-community/Small-MLX-4bit/tokenizer_config.json", []byte("another"))
	plainCopy(t, home+"/.omlx/models/Small-4bit")
	if err := os.Remove(home + "/.omlx/models/Small-4bit/model-00001-of-00002.safetensors"); err != nil {
		t.Fatal(err)
	}

	before := snapshot(t, home)
	got := Search(e, model())
	if after := snapshot(t, home); after != before {
		t.Error("searching changed something")
	}
	var lines []string
	for _, c := range got {
		var lacks []string
		for _, l := range c.Missing {
			lacks = append(lacks, l.Name)
		}
		lines = append(lines, c.Tool+" "+strings.Replace(c.Dir, home, "~", 1)+" lacks "+strings.Join(lacks, " "))
	}
	want := []string{
		"Hugging Face ~/.cache/huggingface/hub/models--mlx-community--Small-4bit/snapshots/new lacks ",
		"LM Studio ~/.lmstudio/models/lmstudio-community/Small-MLX-4bit lacks tokenizer_config.json",
		"oMLX ~/.omlx/models/Small-4bit lacks model-00001-of-00002.safetensors",
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if c := got[0]; !c.Complete() || c.Bytes() != model().Bytes() || c.Dir != whole {
		t.Errorf("got %+v", c)
	}
	if c := got[1]; c.Complete() || c.Missing[0].Got != int64(len("another")) || c.MissingBytes() != model().Files[2].Bytes {
		t.Errorf("got %+v", c.Missing)
	}
	if c := got[2]; c.Missing[0].Got != -1 {
		t.Errorf("got %+v", c.Missing)
	}
}

// TestBlobsAlone: after the snapshot was deleted, or is of another revision, the hub cache still holds the weights by digest.
func TestBlobsAlone(t *testing.T) {
	home := t.TempDir()
	s := hubCopy(t, home+"/.cache/huggingface/hub", "mlx-community/Small-4bit", "r", nil)
	if err := os.RemoveAll(filepath.Dir(s)); err != nil {
		t.Fatal(err)
	}
	got := Search(Environment{home, nil}, model())
	if len(got) != 1 || len(got[0].Files) != 2 || len(got[0].Missing) != 3 {
		t.Errorf("got %+v, want the two files of weights", got)
	}
}

func TestSearchDir(t *testing.T) {
	root := t.TempDir()
	plainCopy(t, root+"/plain")
	hubCopy(t, root+"/hf/hub", "mlx-community/Small-4bit", "r", nil)
	plainCopy(t, root+"/lm/models/lmstudio-community/Small-MLX-4bit")
	plainCopy(t, root+"/deep/a/b/renamed")
	plainCopy(t, root+"/too/deep/1/2/3/4/5/6")
	for _, c := range []struct{ dir, want string }{
		{"plain", "plain"},
		{"hf", "hf/hub/models--mlx-community--Small-4bit/snapshots/r"},
		{"hf/hub", "hf/hub/models--mlx-community--Small-4bit/snapshots/r"},
		{"hf/hub/models--mlx-community--Small-4bit", "hf/hub/models--mlx-community--Small-4bit/snapshots/r"},
		{"hf/hub/models--mlx-community--Small-4bit/snapshots/r", "hf/hub/models--mlx-community--Small-4bit/snapshots/r"},
		{"lm", "lm/models/lmstudio-community/Small-MLX-4bit"},
		{"lm/models", "lm/models/lmstudio-community/Small-MLX-4bit"},
		{"deep", "deep/a/b/renamed"},
		{"too", ""},
		{"nowhere", ""},
	} {
		got := SearchDir(filepath.Join(root, c.dir), model())
		switch {
		case c.want == "" && len(got) != 0:
			t.Errorf("%s: got %+v, want nothing", c.dir, got)
		case c.want != "" && (len(got) != 1 || got[0].Dir != filepath.Join(root, c.want) || !got[0].Complete()):
			t.Errorf("%s: got %+v, want %s", c.dir, got, c.want)
		}
	}
	if got := SearchDir(root, model()); len(got) != 4 { // by walking; the deepest folder is too deep
		t.Errorf("the root: got %d candidates, want 4", len(got))
	}
}
