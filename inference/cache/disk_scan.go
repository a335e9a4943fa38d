package cache

import (
	"cmp"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pond/inference/checkpoint/disk"
)

// found is a file of the folder whose header holds.
type found struct {
	header
	tokens []int32 // of rows
	used   time.Time
}

// scan learns what lies in the folder from the headers and the tokens; the numbers themselves are checked when they are read. What is not
// whole, or not of this key and version, is removed; files that are named otherwise are left alone.
func (d *Disk) scan() error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	var rows, states []found
	for _, e := range entries {
		path := filepath.Join(d.dir, e.Name())
		name, kind := e.Name(), fileKind(0)
		for _, k := range []fileKind{rowsFile, statesFile} {
			if strings.HasSuffix(name, k.suffix()) {
				kind = k
			}
		}
		switch {
		case strings.HasSuffix(name, partSuffix): // a process ended while it wrote
			if err := os.Remove(path); err != nil {
				d.reject(path, err)
			}
		case kind != 0:
			f, err := d.examine(path, kind)
			if err != nil {
				d.reject(path, err)
				continue
			}
			if kind == rowsFile {
				rows = append(rows, f)
			} else {
				states = append(states, f)
			}
		}
	}
	d.join(rows, states)
	return nil
}

// reject removes a file that is none of ours. One that stays all the same is in nobody's way.
func (d *Disk) reject(path string, why error) {
	d.stats.Removed++
	d.log.Warn("a file of kept conversations is of no use and is removed", "file", filepath.Base(path), "error", why)
	if err := os.RemoveAll(path); err != nil {
		d.log.Warn("it could not be removed", "file", filepath.Base(path), "error", err)
	}
}

// examine reads the header of a file, and the tokens of rows, and holds them to the file's name.
func (d *Disk) examine(path string, k fileKind) (f found, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return f, err
	}
	if !info.Mode().IsRegular() {
		return f, wrong("got %s", info.Mode().Type())
	}
	file, err := os.Open(path)
	if err != nil {
		return f, err
	}
	defer file.Close()
	f.used = info.ModTime()
	if f.header, err = d.headerOf(file); err != nil {
		return f, err
	}
	if f.kind != k || filepath.Base(path) != f.id.String()+k.suffix() {
		return f, wrong("got the name of another")
	}
	if k == statesFile {
		return f, nil
	}
	b, err := readSection(file, f.header, 0)
	if err != nil {
		return f, err
	}
	if f.identify(b) != f.id {
		return f, wrong("got tokens or checksums of another piece")
	}
	f.tokens, _ = tokensOf(b)
	return f, nil
}

// join puts pieces and states together, and removes what leads to nothing or comes from nothing.
func (d *Disk) join(rows, states []found) {
	slices.SortFunc(rows, func(a, b found) int { return cmp.Compare(a.from, b.from) }) // a piece comes behind the one before it
	tokens := map[*piece][]int32{}
	for _, f := range rows {
		prev := d.pieces[f.prev]
		if f.prev == (pieceID{}) != (f.from == 0) || f.from > 0 && (prev == nil || prev.to != f.from) {
			d.reject(d.path(rowsFile, f.id), errors.New("what it builds on is missing"))
			continue
		}
		p := &piece{id: f.id, prev: prev, from: f.from, to: f.to, rowBytes: f.lenBytes()}
		if prev != nil {
			prev.uses++
		}
		d.pieces[f.id] = p
		d.stats.LenBytes += p.rowBytes
		tokens[p] = f.tokens
	}
	slices.SortFunc(states, func(a, b found) int { return a.used.Compare(b.used) }) // the age of each in the index
	for _, f := range states {
		p := d.pieces[f.id]
		if p == nil || p.from != f.from || p.to != f.to {
			d.reject(d.path(statesFile, f.id), errors.New("its rows are missing"))
			continue
		}
		all := make([]int32, p.to)
		for q := p; q != nil; q = q.prev {
			copy(all[q.from:], tokens[q])
		}
		p.uses++
		p.stateSize = f.lenBytes()
		d.stats.LenBytes += p.stateSize
		d.keep(p, all)
	}
	var unused []*piece // a process ended before it wrote the states
	for _, p := range d.pieces {
		if p.uses == 0 {
			unused = append(unused, p)
		}
	}
	for _, p := range unused {
		p.uses = 1
		d.unuse(p)
	}
}

// otherFolders are those of other keys that no process works in, the one used longest ago first.
func otherFolders(base, own string) (others []folder) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil // the own folder is in there: it will be seen when it is written to
	}
	for _, e := range entries {
		path := filepath.Join(base, e.Name())
		if b, err := hex.DecodeString(e.Name()); err != nil || len(b) != 8 || !e.IsDir() || path == own {
			continue
		}
		release, err := disk.Lock(path)
		if err != nil {
			continue
		}
		f := folder{path: path}
		f.lenBytes, f.used, _ = measure(path)
		others = append(others, f)
		release() // nothing was written
	}
	slices.SortFunc(others, func(a, b folder) int { return a.used.Compare(b.used) })
	return others
}

// measure adds up a folder's files of conversations, those that were never finished included: their bytes, the last use, and how many are states.
func measure(path string) (lenBytes int64, used time.Time, snapshots int) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return 0, used, 0
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		name := e.Name()
		if !strings.HasSuffix(name, rowsFile.suffix()) && !strings.HasSuffix(name, statesFile.suffix()) && !strings.HasSuffix(name, partSuffix) {
			continue
		}
		lenBytes += info.Size()
		if info.ModTime().After(used) {
			used = info.ModTime()
		}
		if strings.HasSuffix(name, statesFile.suffix()) {
			snapshots++
		}
	}
	return lenBytes, used, snapshots
}

// removeOther removes the folder of another key that was used longest ago: its files can be read by nothing that runs now.
func (d *Disk) removeOther() {
	f := d.others[0]
	d.others = d.others[1:]
	d.stats.LenBytes -= f.lenBytes
	if _, err := removeFolder(f.path); err != nil {
		d.log.Warn("kept conversations of another model or build cannot be removed", "error", err)
	} else {
		d.log.Info("kept conversations of another model or build are removed", "bytes", f.lenBytes)
	}
}

// removeFolder removes the folder of a key that no process works in.
func removeFolder(path string) (freedBytes int64, err error) {
	release, err := disk.Lock(path)
	if err != nil {
		return 0, err
	}
	freedBytes, _, _ = measure(path)
	return freedBytes, errors.Join(os.RemoveAll(path), release())
}

// FolderUse is what lies in a folder of conversations.
type FolderUse struct {
	LenBytes  int64
	Snapshots int
}

// UseOf adds up what lies in a folder of conversations, whoever works in it. A folder that does not exist holds nothing.
func UseOf(dir string) (u FolderUse, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return u, nil
	}
	for _, e := range entries {
		if e.IsDir() {
			n, _, snapshots := measure(filepath.Join(dir, e.Name()))
			u.LenBytes += n
			u.Snapshots += snapshots
		}
	}
	return u, err
}

// ClearFolder removes all conversations from a folder but those that another process works with: the error says that there are such.
func ClearFolder(dir string) (freedBytes int64, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, e := range entries {
		if b, bad := hex.DecodeString(e.Name()); bad != nil || len(b) != 8 || !e.IsDir() {
			continue
		}
		n, e := removeFolder(filepath.Join(dir, e.Name()))
		freedBytes += n
		var locked *disk.LockedError
		if errors.As(e, &locked) {
			e = &InUseError{locked.Dir}
		}
		err = errors.Join(err, e)
	}
	return freedBytes, err
}

// InUseError says that a running Pond works with kept conversations.
type InUseError struct{ Dir string }

func (e *InUseError) Error() string { return e.Dir + " is in use by a running pond" }
