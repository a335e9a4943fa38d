package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Part is a file of a tarball.
type Part struct {
	Name    string
	Content []byte
	Mode    fs.FileMode
}

// Tar packs files, in the order given, so that the same content gives the same bytes.
func Tar(file string, parts []Part, t time.Time) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("tar: %w", err)
	}
	z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return errors.Join(fmt.Errorf("tar: %w", err), out.Close())
	}
	w := tar.NewWriter(z)
	for _, p := range parts {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: p.Name, Size: int64(len(p.Content)), Mode: int64(p.Mode.Perm()), ModTime: t.UTC().Truncate(time.Second), Format: tar.FormatUSTAR}
		if err = w.WriteHeader(h); err == nil {
			_, err = w.Write(p.Content)
		}
		if err != nil {
			break
		}
	}
	if err := errors.Join(err, w.Close(), z.Close(), out.Close()); err != nil {
		return fmt.Errorf("tar: %w", err)
	}
	return nil
}
