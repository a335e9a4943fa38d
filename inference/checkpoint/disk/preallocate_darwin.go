package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Preallocate makes f lenBytes long and takes the room on the disk, so that a full disk is noticed before anything is downloaded
// (fcntl(2), F_PREALLOCATE). A file system that cannot reserve makes the file long and no more.
func Preallocate(f *os.File, lenBytes int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if missing := lenBytes - Allocated(info); missing > 0 {
		err := unix.FcntlFstore(f.Fd(), unix.F_PREALLOCATE, &unix.Fstore_t{
			Flags: unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE, Length: missing,
		})
		if err != nil && !errors.Is(err, unix.ENOTSUP) && !errors.Is(err, unix.EINVAL) {
			return &os.PathError{Op: "preallocate", Path: f.Name(), Err: err}
		}
	}
	return f.Truncate(lenBytes)
}
