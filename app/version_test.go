package app

import (
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

func TestBuild(t *testing.T) {
	if got := Build(); !strings.HasPrefix(got, "pond "+Version+", ") {
		t.Errorf("got %q", got)
	}
	if got := Release(); got != Version && !strings.HasPrefix(got, Version+"+") {
		t.Errorf("got %q", got)
	}
}

// TestSource: the linker's stamp and Go's own record say the same, and what is not known is left out.
func TestSource(t *testing.T) {
	at := time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)
	stamped, ok := parseStamp("0123456789ab,2026-11-30T01:02:03Z,changed")
	if want := (Source{"0123456789ab", at, true}); !ok || stamped != want {
		t.Errorf("stamp: got %+v %v, want %+v", stamped, ok, want)
	}
	own := recorded([]debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-11-30T01:02:03Z"}, {Key: "vcs.modified", Value: "true"}})
	if own != stamped {
		t.Errorf("record: got %+v, want %+v", own, stamped)
	}
	if got, want := own.release(), Version+"+20261130.0123456789ab.changed"; got != want {
		t.Errorf("release: got %q, want %q", got, want)
	}
	if got, want := own.Words(), "commit 0123456789ab of 2026-11-30, changed since"; got != want {
		t.Errorf("words: got %q, want %q", got, want)
	}
	for _, bad := range []string{"", ",", "0123456789ab", "0123456789ab,yesterday"} {
		if got, ok := parseStamp(bad); ok {
			t.Errorf("%q: got %+v, want nothing", bad, got)
		}
	}
	var nothing Source
	if nothing.release() != Version || nothing.Words() != "" {
		t.Errorf("got %q and %q, want the version alone and nothing", nothing.release(), nothing.Words())
	}
}
