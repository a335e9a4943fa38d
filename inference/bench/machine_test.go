package bench

import (
	"context"
	"testing"
	"time"
)

func TestPmset(t *testing.T) {
	for _, c := range []struct {
		name string
		got  []Objection
		want Reason
	}{
		{"mains", parseBattery("Now drawing from 'AC Power'\n -InternalBattery-0 (id=1)\t97%; charged; 0:00 remaining present: true\n"), ""},
		{"battery", parseBattery("Now drawing from 'Battery Power'\n -InternalBattery-0 (id=1)\t97%; discharging; 5:12 remaining present: true\n"), Battery},
		{"full power", parsePowerMode("System-wide power settings:\nCurrently in use:\n standby 1\n lowpowermode         0\n"), ""},
		{"low power", parsePowerMode("Currently in use:\n lowpowermode         1\n"), Battery},
		{"cool", parseThermal("Note: No thermal warning level has been recorded\nNote: No performance warning level has been recorded\nNote: No CPU power status has been recorded\n"), ""},
		{"cool Intel", parseThermal("CPU Power notify\n\tCPU_Scheduler_Limit \t= 100\n\tCPU_Available_CPUs \t= 8\n\tCPU_Speed_Limit \t= 100\n"), ""},
		{"hot Intel", parseThermal("CPU Power notify\n\tCPU_Scheduler_Limit \t= 100\n\tCPU_Speed_Limit \t= 62\n"), Thermal},
		{"hot", parseThermal("Thermal warning level 1 has been recorded\nNote: No performance warning level has been recorded\n"), Thermal},
		{"slow", parseThermal("Note: No thermal warning level has been recorded\nPerformance warning level 2\n"), Thermal},
	} {
		var got Reason
		if len(c.got) > 0 {
			got = c.got[0].Reason
		}
		if got != c.want || len(c.got) > 1 {
			t.Errorf("%s: got %v, want %q", c.name, c.got, c.want)
		}
	}
}

func TestForeignLoad(t *testing.T) {
	before := []process{{pid: 1, name: "init"}, {pid: 10, parent: 1, name: "shell"}, {pid: 20, parent: 10, name: "pond"}, {pid: 30, parent: 20, name: "arm"}, {pid: 40, parent: 1, name: "browser"}, {pid: 41, parent: 40, name: "browser"}}
	after := make([]process, len(before))
	for i, p := range before {
		p.cpu = 300 * time.Millisecond
		after[i] = p
	}
	got := foreign(before, after, time.Second, 20)
	if got["pond"] != 0 || got["arm"] != 0 || got["shell"] != 0 {
		t.Errorf("got %v, want nothing of ours: the process, its shell and its children", got)
	}
	if d := got["browser"]; d < 0.59 || d > 0.61 {
		t.Errorf("got %v, want 0.6 of a core for the browser's two processes", got)
	}
	ps := parsePS("  1     0   0,5 /sbin/launchd\n 77     1  45.0 /Applications/Some App.app/Contents/MacOS/Some App\nrubbish\n")
	if len(ps) != 2 || ps[1].name != "Some App" || ps[1].share != 0.45 || ps[0].share != 0.005 {
		t.Errorf("got %+v", ps)
	}
	if got := foreign(nil, ps, time.Second, 20); got["Some App"] != 0.45 {
		t.Errorf("got %v, want the share that ps tells", got)
	}
	p, ok := parseStat("4242 (a (strange) name) S 17 1 1 0 -1 4194304 1 2 3 4 150 50 0 0 20 0 1 0 5 6 7", 10*time.Millisecond)
	if !ok || p.pid != 4242 || p.parent != 17 || p.name != "a (strange) name" || p.cpu != 2*time.Second {
		t.Errorf("got %+v, %v", p, ok)
	}
	if _, ok := parseStat("4242 nothing", 1); ok {
		t.Error("a line without a name: got a process")
	}
}

// The probe sees this very machine: our own process is in the list, and the end of the context ends it.
func TestMachine(t *testing.T) {
	found := false
	for _, p := range processes(context.Background()) {
		found = found || p.pid == self()
	}
	if !found {
		t.Errorf("got a list of processes without %d, want this one in it", self())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, o := range Machine(ctx) {
		if o.Detail == "" {
			t.Errorf("got %+v, want words", o)
		}
	}
}
