package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The command `pond` in the terminal is a link to the program inside the app, so that it is always as new as the app. Nobody is asked for a password: it goes
// where the user may write.

const (
	linkName  = "pond"
	systemBin = "/usr/local/bin"
)

// LinkFolders are where the link may go, the best first: a folder that the terminal looks into already, else the user's own. path is the user's PATH.
func LinkFolders(home, path string) []string {
	own := filepath.Join(home, ".local", "bin")
	if !InPath(own, path) && InPath(systemBin, path) {
		return []string{systemBin, own}
	}
	return []string{own, systemBin}
}

// TerminalPath is where a terminal looks for commands: this program's PATH, and what login shells add on a Mac, which apps that the Finder opens are not told.
func TerminalPath() string {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	if added, err := os.ReadFile("/etc/paths"); err == nil {
		dirs = append(dirs, strings.Fields(string(added))...)
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// InPath reports whether a terminal finds what lies in a folder.
func InPath(dir, path string) bool { return slices.Contains(filepath.SplitList(path), dir) }

// Link makes the link in the first of the folders that can be written, and returns it. A link of an older place is replaced; what Pond did not make stays, and
// is the error.
func Link(executable string, folders []string) (string, error) {
	program, err := filepath.EvalSymlinks(executable)
	if err != nil {
		return "", fmt.Errorf("link: %w", err)
	}
	if strings.HasPrefix(program, "/Volumes/Pond") || strings.Contains(program, "/AppTranslocation/") {
		return "", errors.New("link: Pond runs from its disk image or from where it was downloaded; move it to the Applications folder and open it there first")
	}
	var failed error
	for _, dir := range folders {
		link := filepath.Join(dir, linkName)
		if link == program {
			return link, nil // it is there itself
		}
		if err := replaceable(link); err != nil {
			return "", err
		}
		if dir != systemBin { // a folder of the system is not made
			if err := os.MkdirAll(dir, 0o755); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
		}
		next := link + ".new"
		_ = os.Remove(next) // of one that was killed
		if err := os.Symlink(program, next); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if err := os.Rename(next, link); err != nil {
			failed = errors.Join(failed, err, os.Remove(next))
			continue
		}
		return link, nil
	}
	if failed == nil {
		failed = errors.New("no folder is known that could take it")
	}
	return "", fmt.Errorf("link: %w", failed)
}

// CommandLine is the link that leads to this program; empty: there is none.
func CommandLine() string {
	for _, dir := range ownFolders() {
		link := filepath.Join(dir, linkName)
		if to, err := os.Readlink(link); err == nil && own(to) {
			return link
		}
	}
	return ""
}

// SetCommandLine makes the link to this program, or removes it.
func SetCommandLine(on bool) error {
	if !on {
		_, err := Unlink(ownFolders())
		return err
	}
	executable, err := os.Executable()
	if err == nil {
		_, err = Link(executable, ownFolders())
	}
	return err
}

func ownFolders() []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	return LinkFolders(home, TerminalPath())
}

// LinkLine says in one line what was linked, and what is missing for a terminal to find it.
func LinkLine(link string) string {
	line := "linked " + link
	if to, err := os.Readlink(link); err == nil {
		line += " to " + to
	}
	if dir := filepath.Dir(link); !InPath(dir, TerminalPath()) {
		line += fmt.Sprintf("; %s is not in your PATH: add it, or call %s", dir, link)
	}
	return line
}

// replaceable says no to what Pond did not make: a link into an app is Pond's, whichever copy of the app it was.
func replaceable(link string) error {
	if _, err := os.Lstat(link); err != nil {
		return nil // nothing is there; a folder that cannot be looked into cannot be written either
	}
	if to, err := os.Readlink(link); err == nil && (inApp(to) || own(to)) {
		return nil
	}
	return fmt.Errorf("link: %s is there already and is no link of Pond's; remove it, or name another folder (--dir)", link)
}

func inApp(program string) bool { return strings.HasSuffix(program, ".app/Contents/MacOS/"+linkName) }

// own reports whether a path is that of the program that runs.
func own(path string) bool {
	executable, err := os.Executable()
	if err == nil {
		executable, err = filepath.EvalSymlinks(executable)
	}
	return err == nil && executable == path
}

// Unlink removes the links in the folders that lead to this program, or into an app that is gone, and returns them.
func Unlink(folders []string) (removed []string, err error) {
	for _, dir := range folders {
		link := filepath.Join(dir, linkName)
		to, e := os.Readlink(link)
		if e != nil {
			continue // there is none
		}
		if _, e = os.Stat(to); !own(to) && !(inApp(to) && errors.Is(e, fs.ErrNotExist)) {
			continue
		}
		if e := os.Remove(link); e != nil {
			err = errors.Join(err, fmt.Errorf("unlink: %w", e))
			continue
		}
		removed = append(removed, link)
	}
	return removed, err
}
