// Package disk is what downloading and keeping a model needs of the system beyond package os: free space, space taken before it is
// written, folders that are synced, a lock a folder, and the identity by which a changed file is noticed.
//
// It knows no models. Start with Free and Lock.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Free is how many bytes an ordinary user can still write below dir, which exists (statfs(2), f_bavail).
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// Allocated is how many bytes of the disk a file takes: less than its size where parts of it were never written.
func Allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(st.Blocks) * 512 // stat(2): blocks are of 512 bytes, whatever the file system's are
	}
	return info.Size()
}

// Full reports whether an error says that the disk, or the user's share of it, is full.
func Full(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// SyncDir makes renames and removals in dir outlast a power failure.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// TempSuffix is the ending of the file that Replace writes before it renames.
const TempSuffix = ".part"

// Replace puts data in the file's place in one step: after a crash or a power failure the file holds the old bytes or the new ones.
// What a crash in between leaves is a file with TempSuffix, which the next call overwrites.
func Replace(file string, data []byte) error {
	tmp := file + TempSuffix
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return os.Rename(tmp, file)
}

// Identity is what changes when a file is written to or replaced, as far as a system tells without reading the file.
type Identity struct {
	Bytes int64  `json:"bytes"`
	MTime int64  `json:"mtime_ns"` // last write, in nanoseconds since 1970
	Inode uint64 `json:"inode"`
}

// IdentityOf looks at a file, through links.
func IdentityOf(file string) (Identity, error) {
	info, err := os.Stat(file)
	if err != nil {
		return Identity{}, err
	}
	if !info.Mode().IsRegular() {
		return Identity{}, fmt.Errorf("%s: got %s, want a regular file", file, info.Mode().Type())
	}
	id := Identity{Bytes: info.Size(), MTime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.Inode = uint64(st.Ino)
	}
	return id, nil
}

// LockName is the file in a folder that Lock holds.
const LockName = ".pond.lock"

// LockedError says that another process works on the folder.
type LockedError struct{ Dir string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by another pond that pulls, verifies or removes; want it alone", e.Dir)
}

// Lock takes dir, which exists, for this process alone until release is called or the process ends, however it ends (flock(2)). It
// does not wait: where another holds the lock the error is a *LockedError.
func Lock(dir string) (release func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, LockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close() // nothing was written
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &LockedError{dir}
		}
		return nil, &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	return f.Close, nil
}
