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

// demo holds the published files of the model: configuration, tokenizer, template, weights and their index. What made them
// (train/) stays outside.
//
//go:embed demo/*.[js]*
var demo embed.FS

// Demo is the folder of the demo model.
func Demo() fs.FS {
	files, err := fs.Sub(demo, "demo")
	if err != nil {
		panic("assets: internal error: " + err.Error()) // the pattern above names the folder
	}
	return files
}
