package checkpoint

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// uncached keeps what is read from f out of the page cache (fcntl(2), F_NOCACHE): the copy is what will be used, and the memory is
// needed for it.
func uncached(f *os.File) error {
	if _, err := unix.FcntlInt(f.Fd(), unix.F_NOCACHE, 1); err != nil {
		return fmt.Errorf("F_NOCACHE: %w", err)
	}
	return nil
}
