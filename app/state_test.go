package app

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pond/server"
)

// menuText writes a menu in a line: entries that only inform or cannot be chosen in parentheses, children in braces.
func menuText(items []Item) string {
	var words []string
	for _, item := range items {
		text := item.Label
		if len(item.Children) > 0 {
			text += " {" + menuText(item.Children) + "}"
		}
		switch {
		case item.Separator():
			words = append(words, "-")
		case item.Available:
			words = append(words, text)
		default:
			words = append(words, "("+text+")")
		}
	}
	return strings.Join(words, " ")
}

// TestLife walks through everything that can happen to Pond and reads the first lines of the menu at each step.
func TestLife(t *testing.T) {
	const all = 20_420_000_000
	disk := func(done int64) DiskState {
		return DiskState{Dir: "/models/x", DoneBytes: done, TotalBytes: all, FreeBytes: 100e9, Headroom: 1 << 30}
	}
	served := Served{Address: "127.0.0.1:11535", Executor: "host exact", ContextTokens: 49152, UnloadBytes: 19_510_000_000}
	taken := &AddressError{Err: &server.PortError{Addr: "127.0.0.1:11535", Next: "127.0.0.1:11536"}, Holder: "ollama"}
	steps := []struct {
		event Event
		phase Phase
		menu  string // up to the first separator
	}{
		{nil, Stopped, "Start (Ready)"},
		{Chosen{Model: FullModel, Disk: disk(0), Address: "127.0.0.1:11535"}, NeedModel, "Download (Needs its model, 20.4 GB)"},
		{CopiesFound{[]Copy{{Tool: "LM Studio"}}}, NeedModel, "Use the copy found in LM Studio… (Needs its model, 20.4 GB)"},
		{CopiesFound{}, NeedModel, "Download (Needs its model, 20.4 GB)"},
		{JobChanged{Job{Kind: DownloadJob, DoneBytes: 43, TotalBytes: 100, ETA: 250 * time.Second}}, Downloading, "Pause the download (Downloading 43 % · 4 min)"},
		{JobChanged{Job{Kind: DownloadJob, DoneBytes: 43, TotalBytes: 100, Offline: true}}, Downloading, "Pause the download (Downloading 43 % · no network)"},
		{JobChanged{Job{Kind: DownloadJob, DoneBytes: 43, TotalBytes: 100, Paused: true}}, Downloading, "Go on with the download (Download paused at 43 %)"},
		{JobEnded{errors.New("the disk is full")}, Failed, "Try again (Failed: the disk is full)"},
		{JobChanged{Job{Kind: DownloadJob}}, Downloading, "Pause the download (Downloading 0 %)"},
		{JobEnded{}, NeedModel, "Download (Needs its model, 20.4 GB)"},
		{Chosen{Model: FullModel, Disk: disk(8e9)}, NeedModel, "Go on with the download (Download stopped at 39 %)"},
		{JobChanged{Job{Kind: VerifyJob, DoneBytes: 1, TotalBytes: 8}}, Verifying, "Cancel (Verifying 12 %)"},
		{JobEnded{}, NeedModel, "Go on with the download (Download stopped at 39 %)"},
		{Chosen{Model: FullModel, Ready: true, Disk: disk(all), Address: "127.0.0.1:11535"}, Stopped, "Start (Ready)"},
		{Judged{Verdict: Verdict{Known: true, NeedBytes: 20e9, HaveBytes: 16_900_000_000}}, Stopped, "Start (Needs 3.1 GB more)"},
		{Judged{Verdict: Verdict{Known: true, NeedBytes: 20e9, HaveBytes: 16_900_000_000, Anyway: true}}, Stopped, "Start (Needs 3.1 GB more) Start anyway, and slowly"},
		{Judged{Verdict: Verdict{Known: true, Allowed: true, NeedBytes: 20e9, HaveBytes: 25e9, CeilingTokens: 65536}}, Stopped, "Start (Ready) (up to 64K tokens on this machine now)"},
		{LoadStarted{FullModel, "127.0.0.1:11535", true}, Loading, "Cancel loading (Loading) (up to 64K tokens on this machine now)"},
		{Loaded{5e9, 20e9}, Loading, "Cancel loading (Loading 25 %) (up to 64K tokens on this machine now)"},
		{served, Running, "Stop (Running · 127.0.0.1:11535) (up to 48K tokens on this machine now)"},
		{Worked{Work{Active: 1, PrefillDone: 40, PrefillTotal: 100}}, Busy, "Stop (Busy · reading 40 %) (up to 48K tokens on this machine now)"},
		{Worked{Work{Active: 1, TokensPerSecond: 61.3}}, Busy, "Stop (Busy · 61 tok/s) (up to 48K tokens on this machine now)"},
		{Worked{Work{Active: 1, TokensPerSecond: 4.26}}, Busy, "Stop (Busy · 4.3 tok/s) (up to 48K tokens on this machine now)"},
		{Pressed{2}, Busy, "Stop (Busy · 4.3 tok/s) (up to 48K tokens on this machine now) (memory is short (critical))"},
		{Held{Reason: reasonMemory}, Paused, "Go on (Paused · memory is short) (up to 48K tokens on this machine now) (memory is short (critical)) Stop"},
		{Pressed{0}, Paused, "Go on (Paused · memory is short) (up to 48K tokens on this machine now) Stop"},
		{Released{}, Busy, "Stop (Busy · 4.3 tok/s) (up to 48K tokens on this machine now)"},
		{Held{Until: time.Date(2026, 1, 2, 14, 30, 0, 0, time.UTC)}, Paused, "Go on (Paused until 14:30) (up to 48K tokens on this machine now) Stop"},
		{Released{}, Busy, "Stop (Busy · 4.3 tok/s) (up to 48K tokens on this machine now)"},
		{Worked{}, Running, "Stop (Running · 127.0.0.1:11535) (up to 48K tokens on this machine now)"},
		{JobChanged{Job{Kind: RepairJob, DoneBytes: 1, TotalBytes: 2}}, Running, "Stop (Running · 127.0.0.1:11535) (Repairing 50 %) (up to 48K tokens on this machine now)"},
		{JobEnded{errors.New("no source")}, Running, "Stop (Running · 127.0.0.1:11535) (up to 48K tokens on this machine now)"},
		{Rested{}, Running, "Stop (Resting · 127.0.0.1:11535) (up to 64K tokens on this machine now)"},
		{Halted{}, Stopped, "Start (Ready) (up to 64K tokens on this machine now)"},
		{Failure{taken}, Failed, "Serve at 127.0.0.1:11536 (Failed: the port is held by ollama: address 127.0.0.1:11535 is in use, 127.0.0.1:11536 is free) (up to 64K tokens on this machine now) Try again"},
	}
	s := State{}
	for i, step := range steps {
		if step.event != nil {
			before := s
			next := s.After(step.event)
			if !reflect.DeepEqual(s, before) {
				t.Fatalf("step %d changed the state it came from", i)
			}
			s = next
		}
		got, _, _ := strings.Cut(menuText(Menu(s)), " - ")
		if got = strings.ReplaceAll(got, "this Mac", "this machine"); got != step.menu || s.Phase != step.phase {
			t.Errorf("step %d\n got %s: %s\nwant %s: %s", i, s.Phase, got, step.phase, step.menu)
		}
	}
	if s.NextAddress != "127.0.0.1:11536" || s.Holder != "ollama" {
		t.Errorf("got %+v", s)
	}
}

func TestWholeMenu(t *testing.T) {
	const snippets = "Copy snippet {curl Python JavaScript Environment variables}"
	running := State{}.After(Served{Address: "127.0.0.1:11535", ContextTokens: 4096, UnloadBytes: 19_510_000_000})
	_, got, _ := strings.Cut(menuText(Menu(running)), " - ")
	want := "Copy endpoint URL " + snippets + " - Chat Model Settings Logs - Unload now (frees 19.5 GB) Pause until {In 15 minutes In an hour Tomorrow morning} Let other apps go first - Quit"
	if got != want {
		t.Errorf("running\n got %s\nwant %s", got, want)
	}
	_, got, _ = strings.Cut(menuText(Menu(State{})), " - ")
	want = "(Copy endpoint URL) (Copy snippet {(curl) (Python) (JavaScript) (Environment variables)}) - Chat Model Settings Logs - (Unload now) (Pause until {(In 15 minutes) (In an hour) (Tomorrow morning)}) Let other apps go first - Quit"
	if got != want {
		t.Errorf("stopped\n got %s\nwant %s", got, want)
	}
}

func TestSnippets(t *testing.T) {
	s := State{Model: DemoModel, Address: "0.0.0.0:11535", NeedsKey: true}
	for a, want := range map[Action][]string{
		CopyEndpoint:    {"http://127.0.0.1:11535/v1"},
		CopyCurl:        {"http://127.0.0.1:11535/v1/chat/completions", `"model":"pond-demo"`, "Content-Type: application/json", "Bearer $POND_API_KEY"},
		CopyPython:      {`base_url="http://127.0.0.1:11535/v1"`, `os.environ["POND_API_KEY"]`, "import os", `model="pond-demo"`},
		CopyJavaScript:  {`baseURL: "http://127.0.0.1:11535/v1"`, "process.env.POND_API_KEY", `model: "pond-demo"`},
		CopyEnvironment: {"OPENAI_BASE_URL=http://127.0.0.1:11535/v1\n", `OPENAI_API_KEY="$POND_API_KEY"`, "OPENAI_MODEL=pond-demo"},
	} {
		for _, w := range want {
			if got := s.Snippet(a); !strings.Contains(got, w) {
				t.Errorf("%d: got %s, want %s in it", a, got, w)
			}
		}
		open := s
		open.NeedsKey = false
		if got := open.Snippet(a); strings.Contains(got, "POND_API_KEY") || strings.Contains(got, "Authorization") {
			t.Errorf("%d: no key was asked for: got %s", a, got)
		}
	}
	if got := s.Snippet(Start); got != "" {
		t.Errorf("got %q for an action that copies nothing", got)
	}
}

func TestPhaseNames(t *testing.T) {
	if got := fmt.Sprint(Stopped, Loading, Running, Failed, Phase(9)); got != "stopped loading running failed Phase(9)" {
		t.Errorf("got %s", got)
	}
}

// TestCountdown: the time left counts down, follows a rate that stays changed, and does not jump with one that does not.
func TestCountdown(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var c countdown
	if got := c.left(now, 0); got != 0 {
		t.Errorf("unknown: got %v", got)
	}
	last := c.left(now, 100*time.Second)
	for i := range 40 { // the rate doubles and halves from second to second
		now = now.Add(time.Second)
		guess := 100*time.Second - time.Duration(i+1)*time.Second
		if i%2 == 0 {
			guess *= 2
		}
		got := c.left(now, guess)
		if jump := got - (last - time.Second); jump > 3*time.Second || jump < -3*time.Second {
			t.Fatalf("second %d: got %v after %v, want it to count down", i, got, last)
		}
		last = got
	}
	for range 8 { // and then stays at a quarter
		now = now.Add(time.Second)
		last = c.left(now, 240*time.Second)
	}
	if last < 220*time.Second {
		t.Errorf("got %v, want what a rate that stays says", last)
	}
	if got := c.left(now, time.Millisecond); got < time.Second {
		t.Errorf("got %v, want at least a second while there is something to come", got)
	}
}
