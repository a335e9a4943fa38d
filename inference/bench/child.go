package bench

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

//go:embed mlx_arm.py
var mlxArm string

// childGrace is how long a process that was asked to stop may take.
const childGrace = 5 * time.Second

// MLXEngine is mlx-lm's name in schedules and reports.
const MLXEngine = "mlx-lm"

// MLX is how to start an arm of mlx-lm: python runs the built-in script over a model's folder.
func MLX(python, model string) func(Arm) (*exec.Cmd, error) {
	return func(a Arm) (*exec.Cmd, error) {
		arm, err := json.Marshal(a)
		if err != nil {
			return nil, err
		}
		return exec.Command(python, "-c", mlxArm, model, string(arm)), nil
	}
}

// Child runs an arm in a fresh process and reads the sample, its last line of output. What it says on standard error becomes part of the error.
func Child(ctx context.Context, a Arm, command func(Arm) (*exec.Cmd, error)) (Sample, error) {
	var s Sample
	made, err := command(a)
	if err != nil {
		return s, err
	}
	cmd := exec.CommandContext(ctx, made.Path, made.Args[1:]...)
	cmd.Env, cmd.Dir, cmd.Err = made.Env, made.Dir, made.Err
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = childGrace
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		return s, fmt.Errorf("%s at %d: %w: %s", a.Engine, a.Context, err, lastLines(complaints.String(), 6))
	}
	if err := json.Unmarshal([]byte(lastLines(out.String(), 1)), &s); err != nil {
		return s, fmt.Errorf("%s at %d: got %q as the last line of its output, want a sample as JSON", a.Engine, a.Context, lastLines(out.String(), 1))
	}
	return s, nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
