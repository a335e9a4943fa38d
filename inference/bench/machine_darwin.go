package bench

import (
	"context"
	"os"
	"os/exec"
)

func self() int { return os.Getpid() }

// power asks pmset(1), the only public way to both without a framework.
func power(ctx context.Context) (out []Objection) {
	for _, ask := range []struct {
		args  []string
		parse func(string) []Objection
	}{{[]string{"-g", "batt"}, parseBattery}, {[]string{"-g"}, parsePowerMode}, {[]string{"-g", "therm"}, parseThermal}} {
		if text, err := exec.CommandContext(ctx, "/usr/bin/pmset", ask.args...).Output(); err == nil {
			out = append(out, ask.parse(string(text))...)
		}
	}
	return out
}

func processes(ctx context.Context) []process {
	text, err := exec.CommandContext(ctx, "/bin/ps", "-Ao", "pid=,ppid=,%cpu=,comm=").Output()
	if err != nil {
		return nil
	}
	return parsePS(string(text))
}
