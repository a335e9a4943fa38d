package app

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// ID is the application's id: the bundle's, the desktop's and the settings' name.
const ID = "app.pond.Pond"

// Version is the release; FyneApp.toml and CHANGELOG.md say the same, which a test holds.
const Version = "0.1.0"

// Build is one line about this binary: release, commit where Go recorded it, compiler and system.
func Build() string {
	words := []string{"pond " + Version}
	if info, ok := debug.ReadBuildInfo(); ok {
		if c := commit(info.Settings); c != "" {
			words = append(words, c)
		}
	}
	words = append(words, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH)
	return strings.Join(words, ", ")
}

// commit reads what Go's linker recorded of the repository: "commit 0123456789ab, changed since".
func commit(settings []debug.BuildSetting) string {
	revision, changed := "", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", changed since"
		}
	}
	if revision == "" {
		return ""
	}
	return "commit " + revision + changed
}
