package chats

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// journal is the open file of a chat. Lines go in with one write each, so what a killed process leaves is whole lines and at most one
// torn one, and a system that loses its power keeps what stood there at the last sync.
type journal struct {
	path string
	file *os.File // nil: nothing was said yet, so there is no file
}

// create makes the file with its lines, whole or not at all. The disk has them after sync.
func (j *journal) create(lines []byte) error {
	if err := replace(j.path, lines); err != nil {
		return err
	}
	f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	j.file = f
	return nil
}

// open goes on with a file that was read: cuts a torn line off, writes a damaged file anew beside a copy of it, and marks answers
// that were interrupted. The reading is what the chat is either way.
func (j *journal) open(r reading) error {
	if r.damaged > 0 || r.lines > rewriteAfter+4*len(r.messages) {
		if r.damaged > 0 {
			if err := setAside(j.path); err != nil {
				return err
			}
		}
		lines, err := encode(r.records()...)
		if err != nil {
			return err
		}
		if err := j.create(lines); err != nil {
			return err
		}
		return j.sync()
	}
	f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if r.torn {
		if err := f.Truncate(r.whole); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	j.file = f
	var marks []record
	for _, id := range r.open {
		marks = append(marks, record{End: &ended{ID: id, End: Interrupted}})
	}
	return j.add(marks...)
}

// rewriteAfter is how many lines more than it needs a file may have before it is written anew.
const rewriteAfter = 200

// add appends records. A journal without a file takes nothing in.
func (j *journal) add(records ...record) error {
	if j.file == nil || len(records) == 0 {
		return nil
	}
	lines, err := encode(records...)
	if err != nil {
		return err
	}
	_, err = j.file.Write(lines)
	return err
}

// sync waits until the disk has everything, which can take a tenth of a second.
func (j *journal) sync() error {
	if j.file == nil {
		return nil
	}
	return j.file.Sync()
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	f := j.file
	j.file = nil
	return f.Close()
}

// replace puts text in file's place in one step, as far as other processes can tell.
func replace(file string, text []byte) (err error) {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, filepath.Base(file)+".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, werr := tmp.Write(text)
	if err := errors.Join(werr, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}

// setAside copies a damaged file to a name that no list looks at; earlier copies stay.
func setAside(path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	for n := 1; ; n++ {
		to, err := os.OpenFile(fmt.Sprintf("%s.damaged-%d", path, n), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = io.Copy(to, from)
		return errors.Join(err, to.Close())
	}
}
