package adopt

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pond/inference/checkpoint/manifest"
)

// content is what the test model's files hold, by name.
func content(name string) []byte {
	sizes := map[string]int{"model-00001-of-00002.safetensors": 300<<10 + 17, "model-00002-of-00002.safetensors": 100<<10 + 3}
	n, ok := sizes[name]
	if !ok {
		n = 100 + len(name)
	}
	r := rand.NewChaCha8(sha256.Sum256([]byte(name)))
	b := make([]byte, n)
	if _, err := r.Read(b); err != nil {
		panic(err) // it has none
	}
	return b
}

// model is the manifest of a small model published twice; the second source has another tokenizer_config.json.
func model() manifest.Manifest {
	m := manifest.Manifest{ID: "small", Sources: []manifest.Source{
		{Repo: "mlx-community/Small-4bit", Revision: "0123"},
		{Repo: "lmstudio-community/Small-MLX-4bit", Revision: "main", Lacks: []string{"tokenizer_config.json"}},
	}}
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"} {
		data := content(name)
		m.Files = append(m.Files, manifest.File{Name: name, Bytes: int64(len(data)), SHA256: sha256.Sum256(data)})
	}
	return m
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// plainCopy writes all files of the model into a folder, as LM Studio and oMLX keep them.
func plainCopy(t *testing.T, dir string) {
	t.Helper()
	for _, f := range model().Files {
		write(t, filepath.Join(dir, f.Name), content(f.Name))
	}
}

// hubCopy writes a revision into a hub cache: blobs by digest, and links to them.
func hubCopy(t *testing.T, hub, repo, revision string, change map[string][]byte) string {
	t.Helper()
	root := filepath.Join(hub, "models--"+strings.ReplaceAll(repo, "/", "--"))
	snapshot := filepath.Join(root, "snapshots", revision)
	if err := os.MkdirAll(snapshot, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range model().Files {
		data, changed := change[f.Name]
		if changed && data == nil {
			continue // not downloaded
		}
		if !changed {
			data = content(f.Name)
		}
		blob := fmt.Sprintf("%x", sha256.Sum256(data))
		if !isWeights(f) {
			blob = blob[:40] // the hub names small files by their git digest
		}
		write(t, filepath.Join(root, "blobs", blob), data)
		if err := os.Symlink(filepath.Join("..", "..", "blobs", blob), filepath.Join(snapshot, f.Name)); err != nil {
			t.Fatal(err)
		}
	}
	return snapshot
}

// snapshot is all that a tool could notice of its folder: names, kinds, permissions, sizes, times, inodes, link targets, contents.
func snapshot(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s %d %d", path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			fmt.Fprintf(&b, " %d", st.Ino)
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			b.WriteString(" -> " + to)
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(data))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// names lists a folder.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}
