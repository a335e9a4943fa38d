package update

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A new app takes the old one's place by one system call that exchanges two folders, which APFS and Linux's file systems have: whenever the program is
// killed, the old app stands there or the new one. Two renames would have a moment with none, so there is no other way.

// tryExchange finds out whether the disk of a folder can do it, before anything is downloaded.
func (u *Updater) tryExchange(dir string) (err error) {
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	defer func() { err = errors.Join(err, os.RemoveAll(a), os.RemoveAll(b)) }()
	if err := errors.Join(os.Mkdir(a, 0o755), os.Mkdir(b, 0o755)); err != nil {
		return err
	}
	if err := u.Exchange(a, b); err != nil {
		return fmt.Errorf("the disk of %s cannot exchange two folders in one step; move Pond to the Applications folder, or put the new release there by hand: %w", filepath.Base(u.App), err)
	}
	return nil
}

// freeBytes is what a user may still write on a folder's disk.
func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("%s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
