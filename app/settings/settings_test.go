package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRoundTripKeepsUnknownKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pond", "settings.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"address":"127.0.0.1:8000","of_a_newer_version":{"n":15}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	s.Model = "pond-demo"
	if err := s.Save(file); err != nil {
		t.Fatal(err)
	}
	again, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if again.Address != "127.0.0.1:8000" || again.Model != "pond-demo" {
		t.Errorf("got %+v", again)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"n": 15`) {
		t.Errorf("a key of a newer version is gone:\n%s", text)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 {
		t.Errorf("got %v, %v; want the settings file alone", left, err)
	}
}

func TestNoFileMeansDefaults(t *testing.T) {
	s, err := Load(filepath.Join(t.TempDir(), "settings.json"))
	if err != nil || s.ListenAddress() != DefaultAddress {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestBadValuesNameTheKey(t *testing.T) {
	for text, want := range map[string]string{
		`{"address":17}`:             "address: got 17, want a string",
		`{"port":0}`:                 "port: got \"0\", want a whole number from 1 to 65535",
		`{"lan":true}`:               "lan: got no api_key",
		`{"api_key":"a b"}`:          "api_key: got characters that no key has",
		`{"idle_minutes":7}`:         "idle_minutes: got \"7\", want one of 0, 5, 15, 60",
		`{"temperature":3}`:          "temperature: got \"3\", want a number from 0 to 2",
		`{"models_dir":"here"}`:      "models_dir: got \"here\", want an absolute path",
		`{"allowed_hosts":["a/b"]}`:  "allowed_hosts: got \"a/b\"",
		`{"address":"localhost"}`:    "want host:port",
		`{"address":"[::1]:999999"}`: "want 0 to 65535",
		`{"address"`:                 "settings.json",
	} {
		file := filepath.Join(t.TempDir(), "settings.json")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", text, err, want)
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != text {
			t.Errorf("%s: the file was touched", text)
		}
	}
}

func TestSaveRefusesBadValues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.json")
	if err := (Settings{Address: "nowhere"}).Save(file); err == nil {
		t.Error("got no error, want one for the address")
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a file was written: %v", err)
	}
}

// TestEveryField writes and reads each setting by its text, as a settings window does, and keeps it over a save.
func TestEveryField(t *testing.T) {
	texts := map[string]string{
		"model": "pond-demo", "models_dir": "/models", "context_tokens": "8192", "idle_minutes": "15", "address": "127.0.0.1:1", "port": "8080", "api_key": "k",
		"lan": "true", "allowed_hosts": "a.local, b", "allowed_origins": "https://chat.example, http://b:1", "start_serving": "true", "on_battery": "pause", "notifications": "false", "temperature": "0.5", "top_p": "0.9",
		"top_k": "40", "max_tokens": "100", "hide_thinking": "true", "no_thinking": "true", "system_prompt": "Be brief.", "cmd_enter_sends": "true",
		"look_for_updates": "false", "quiet": "true", "conversations_gb": "32",
	}
	s := Default()
	for _, f := range Fields() {
		text, ok := texts[f.Key]
		if !ok {
			t.Fatalf("%s has no value here", f.Key)
		}
		if f.Help == "" || strings.Contains(f.Help, "\n") || f.Section != "" && f.Title == "" {
			t.Errorf("%s: got title %q and help %q, want a line each", f.Key, f.Title, f.Help)
		}
		if before := f.Text(s); before == text {
			t.Errorf("%s: %s is its default; the test proves nothing", f.Key, text)
		}
		var err error
		if s, err = f.With(s, text); err != nil {
			t.Errorf("%s: %v", f.Key, err)
		}
		if got := f.Text(s); got != text {
			t.Errorf("%s: got %q, want %q", f.Key, got, text)
		}
	}
	file := filepath.Join(t.TempDir(), "settings.json")
	if err := s.Save(file); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the key: got %v, %v; want it its owner's alone", info.Mode(), err)
	}
	again, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Fields() {
		if got := f.Text(again); got != texts[f.Key] {
			t.Errorf("%s after a save: got %q, want %q", f.Key, got, texts[f.Key])
		}
	}
	for _, key := range []string{"temperature", "top_p", "top_k"} {
		f, _ := FieldOf(key)
		if s, err = f.With(s, ""); err != nil || f.Text(s) != "" {
			t.Errorf("%s: got %q, %v, want the default back", key, f.Text(s), err)
		}
	}
	if f, _ := FieldOf("temperature"); f.Text(again) != "0.5" {
		t.Error("a change of one copy changed another")
	}
}

// TestLANMakesAKey: to be open to the network, one switch is enough, and it is never open without a key.
func TestLANMakesAKey(t *testing.T) {
	f, _ := FieldOf("lan")
	s, err := f.With(Default(), "true")
	if err != nil || len(s.Key) < 30 || s.ListenAddress() != "0.0.0.0:11535" || s.Validate() != nil {
		t.Errorf("got %+v, %v", s, err)
	}
	if other, _ := f.With(Default(), "true"); other.Key == s.Key {
		t.Error("two keys are the same")
	}
	s.Key = ""
	if s.Validate() == nil {
		t.Error("open to the network without a key: got no error")
	}
}

func TestFieldsRefuse(t *testing.T) {
	for key, texts := range map[string][]string{
		"port": {"0", "65536", "x", ""}, "lan": {"maybe"}, "temperature": {"-1", "2.1", "NaN", "warm"}, "on_battery": {"explode"}, "models_dir": {"models"},
		"allowed_hosts": {"*", "http://x"}, "allowed_origins": {"*", "chat.example", "https://a/b", "https://"}, "address": {"here", "h:99999"}, "top_k": {"1.5"},
	} {
		f, ok := FieldOf(key)
		if !ok {
			t.Fatalf("no field %s", key)
		}
		for _, text := range texts {
			if _, err := f.With(Default(), text); err == nil {
				t.Errorf("%s: %q was taken", key, text)
			}
		}
	}
}

// TestAllPaths: what an uninstall removes are folders of Pond's own, never the working folder, a home or a folder of all programs.
func TestAllPaths(t *testing.T) {
	if got := (Paths{}).All(); len(got) != 0 {
		t.Errorf("no paths: got %q, want none", got)
	}
	all := DefaultPaths().All()
	if len(all) < 3 {
		t.Errorf("got %q, want the folders of models, settings and logs at least", all)
	}
	for _, path := range all {
		if name := strings.ToLower(filepath.Base(path)); !strings.Contains(name, "pond") {
			t.Errorf("got %s, want a name with pond in it", path)
		}
	}
}
