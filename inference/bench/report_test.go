package bench

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func made(t *testing.T) Report {
	t.Helper()
	rows, _, err := Run(context.Background(), options(steady))
	if err != nil {
		t.Fatal(err)
	}
	return Report{
		Format: FormatVersion, Started: time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC), Took: "3m", Model: "qwen", Command: "pond bench", Rounds: 2, Cooldown: "10s",
		Machine: Host{OS: "macOS 26.1", Arch: "arm64", Chip: "Apple M5 Max", Cores: 18, MemoryBytes: 128 << 30}, Build: Build{Line: "pond 0.1.0, commit 0123", Revision: "0123"},
		Overrides: []Objection{{Reason: Load, Detail: "browser uses 40 % of a core", Times: 3}}, LeftOut: []LeftOut{{131072, "does not fit"}}, Rows: rows,
	}
}

func TestMarkdown(t *testing.T) {
	r := made(t)
	var out bytes.Buffer
	if err := r.WriteMarkdown(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# qwen, 2026-11-30 01:02 UTC", "Apple M5 Max, 18 cores, 128 GiB", "macOS 26.1, arm64", "pond 0.1.0, commit 0123", "pond executor; nothing switched off",
		"- load: browser uses 40 % of a core (and 2 times more)", "| context | pond decode | mlx-lm decode | ratio | pond prefill | mlx-lm prefill | ratio | drift |",
		"| 256 | 101.5 | 50.0 | 2.030 | 1015.0 | 500.0 | 2.030 | 0.99 % |", "- 131072 tokens: does not fit", "pond 256 `pond256`",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
	r.Refused = []Objection{{Reason: Drift, Detail: "far apart"}}
	out.Reset()
	if err := r.WriteMarkdown(&out); err != nil || !strings.Contains(out.String(), "worth nothing") {
		t.Errorf("refused: got %v\n%s", err, out.String())
	}
}

func TestReportsComeBack(t *testing.T) {
	var out bytes.Buffer
	if err := made(t).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	r, err := ReadReport(out.Bytes())
	if err != nil || len(r.Rows) != 4 || len(r.Rows[0].Samples) != 2 || len(r.Rows[0].Samples[0].Intervals) != 4 {
		t.Fatalf("got %+v, %v", r, err)
	}
	if _, err := ReadReport([]byte(`{"format": 2}`)); err == nil || !strings.Contains(err.Error(), "got format 2, want 1") {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestPlots(t *testing.T) {
	r := made(t)
	r.HTTP = []HTTPRow{{Server: "pond", Clients: 1, Throughput: 3}, {Server: "other", Clients: 1, Throughput: 2}}
	files, err := r.Plots(filepath.Join(t.TempDir(), "x"))
	if err != nil || len(files) != 6 {
		t.Fatalf("got %v, %v, want decode, prefill and http, each twice", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".png") {
			img, err := png.Decode(bytes.NewReader(data))
			if err != nil || img.Bounds().Dx() < 400 {
				t.Errorf("%s: got %v", file, err)
			}
		} else if s := string(data); !strings.Contains(s, "<svg") || !strings.Contains(s, "tokens a second") {
			t.Errorf("%s: got no figure with its axis named", file)
		} else {
			for _, want := range []string{"qwen", "Apple M5 Max", "18 cores", "128 GiB", "macOS 26.1", "commit 0123", "2026-11-30"} {
				if !strings.Contains(s, want) {
					t.Errorf("%s: want %q in the caption", file, want)
				}
			}
		}
	}
}

// What an optimisation is worth stands in a table of its own: with all of them switched off one at a time the table of peers had forty columns.
func TestAblationsHaveATableOfTheirOwn(t *testing.T) {
	r := made(t)
	for _, x := range r.Rows {
		if x.Engine == PondEngine {
			x.Engine, x.Decode, x.Switches = Without("fused-norm"), x.Decode*0.9, []string{"fused-norm"}
			r.Rows = append(r.Rows, x)
			x.Engine, x.Digest, x.Switches = Without("half-kv"), "another", nil
			r.Rows = append(r.Rows, x)
		}
	}
	var out bytes.Buffer
	if err := r.WriteMarkdown(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| context | pond decode | mlx-lm decode | ratio | pond prefill | mlx-lm prefill | ratio | drift |",
		"| fused-norm | 256 | 91.4 | 0.900 | 1015.0 | 1.000 | 0.99 % | the same |  |",
		"| half-kv | 1024 | 91.4 | 0.900 | 1015.0 | 1.000 | 0.99 % | others | nothing was there to switch off",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
	if lines := r.lines(func(x Row) float64 { return x.Decode }); len(lines) != 2 {
		t.Errorf("got %d lines in a figure, want those of the two peers", len(lines))
	}
}
