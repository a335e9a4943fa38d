package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPromptAndDigest(t *testing.T) {
	// By the rule, computed apart: i * 2654435761 % 2**32 % 248077.
	if got, want := Prompt(4, 248077), []int32{0, 2654435761 % 248077, 1013904226 % 248077, 3668339987 % 248077}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// FNV-1a of no bytes is its offset basis (draft-eastlake-fnv).
	if got := Digest(nil); got != "cbf29ce484222325" {
		t.Errorf("got %s, want the offset basis", got)
	}
	if Digest([]int32{1, 2}) == Digest([]int32{2, 1}) {
		t.Error("the order of tokens does not show in the digest")
	}
}

func TestScheduleAlternates(t *testing.T) {
	var got []string
	for _, a := range Schedule([]string{"pond", "mlx-lm"}, []int{256, 512}, 2, 64, 1000) {
		got = append(got, fmt.Sprint(a.Round, a.Engine, a.Context))
	}
	want := []string{"1pond256", "1mlx-lm256", "1pond512", "1mlx-lm512", "2mlx-lm512", "2pond512", "2mlx-lm256", "2pond256"}
	for i := range want {
		want[i] = strings.Replace(strings.Replace(want[i], "pond", "pond ", 1), "lm", "lm ", 1)
	}
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], " ", "")
	}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], " ", "")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// arms answers as processes would, with figures that a test decides about.
func arms(rate func(Arm) float64) func(context.Context, Arm) (Sample, error) {
	return func(_ context.Context, a Arm) (Sample, error) {
		s := Sample{Executor: a.Engine + " executor", PrefillS: float64(a.Context) / (10 * rate(a)), Digest: a.Engine + fmt.Sprint(a.Context)}
		for range a.Intervals {
			s.Intervals = append(s.Intervals, 1/rate(a))
		}
		return s, nil
	}
}

func options(rate func(Arm) float64) Options {
	return Options{
		Engines: []string{PondEngine, MLXEngine}, Contexts: []int{256, 1024}, Rounds: 2, Intervals: 4, Vocab: 99, Launch: arms(rate),
		Machine: func(context.Context) []Objection { return nil }, Tell: func(string) {}, Now: func() time.Time { return time.Unix(0, 0) },
	}
}

func steady(a Arm) float64 {
	if a.Engine == MLXEngine {
		return 50
	}
	return 100 + float64(a.Round)
}

func TestRun(t *testing.T) {
	o := options(steady)
	var told []string
	o.Tell = func(line string) { told = append(told, line) }
	rows, overrides, err := Run(context.Background(), o)
	if err != nil || len(overrides) > 0 {
		t.Fatalf("got %v, %v", overrides, err)
	}
	if len(rows) != 4 || rows[0].Context != 256 || rows[0].Engine != PondEngine || len(rows[0].Samples) != 2 {
		t.Fatalf("got %+v", rows)
	}
	if got := rows[0].Decode; got < 101.49 || got > 101.51 {
		t.Errorf("got %g tokens a second, want the mean of 101 and 102", got)
	}
	if got := rows[0].Prefill / rows[0].Decode; got < 9.99 || got > 10.01 {
		t.Errorf("got prefill %g times decode, want 10", got)
	}
	if len(told) != 16 || !strings.HasPrefix(told[0], "1 of 8: round 1, pond at 256") {
		t.Errorf("got progress %q", told)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		reason Reason
		change func(*Options)
	}{
		{"battery", Battery, func(o *Options) {
			o.Machine = func(context.Context) []Objection { return []Objection{{Reason: Battery, Detail: "on battery"}} }
		}},
		{"load", Load, func(o *Options) {
			calls := 0
			o.Machine = func(context.Context) []Objection { // begins while it runs
				if calls++; calls < 3 {
					return nil
				}
				return []Objection{{Reason: Load, Detail: fmt.Sprintf("a program, %d", calls)}}
			}
		}},
		{"dirty", Dirty, func(o *Options) { o.Dirty = "changed sources" }},
		{"drift", Drift, func(o *Options) {
			o.Launch = arms(func(a Arm) float64 { return 100 + 3.2*float64(a.Round-1) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(steady)
			c.change(&o)
			rows, _, err := Run(context.Background(), o)
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Objections[0].Reason != c.reason || !strings.Contains(err.Error(), "--allow-"+c.name) {
				t.Fatalf("got %v, want a refusal for %s that names its flag", err, c.reason)
			}
			if (len(rows) > 0) != (c.reason == Drift) {
				t.Errorf("got %d rows", len(rows))
			}
			o = options(steady)
			c.change(&o)
			o.Allow = []Reason{c.reason}
			rows, overrides, err := Run(context.Background(), o)
			if err != nil || len(rows) != 4 || len(overrides) != 1 || overrides[0].Reason != c.reason || overrides[0].Times < 1 {
				t.Errorf("allowed: got %d rows, %+v, %v, want it to run and to say what was allowed", len(rows), overrides, err)
			}
		})
	}
}

// A machine that gives other tokens for the same prompt is broken, and no flag helps.
func TestDigestsMustRepeat(t *testing.T) {
	o := options(steady)
	o.Allow = Reasons()
	inner := o.Launch
	o.Launch = func(ctx context.Context, a Arm) (Sample, error) {
		s, err := inner(ctx, a)
		if a.Round == 2 && a.Engine == PondEngine && a.Context == 256 {
			s.Digest = "other"
		}
		return s, err
	}
	if _, _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "digest other") {
		t.Errorf("got %v, want an error that names the digest", err)
	}
	o.Launch = func(ctx context.Context, a Arm) (Sample, error) {
		s, err := inner(ctx, a)
		s.Intervals = s.Intervals[1:]
		return s, err
	}
	if _, _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "3 intervals") {
		t.Errorf("got %v, want an error about the intervals", err)
	}
}

// TestChild plays mlx-lm's process by a script: what the real one prints, noise before it, failures.
func TestChild(t *testing.T) {
	fake := func(body string) func(Arm) (*exec.Cmd, error) {
		file := filepath.Join(t.TempDir(), "python")
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
			t.Fatal(err)
		}
		return MLX(file, "/models/some where")
	}
	a := Arm{Engine: MLXEngine, Context: 256, Intervals: 2, Vocab: 9, Round: 1}
	s, err := Child(context.Background(), a, fake(`
[ "$1" = -c ] && [ "$3" = "/models/some where" ] || { echo "got $*" >&2; exit 1; }
case "$4" in *'"context":256'*'"intervals":2'*) ;; *) exit 2 ;; esac
case "$2" in *generate_step*) ;; *) exit 3 ;; esac
echo loading
echo '{"executor": "mlx-lm on the GPU", "prefill_s": 0.5, "intervals_s": [0.01, 0.02], "digest": "00", "load_s": 1, "versions": {"mlx": "1"}}'
`))
	if err != nil || s.check(a) != nil || s.Executor != "mlx-lm on the GPU" || s.Versions["mlx"] != "1" {
		t.Errorf("got %+v, %v", s, err)
	}
	if _, err := Child(context.Background(), a, fake("echo 'No module named mlx_lm' >&2; exit 1")); err == nil || !strings.Contains(err.Error(), "No module named mlx_lm") {
		t.Errorf("got %v, want what the process complained about", err)
	}
	if _, err := Child(context.Background(), a, fake("echo nothing")); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("got %v, want an error that shows the line", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Child(ctx, a, fake("exec sleep 60")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
}

// The script's own rules are the contract's: the same prompt and the same digest as here.
func TestMLXScriptAgrees(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3: ", err)
	}
	out, err := exec.Command(python, "-c", "import sys; sys.argv = ['x']\n"+strings.Replace(mlxArm, `if __name__ == "__main__":
    main()`, "print(*prompt(50, 248077)); print(digest(prompt(50, 248077)))", 1)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ids := Prompt(50, 248077)
	want := strings.Trim(fmt.Sprint(ids), "[]") + "\n" + Digest(ids) + "\n"
	if string(out) != want {
		t.Errorf("got %s, want %s", out, want)
	}
}
