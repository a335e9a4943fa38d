package settings

import (
	"path/filepath"

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
	Autostart string // folder of the entries that a Linux desktop opens at login
}

// DefaultPaths reads the user's environment.
func DefaultPaths() Paths {
	return Paths{
		Models:    filepath.Join(xdg.DataHome, "pond", "models"),
		Chats:     filepath.Join(xdg.DataHome, "pond", "chats"),
		File:      filepath.Join(xdg.ConfigHome, "pond", "settings.json"),
		Logs:      filepath.Join(xdg.StateHome, "pond"),
		Updates:   filepath.Join(xdg.StateHome, "pond", "update-checked"),
		Autostart: filepath.Join(xdg.ConfigHome, "autostart"),
	}
}
