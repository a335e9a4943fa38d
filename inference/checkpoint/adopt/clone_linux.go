package adopt

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// clone makes dst share the blocks of src (ioctl_ficlone(2)), or, where the file system cannot, makes it a second name of src.
func clone(src, dst string) (Mode, error) {
	err := reflink(src, dst)
	if err == nil {
		return Clone, nil
	}
	if err := os.Remove(dst); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Clone, err
	}
	if !cannot(err) {
		return Clone, err
	}
	if lerr := os.Link(src, dst); lerr != nil {
		return Clone, unsupported(Clone, src, errors.Join(err, lerr))
	}
	return Link, nil
}

func reflink(src, dst string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	err = unix.IoctlFileClone(int(out.Fd()), int(in.Fd()))
	return errors.Join(err, out.Close())
}
