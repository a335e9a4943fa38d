package bundle

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// Zip packs an app into file, its name as the only one at the top. Order and times are fixed, so the same app gives the same bytes.
func Zip(file, app string, t time.Time) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("zip: %w", err)
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = fmt.Errorf("zip: %w", err)
		}
	}()
	w := zip.NewWriter(out)
	parent := filepath.Dir(app)
	err = filepath.WalkDir(app, func(path string, d fs.DirEntry, err error) error { // in lexical order
		if err != nil {
			return err
		}
		name, err := filepath.Rel(parent, path)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: filepath.ToSlash(name), Method: zip.Deflate, Modified: t.UTC()}
		info, err := d.Info()
		if err != nil {
			return err
		}
		h.SetMode(info.Mode())
		if d.IsDir() {
			h.Name, h.Method = h.Name+"/", zip.Store
		} else if !info.Mode().IsRegular() {
			return fmt.Errorf("%s: got %v, want files and folders alone", name, info.Mode())
		}
		to, err := w.CreateHeader(h)
		if err != nil || d.IsDir() {
			return err
		}
		from, err := os.Open(path)
		if err != nil {
			return err
		}
		defer from.Close()
		_, err = io.Copy(to, from)
		return err
	})
	return errors.Join(err, w.Close())
}

// ErrNoImager says that no tool for disk images is installed.
var ErrNoImager = errors.New("a disk image needs hdiutil, which a Mac has, or xorriso")

// Image makes a disk image of an app with a link to the folder of applications beside it: with hdiutil on a Mac, elsewhere with xorriso, whose
// images hold HFS+ and are not compressed.
func Image(file, app, volume string, t time.Time) (err error) {
	stage, err := os.MkdirTemp(filepath.Dir(file), ".image")
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	if err := os.CopyFS(filepath.Join(stage, filepath.Base(app)), os.DirFS(app)); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if err := os.Symlink("/Applications", filepath.Join(stage, "Applications")); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if err := setTimes(filepath.Join(stage, filepath.Base(app)), t); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("image: %w", err)
	}
	cmd := exec.Command("hdiutil", "create", "-quiet", "-volname", volume, "-srcfolder", stage, "-fs", "HFS+", "-format", "UDZO", file)
	if runtime.GOOS != "darwin" {
		if _, err := exec.LookPath("xorriso"); err != nil {
			return ErrNoImager
		}
		stamp := t.UTC().Format("20060102150405") + "00"
		cmd = exec.Command("xorriso", "-as", "mkisofs", "-quiet", "-V", volume, "-hfsplus", "-hfsplus-serial-no", fmt.Sprintf("%016x", t.Unix()),
			"--modification-date="+stamp, "--set_all_file_dates", stamp, "-r", "-o", file, stage)
	}
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(t.Unix(), 10), "TZ=UTC")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("image: %s: %w: %s", cmd.Args[0], err, said)
	}
	return nil
}
