package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"pond/app/settings"
)

// Kept is something of the user's that an uninstall leaves, or removes when everything is wanted.
type Kept struct {
	Path  string
	Bytes int64 // on the disk; links count nothing
}

// Uninstall takes back what Pond put outside its own folders, and returns a line for each: the links of the command, the login item and launchd's agent.
func Uninstall(paths settings.Paths, system System, folders []string) (done []string, err error) {
	removed, err := Unlink(folders)
	for _, link := range removed {
		done = append(done, "removed the link "+link)
	}
	if system.LoginItem != nil && system.SetLoginItem != nil {
		if status, e := system.LoginItem(); e == nil && (status == LoginOn || status == LoginNeedsApproval) {
			if e := system.SetLoginItem(false); e != nil {
				err = errors.Join(err, e)
			} else {
				done = append(done, "Pond is no longer opened at login")
			}
		}
	}
	if paths.Agent != "" {
		if _, e := os.Lstat(paths.Agent); e == nil {
			_ = exec.Command("launchctl", "bootout", fmt.Sprintf("gui/%d/app.pond.serve", os.Getuid())).Run() // it fails where the agent does not run
			if e := os.Remove(paths.Agent); e != nil {
				err = errors.Join(err, e)
			} else {
				done = append(done, "pond serve is no longer started at login: removed "+paths.Agent)
			}
		}
	}
	return done, err
}

// Remains lists what is there of the user's: models, chats, settings, logs.
func Remains(paths settings.Paths) []Kept {
	var kept []Kept
	for _, path := range paths.All() {
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		k := Kept{Path: path}
		_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // what cannot be read counts nothing
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				k.Bytes += info.Size()
			}
			return nil
		})
		kept = append(kept, k)
	}
	return kept
}

// RemoveRemains removes them. Copies of a model that other tools downloaded are only linked there, and stay with those.
func RemoveRemains(kept []Kept) error {
	var err error
	for _, k := range kept {
		err = errors.Join(err, os.RemoveAll(k.Path))
	}
	if err != nil {
		return fmt.Errorf("uninstall: %w", err)
	}
	return nil
}
