package app

import (
	"os"
	"strings"
	"testing"

	"pond/inference/memgate"
)

func TestDiagnosis(t *testing.T) {
	c := Catalog{ModelsDir: t.TempDir(), Demo: os.DirFS(tiny(t).Dir)}
	m := Machine{OS: "darwin", Arch: "arm64", OSVersion: "macOS 15.5", CPU: "Apple M2", Threads: 8, Memory: memgate.Reading{System: memgate.MacOS, Total: memgate.Of(24 << 30), Available: memgate.Of(9 << 30)}}
	var out strings.Builder
	d := Diagnose(m, []ExecutorStatus{{"host", true, "Go on 8 threads"}, {"metal", false, "not in this build"}}, c)
	d.Write(&out)
	for _, want := range []string{
		"program     pond " + Version,
		"system      macOS 15.5, darwin/arm64\n",
		"processor   Apple M2, 8 threads\n",
		"memory      9.7 GB available of 25.8 GB\n",
		"executor    host     yes: Go on 8 threads\n",
		"executor    metal    no: not in this build\n",
		"model       pond-demo (built in)\n",
		"full model  no: needs a Mac with 32 GB of memory, and this Mac has 24 GB: it takes ",
		"  19.5 GB  weights, mapped\n",
		"model qwen3.6-35b-a3b: not installed (looked in " + c.ModelsDir,
		"demo model  yes: up to ",
		"  left free for the system\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%swant %q in it", out.String(), want)
		}
	}
}
