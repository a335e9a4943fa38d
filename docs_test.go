package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pond/app"
	"pond/assets"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestVersionsAgree: the release and the id are said in several files, because each has a reader of its own.
func TestVersionsAgree(t *testing.T) {
	fyne := read(t, "FyneApp.toml")
	for _, want := range []string{`Version = "` + app.Version + `"`, `ID = "` + app.ID + `"`} {
		if !strings.Contains(fyne, want) {
			t.Errorf("FyneApp.toml: want %s in it", want)
		}
	}
	if first := regexp.MustCompile(`(?m)^## (\S+)`).FindStringSubmatch(read(t, "CHANGELOG.md")); first == nil || first[1] != app.Version {
		t.Errorf("CHANGELOG.md: got %v first, want %s", first, app.Version)
	}
}

// TestExitCodesAreDocumented: README.md has a row for every exit code and for no other.
func TestExitCodesAreDocumented(t *testing.T) {
	want := map[int]bool{exitOK: true, exitFailed: true, exitUsage: true, exitNoModel: true, exitBadModel: true, exitAddress: true, exitExecutor: true, exitMemory: true, exitSources: true, exitSpace: true, exitFolder: true, exitInterrupted: true}
	got := map[int]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(read(t, "README.md"), -1) {
		code, err := strconv.Atoi(row[1])
		if err != nil || !want[code] || got[code] {
			t.Errorf("README.md: exit code %s: unknown or twice", row[1])
		}
		got[code] = true
	}
	if len(got) != len(want) {
		t.Errorf("README.md: got rows for %d exit codes, want %d", len(got), len(want))
	}
}

// TestCommandsAreDocumented: README.md has a row for every command.
func TestCommandsAreDocumented(t *testing.T) {
	readme := read(t, "README.md")
	for _, c := range newRoot(streams{}).Commands() {
		if c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		if !strings.Contains(readme, "`"+c.CommandPath()) {
			t.Errorf("README.md: no row for %s", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			if !strings.Contains(readme, "`"+sub.CommandPath()) {
				t.Errorf("README.md: no row for %s", sub.CommandPath())
			}
		}
	}
}

// TestTrayIconIsATemplate: every icon of the menu bar is one black on nothing, as a template image has to be.
func TestTrayIconIsATemplate(t *testing.T) {
	kinds := []assets.Tray{assets.TrayStopped, assets.TrayRunning, assets.TrayFailed}
	for step := range assets.TraySteps + 1 {
		kinds = append(kinds, assets.TrayWorking(float64(step)/assets.TraySteps))
	}
	for _, kind := range kinds {
		for _, color := range regexp.MustCompile(`(?:fill|stroke)="([^"]+)"`).FindAllStringSubmatch(string(assets.TrayIcon(kind)), -1) {
			if color[1] != "#000000" && color[1] != "none" {
				t.Errorf("%s: got colour %s, want black alone", kind, color[1])
			}
		}
	}
}
