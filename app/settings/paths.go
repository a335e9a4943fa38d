package settings

import (
	"path/filepath"

	"github.com/adrg/xdg"
)

// Paths are the places Pond keeps things in, by the rules of the system: on Linux the XDG folders, on a Mac the folders below
// ~/Library. Nothing is created by asking.
type Paths struct {
	Models string // installed models, one folder each, named by model id
	File   string // the settings file
	Logs   string // log files
}

// DefaultPaths reads the user's environment.
func DefaultPaths() Paths {
	return Paths{
		Models: filepath.Join(xdg.DataHome, "pond", "models"),
		File:   filepath.Join(xdg.ConfigHome, "pond", "settings.json"),
		Logs:   filepath.Join(xdg.StateHome, "pond"),
	}
}
