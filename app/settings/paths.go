package settings

import (
	"path/filepath"
	"runtime"
	"slices"

	"github.com/adrg/xdg"
)

// Paths are the places Pond keeps things in, by the rules of the system: on Linux the XDG folders, on a Mac the folders below
// ~/Library. Nothing is created by asking.
type Paths struct {
	Models    string // installed models, one folder each, named by model id
	Chats     string // conversations, one file each
	File      string // the settings file
	Logs      string // folder of the log files, of the lock of the running Pond and of its socket
	Updates   string // file that keeps when Pond last looked for a newer one
	Sessions  string // what is kept of conversations, in Cache
	Autostart string // folder of the entries that a Linux desktop opens at login

	Cache    string // what can be made again
	Toolkit  string // what Fyne remembers of the windows
	Agent    string // launchd's file of `pond serve` at login, which install.sh writes; only on a Mac
	AgentLog string // and its log
}

// All are the folders and files of the user's that Pond or its installer may have made, none inside another. A folder of models that the user chose is not
// among them, nor what a desktop opens at login.
func (p Paths) All() []string {
	all := []string{filepath.Dir(p.Models), filepath.Dir(p.File), p.Logs, p.Cache, p.Toolkit, p.Agent, p.AgentLog}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(path string) bool { return !filepath.IsAbs(path) }) // empty ones, and what must never be removed: "."
}

// DefaultPaths reads the user's environment.
func DefaultPaths() Paths {
	p := Paths{
		Models:    filepath.Join(xdg.DataHome, "pond", "models"),
		Chats:     filepath.Join(xdg.DataHome, "pond", "chats"),
		File:      filepath.Join(xdg.ConfigHome, "pond", "settings.json"),
		Logs:      filepath.Join(xdg.StateHome, "pond"),
		Updates:   filepath.Join(xdg.StateHome, "pond", "update-checked"),
		Sessions:  filepath.Join(xdg.CacheHome, "pond", "conversations"),
		Autostart: filepath.Join(xdg.ConfigHome, "autostart"),
		Cache:     filepath.Join(xdg.CacheHome, "pond"),
		Toolkit:   filepath.Join(xdg.ConfigHome, "fyne", "app.pond.Pond"),
	}
	if runtime.GOOS == "darwin" {
		library := filepath.Join(xdg.Home, "Library")
		p.Toolkit = filepath.Join(library, "Preferences", "fyne", "app.pond.Pond")
		p.Agent = filepath.Join(library, "LaunchAgents", "app.pond.serve.plist")
		p.AgentLog = filepath.Join(library, "Logs", "pond.log")
	}
	return p
}
