// Command icons draws the icons of the menu bar: one colour on nothing, so that the system (or Fyne's theme) gives them the colour that the bar
// needs, dark or light. It writes assets/icons; `make icons` runs it, and a test compares.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"pond/scripts/icons/tray"
)

func main() {
	dir := filepath.Join("assets", "icons")
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, "icons:", err)
		os.Exit(1)
	}
	for name, text := range tray.All() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "icons:", err)
			os.Exit(1)
		}
	}
}
