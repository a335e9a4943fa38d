package app

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestDiagnosis(t *testing.T) {
	c := Catalog{ModelsDir: t.TempDir(), Demo: fstest.MapFS{"config.json": {}, "tokenizer.json": {}, "model.safetensors": {}}}
	m := Machine{OS: "darwin", Arch: "arm64", OSVersion: "macOS 15.5", CPU: "Apple M2", Threads: 8, MemoryTotal: 24 << 30, MemoryAvailable: 9 << 30}
	var out strings.Builder
	d := Diagnose(m, []ExecutorStatus{{"host", true, "Go on 8 threads"}, {"metal", false, "not in this build"}}, c)
	d.Write(&out)
	for _, want := range []string{
		"program     pond " + Version,
		"system      macOS 15.5, darwin/arm64\n",
		"processor   Apple M2, 8 threads\n",
		"memory      9.0 GiB available of 24.0 GiB\n",
		"executor    host     yes: Go on 8 threads\n",
		"executor    metal    no: not in this build\n",
		"model       pond-demo (built in)\n",
		"full model  no: it needs 32 GB of memory (this Mac has 24.0 GiB)\n",
		"qwen3.6-35b-a3b is not installed; its folder would be " + c.ModelsDir,
		"demo model  yes",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%swant %q in it", out.String(), want)
		}
	}
}
