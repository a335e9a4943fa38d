package checkpoint

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// populateRead asks the kernel to read and map whole pages (madvise(2), MADV_POPULATE_READ). supported is false on a kernel that does
// not know the advice. EFAULT is its word for pages behind the end of the file.
func populateRead(pages []byte) (supported bool, err error) {
	for {
		switch err := unix.Madvise(pages, unix.MADV_POPULATE_READ); {
		case errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.EAGAIN):
		case errors.Is(err, syscall.EINVAL):
			return false, nil
		default:
			return true, err
		}
	}
}
