package homebrew

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func recipe() Recipe {
	sum := strings.Repeat("0123456789abcdef", 4)
	return Recipe{Version: "1.2.3", ID: "app.pond.Pond", URL: "https://example.org/pond/1.2.3", Homepage: "https://example.org/pond", AppSHA256: sum,
		TarSHA256: map[string]string{"darwin-arm64": sum, "linux-amd64": sum, "linux-arm64": sum}}
}

// TestRuby: both are Ruby, and say what they are filled with.
func TestRuby(t *testing.T) {
	r := recipe()
	for name, write := range map[string]func() ([]byte, error){"cask": r.Cask, "formula": r.Formula} {
		text, err := write()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`version "1.2.3"`, r.AppSHA256, r.Homepage, r.URL} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: no %s in it", name, want)
			}
		}
		t.Run(name, func(t *testing.T) {
			ruby, err := exec.LookPath("ruby")
			if err != nil {
				t.Skip("this machine has no ruby, which would read it")
			}
			file := filepath.Join(t.TempDir(), name+".rb")
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
			if said, err := exec.Command(ruby, "-wc", file).CombinedOutput(); err != nil || !strings.Contains(string(said), "Syntax OK") || strings.Contains(string(said), "warning") {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
}

// TestRefusals: a recipe is whole, or there is none.
func TestRefusals(t *testing.T) {
	for name, change := range map[string]func(*Recipe){
		"a quote":   func(r *Recipe) { r.URL = `https://example.org/"; system "rm` },
		"no digest": func(r *Recipe) { delete(r.TarSHA256, "linux-arm64") },
		"half":      func(r *Recipe) { r.AppSHA256 = "0123" },
	} {
		r := recipe()
		change(&r)
		if text, err := r.Formula(); err == nil {
			t.Errorf("%s: got a formula:\n%s", name, text)
		}
	}
}
