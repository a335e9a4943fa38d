package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pond/inference/checkpoint/badhub"
	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/fetch"
	"pond/inference/checkpoint/manifest"
	"pond/inference/tinymodel"
)

const weights = "model.safetensors"

// world is a small real model on a hub on loopback, and a store.
type world struct {
	hub     *badhub.Hub
	model   manifest.Manifest
	store   Store
	options PullOptions
}

func newWorld(t *testing.T) *world {
	t.Helper()
	src := t.TempDir()
	if err := tinymodel.Write(src, tinymodel.Tiny); err != nil {
		t.Fatal(err)
	}
	names := []string{"config.json", "generation_config.json", "chat_template.jinja", "tokenizer_config.json", "tokenizer.json", weights}
	files := map[string]badhub.Content{}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(src, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = badhub.Bytes(data)
	}
	w := &world{hub: badhub.Of(files), store: Store{Root: filepath.Join(t.TempDir(), "models"), Create: true}}
	w.model = w.hub.Manifest("tiny", names, "owner/tiny")
	server := httptest.NewUnstartedServer(w.hub)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	sources, err := fetch.Sources(w.model, func(name string) string { return map[string]string{"HF_ENDPOINT": server.URL}[name] })
	if err != nil {
		t.Fatal(err)
	}
	w.options = PullOptions{Sources: sources, Headroom: 1, Options: fetch.Options{
		ChunkBytes: 128 << 10, Stall: time.Second, Backoff: time.Millisecond, Patience: 5 * time.Second,
	}}
	return w
}

func (w *world) pull(t *testing.T) error {
	t.Helper()
	return w.store.Pull(t.Context(), w.model, w.options)
}

func (w *world) state(t *testing.T) Status {
	t.Helper()
	st, err := w.store.Status(w.model)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func (w *world) wants(t *testing.T, want State) {
	t.Helper()
	if st := w.state(t); st.State != want {
		t.Fatalf("got %s (%s), want %s", st.State, st.Line(), want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPullToReady(t *testing.T) {
	w := newWorld(t)
	w.wants(t, Absent)
	must(t, w.pull(t))
	w.wants(t, Ready)
	if st := w.state(t); st.DoneBytes != w.model.Bytes() || st.Dir != filepath.Join(w.store.Root, "tiny") {
		t.Errorf("got %+v", st)
	}
	requests := w.hub.Requests()
	must(t, w.pull(t))
	if w.hub.Requests() != requests {
		t.Error("a second pull of a ready model asked the hub")
	}
	must(t, w.store.Verify(t.Context(), w.model, nil))
	left, err := w.store.Remove(w.model)
	if err != nil || len(left) != 0 {
		t.Errorf("got %v, %v", left, err)
	}
	w.wants(t, Absent)
	if entries, err := os.ReadDir(w.store.Root); err != nil || len(entries) != 0 {
		t.Errorf("got %v, %v; want an empty folder", entries, err)
	}
}

// TestPauseIsPartial: an interrupted pull is a model that is partly there, with its share, and resumes.
func TestPauseIsPartial(t *testing.T) {
	w := newWorld(t)
	w.options.Connections = 1 // what comes before the pause has come
	ctx, cancel := context.WithCancel(t.Context())
	w.hub.Misbehave(func(a badhub.Ask) badhub.Act {
		if a.File == weights && a.From > 100_000 {
			cancel()
			return badhub.Act{Kind: badhub.Stall}
		}
		return badhub.Act{}
	})
	if err := w.store.Pull(ctx, w.model, w.options); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want canceled", err)
	}
	w.wants(t, Partial)
	if st := w.state(t); st.DoneBytes == 0 || st.DoneBytes >= st.TotalBytes {
		t.Errorf("got %+v", st)
	}
	w.hub.Misbehave(nil)
	must(t, w.pull(t))
	w.wants(t, Ready)
}

// TestDamage is "100 % but the model does not load": whatever is wrong with a file is found, named, and mended alone.
func TestDamage(t *testing.T) {
	w := newWorld(t)
	must(t, w.pull(t))
	dir := w.store.Dir("tiny")
	good := filepath.Join(dir, weights)
	for name, damage := range map[string]func() error{
		"shorter by a byte": func() error { return os.Truncate(good, w.size(weights)-1) },
		"zeros in the middle": func() error {
			f, err := os.OpenFile(good, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(make([]byte, 4096), w.size(weights)/2)
			return errors.Join(err, f.Close())
		},
		"missing": func() error { return os.Remove(good) },
		"huge header length": func() error {
			f, err := os.OpenFile(good, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte{255, 255, 255, 255, 255, 255, 255, 255}, 0)
			return errors.Join(err, f.Close())
		},
		"two files swapped": func() error {
			other := filepath.Join(dir, "tokenizer.json")
			return errors.Join(os.Rename(good, good+"x"), os.Rename(other, good), os.Rename(good+"x", other))
		},
		"dangling link": func() error { return errors.Join(os.Remove(good), os.Symlink(filepath.Join(dir, "gone"), good)) },
	} {
		t.Run(name, func(t *testing.T) {
			time.Sleep(2 * time.Millisecond) // the time of the last write must differ where the size does not
			must(t, damage())
			if st := w.state(t); st.State == Ready {
				t.Fatal("still ready")
			}
			err := w.store.Verify(t.Context(), w.model, nil)
			var bad *DamagedError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), weights) {
				t.Errorf("verify: got %v, want a DamagedError that names %s", err, weights)
			}
			if info, err := os.Stat(good); err == nil && info.Size() > 0 {
				if err := w.pull(t); !errors.As(err, &bad) {
					t.Errorf("pull without repair: got %v, want a DamagedError", err)
				}
			}
			before := w.hub.Sent(weights)
			beside := w.hub.Sent("config.json")
			o := w.options
			o.Repair = true
			must(t, w.store.Pull(t.Context(), w.model, o))
			w.wants(t, Ready)
			if again := w.hub.Sent(weights) - before; again != w.size(weights) {
				t.Errorf("got %d bytes fetched of %s, want %d", again, weights, w.size(weights))
			}
			if w.hub.Sent("config.json") != beside {
				t.Error("a good file was fetched again")
			}
		})
	}
}

func (w *world) size(name string) int64 {
	f, ok := w.model.File(name)
	if !ok {
		panic(name)
	}
	return f.Bytes
}

// TestTouchedIsUnsure: a file that may have changed is not relied on; reading it makes it so again.
func TestTouchedIsUnsure(t *testing.T) {
	w := newWorld(t)
	must(t, w.pull(t))
	later := time.Now().Add(time.Second)
	must(t, os.Chtimes(filepath.Join(w.store.Dir("tiny"), weights), later, later))
	w.wants(t, Unsure)
	if line := w.state(t).Line(); !strings.Contains(line, weights+" changed") {
		t.Errorf("got %q", line)
	}
	must(t, w.store.Verify(t.Context(), w.model, nil))
	w.wants(t, Ready)
}

// TestFilesFromElsewhere: files that a user put there are read before they are relied on, and not downloaded.
func TestFilesFromElsewhere(t *testing.T) {
	w := newWorld(t)
	dir := w.store.Dir("tiny")
	must(t, tinymodel.Write(dir, tinymodel.Tiny))
	w.wants(t, Unsure)
	read := int64(0)
	w.options.Verifying = func(done, _ int64) { read = max(read, done) }
	must(t, w.pull(t))
	w.wants(t, Ready)
	if w.hub.Requests() != 0 || read != w.model.Bytes() {
		t.Errorf("got %d requests and %d bytes read, want 0 and %d", w.hub.Requests(), read, w.model.Bytes())
	}
}

// TestNote: what somebody else verified under the lock counts.
func TestNote(t *testing.T) {
	w := newWorld(t)
	dir := w.store.Dir("tiny")
	must(t, tinymodel.Write(dir, tinymodel.Tiny))
	must(t, Note(dir, w.model, w.model.Files[0]))
	w.wants(t, Unsure)
	must(t, Note(dir, w.model, w.model.Files...))
	w.wants(t, Ready)
	if st := LookAt(dir, w.model); st.State != Ready {
		t.Errorf("LookAt: got %s", st.State)
	}
}

// TestRecordOfAnotherVersion vouches for nothing.
func TestRecordOfAnotherVersion(t *testing.T) {
	w := newWorld(t)
	must(t, w.pull(t))
	file := filepath.Join(w.store.Dir("tiny"), RecordName)
	for _, text := range []string{`{"version": 2}`, `{`, ``} {
		must(t, os.WriteFile(file, []byte(text), 0o644))
		w.wants(t, Unsure)
		must(t, w.pull(t))
		w.wants(t, Ready)
	}
}

// TestHeadersAreChecked: the digests may be right and the files still not fit each other, if a manifest were wrong.
func TestHeadersAreChecked(t *testing.T) {
	w := newWorld(t)
	broken := badhub.Bytes(strings.Repeat("\xff", 4096))
	w.hub.Put(weights, broken)
	var names []string
	for _, f := range w.model.Files {
		names = append(names, f.Name)
	}
	w.model = w.hub.Manifest("tiny", names, "owner/tiny")
	err := w.pull(t)
	if err == nil || !strings.Contains(err.Error(), "header length") {
		t.Errorf("got %v, want one about the header", err)
	}
	if st := w.state(t); st.State == Ready {
		t.Error("ready all the same")
	}
}

func TestLocked(t *testing.T) {
	w := newWorld(t)
	must(t, w.pull(t))
	release, err := disk.Lock(w.store.Dir("tiny"))
	must(t, err)
	var locked *disk.LockedError
	if err := w.pull(t); !errors.As(err, &locked) {
		t.Errorf("pull: got %v", err)
	}
	if err := w.store.Verify(t.Context(), w.model, nil); !errors.As(err, &locked) {
		t.Errorf("verify: got %v", err)
	}
	if _, err := w.store.Remove(w.model); !errors.As(err, &locked) {
		t.Errorf("remove: got %v", err)
	}
	w.wants(t, Ready)
	must(t, release())
}

// TestEjectedDrive: a folder of models that is not there is an error, nothing is created, and it recovers by itself.
func TestEjectedDrive(t *testing.T) {
	w := newWorld(t)
	must(t, os.Mkdir(w.store.Root, 0o755))
	w.store.Create = false
	must(t, w.pull(t))
	away := w.store.Root + "-ejected"
	must(t, os.Rename(w.store.Root, away))
	var missing *MissingRootError
	if _, err := w.store.Status(w.model); !errors.As(err, &missing) {
		t.Errorf("status: got %v", err)
	}
	if err := w.pull(t); !errors.As(err, &missing) {
		t.Errorf("pull: got %v", err)
	}
	if err := w.store.Verify(t.Context(), w.model, nil); !errors.As(err, &missing) {
		t.Errorf("verify: got %v", err)
	}
	if _, err := w.store.Remove(w.model); !errors.As(err, &missing) {
		t.Errorf("remove: got %v", err)
	}
	if _, err := os.Stat(w.store.Root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was created: %v", err)
	}
	must(t, os.Rename(away, w.store.Root))
	w.wants(t, Ready)
}

// TestNothingBelowVolumes: even Pond's own place is not created where a drive would be mounted.
func TestNothingBelowVolumes(t *testing.T) {
	for path, want := range map[string]string{
		"/Volumes/Pond Drive/pond/models":        "/Volumes/Pond Drive",
		"/Volumes/X":                             "/Volumes/X",
		"/media/ada/stick/models":                "/media/ada/stick",
		"/run/media/ada/stick/models":            "/run/media/ada/stick",
		"/home/ada/.local/share/pond/models":     "",
		"/Users/ada/Library/Application Support": "",
	} {
		if got := volumeOf(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	s := Store{Root: "/Volumes/No Such Drive/pond/models", Create: true}
	_, err := s.Status(manifest.Manifest{ID: "x"})
	var missing *MissingRootError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "drive /Volumes/No Such Drive is not connected") {
		t.Errorf("got %v", err)
	}
}

// TestSpaceIsCountedFirst: nothing is asked of the hub when the disk cannot hold it.
func TestSpaceIsCountedFirst(t *testing.T) {
	w := newWorld(t)
	w.options.Headroom = 1 << 60
	err := w.pull(t)
	var full *fetch.SpaceError
	if !errors.As(err, &full) || full.FreeBytes <= 0 || full.NeedBytes != 1<<60+w.model.Bytes() || w.hub.Requests() != 0 {
		t.Errorf("got %v, %d requests", err, w.hub.Requests())
	}
}

// TestForeignFilesStay: what is not Pond's is not removed, and what links lead to neither.
func TestForeignFilesStay(t *testing.T) {
	w := newWorld(t)
	must(t, w.pull(t))
	dir := w.store.Dir("tiny")
	outside := filepath.Join(t.TempDir(), "blob")
	must(t, os.Rename(filepath.Join(dir, weights), outside))
	must(t, os.Symlink(outside, filepath.Join(dir, weights)))
	w.wants(t, Ready) // the same file, through a link
	must(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o644))
	left, err := w.store.Remove(w.model)
	if err != nil || len(left) != 1 || left[0] != "notes.txt" {
		t.Errorf("got %v, %v", left, err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("what the link led to: %v", err)
	}
	if _, err := w.store.Remove(manifest.Manifest{ID: "never"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that it does not exist", err)
	}
}

func TestVerifyIsCancelled(t *testing.T) {
	w := newWorld(t)
	must(t, w.pull(t))
	ctx, cancel := context.WithCancel(t.Context())
	err := w.store.Verify(ctx, w.model, func(done, total int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	w.wants(t, Ready)
}

func TestVerifyFS(t *testing.T) {
	files := fstest.MapFS{"a": {Data: []byte("hello")}}
	hub := badhub.Of(map[string]badhub.Content{"a": badhub.Bytes("hello"), "b": badhub.Bytes("x")})
	must(t, VerifyFS(t.Context(), files, hub.Manifest("demo", []string{"a"})))
	err := VerifyFS(t.Context(), files, hub.Manifest("demo", []string{"a", "b"}))
	var bad *DamagedError
	if !errors.As(err, &bad) || len(bad.Faults) != 1 || !bad.Faults[0].Missing {
		t.Errorf("got %v", err)
	}
}
