// Package assets is what ships inside the program: the icons and the demo model.
//
// It holds bytes and no logic. Start with Demo.
package assets

import (
	"embed"
	"io/fs"
)

//go:embed icon.svg
var icon string

//go:embed tray.svg
var tray string

// Icon is the coloured icon of the app, SVG.
func Icon() []byte { return []byte(icon) }

// TrayIcon is the one-colour icon of the menu bar, SVG in black on nothing; the system tints it.
func TrayIcon() []byte { return []byte(tray) }

// Demo is the folder of the demo model as it lies in the repository: empty in a build that was made without it.
func Demo() fs.FS { return embed.FS{} }
