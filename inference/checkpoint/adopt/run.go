package adopt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/manifest"
)

// Job is one adoption. The folder exists and is this process's alone.
type Job struct {
	Dir       string // Pond's folder of the model
	Candidate Candidate
	Mode      Mode
	Report    func(Progress)            // told a few times a second and at each file's end; must not wait; may be nil
	Done      func(manifest.File) error // a file is verified and has its name; may be nil
}

// Progress is how far a job is. Every byte is read once.
type Progress struct {
	File        string
	Done, Total int64 // bytes of all files of the job
}

// Outcome is what became of each file of the manifest.
type Outcome struct {
	Adopted  []Adopted
	Kept     []string // had their names in Pond's folder already
	Rejected []Rejected
	Missing  []Lack
}

// Complete reports whether the model is whole: what was kept was verified when it came.
func (o Outcome) Complete() bool { return len(o.Rejected) == 0 && len(o.Missing) == 0 }

// Adopted is a file that was verified and became Pond's.
type Adopted struct {
	Name, Source string
	How          Mode // Link where a Clone was asked for and the file system has none
}

// Rejected is a file with the right name and size and the wrong bytes.
type Rejected struct {
	Name, Path string
	Got, Want  manifest.Digest
}

func (r Rejected) Error() string {
	return fmt.Sprintf("%s: got SHA-256 %s, want %s", r.Path, r.Got, r.Want)
}

// ModeError says that the file systems do not allow a mode.
type ModeError struct {
	Mode Mode
	Path string
	Err  error
}

func (e *ModeError) Error() string { return fmt.Sprintf("%s: cannot %s: %v", e.Path, e.Mode, e.Err) }
func (e *ModeError) Unwrap() error { return e.Err }

// unsupported makes an error of a mode that the file systems do not have a ModeError.
func unsupported(m Mode, path string, err error) error {
	if cannot(err) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EMLINK) {
		return &ModeError{m, path, err}
	}
	return err
}

// cannot reports whether a file system, or a pair of them, lacks an operation.
func cannot(err error) bool {
	for _, code := range []error{unix.ENOTSUP, unix.EOPNOTSUPP, unix.EXDEV, unix.ENOTTY, unix.ENOSYS, unix.EINVAL} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// SpaceError says that a copy does not fit.
type SpaceError struct {
	Dir                  string
	NeedBytes, FreeBytes int64
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("%s: not enough space for a copy: %.2f GB are needed, %.2f GB are free", e.Dir, float64(e.NeedBytes)/1e9, float64(e.FreeBytes)/1e9)
}

// ChangedError says that a file changed while it was read.
type ChangedError struct{ Path string }

func (e *ChangedError) Error() string {
	return e.Path + ": changed while it was read; another program writes to it"
}

// headroom is what a copy leaves free on the disk.
const headroom = 1 << 30

// newSuffix ends the names of files that are not verified yet. A crash leaves at most one, which the next run replaces.
const newSuffix = ".adopting"

// Run verifies the files of a candidate and gives those that are right their names in Pond's folder. A file with wrong bytes is in the
// outcome's Rejected; nothing of it stays. What has its name already is kept, unless it was adopted before in another mode or
// changed since.
//
// The error is a *ModeError, *SpaceError, *ChangedError, one of the system or of Job.Done, or ctx's; files adopted by then stay.
func Run(ctx context.Context, job Job) (Outcome, error) {
	out := Outcome{Missing: job.Candidate.Missing}
	old, err := readRecord(job.Dir)
	if err != nil {
		return out, err
	}
	var files []Found
	progress := Progress{}
	var need int64
	for _, f := range job.Candidate.Files {
		if err := apart(job.Dir, f.Path); err != nil {
			return out, err
		}
		kept, err := old.keeps(job.Dir, f.Name, job.Mode)
		if err != nil {
			return out, err
		}
		if kept {
			out.Kept = append(out.Kept, f.Name)
			continue
		}
		files = append(files, f)
		progress.Total += f.Bytes
		need += f.Bytes
	}
	if job.Mode == Copy {
		if err := room(job.Dir, need); err != nil {
			return out, err
		}
	}
	for _, f := range files {
		progress.File = f.Name
		begun := progress.Done
		how, id, digest, err := take(ctx, job, f, func(n int64) {
			progress.Done = begun + n
			if job.Report != nil {
				job.Report(progress)
			}
		})
		if err != nil {
			return out, err
		}
		progress.Done = begun + f.Bytes
		if digest != f.SHA256 {
			out.Rejected = append(out.Rejected, Rejected{f.Name, f.Path, digest, f.SHA256})
			continue
		}
		old.put(entry{Name: f.Name, Mode: how, Source: f.Path, SHA256: digest, Identity: id})
		if err := old.write(job.Dir); err != nil {
			return out, err
		}
		if err := os.Rename(filepath.Join(job.Dir, f.Name+newSuffix), filepath.Join(job.Dir, f.Name)); err != nil {
			return out, err
		}
		out.Adopted = append(out.Adopted, Adopted{f.Name, f.Path, how})
		if job.Done != nil {
			if err := job.Done(f.File); err != nil {
				return out, err
			}
		}
	}
	if job.Report != nil {
		job.Report(progress)
	}
	return out, disk.SyncDir(job.Dir)
}

// apart refuses to adopt Pond's own folder.
func apart(dir, path string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if filepath.Dir(path) == real {
		return fmt.Errorf("%s: is in Pond's own folder, want another tool's", path)
	}
	return nil
}

// room wants free space for a copy.
func room(dir string, bytes int64) error {
	free, err := disk.Free(dir)
	if err != nil {
		return err
	}
	if need := bytes + headroom; bytes > 0 && free < need {
		return &SpaceError{dir, need, free}
	}
	return nil
}

// take makes the file's new entry in Pond's folder under its provisional name and reads every byte of what will be used. The
// provisional entry is gone again unless the digest is right.
func take(ctx context.Context, job Job, f Found, told func(int64)) (how Mode, id disk.Identity, digest manifest.Digest, err error) {
	tmp := filepath.Join(job.Dir, f.Name+newSuffix)
	if err = os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	defer func() {
		if err != nil || digest != f.SHA256 {
			if rerr := os.Remove(tmp); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
				err = errors.Join(err, rerr)
			}
		}
	}()
	how = job.Mode
	switch job.Mode {
	case Clone:
		how, err = clone(f.Path, tmp)
	case Link:
		err = unsupported(Link, f.Path, os.Link(f.Path, tmp))
	case Copy:
		if digest, err = copyFile(ctx, f.Path, tmp, told); err == nil {
			id, err = disk.IdentityOf(tmp)
		}
		return
	default:
		err = os.Symlink(f.Path, tmp)
	}
	if err == nil {
		digest, id, err = hashFile(ctx, tmp, told)
	}
	return
}

// reportEvery spaces the news of a file's reading.
const reportEvery = 200 * time.Millisecond

// pass reads all of in, tells how far it is, and stops when ctx does.
func pass(ctx context.Context, in io.Reader, told func(int64), to ...io.Writer) (n int64, err error) {
	buffer := make([]byte, 4<<20)
	last := time.Now()
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		k, err := in.Read(buffer)
		for _, w := range to {
			if _, werr := w.Write(buffer[:k]); werr != nil {
				return n, werr
			}
		}
		n += int64(k)
		if now := time.Now(); now.Sub(last) >= reportEvery {
			last = now
			told(n)
		}
		if errors.Is(err, io.EOF) {
			told(n)
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// hashFile reads a file through links and returns its digest, and its identity, which did not change meanwhile.
func hashFile(ctx context.Context, path string, told func(int64)) (manifest.Digest, disk.Identity, error) {
	var digest manifest.Digest
	before, err := disk.IdentityOf(path)
	if err != nil {
		return digest, before, err
	}
	f, err := os.Open(path)
	if err != nil {
		return digest, before, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := pass(ctx, f, told, h); err != nil {
		return digest, before, err
	}
	after, err := disk.IdentityOf(path)
	if err != nil {
		return digest, before, err
	}
	if after != before {
		return digest, before, &ChangedError{path}
	}
	h.Sum(digest[:0])
	return digest, before, nil
}

// copyFile copies and hashes in one pass; the copy is on the disk when it returns.
func copyFile(ctx context.Context, src, dst string, told func(int64)) (manifest.Digest, error) {
	var digest manifest.Digest
	in, err := os.Open(src)
	if err != nil {
		return digest, err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return digest, err
	}
	h := sha256.New()
	_, err = pass(ctx, in, told, h, out)
	if err == nil {
		err = out.Sync()
	}
	h.Sum(digest[:0])
	return digest, errors.Join(err, out.Close())
}
