package licences

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestEveryModuleHasItsTerms: all that is linked into Pond, with its window and on each system, comes with a text that goes into the app. It asks Go's module
// cache; nothing is built.
func TestEveryModuleHasItsTerms(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("this machine has no go command")
	}
	folders := map[string]string{}
	for _, system := range []string{"linux", "darwin"} {
		cmd := exec.Command(tool, "list", "-deps", "-tags", "ci,mobile,migrated_fynedo", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}", ".")
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=arm64", "CGO_ENABLED=0")
		said, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", system, err)
		}
		for line := range strings.Lines(string(said)) {
			if path, dir, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				folders[path] = dir
			}
		}
	}
	if len(folders) < 30 || folders["fyne.io/fyne/v2"] == "" || folders["github.com/ebitengine/purego"] == "" {
		t.Fatalf("got %d modules, want all that Pond is made of, the window's too", len(folders))
	}
	for path, dir := range folders {
		files, err := texts(dir)
		if err != nil || len(files) == 0 {
			t.Errorf("%s: got %d licences in %s, %v, want one", path, len(files), dir, err)
		}
	}
}
