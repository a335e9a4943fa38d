package checkpoint

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"unsafe"

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

// adviseLargePages asks for pages of 2 MiB: what of the file is not in the page cache yet is then read into such ones (madvise(2),
// MADV_HUGEPAGE; mm/filemap.c reads ahead by the huge page's size). Every weight is touched once a token, too seldom for the processor to
// remember half a million small pages. An error leaves small pages, which are right too.
func adviseLargePages(data []byte) { _ = unix.Madvise(data, unix.MADV_HUGEPAGE) }

const (
	gapBytes   = 2 << 20 // the kernel reads no more at once from a file that is read at random
	gapReaders = 4
)

// readGaps reads the pages of a slice of a mapping that are not in memory, through the file, whose bytes from off on they are. A file
// that is said to be read at random (posix_fadvise(2)) is read in pages of the smallest size (mm/readahead.c, force_page_cache_ra), for which
// any free memory will do. mincore(2) tells what is missing; where the file is another user's it tells nothing, and nothing is read.
func readGaps(file *os.File, slice []byte, off int64) error {
	page := os.Getpagesize()
	there := make([]byte, (len(slice)+page-1)/page)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(slice))), uintptr(len(slice)), uintptr(unsafe.Pointer(unsafe.SliceData(there)))); errno != 0 {
		return errno
	}
	type gap struct{ from, to int }
	var gaps []gap
	for i := 0; i < len(there); i++ {
		from := i
		for i < len(there) && there[i]&1 == 0 && (i-from)*page < gapBytes {
			i++
		}
		if i > from {
			gaps = append(gaps, gap{from * page, min(i*page, len(slice))})
			i-- // the page that ended the gap may begin another
		}
	}
	if len(gaps) == 0 {
		return nil
	}
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
		return err
	}
	next := make(chan gap, len(gaps))
	for _, g := range gaps {
		next <- g
	}
	close(next)
	var readers sync.WaitGroup
	errs := make([]error, gapReaders)
	for r := range gapReaders {
		readers.Go(func() {
			buffer := make([]byte, gapBytes)
			for g := range next {
				if errs[r] == nil {
					errs[r] = readFull(file, buffer[:g.to-g.from], off+int64(g.from))
				}
			}
		})
	}
	readers.Wait()
	return errors.Join(errs...)
}
