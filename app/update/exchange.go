package update

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// exchange puts next where app stands, and app where next stood: in one step where the file system can (APFS, and Linux's), else in two
// renames, the first of which is undone when the second fails.
func exchange(next, app string) error {
	err := swap(next, app)
	if err == nil || !errors.Is(err, unix.ENOTSUP) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	return exchangeInTwo(next, app)
}

func exchangeInTwo(next, app string) error {
	old := next + ".old"
	if exists(old) {
		return fmt.Errorf("%s: it is there already", old)
	}
	if err := os.Rename(app, old); err != nil {
		return err
	}
	if err := os.Rename(next, app); err != nil {
		return errors.Join(err, os.Rename(old, app))
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
