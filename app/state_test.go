package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestLife walks through everything that can happen to Pond and reads the menu at each step.
func TestLife(t *testing.T) {
	steps := []struct {
		event Event
		menu  string
	}{
		{nil, "(Stopped) Start - (Copy endpoint URL) Open Pond - Quit"},
		{LoadStarted{DemoModel, "127.0.0.1:11535", true}, "(Loading pond-demo) Cancel loading - (Copy endpoint URL) Open Pond - Quit"},
		{Served{Address: "127.0.0.1:11535", Executor: "host exact", ContextTokens: 4096}, "(Running · 127.0.0.1:11535) Stop - Copy endpoint URL Open Pond - Quit"},
		{Failure{errors.New("the disk is gone")}, "(Failed: the disk is gone) Try again - (Copy endpoint URL) Open Pond - Quit"},
		{LoadStarted{DemoModel, "127.0.0.1:11535", true}, "(Loading pond-demo) Cancel loading - (Copy endpoint URL) Open Pond - Quit"},
		{Halted{}, "(Stopped) Start - (Copy endpoint URL) Open Pond - Quit"},
	}
	s := State{}
	for i, step := range steps {
		if step.event != nil {
			before := s
			next := s.After(step.event)
			if s != before {
				t.Fatalf("step %d changed the state it came from", i)
			}
			s = next
		}
		var words []string
		for _, item := range Menu(s) {
			switch {
			case item.Separator():
				words = append(words, "-")
			case item.Available:
				words = append(words, item.Label)
			default:
				words = append(words, "("+item.Label+")")
			}
		}
		if got := strings.Join(words, " "); got != step.menu {
			t.Errorf("step %d\n got %s\nwant %s", i, got, step.menu)
		}
	}
	if s.Failure != "" || s.Executor != "" {
		t.Errorf("a halted pond remembers %+v", s)
	}
}

func TestCurlLine(t *testing.T) {
	got := CurlLine("127.0.0.1:11535", DemoModel, true)
	for _, want := range []string{"http://127.0.0.1:11535/v1/chat/completions", `"model":"pond-demo"`, "Content-Type: application/json", "Bearer $POND_API_KEY"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
	if strings.Contains(CurlLine("127.0.0.1:1", DemoModel, false), "Authorization") {
		t.Error("no key was asked for")
	}
}

func TestPhaseNames(t *testing.T) {
	if got := fmt.Sprint(Stopped, Loading, Running, Failed, Phase(9)); got != "stopped loading running failed Phase(9)" {
		t.Errorf("got %s", got)
	}
}
