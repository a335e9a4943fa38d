//go:build !darwin

package bench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func self() int { return os.Getpid() }

// power reads Linux's classes (Documentation/ABI/testing/sysfs-class-power): on battery when a battery discharges and no mains is on line. Heat has no
// common sign there, so it is never an objection.
func power(context.Context) []Objection { return powerIn("/sys/class/power_supply") }

func powerIn(dir string) []Objection {
	read := func(file string) string {
		text, _ := os.ReadFile(file)
		return strings.TrimSpace(string(text))
	}
	supplies, _ := filepath.Glob(filepath.Join(dir, "*"))
	discharging := false
	for _, s := range supplies {
		switch read(filepath.Join(s, "type")) {
		case "Mains":
			if read(filepath.Join(s, "online")) == "1" {
				return nil
			}
		case "Battery":
			discharging = discharging || read(filepath.Join(s, "scope")) != "Device" && read(filepath.Join(s, "status")) == "Discharging"
		}
	}
	if discharging {
		return []Objection{{Reason: Battery, Detail: "the machine runs on its battery"}}
	}
	return nil
}

// clockTick is the unit of times in /proc, USER_HZ: 100 a second on every architecture that Linux supports for Go.
const clockTick = 10 * time.Millisecond

func processes(context.Context) (out []process) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		if p, ok := parseStat(string(text), clockTick); ok {
			out = append(out, p)
		}
	}
	return out
}
