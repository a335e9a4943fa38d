package checkpoint

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps the whole file read-only. The descriptor is closed again at once: a mapping outlives it, and 2,000 open
// tensors then cost no descriptor. The file may be a symbolic link, as in the cache of huggingface_hub.
func mapFile(path string) (mapping, error) {
	// Asked before opening: opening a named pipe would wait for a writer.
	info, err := os.Stat(path)
	if err != nil {
		return mapping{}, err
	}
	if err := regular(info); err != nil {
		return mapping{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return mapping{}, err
	}
	defer f.Close()
	info, err = f.Stat()
	if err != nil {
		return mapping{}, err
	}
	lenBytes := info.Size()
	if lenBytes == 0 {
		return mapping{}, nil // no system maps nothing; the header check says what is wrong
	}
	if !fitsInt(uint64(lenBytes)) {
		return mapping{}, fmt.Errorf("got %d bytes, more than this machine can map", lenBytes)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(lenBytes), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return mapping{}, fmt.Errorf("map %d bytes: %w", lenBytes, err)
	}
	adviseLargePages(data)
	return mapping{data: data, info: info, release: func() error {
		if err := unix.Munmap(data); err != nil {
			return fmt.Errorf("unmap %s: %w", path, err)
		}
		return nil
	}}, nil
}
