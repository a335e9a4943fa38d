package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"pond/inference/tinymodel"
)

const tinyDigest = "538613067c90416b2780d6fe7770ac71a99949ae14f364edd0fee4d6232df01b"

// splitTriple cuts the tiny model inside a module: its weight and scales lie in one file, its biases in the other.
const splitTriple = "language_model.model.layers.1.linear_attn.in_proj_qkv.scales"

const (
	shard1 = "model-00001-of-00002.safetensors"
	shard2 = "model-00002-of-00002.safetensors"
)

// tinyFiles returns the files of the tiny model in two shards, or in one file.
func tinyFiles(t testing.TB, splitAfter string) fstest.MapFS {
	t.Helper()
	m, err := tinymodel.Generate(tinymodel.Tiny)
	if err != nil {
		t.Fatal(err)
	}
	m.SplitAfter = splitAfter
	fsys, err := m.FS()
	if err != nil {
		t.Fatal(err)
	}
	return fsys.(fstest.MapFS)
}

func writeDir(t testing.TB, files fstest.MapFS) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	return dir
}

func digest(c *Checkpoint) string {
	sum := sha256.New()
	for _, name := range c.Names() {
		x, _ := c.Tensor(name)
		sum.Write(x.Data)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func TestOpen(t *testing.T) {
	for _, split := range []struct {
		name, after string
		files       []string
	}{
		{"single file", "", []string{singleFile}},
		{"two shards, one triple in both", splitTriple, []string{shard1, shard2}},
	} {
		files := tinyFiles(t, split.after)
		for _, how := range []struct {
			name string
			open func() (*Checkpoint, error)
		}{
			{"mapped", func() (*Checkpoint, error) { return OpenDir(writeDir(t, files)) }},
			{"in memory", func() (*Checkpoint, error) { return OpenFS(files) }},
		} {
			t.Run(split.name+"/"+how.name, func(t *testing.T) {
				c, err := how.open()
				if err != nil {
					t.Fatal(err)
				}
				if got := digest(c); got != tinyDigest {
					t.Errorf("digest of all tensors: got %s, want %s", got, tinyDigest)
				}
				if got := c.Names(); len(got) != 182 {
					t.Errorf("got %d tensors, want 182", len(got))
				}
				if got := c.Files(); strings.Join(got, " ") != strings.Join(split.files, " ") {
					t.Errorf("files: got %s, want %s", got, split.files)
				}
				module := strings.TrimSuffix(splitTriple, ".scales")
				for suffix, file := range map[string]string{".weight": split.files[0], ".biases": split.files[len(split.files)-1]} {
					if x, ok := c.Tensor(module + suffix); !ok || x.File != file {
						t.Errorf("%s: got it in %q, want %s", module+suffix, x.File, file)
					}
				}
				if config, err := c.File("config.json"); err != nil || len(config) == 0 {
					t.Errorf("config.json: got %d bytes, error %v", len(config), err)
				}
				for range 2 {
					if err := c.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
				}
				if _, ok := c.Tensor(splitTriple); ok || len(c.Names()) != 0 {
					t.Error("after close: got tensors, want none")
				}
			})
		}
	}
}

// TestOpenErrors changes one thing in a good model. Each error names the file and the fact, and nothing stays mapped.
func TestOpenErrors(t *testing.T) {
	two := func(t *testing.T) fstest.MapFS { return tinyFiles(t, splitTriple) }
	one := func(t *testing.T) fstest.MapFS { return tinyFiles(t, "") }
	replace := func(file, old, new string) func(fstest.MapFS) {
		return func(f fstest.MapFS) {
			text := string(f[file].Data)
			if !strings.Contains(text, old) {
				panic("test: nothing to replace: " + old)
			}
			f[file] = &fstest.MapFile{Data: []byte(strings.Replace(text, old, new, 1)), Mode: 0o644}
		}
	}
	const norm = "language_model.model.norm.weight"
	for _, c := range []struct {
		name   string
		files  func(*testing.T) fstest.MapFS
		change func(fstest.MapFS)
		want   []string
	}{
		{"no weights at all", one, func(f fstest.MapFS) { delete(f, singleFile) },
			[]string{"got neither model.safetensors.index.json nor model.safetensors"}},
		{"file cut by one byte", one, func(f fstest.MapFS) { f[singleFile].Data = f[singleFile].Data[:len(f[singleFile].Data)-1] },
			[]string{singleFile, "got data up to offset 1181008, want at most 1181007"}},
		{"file cut to half", one, func(f fstest.MapFS) { f[singleFile].Data = f[singleFile].Data[:len(f[singleFile].Data)/2] },
			[]string{singleFile, "got data up to offset"}},
		{"file of no bytes", one, func(f fstest.MapFS) { f[singleFile].Data = nil },
			[]string{singleFile, "got 0 bytes"}},
		{"one byte added", one, func(f fstest.MapFS) { f[singleFile].Data = append(f[singleFile].Data, 0) },
			[]string{singleFile, "got 1181009 data bytes, want 1181008"}},
		{"header length of all ones", one, func(f fstest.MapFS) { copy(f[singleFile].Data, "\xff\xff\xff\xff\xff\xff\xff\xff") },
			[]string{singleFile, "header length: got 18446744073709551615"}},
		{"zeros in the header", one, func(f fstest.MapFS) { copy(f[singleFile].Data[1000:], make([]byte, 4096)) },
			[]string{singleFile, "header: "}},
		{"a folder instead of the file", one, func(f fstest.MapFS) {
			delete(f, singleFile)
			f[singleFile+"/x"] = &fstest.MapFile{Mode: 0o644}
		}, []string{singleFile}},
		{"shard missing", two, func(f fstest.MapFS) { delete(f, shard2) },
			[]string{shard2}},
		{"shard cut by one byte", two, func(f fstest.MapFS) { f[shard2].Data = f[shard2].Data[:len(f[shard2].Data)-1] },
			[]string{shard2, "got data up to offset"}},
		{"two shards swapped by name", two, func(f fstest.MapFS) { f[shard1], f[shard2] = f[shard2], f[shard1] },
			[]string{shard1, "got it here, want it in " + shard2}},
		{"one shard under both names", two, func(f fstest.MapFS) { f[shard2] = f[shard1] },
			[]string{shard2, "got a second copy, want one: " + shard1 + " holds it too"}},
		{"index names an unknown tensor", two, replace(indexFile, `"`+norm+`"`, `"language_model.extra": "`+shard2+`", "`+norm+`"`),
			[]string{shard2, "tensor language_model.extra: missing", indexFile}},
		{"index misses a tensor", two, replace(indexFile, `    "`+norm+`": "`+shard2+`"`, `    "`+norm+`.old": "`+shard2+`"`),
			[]string{shard2, norm}},
		{"index leaves a tensor out", two, replace(indexFile, `    "`+norm+`": "`+shard2+`"`, `    "language_model.lm_head.weight.x": "`+shard2+`"`),
			[]string{shard2, "missing"}},
		{"index names the wrong shard", two, replace(indexFile, `"`+norm+`": "`+shard2+`"`, `"`+norm+`": "`+shard1+`"`),
			[]string{shard2, "tensor " + norm + ": got it here, want it in " + shard1}},
		{"index names a tensor twice", two, replace(indexFile, `"`+norm+`"`, `"`+norm+`": "`+shard1+`", "`+norm+`"`),
			[]string{indexFile, norm, "got the name twice"}},
		{"index leads out of the folder", two, replace(indexFile, `"`+norm+`": "`+shard2+`"`, `"`+norm+`": "../`+shard2+`"`),
			[]string{indexFile, norm, `got the file "../` + shard2 + `"`}},
		{"index names a file of another kind", two, replace(indexFile, `"`+norm+`": "`+shard2+`"`, `"`+norm+`": "config.json"`),
			[]string{indexFile, norm, `got the file "config.json"`}},
		{"index with another total", two, replace(indexFile, `"total_size": 1181008`, `"total_size": 1181009`),
			[]string{indexFile, "metadata.total_size: got 1181009, want 1181008"}},
		{"index without a map", two, replace(indexFile, `weight_map`, `weights`),
			[]string{indexFile, "weight_map: got no tensors"}},
		{"index is not JSON", two, replace(indexFile, `{`, `<html>`), []string{indexFile}},
		{"index cut off", two, func(f fstest.MapFS) { f[indexFile].Data = f[indexFile].Data[:3000] },
			[]string{indexFile, "ends too early"}},
		{"index of no bytes", two, func(f fstest.MapFS) { f[indexFile].Data = nil }, []string{indexFile, "ends too early"}},
		{"a second set of weights", two, func(f fstest.MapFS) { f[singleFile] = f[shard1] },
			[]string{indexFile, singleFile, "one set of weights"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := c.files(t)
			c.change(files)
			dir := writeDir(t, files)
			for how, open := range map[string]func() (*Checkpoint, error){
				"mapped":    func() (*Checkpoint, error) { return OpenDir(dir) },
				"in memory": func() (*Checkpoint, error) { return OpenFS(files) },
			} {
				got, err := open()
				if err == nil {
					t.Fatalf("%s: got no error, want one with %q", how, c.want)
				}
				if got != nil {
					t.Errorf("%s: got a checkpoint beside the error", how)
				}
				for _, want := range c.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: got error\n%v\nwant in it\n%s", how, err, want)
					}
				}
			}
			if n := mappedFiles(t, dir); n != 0 {
				t.Errorf("got %d mappings left, want none", n)
			}
		})
	}
}

// mappedFiles counts the process's mappings of files in dir, where the system tells.
func mappedFiles(t *testing.T, dir string) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), dir+"/")
}

func TestCloseUnmaps(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc/self/maps to see mappings")
	}
	dir := writeDir(t, tinyFiles(t, splitTriple))
	c, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if n := mappedFiles(t, dir); n != 2 {
		t.Errorf("open: got %d mappings, want 2", n)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n := mappedFiles(t, dir); n != 0 {
		t.Errorf("closed: got %d mappings, want none", n)
	}
}

// TestUnalignedData shows that tensors really lie at odd addresses, which every reader must bear.
func TestUnalignedData(t *testing.T) {
	files := tinyFiles(t, "")
	c, err := OpenFS(files)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	x, _ := c.Tensor("language_model.lm_head.weight")
	at := strings.Index(string(files[singleFile].Data), string(x.Data))
	if at%2 == 0 {
		t.Errorf("data of %s: got offset %d, want an odd one", x.Name, at)
	}
}

func TestOpenDirKinds(t *testing.T) {
	dir := writeDir(t, tinyFiles(t, ""))
	weights := filepath.Join(dir, singleFile)

	if _, err := OpenDir(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent directory: got error %v, want one that is fs.ErrNotExist", err)
	}
	if _, err := OpenDir(weights); err == nil || !strings.Contains(err.Error(), "want a directory") {
		t.Errorf("a file as directory: got error %v", err)
	}

	moved := filepath.Join(t.TempDir(), "blob")
	if err := os.Rename(weights, moved); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(moved, weights); err != nil {
		t.Fatal(err)
	}
	c, err := OpenDir(dir)
	if err != nil {
		t.Fatalf("symbolic link to the weights: %v", err)
	}
	if got := digest(c); got != tinyDigest {
		t.Errorf("symbolic link: digest: got %s, want %s", got, tinyDigest)
	}
	c.Close()

	if err := os.Remove(weights); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(weights, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	if _, err := OpenDir(dir); err == nil || !strings.Contains(err.Error(), "want a regular file") {
		t.Errorf("named pipe: got error %v, want one at once", err)
	}
}

func TestFile(t *testing.T) {
	dir := writeDir(t, tinyFiles(t, ""))
	c, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.File("vocab.json"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "vocab.json") {
		t.Errorf("missing file: got error %v, want fs.ErrNotExist with the name", err)
	}
	for _, name := range []string{"", ".", "..", "../config.json", "/etc/hosts", "a/b", `a\b`} {
		if _, err := c.File(name); err == nil || !strings.Contains(err.Error(), "without a folder") {
			t.Errorf("name %q: got error %v, want a refusal", name, err)
		}
	}
	large := filepath.Join(dir, "large.json")
	if err := os.WriteFile(large, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxSideFileBytes+1); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	if _, err := c.File("large.json"); err == nil || !strings.Contains(err.Error(), "want at most 268435456") {
		t.Errorf("large file: got error %v", err)
	}
}
