package adopt

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"pond/inference/checkpoint"
	"pond/inference/checkpoint/manifest"
	"pond/inference/tinymodel"
)

// setting is a home with one whole copy in a hub cache, and Pond's empty folder.
func setting(t *testing.T) (tool string, dir string, c Candidate) {
	t.Helper()
	tool, dir = t.TempDir(), t.TempDir()
	hubCopy(t, tool, "mlx-community/Small-4bit", "r", nil)
	found := SearchDir(tool, model())
	if len(found) != 1 || !found[0].Complete() {
		t.Fatalf("got %+v, want one whole copy", found)
	}
	return tool, dir, found[0]
}

// holds fails unless the folder holds the model's files with the right bytes, and nothing else but a record.
func holds(t *testing.T, dir string) {
	t.Helper()
	for _, f := range model().Files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil || manifest.Digest(sha256.Sum256(data)) != f.SHA256 {
			t.Errorf("%s: got %d bytes, %v; want the file of the manifest", f.Name, len(data), err)
		}
	}
	if got, want := names(t, dir), RecordName+" config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors tokenizer.json tokenizer_config.json"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestModes(t *testing.T) {
	for _, mode := range []Mode{InPlace, Clone, Link, Copy} {
		t.Run(mode.String(), func(t *testing.T) {
			tool, dir, c := setting(t)
			before := snapshot(t, tool)
			var last Progress
			done := 0
			out, err := Run(t.Context(), Job{Dir: dir, Candidate: c, Mode: mode,
				Report: func(p Progress) {
					if p.Done < last.Done || p.Done > p.Total || p.Total != model().Bytes() {
						t.Errorf("got %+v after %+v", p, last)
					}
					last = p
				},
				Done: func(manifest.File) error { done++; return nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			if !out.Complete() || len(out.Adopted) != 5 || done != 5 || last.Done != model().Bytes() {
				t.Errorf("got %+v, %d done, last progress %+v", out, done, last)
			}
			for _, a := range out.Adopted {
				if a.How != mode && (mode != Clone || a.How != Link || runtime.GOOS == "darwin") {
					t.Errorf("%s: got it by %s, want %s", a.Name, a.How, mode)
				}
			}
			holds(t, dir)
			if after := snapshot(t, tool); after != before {
				t.Errorf("the other tool's files changed:\n%s\nwere\n%s", after, before)
			}
			if changes, err := Check(dir); err != nil || len(changes) != 0 {
				t.Errorf("got %v, %v; want all unchanged", changes, err)
			}
			again, err := Run(t.Context(), Job{Dir: dir, Candidate: c, Mode: mode})
			if err != nil || len(again.Kept) != 5 || len(again.Adopted) != 0 {
				t.Errorf("a second time: got %+v, %v; want all kept", again, err)
			}
			// Another mode takes the files anew.
			other := Copy
			if mode == Copy {
				other = InPlace
			}
			again, err = Run(t.Context(), Job{Dir: dir, Candidate: c, Mode: other})
			if err != nil || len(again.Adopted) != 5 {
				t.Errorf("in another mode: got %+v, %v", again, err)
			}
			holds(t, dir)
			if after := snapshot(t, tool); after != before {
				t.Error("the other tool's files changed in the second mode")
			}
		})
	}
}

// TestWrongBytes: right name and size, one byte wrong. The rest is adopted, and nothing of the wrong file stays.
func TestWrongBytes(t *testing.T) {
	for _, mode := range []Mode{InPlace, Clone, Link, Copy} {
		tool, dir, c := setting(t)
		var bad Found
		for _, f := range c.Files {
			if f.Name == "model-00002-of-00002.safetensors" {
				bad = f
			}
		}
		data := content(bad.Name)
		data[len(data)/2] ^= 1
		write(t, bad.Path, data)
		before := snapshot(t, tool)
		out, err := Run(t.Context(), Job{Dir: dir, Candidate: c, Mode: mode})
		if err != nil || len(out.Adopted) != 4 || len(out.Rejected) != 1 || out.Complete() {
			t.Fatalf("%s: got %+v, %v", mode, out, err)
		}
		if r := out.Rejected[0]; r.Path != bad.Path || r.Want != bad.SHA256 || r.Got == r.Want || !strings.Contains(r.Error(), "got SHA-256") {
			t.Errorf("%s: got %+v", mode, r)
		}
		if got := names(t, dir); strings.Contains(got, bad.Name) {
			t.Errorf("%s: got %s", mode, got)
		}
		if snapshot(t, tool) != before {
			t.Errorf("%s: the other tool's files changed", mode)
		}
	}
}

func TestCancel(t *testing.T) {
	tool, dir, c := setting(t)
	before := snapshot(t, tool)
	ctx, cancel := context.WithCancel(t.Context())
	out, err := Run(ctx, Job{Dir: dir, Candidate: c, Mode: Copy, Done: func(f manifest.File) error {
		if f.Name == "tokenizer_config.json" {
			cancel()
		}
		return nil
	}})
	if !errors.Is(err, context.Canceled) || len(out.Adopted) != 3 {
		t.Errorf("got %+v, %v", out, err)
	}
	if got := names(t, dir); strings.Contains(got, newSuffix) || strings.Contains(got, "model-") {
		t.Errorf("got %s", got)
	}
	if snapshot(t, tool) != before {
		t.Error("the other tool's files changed")
	}
	if out, err := Run(t.Context(), Job{Dir: dir, Candidate: c, Mode: Copy}); err != nil || len(out.Kept) != 3 || len(out.Adopted) != 2 {
		t.Errorf("taken up again: got %+v, %v", out, err)
	}
	holds(t, dir)
}

// TestChangedWhileRead: the other tool writes while Pond verifies.
func TestChangedWhileRead(t *testing.T) {
	_, dir, c := setting(t)
	path := c.Files[3].Path
	_, err := Run(t.Context(), Job{Dir: dir, Candidate: c, Mode: InPlace, Report: func(p Progress) {
		if p.File == c.Files[3].Name {
			if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
		}
	}})
	var changed *ChangedError
	if !errors.As(err, &changed) {
		t.Errorf("got %v, want a ChangedError", err)
	}
	if got := names(t, dir); strings.Contains(got, c.Files[3].Name) {
		t.Errorf("got %s", got)
	}
}

// TestCheck: what the other tool does afterwards is noticed, and told apart by what it can do to each mode.
func TestCheck(t *testing.T) {
	const shard = "model-00001-of-00002.safetensors"
	remove := func(t *testing.T, path string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	rewrite := func(t *testing.T, path string) { // the same size, other bytes
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("changed"), 1000); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)); err != nil { // clocks of file systems are coarse
			t.Fatal(err)
		}
	}
	replace := func(t *testing.T, path string) { // as a download does: other file, same name
		write(t, path+".new", content(shard))
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		mode Mode
		name string
		do   func(*testing.T, string)
		want string // in the change; empty: none
	}{
		{InPlace, "removed", remove, "is gone"},
		{InPlace, "rewritten", rewrite, "changed since it was verified"},
		{InPlace, "replaced", replace, "changed since it was verified"},
		{Link, "removed", remove, ""},
		{Link, "rewritten", rewrite, "changed since it was verified"},
		{Link, "replaced", replace, ""},
		{Copy, "removed", remove, ""},
		{Copy, "rewritten", rewrite, ""},
		{Copy, "replaced", replace, ""},
	} {
		t.Run(c.mode.String()+" "+c.name, func(t *testing.T) {
			_, dir, candidate := setting(t)
			if _, err := Run(t.Context(), Job{Dir: dir, Candidate: candidate, Mode: c.mode}); err != nil {
				t.Fatal(err)
			}
			for _, f := range candidate.Files {
				if f.Name == shard {
					c.do(t, f.Path)
				}
			}
			changes, err := Check(dir)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(changes) != 0 {
					t.Errorf("got %v, want none", changes)
				}
				return
			}
			if len(changes) != 1 || changes[0].Name != shard || !strings.Contains(changes[0].Error(), c.want) || changes[0].Gone != (c.want == "is gone") {
				t.Fatalf("got %v, want one: %s", changes, c.want)
			}
			// Adopting again does not keep what changed.
			out, err := Run(t.Context(), Job{Dir: dir, Candidate: candidate, Mode: c.mode})
			if len(out.Kept) != 4-map[bool]int{true: 2}[err != nil] && err == nil {
				t.Errorf("got %+v", out)
			}
			if c.name == "rewritten" && len(out.Rejected) != 1 {
				t.Errorf("the rewritten file was not rejected: %+v, %v", out, err)
			}
			// What Pond downloads in its place is its own.
			if c.mode == InPlace {
				if err := os.Remove(filepath.Join(dir, shard)); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, shard), content(shard))
				if changes, err := Check(dir); err != nil || len(changes) != 0 {
					t.Errorf("after a repair: got %v, %v", changes, err)
				}
			}
		})
	}
}

func TestRecordsOfOthers(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		`{"version": 2}`: "got version 2, want 1",
		`{"version"`:     RecordName,
		`{"version": 1, "files": [{"mode": "borrowed"}]}`: `got "borrowed"`,
	} {
		write(t, filepath.Join(dir, RecordName), []byte(text))
		if _, err := Check(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	if changes, err := Check(t.TempDir()); err != nil || changes != nil {
		t.Errorf("without a record: got %v, %v", changes, err)
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	plainCopy(t, dir)
	own := SearchDir(dir, model())
	if len(own) != 1 {
		t.Fatal("no candidate")
	}
	if _, err := Run(t.Context(), Job{Dir: dir, Candidate: own[0], Mode: InPlace}); err == nil || !strings.Contains(err.Error(), "Pond's own folder") {
		t.Errorf("got %v", err)
	}
	var space *SpaceError
	if err := room(dir, 1<<60); !errors.As(err, &space) || space.NeedBytes <= space.FreeBytes {
		t.Errorf("got %v, want a SpaceError", err)
	}
	// A link that nobody recorded is no adopted file.
	_, target, c := setting(t)
	if err := os.Symlink(c.Files[0].Path, filepath.Join(target, c.Files[0].Name)); err != nil {
		t.Fatal(err)
	}
	if out, err := Run(t.Context(), Job{Dir: target, Candidate: c, Mode: InPlace}); err != nil || len(out.Kept) != 0 || len(out.Adopted) != 5 {
		t.Errorf("got %+v, %v", out, err)
	}
	// The leftover of a crash is replaced.
	_, target, c = setting(t)
	write(t, filepath.Join(target, "config.json"+newSuffix), []byte("half"))
	if out, err := Run(t.Context(), Job{Dir: target, Candidate: c, Mode: Link}); err != nil || !out.Complete() {
		t.Errorf("got %+v, %v", out, err)
	}
	holds(t, target)
}

// TestOtherDisk: what cannot be done across file systems says so, and leaves nothing; nothing falls back to a copy by itself.
func TestOtherDisk(t *testing.T) {
	other, err := os.MkdirTemp("/dev/shm", "adopt")
	if err != nil {
		t.Skipf("no second file system to test on: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(other) })
	_, _, c := setting(t)
	if err := os.Link(c.Files[0].Path, filepath.Join(other, "probe")); err == nil {
		t.Skip("no second file system to test on: /dev/shm is on the same")
	}
	for _, mode := range []Mode{Clone, Link} {
		var refused *ModeError
		if _, err := Run(t.Context(), Job{Dir: other, Candidate: c, Mode: mode}); !errors.As(err, &refused) || refused.Path != c.Files[0].Path {
			t.Errorf("%s: got %v, want a ModeError", mode, err)
		}
		if got := names(t, other); got != "" {
			t.Errorf("%s: got %s", mode, got)
		}
	}
	if out, err := Run(t.Context(), Job{Dir: other, Candidate: c, Mode: InPlace}); err != nil || !out.Complete() {
		t.Errorf("in place: got %+v, %v", out, err)
	}
	holds(t, other)
}

// TestAdoptedModelOpens: the reader opens a model adopted in place.
func TestAdoptedModelOpens(t *testing.T) {
	tool, dir := t.TempDir(), t.TempDir()
	if err := tinymodel.Write(tool, tinymodel.Tiny); err != nil {
		t.Fatal(err)
	}
	var m manifest.Manifest
	entries, err := os.ReadDir(tool)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(tool, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		m.Files = append(m.Files, manifest.File{Name: e.Name(), Bytes: int64(len(data)), SHA256: sha256.Sum256(data)})
	}
	if _, err := Run(t.Context(), Job{Dir: dir, Candidate: SearchDir(tool, m)[0], Mode: InPlace}); err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Names()) == 0 {
		t.Error("got no tensors")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
