package inference

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The time saved was told by the rate of short chunks, which take several times as long for a token, and was nothing for what was reused before
// the first prompt had ended.
func TestSavingsAreCountedByWholeChunks(t *testing.T) {
	var s savings
	s.reused("monday", 1024, 10*time.Millisecond)
	if got := s.on("monday"); got != 0 {
		t.Errorf("before anything was computed: got %v, want nothing yet", got)
	}
	s.computed(8, 80*time.Millisecond, 512)
	if got, want := s.on("monday"), 1024*10*time.Millisecond-10*time.Millisecond; got != want {
		t.Errorf("a short chunk alone: got %v, want %v", got, want)
	}
	s.computed(512, time.Second, 512)
	s.computed(5, time.Second, 512)
	if got, want := s.on("monday"), 2*time.Second-10*time.Millisecond; got != want {
		t.Errorf("got %v, want %v by the whole chunk", got, want)
	}
	if got := s.on("tuesday"); got != 0 {
		t.Errorf("the day after: got %v, want nothing", got)
	}
	s.reused("tuesday", 512, 2*time.Second)
	if got := s.on("tuesday"); got != 0 {
		t.Errorf("reusing that took longer than computing: got %v, want nothing", got)
	}
	for range 300 {
		s.computed(512, 100*time.Millisecond, 512) // the machine is free again
	}
	s.reused("wednesday", 5120, 0)
	if got := s.on("wednesday"); got < 900*time.Millisecond || got > 1200*time.Millisecond {
		t.Errorf("on a faster machine: got %v, want about 1s", got)
	}
}

// "Saved today" began at nothing whenever the model had rested or Pond was started again, and went on over midnight in a status that nobody asked
// anything.
func TestSavedTodayOutlivesARestart(t *testing.T) {
	o := Options{Executor: HostExact, ChunkTokens: 64, Disk: Disk{Dir: t.TempDir(), LimitBytes: 1 << 30}}
	monday := time.Date(2026, 11, 30, 23, 59, 0, 0, time.Local)
	at := func(e *Engine, now time.Time) *Engine {
		e.reuse.mu.Lock()
		defer e.reuse.mu.Unlock()
		e.reuse.now = func() time.Time { return now }
		return e
	}
	e := at(openTiny(t, o), monday)
	c, g := asked(strings.Repeat("All about ponds. ", 20), "What is a pond?"), Generation{MaxTokens: 2, Sampling: seeded(1)}
	ask(t, e, c, g)
	first := ask(t, e, c, g).Usage.CachedTokens
	before := e.Stats().Reuse.SavedToday
	noted := func() (s savings) {
		e.reuse.mu.Lock()
		defer e.reuse.mu.Unlock()
		return e.reuse.savings
	}
	e = at(restart(t, e, o), monday)
	if got := e.Stats().Reuse; got.SavedToday != before || noted().Reused != int64(first) || got.ReusedTokens != 0 {
		t.Errorf("after a restart: got %v for %d tokens, want %v for %d as before", got.SavedToday, noted().Reused, before, first)
	}
	second := ask(t, e, c, g).Usage
	if second.DiskTokens == 0 || noted().Reused != int64(first+second.CachedTokens) {
		t.Errorf("read from the disk: got %d tokens, want %d and %d", noted().Reused, first, second.CachedTokens)
	}
	at(e, monday.Add(2*time.Minute))
	if got := e.Stats().Reuse; got.SavedToday != 0 {
		t.Errorf("after midnight: got %v, want nothing", got.SavedToday)
	}
	third := ask(t, e, c, g).Usage
	if noted().Reused != int64(third.CachedTokens) {
		t.Errorf("after midnight: got %d tokens, want the new day's %d", noted().Reused, third.CachedTokens)
	}
}

// A damaged file of savings costs the figure, and nothing else.
func TestDamagedSavings(t *testing.T) {
	file := filepath.Join(t.TempDir(), savingsFile)
	if s, err := readSavings(file); err != nil || s != (savings{}) {
		t.Errorf("no file: got %+v, %v", s, err)
	}
	for _, text := range []string{"", "{", `{"reused_tokens": -1}`, `{"reused_tokens": 5, "long_chunks": {"tokens": -3}}`, `[]`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := readSavings(file); err == nil || s != (savings{}) {
			t.Errorf("%s: got %+v, %v, want an error", text, s, err)
		}
	}
	want := savings{Day: "2026-11-30", Reused: 12, Spent: 3, Long: pace{4, 5}, Short: pace{6, 7}}
	if err := writeSavings(file, want); err != nil {
		t.Fatal(err)
	}
	if s, err := readSavings(file); err != nil || s != want {
		t.Errorf("got %+v, %v, want %+v", s, err, want)
	}
}
