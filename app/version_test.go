package app

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestBuild(t *testing.T) {
	if got := Build(); !strings.HasPrefix(got, "pond "+Version+", ") {
		t.Errorf("got %q", got)
	}
	got := commit([]debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}})
	if got != "commit 0123456789ab, changed since" {
		t.Errorf("got %q", got)
	}
	if got := commit(nil); got != "" {
		t.Errorf("got %q", got)
	}
}
