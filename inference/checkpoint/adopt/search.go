package adopt

import (
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"pond/inference/checkpoint/manifest"
)

// Search looks where other tools keep models, and returns what holds at least one file of weights or all small ones: the fullest
// first. It reads names and sizes, no contents. Folders that are not there or cannot be read hold nothing.
func Search(e Environment, m manifest.Manifest) []Candidate {
	var dirs []dir
	for _, p := range e.places() {
		for _, s := range m.Sources {
			dirs = append(dirs, repositoryDirs(p, s.Repo)...)
		}
	}
	return judge(dirs, m)
}

// SearchDir looks in a folder that a user picked: it may hold the files, or folders of models in any of the layouts.
func SearchDir(root string, m manifest.Manifest) []Candidate {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil
	}
	dirs := []dir{{tool: "folder", path: root}}
	for _, s := range m.Sources {
		for _, hub := range []string{root, filepath.Join(root, "hub")} {
			dirs = append(dirs, repositoryDirs(place{"folder", hub, true}, s.Repo)...)
		}
		// A repository's own folder in the hub cache, or one of its snapshots, may have been picked.
		dirs = append(dirs, snapshots("folder", root)...)
		dirs = append(dirs, repositoryDirs(place{"folder", root, false}, s.Repo)...)
		dirs = append(dirs, repositoryDirs(place{"folder", filepath.Join(root, "models"), false}, s.Repo)...)
	}
	found := judge(dirs, m)
	if len(found) == 0 {
		found = judge(walk(root, m), m)
	}
	return found
}

// dir is a folder to judge.
type dir struct {
	tool  string
	path  string
	blobs string // of the hub cache: large files by their SHA-256; empty: none
}

// repositoryDirs are the folders of a repository "owner/name" in a place.
func repositoryDirs(p place, repo string) []dir {
	owner, name, _ := strings.Cut(repo, "/")
	if !p.hub {
		return []dir{{tool: p.tool, path: filepath.Join(p.dir, owner, name)}, {tool: p.tool, path: filepath.Join(p.dir, name)}}
	}
	return snapshots(p.tool, filepath.Join(p.dir, "models--"+owner+"--"+name))
}

// snapshots are the revisions of a repository in the hub cache. Where none is left its blobs alone may hold the weights.
func snapshots(tool, repository string) []dir {
	blobs := filepath.Join(repository, "blobs")
	if info, err := os.Stat(blobs); err != nil || !info.IsDir() {
		return nil
	}
	dirs := []dir{{tool, blobs, blobs}}
	entries, err := os.ReadDir(filepath.Join(repository, "snapshots"))
	if err != nil {
		return dirs
	}
	for _, e := range entries {
		dirs = append(dirs, dir{tool, filepath.Join(repository, "snapshots", e.Name()), blobs})
	}
	return dirs
}

// Bounds of the walk through a picked folder: deep enough for any layout, and over in a moment on a whole disk.
const (
	walkDepth   = 5
	walkEntries = 50_000
)

// walk finds folders that hold a large file of the model by name and size.
func walk(root string, m manifest.Manifest) []dir {
	var dirs []dir
	entries := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if entries++; entries > walkEntries {
			return fs.SkipAll
		}
		if err != nil {
			return nil // what cannot be read holds nothing
		}
		if e.IsDir() {
			if rel, err := filepath.Rel(root, path); err == nil && strings.Count(rel, string(filepath.Separator)) >= walkDepth {
				return fs.SkipDir
			}
			return nil
		}
		if f, ok := m.File(e.Name()); ok && isWeights(f) {
			dirs = append(dirs, dir{tool: "folder", path: filepath.Dir(path)})
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return dirs
}

// isWeights tells the files that are worth adopting from those that are a moment's download.
func isWeights(f manifest.File) bool { return strings.HasSuffix(f.Name, ".safetensors") }

// judge keeps what is worth showing, the fullest first. The same files by another way are the same copy.
func judge(dirs []dir, m manifest.Manifest) []Candidate {
	var all, out []Candidate
	for _, d := range dirs {
		if c := look(d, m); worth(c, m) {
			all = append(all, c)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].Bytes() > all[j].Bytes() })
	seen := map[string]bool{}
	for _, c := range all {
		key := c.Files[0].Path
		for _, f := range c.Files {
			if isWeights(f.File) {
				key = f.Path
				break
			}
		}
		if !seen[key] {
			seen[key] = true
			out = append(out, c)
		}
	}
	return out
}

// worth reports whether a candidate spares a download of weights.
func worth(c Candidate, m manifest.Manifest) bool {
	if c.Complete() && len(m.Files) > 0 {
		return true
	}
	for _, f := range c.Files {
		if isWeights(f.File) {
			return true
		}
	}
	return false
}

// look compares a folder with the manifest by names and sizes.
func look(d dir, m manifest.Manifest) Candidate {
	c := Candidate{Tool: d.tool, Dir: d.path}
	for _, f := range m.Files {
		path, got := lookFor(filepath.Join(d.path, f.Name))
		if got != f.Bytes && d.blobs != "" {
			if blob, size := lookFor(filepath.Join(d.blobs, f.SHA256.String())); size == f.Bytes {
				path, got = blob, size
			}
		}
		if got == f.Bytes {
			c.Files = append(c.Files, Found{f, path})
		} else {
			c.Missing = append(c.Missing, Lack{f, got})
		}
	}
	return c
}

// lookFor resolves links and returns the file's own path and size; -1 when there is no regular file.
func lookFor(file string) (path string, bytes int64) {
	path, err := filepath.EvalSymlinks(file)
	if err != nil {
		return "", -1
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", -1
	}
	return path, info.Size()
}
