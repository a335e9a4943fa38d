package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogTurns: a full log begins anew and keeps a few old ones; the viewer gets the last lines of the present one.
func TestLogTurns(t *testing.T) {
	dir := t.TempDir()
	l := OpenLog(dir)
	if lines, err := l.Tail(10); err != nil || lines != nil {
		t.Errorf("no log yet: got %v, %v", lines, err)
	}
	log := l.Logger()
	for i := range 6 * (logMegabytes << 20) / (64 << 10) {
		log.Info("a long line", "n", i, "filling", strings.Repeat("x", 64<<10))
	}
	for i := range 5 {
		log.Info("last", "n", i)
	}
	lines, err := l.Tail(3)
	if err != nil || len(lines) != 3 || !strings.HasSuffix(lines[2], "n=4") || !strings.HasSuffix(lines[0], "n=2") {
		t.Errorf("got %v, %v", lines, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "old logs are removed", func() bool {
		all, err := filepath.Glob(filepath.Join(dir, "pond*.log"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all) == logKept+1
	})
	info, err := os.Stat(l.Path())
	if err != nil || info.Size() > logMegabytes<<20 || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want at most %d MB, its owner's alone", info, err, logMegabytes)
	}
	var none *LogFile
	if lines, err := none.Tail(1); err != nil || lines != nil || none.Path() != "" || none.Close() != nil {
		t.Error("a pond without a log")
	}
}
