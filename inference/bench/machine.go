package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A program is foreign load when it uses more than foreignShare of one core in foreignHits of foreignSamples samples.
const (
	foreignShare   = 0.2
	foreignSamples = 3
	foreignHits    = 2
	foreignEvery   = time.Second
)

// process is one process at one moment. CPU is time used so far where a system counts it, share is of one core where it tells that.
type process struct {
	pid, parent int
	name        string
	cpu         time.Duration
	share       float64
}

// Power looks at battery and heat alone.
func Power(ctx context.Context) []Objection { return power(ctx) }

// Machine looks at the machine for some seconds and lists what makes a measurement worthless: battery, heat, other programs at work. What the
// system does not tell is no objection.
func Machine(ctx context.Context) []Objection {
	out := power(ctx)
	hits := map[string]int{}
	worst := map[string]float64{}
	before, at := processes(ctx), time.Now()
	for range foreignSamples {
		select {
		case <-ctx.Done():
			return out
		case <-time.After(foreignEvery):
		}
		after, now := processes(ctx), time.Now()
		for name, share := range foreign(before, after, now.Sub(at), self()) {
			if share > foreignShare {
				hits[name]++
				worst[name] = max(worst[name], share)
			}
		}
		before, at = after, now
	}
	var busy []string
	for name, n := range hits {
		if n >= foreignHits {
			busy = append(busy, name)
		}
	}
	slices.SortFunc(busy, func(a, b string) int {
		if worst[a] != worst[b] {
			return int(1000 * (worst[b] - worst[a]))
		}
		return strings.Compare(a, b)
	})
	if len(busy) > 0 {
		words := make([]string, 0, 3)
		for _, name := range busy[:min(3, len(busy))] {
			words = append(words, fmt.Sprintf("%s uses %.0f %% of a core", name, 100*worst[name]))
		}
		out = append(out, Objection{Reason: Load, Detail: strings.Join(words, ", ")})
	}
	return out
}

// foreign is the share of one core of each program but our own process, its ancestors and its descendants, by name.
func foreign(before, after []process, took time.Duration, own int) map[string]float64 {
	was := map[int]process{}
	for _, p := range before {
		was[p.pid] = p
	}
	parents := map[int]int{}
	for _, p := range after {
		parents[p.pid] = p.parent
	}
	ours := map[int]bool{}
	for pid := own; pid > 1 && !ours[pid]; pid = parents[pid] {
		ours[pid] = true
	}
	out := map[string]float64{}
	for _, p := range after {
		mine := ours[p.pid]
		for pid, n := p.parent, 0; pid > 1 && n < 100 && !mine; pid, n = parents[pid], n+1 {
			mine = pid == own
		}
		if mine {
			continue
		}
		share := p.share
		if old, ok := was[p.pid]; ok && took > 0 && p.cpu > old.cpu {
			share = (p.cpu - old.cpu).Seconds() / took.Seconds()
		}
		out[p.name] += share
	}
	return out
}

// parsePS reads `ps -Ao pid=,ppid=,%cpu=,comm=` of macOS, whose share is of the last moments.
func parsePS(text string) (out []process) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		pid, err1 := strconv.Atoi(f[0])
		parent, err2 := strconv.Atoi(f[1])
		share, err3 := strconv.ParseFloat(strings.ReplaceAll(f[2], ",", "."), 64) // some languages write a comma
		if err1 != nil || err2 != nil || err3 != nil {
			continue
		}
		name := strings.Join(f[3:], " ")
		out = append(out, process{pid: pid, parent: parent, name: name[strings.LastIndexByte(name, '/')+1:], share: share / 100})
	}
	return out
}

// parseBattery reads `pmset -g batt`; parsePowerMode `pmset -g`; parseThermal `pmset -g therm`. See pmset(1).
func parseBattery(text string) []Objection {
	if strings.Contains(text, "'Battery Power'") {
		return []Objection{{Reason: Battery, Detail: "the Mac runs on its battery"}}
	}
	return nil
}

func parsePowerMode(text string) []Objection {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "lowpowermode" && f[1] == "1" {
			return []Objection{{Reason: Battery, Detail: "low power mode is on"}}
		}
	}
	return nil
}

func parseThermal(text string) []Objection {
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, "=")
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if !ok || err != nil {
			continue
		}
		if name = strings.TrimSpace(name); (name == "CPU_Speed_Limit" || name == "CPU_Scheduler_Limit") && n < 100 {
			return []Objection{{Reason: Thermal, Detail: fmt.Sprintf("the system limits the processor to %d %% (%s)", n, name)}}
		}
	}
	for _, kind := range []string{"thermal", "performance"} {
		for line := range strings.Lines(text) {
			if l := strings.ToLower(line); strings.Contains(l, kind+" warning level") && !strings.Contains(l, "no "+kind) {
				return []Objection{{Reason: Thermal, Detail: "the system gives a " + kind + " warning: " + strings.TrimSpace(line)}}
			}
		}
	}
	return nil
}

// parseStat reads /proc/PID/stat (proc_pid_stat(5)): the name is in brackets and may hold spaces and brackets.
func parseStat(text string, tick time.Duration) (p process, ok bool) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 1 || end < open {
		return p, false
	}
	f := strings.Fields(text[end+1:])
	if len(f) < 13 {
		return p, false
	}
	pid, err1 := strconv.Atoi(strings.TrimSpace(text[:open]))
	parent, err2 := strconv.Atoi(f[1])
	user, err3 := strconv.ParseInt(f[11], 10, 64)
	system, err4 := strconv.ParseInt(f[12], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		return p, false
	}
	return process{pid: pid, parent: parent, name: text[open+1 : end], cpu: time.Duration(user+system) * tick}, true
}
