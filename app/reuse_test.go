package app

import (
	"strings"
	"testing"
	"time"

	"pond/inference"
)

func TestReuseLines(t *testing.T) {
	var s State
	if s.ReuseLine() != "no prompt was read yet" || s.KeptLine() != "nothing yet" || s.MissLine() != "" {
		t.Errorf("nothing: got %q, %q, %q", s.ReuseLine(), s.KeptLine(), s.MissLine())
	}
	s.Work.Reuse = inference.Reuse{ReusedTokens: 34_120, ComputedTokens: 980, DiskTokens: 12_000, StoredTokens: 48_000, SavedToday: 12*time.Minute + time.Second,
		Miss: &inference.Miss{PromptTokens: 12_400, CommonTokens: 12, ReusedTokens: 0, Text: "12:02\nnow. " + strings.Repeat("Be brief. ", 9), WasBefore: "12:01"}}
	s.Work.KeptBytes, s.KeptBytes = 480e6, 1_200_000_000
	for _, c := range [][2]string{
		{s.ReuseLine(), "34.1K of 35.1K prompt tokens, 12K from the disk; saved 12 min today"},
		{s.KeptLine(), "480 MB in memory for 48K tokens, 1.2 GB on the disk"},
		{s.MissLine(), "Of the last prompt that differed, 0 of 12.4K tokens were reused: after 12 it went on with “12:02 now. Be brief. Be brief. B…”, and not with “12:01”."},
	} {
		if c[0] != c[1] {
			t.Errorf("got  %q\nwant %q", c[0], c[1])
		}
	}
	s.Work.Reuse.Miss = &inference.Miss{PromptTokens: 500, ReusedTokens: 300}
	if s.MissLine() != "" {
		t.Errorf("a small miss: got %q, want nothing", s.MissLine())
	}
	s.KeptBytes, s.Work.Disk = 0, inference.DiskStats{Trouble: "x is in use by a running pond"}
	if want := "480 MB in memory for 48K tokens, none goes to the disk: x is in use by a running pond"; s.KeptLine() != want {
		t.Errorf("got %q, want %q", s.KeptLine(), want)
	}
}
