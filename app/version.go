package app

import (
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// ID is the application's id: the bundle's, the desktop's and the settings' name.
const ID = "app.pond.Pond"

// Version is the release; FyneApp.toml and CHANGELOG.md say the same, which a test holds.
const Version = "0.1.0"

// stamp is what scripts/stamp.sh has the linker put here: the commit, its time in RFC 3339, and "changed" where the tree was not what was
// committed, with commas between. Go's own record would do, but it is left out in a work tree whose .git is a file, and by -buildvcs=false.
var stamp = ""

// Source is the state of the sources that this binary was built from.
type Source struct {
	Commit  string    // twelve digits; empty: unknown
	Time    time.Time // of the commit: the same commit gives the same bytes, whenever it is built
	Changed bool      // something was not committed
}

// BuiltFrom is what is known of the sources.
func BuiltFrom() Source {
	if s, ok := parseStamp(stamp); ok {
		return s
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Source{}
	}
	return recorded(info.Settings)
}

func parseStamp(text string) (Source, bool) {
	words := strings.Split(text, ",")
	if len(words) < 2 || words[0] == "" {
		return Source{}, false
	}
	at, err := time.Parse(time.RFC3339, words[1])
	return Source{Commit: words[0], Time: at, Changed: len(words) == 3 && words[2] == "changed"}, err == nil
}

// recorded reads what Go's linker recorded of the repository.
func recorded(settings []debug.BuildSetting) Source {
	var s Source
	for _, set := range settings {
		switch set.Key {
		case "vcs.revision":
			s.Commit = set.Value[:min(12, len(set.Value))]
		case "vcs.time":
			s.Time, _ = time.Parse(time.RFC3339, set.Value) // the zero time is "unknown"
		case "vcs.modified":
			s.Changed = set.Value == "true"
		}
	}
	return s
}

// Release is the version with the sources behind it, as semantic versioning writes them: "0.1.0+20261130.0123456789ab", and ".changed" at the
// end where the sources were not what was committed.
func Release() string { return BuiltFrom().release() }

func (s Source) release() string {
	var words []string
	if !s.Time.IsZero() {
		words = append(words, s.Time.UTC().Format("20060102"))
	}
	if s.Commit != "" {
		words = append(words, s.Commit)
	}
	if s.Changed {
		words = append(words, "changed")
	}
	if len(words) == 0 {
		return Version
	}
	return Version + "+" + strings.Join(words, ".")
}

// Build is one line about this binary: release, sources where they are known, compiler and system.
func Build() string {
	words := []string{"pond " + Version}
	if text := BuiltFrom().Words(); text != "" {
		words = append(words, text)
	}
	return strings.Join(append(words, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH), ", ")
}

// Words is "commit 0123456789ab of 2026-11-30, changed since"; empty where nothing is known.
func (s Source) Words() string {
	if s.Commit == "" {
		return ""
	}
	text := "commit " + s.Commit
	if !s.Time.IsZero() {
		text += " of " + s.Time.UTC().Format(time.DateOnly)
	}
	if s.Changed {
		text += ", changed since"
	}
	return text
}
