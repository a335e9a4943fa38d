package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Preallocate makes f lenBytes long and takes the room on the disk, so that a full disk is noticed before anything is downloaded.
// A file system that cannot reserve makes the file long and no more.
func Preallocate(f *os.File, lenBytes int64) error {
	var err error
	for {
		if err = unix.Fallocate(int(f.Fd()), 0, 0, lenBytes); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
	}
	return f.Truncate(lenBytes)
}
