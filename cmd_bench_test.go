package main

import (
	"strings"
	"testing"

	"pond/app"
)

// A build of make is of the commit that its stamp names, though Go's own record, which a work tree and an archive do not have, is empty: pond bench
// refused every release as of no commit.
func TestBuildsOfNoCommit(t *testing.T) {
	for _, c := range []struct {
		source app.Source
		want   string
	}{
		{app.Source{Commit: "0123456789ab"}, ""},
		{app.Source{Commit: "0123456789ab", Changed: true}, "changed since commit 0123456789ab"},
		{app.Source{}, "names no commit"},
	} {
		if got := ofNoCommit(c.source); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%+v: got %q, want %q in it", c.source, got, c.want)
		}
	}
}
