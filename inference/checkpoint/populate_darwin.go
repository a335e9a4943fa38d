package checkpoint

import (
	"os"

	"golang.org/x/sys/unix"
)

// populateRead tells the kernel what is about to be read; macOS has no call that waits for it, so the pages are touched afterwards.
func populateRead(pages []byte) (supported bool, err error) {
	// An advice that is not taken costs time alone.
	_ = unix.Madvise(pages, unix.MADV_WILLNEED)
	return false, nil
}

// readGaps does nothing: macOS reads ahead in pages of one size.
func readGaps(*os.File, []byte, int64) error { return nil }

// adviseLargePages does nothing: macOS has no such advice for files.
func adviseLargePages([]byte) {}
