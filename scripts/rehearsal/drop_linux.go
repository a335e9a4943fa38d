package main

import (
	"os"
	"syscall"
)

// dropFile takes a file out of the page cache (posix_fadvise(2), POSIX_FADV_DONTNEED), for which it must lie on the disk whole.
func dropFile(name string) error {
	const dontNeed = 4
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
