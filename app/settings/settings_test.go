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
	if err := os.WriteFile(file, []byte(`{"address":"127.0.0.1:8000","idle_minutes":{"n":15}}`), 0o644); err != nil {
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
