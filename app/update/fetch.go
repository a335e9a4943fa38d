package update

import (
	"archive/zip"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Fetch downloads a release, verifies and unpacks it beside the app, and leaves it ready for Install. After an error nothing is left.
func (u *Updater) Fetch(ctx context.Context, r Release) (err error) {
	if r.Version.Compare(u.Version) <= 0 {
		return fmt.Errorf("update: got %v, want one newer than %v", r.Version, u.Version)
	}
	if err := u.Clean(); err != nil {
		return err
	}
	stage := u.stage()
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("update to %v: %w", r.Version, err), os.RemoveAll(stage))
		}
	}()
	if err := os.Mkdir(stage, 0o755); err != nil {
		return fmt.Errorf("the folder of %s cannot be written; move Pond to the Applications folder: %w", filepath.Base(u.App), err)
	}
	if err := u.tryExchange(stage); err != nil {
		return err
	}
	if err := u.room(stage, r.LengthBytes); err != nil {
		return err
	}
	archive := filepath.Join(stage, "archive.zip")
	if err := u.download(ctx, r, archive); err != nil {
		return err
	}
	content, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	if !ed25519.Verify(u.Key, content, r.Signature) {
		return fmt.Errorf("archive: %w", ErrSignature)
	}
	app := filepath.Join(stage, filepath.Base(u.App))
	if err := u.unpack(ctx, archive, app); err != nil {
		return err
	}
	if err := os.Remove(archive); err != nil {
		return err
	}
	if err := u.check(app, r); err != nil {
		return err
	}
	u.ready = true
	return nil
}

// room says no where a disk would get too full.
func (u *Updater) room(dir string, bytes int64) error {
	free, err := u.Free(dir)
	if err != nil {
		return err
	}
	if free < bytes+spareBytes {
		return fmt.Errorf("got %d MB free, want %d MB", free/1e6, (bytes+spareBytes)/1e6)
	}
	return nil
}

func (u *Updater) download(ctx context.Context, r Release, to string) error {
	body, err := u.get(ctx, r.URL)
	if err != nil {
		return err
	}
	defer body.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	got, err := io.Copy(f, io.LimitReader(body, r.LengthBytes+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if got != r.LengthBytes {
		return fmt.Errorf("archive: got %d bytes, want %d", got, r.LengthBytes)
	}
	return nil
}

// unpack writes the one app of an archive to a path of ours. The archive is signed, so its bounds are a guard against our own mistakes.
func (u *Updater) unpack(ctx context.Context, archive, app string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	defer z.Close()
	var total int64
	for _, f := range z.File {
		total += int64(min(f.UncompressedSize64, maxAppBytes+1))
	}
	if total > maxAppBytes {
		return fmt.Errorf("archive: got %d bytes unpacked, want at most %d", total, maxAppBytes)
	}
	if err := u.room(filepath.Dir(app), total); err != nil {
		return err
	}
	for _, f := range z.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		top, rest, _ := strings.Cut(f.Name, "/")
		if filepath.Ext(top) != ".app" || !filepath.IsLocal(filepath.FromSlash(f.Name)) {
			return fmt.Errorf("archive: got %q, want one app", f.Name)
		}
		path := filepath.Join(app, filepath.FromSlash(rest))
		switch mode := f.Mode(); {
		case mode.IsDir():
			err = os.MkdirAll(path, 0o755)
		case mode.IsRegular():
			err = unpackFile(f, path)
		default:
			err = fmt.Errorf("%s: got %v, want files and folders alone", f.Name, mode)
		}
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
	}
	return nil
}

func unpackFile(f *zip.File, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	mode := os.FileMode(0o644)
	if f.Mode()&0o100 != 0 {
		mode = 0o755
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, io.LimitReader(from, int64(f.UncompressedSize64)))
	return errors.Join(err, to.Sync(), to.Close(), os.Chmod(path, mode))
}

// check looks at the unpacked app: it is the one that was offered.
func (u *Updater) check(app string, r Release) error {
	info, err := readInfo(app)
	if err != nil {
		return err
	}
	version, err := ParseVersion(info["CFBundleShortVersionString"])
	if err != nil {
		return err
	}
	if info["CFBundleIdentifier"] != u.ID || version != r.Version {
		return fmt.Errorf("got %s %v, want %s %v", info["CFBundleIdentifier"], version, u.ID, r.Version)
	}
	st, err := os.Stat(filepath.Join(app, "Contents", "MacOS", info["CFBundleExecutable"]))
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() || st.Mode()&0o100 == 0 {
		return fmt.Errorf("executable: got mode %v", st.Mode())
	}
	if u.Verify != nil {
		return u.Verify(app)
	}
	return nil
}
