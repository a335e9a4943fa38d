// Package assets is what ships inside the program: the icons and the demo model.
//
// It holds bytes and no logic. Start with Demo.
package assets

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed icon.svg
var icon string

//go:embed icons/*.svg
var icons embed.FS

// Icon is the coloured icon of the app, SVG.
func Icon() []byte { return []byte(icon) }

// TraySteps is how many parts the ring of the working icon has.
const TraySteps = 8

// Tray says which icon of the menu bar is wanted.
type Tray string

// The icons of the menu bar; TrayWorking has a ring of which so many parts are done.
const (
	TrayStopped Tray = "stopped"
	TrayRunning Tray = "running"
	TrayFailed  Tray = "failed"
)

// TrayWorking is the icon with a ring of which a part, from 0 to 1, is done.
func TrayWorking(done float64) Tray {
	return Tray(fmt.Sprintf("working_%d", int(max(0, min(1, done))*TraySteps)))
}

// TrayIcon is a one-colour icon of the menu bar, SVG in black on nothing; the system tints it.
func TrayIcon(t Tray) []byte {
	text, err := icons.ReadFile("icons/z_tray_" + string(t) + ".svg")
	if err != nil {
		panic("assets: internal error: " + err.Error()) // the names above are those of the files
	}
	return text
}

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
