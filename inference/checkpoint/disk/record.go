package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// maxRecordBytes bounds a record: the largest, of ten files, has 4 KB.
const maxRecordBytes = 1 << 20

// ReadRecord reads a small JSON file of Pond's own into v. A file that is not there leaves v as it is, without an error; a pipe, which
// would wait for a writer, or a file too large to be one is an error that names it.
func ReadRecord(file string, v any) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: want a regular file", file)
	case info.Size() > maxRecordBytes:
		return fmt.Errorf("%s: got %d bytes, want at most %d", file, info.Size(), maxRecordBytes)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// WriteRecord replaces a record in one step.
func WriteRecord(file string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return Replace(file, append(text, '\n'))
}
