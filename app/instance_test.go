package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestSecondLaunch: the second Pond shows the window of the first and does not run; when the first is gone, whatever it left behind, the next
// one runs.
func TestSecondLaunch(t *testing.T) {
	for _, c := range []struct{ name, dir string }{{"usual", "state"}, {"path too long for a socket", strings.Repeat("long/", 30)}} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), c.dir)
			var shown atomic.Int32
			first, err := Claim(dir, func() { shown.Add(1) })
			if err != nil {
				t.Fatal(err)
			}
			for want := range 3 {
				if _, err := Claim(dir, func() { t.Error("the second was asked") }); !errors.Is(err, ErrShown) {
					t.Errorf("got %v, want ErrShown", err)
				}
				if got := int(shown.Load()); got != want+1 {
					t.Errorf("got %d requests, want %d", got, want+1)
				}
			}
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the folder: got %v, %v; want it its owner's alone", info.Mode(), err)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, socketName), nil, 0o600); err != nil { // as a crash leaves it
				t.Fatal(err)
			}
			next, err := Claim(dir, func() {})
			if err != nil {
				t.Fatal(err)
			}
			if err := next.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
