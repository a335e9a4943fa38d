package main

import (
	"strings"
	"testing"
	"time"
)

func TestLoadingShows(t *testing.T) {
	const gb = 1e9
	for _, c := range []struct {
		name     string
		terminal bool
		step     time.Duration
		want     string
	}{
		{"fast", true, time.Millisecond, ""},
		{"terminal", true, time.Second, "\rreading the model: 4.0 of 8.0 GB\x1b[K\rreading the model: 6.0 of 8.0 GB\x1b[K\r\x1b[K"},
		{"lines", false, time.Second, "reading the model: 4.0 of 8.0 GB\n"},
	} {
		var out strings.Builder
		at := time.Unix(1000, 0)
		l := &loading{out: &out, terminal: c.terminal, now: func() time.Time { return at }}
		for done := int64(2); done <= 8; done += 2 {
			l.show(done*gb, 8*gb)
			at = at.Add(c.step)
		}
		if out.String() != c.want {
			t.Errorf("%s: got %q, want %q", c.name, out.String(), c.want)
		}
	}
}
