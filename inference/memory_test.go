package inference

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pond/inference/memgate"
	"pond/inference/tinymodel"
)

// TestFullNeed holds the need of the full model to the numbers of its description.
func TestFullNeed(t *testing.T) {
	n, err := FullNeed(Host)
	if err != nil {
		t.Fatal(err)
	}
	if n.Weights != 19_508_787_456 {
		t.Errorf("weights: got %d bytes, want the text tensors' 19508787456", n.Weights)
	}
	if n.KVBytesPerToken != 40_960 { // float32 on the host: twice the published bfloat16
		t.Errorf("keys and values: got %d bytes a token, want 40960", n.KVBytesPerToken)
	}
	if n.Placement != memgate.Mapped || n.MacFloor != 32<<30 || n.AvailableFloor != 41<<29 || n.MaxTokens != 262_144 {
		t.Errorf("got %+v", n)
	}
	if n.Workspace == 0 || n.Workspace > 600_000_000 {
		t.Errorf("workspace: got %d bytes, want at most 0.6 GB", n.Workspace)
	}
	// 20.5 GiB available must be enough for the shortest context, or the floor would promise too much.
	r := memgate.Check(memgate.Reading{System: memgate.Linux, Total: memgate.Of(24 << 30), Available: memgate.Of(memgate.AvailableFloorBytes)}, n)
	if !r.Allows() || r.Tokens < 8192 {
		t.Errorf("20.5 GiB: got %s, %d tokens: %s", r.Verdict, r.Tokens, r.Sentence())
	}
}

// TestMemoryNeedIsWhatIsAllocated compares the need of the tiny model with an open engine.
func TestMemoryNeedIsWhatIsAllocated(t *testing.T) {
	dir := t.TempDir()
	if err := tinymodel.Write(dir, tinymodel.Tiny); err != nil {
		t.Fatal(err)
	}
	o := Options{Model: FromDir(dir), Executor: Host, ContextTokens: 512}
	n, err := MemoryNeed(o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if int64(n.Weights) != e.Info().WeightBytes {
		t.Errorf("weights: the need says %d, the engine has %d", n.Weights, e.Info().WeightBytes)
	}
	if n.Tokens != 512 || n.MacFloor != 0 || n.AvailableFloor != 0 {
		t.Errorf("got %+v, want no floors for a small model", n)
	}
	embedded, err := MemoryNeed(Options{Model: FromFS(os.DirFS(dir))})
	if err != nil || embedded.Placement != memgate.Held {
		t.Errorf("a model in a file system: got %s, %v; want it held", embedded.Placement, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := MemoryNeed(o); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("got %v, want an error that names config.json", err)
	}
}
