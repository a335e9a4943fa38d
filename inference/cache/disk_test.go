package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// openDisk opens a folder for fakes, and closes it with the test.
func openDisk(t *testing.T, dir string, budget int64, facts ...string) *Disk {
	t.Helper()
	d, err := OpenDisk(DiskOptions{Dir: dir, BudgetBytes: budget, Key: KeyOf(facts, fakeSpecs()), Specs: fakeSpecs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// talk makes a sequence of tokens with snapshots at the marks, and saves them.
func (f *fake) talk(d *Disk, s *Store, ids []int32, marks ...int) {
	f.t.Helper()
	f.prompt(s, ids, marks...)
	for _, v := range s.Savings(d) {
		if err := d.Write(context.Background(), v.Tokens, v.Snapshot); err != nil {
			f.t.Fatal(err)
		}
	}
}

// resume starts a sequence from what the disk has of a prompt.
func (f *fake) resume(d *Disk, prompt []int32) (cached int) {
	f.t.Helper()
	f.Reset()
	f.tokens = nil
	c := d.Read(prompt, len(prompt)-1)
	if c == nil {
		return 0
	}
	if err := f.Restore(c); err != nil {
		f.t.Fatal(err)
	}
	f.tokens = append(f.tokens, prompt[:c.Pos()]...)
	f.check()
	return c.Pos()
}

func seq(from, to int32) (ids []int32) {
	for i := from; i < to; i++ {
		ids = append(ids, i)
	}
	return ids
}

// filesOf lists the files of a folder of conversations, by suffix.
func filesOf(t *testing.T, dir, suffix string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && strings.HasSuffix(path, suffix) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestDiskOutlivesTheProcess(t *testing.T) {
	dev, dir := newDevice(t), t.TempDir()
	d := openDisk(t, dir, 1<<20)
	f, s := newFake(t, dev), NewStore(1<<20)
	f.talk(d, s, seq(0, 300), 100, 200, 290)
	f.talk(d, s, append(seq(0, 100), seq(500, 600)...), 199)
	if st := d.Stats(); st.Snapshots != 4 || st.Tokens != 290+99 || st.WrittenBytes != st.LenBytes {
		t.Errorf("got %+v, want 4 snapshots over 389 tokens", st)
	}
	rows := filesOf(t, dir, ".rows")
	if len(rows) != 4 {
		t.Errorf("got %d pieces of rows, want 4: what is common is there once", len(rows))
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openDisk(t, dir, 1<<20)
	before := d.Stats()
	for _, c := range []struct {
		prompt []int32
		cached int
	}{
		{seq(0, 300), 290}, {seq(0, 291), 290}, {seq(0, 290), 200}, {append(seq(0, 150), 7), 100},
		{append(seq(0, 100), seq(500, 600)...), 199}, {seq(0, 100), 0}, {seq(1, 300), 0},
	} {
		if n := newFake(t, dev).resume(d, c.prompt); n != c.cached {
			t.Errorf("%d tokens from %d: got %d of them, want %d", len(c.prompt), c.prompt[0], n, c.cached)
		}
	}
	if st := d.Stats(); st.Removed != 0 || st.LenBytes != before.LenBytes || st.ReadBytes == 0 {
		t.Errorf("got %+v", st)
	}
	// What was read is a beginning as any other: what comes behind it builds on the same files.
	f, s = newFake(t, dev), NewStore(1<<20)
	c := d.Read(seq(0, 300), 299)
	s.Keep(seq(0, 290), c)
	f.talk(d, s, seq(0, 400), 390)
	if n := len(filesOf(t, dir, ".rows")); n != 5 {
		t.Errorf("got %d pieces of rows, want one more", n)
	}
}

func TestDiskFilesAreTheUsersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := openDisk(t, dir, 1<<20)
	newFake(t, newDevice(t)).talk(d, NewStore(1<<20), seq(0, 50), 40)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if err == nil && info.Mode().Perm() != want && !strings.HasSuffix(path, ".lock") {
			t.Errorf("%s: got %v, want %v", path, info.Mode().Perm(), want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDisk(DiskOptions{Dir: dir, BudgetBytes: 1, Key: KeyOf(nil, fakeSpecs()), Specs: fakeSpecs()}); !errors.As(err, new(*InUseError)) {
		t.Errorf("a second process: got %v, want that the folder is in use", err)
	}
	if _, err := ClearFolder(dir); !errors.As(err, new(*InUseError)) {
		t.Errorf("clear beside a process: got %v, want that the folder is in use", err)
	}
	if freed := d.Clear(); freed == 0 || d.Stats().LenBytes != 0 || d.Read(seq(0, 50), 50) != nil {
		t.Errorf("clear: got %d bytes freed, %+v", freed, d.Stats())
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ClearFolder(dir); err != nil {
		t.Error(err)
	}
	if u, err := UseOf(dir); err != nil || u != (FolderUse{}) {
		t.Errorf("got %+v, %v, want nothing left", u, err)
	}
}

// Whatever happens to a file, what is read is what was written, or it is gone and counted.
func TestDiskRemovesWhatIsDamaged(t *testing.T) {
	dev := newDevice(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		name string
		harm func(b []byte) []byte
	}{
		{"cut off", func(b []byte) []byte { return b[:rnd.IntN(len(b))] }},
		{"longer", func(b []byte) []byte { return append(b, 0) }},
		{"a bit", func(b []byte) []byte { b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8); return b }},
		{"zeros", func(b []byte) []byte { clear(b[rnd.IntN(len(b)):]); return b }},
		{"another version", func(b []byte) []byte { b[8]++; return b }},
		{"empty", func([]byte) []byte { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 12 {
				dir := t.TempDir()
				d := openDisk(t, dir, 1<<20)
				f, s := newFake(t, dev), NewStore(1<<20)
				f.talk(d, s, seq(0, 300), 100, 200, 290)
				files := append(filesOf(t, dir, ".rows"), filesOf(t, dir, ".states")...)
				file := files[rnd.IntN(len(files))]
				before, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				after := c.harm(bytes.Clone(before))
				if err := os.WriteFile(file, after, 0o600); err != nil {
					t.Fatal(err)
				}
				f, s = nil, nil
				runtime.GC()          // rows that are in memory are not read again
				if rnd.IntN(2) == 0 { // found at the start, not when it is read
					if err := d.Close(); err != nil {
						t.Fatal(err)
					}
					d = openDisk(t, dir, 1<<20)
				}
				f, s = newFake(t, dev), NewStore(1<<20)
				prompts := 0
				for _, n := range []int32{300, 250, 150} {
					prompts += newFake(t, dev).resume(d, seq(0, n)) // checks every number
				}
				if !bytes.Equal(before, after) && (prompts == 590 || d.Stats().Removed == 0) {
					t.Fatalf("%s: got %d tokens and %+v, want less and a count", file, prompts, d.Stats())
				}
				if n := d.Stats().LenBytes; n != lenBytesOf(t, dir) {
					t.Fatalf("got %d bytes counted, want %d", n, lenBytesOf(t, dir))
				}
				f.talk(d, s, seq(0, 300), 100, 200, 290) // and it is mended by the next
				if n := newFake(t, dev).resume(d, seq(0, 300)); n != 290 {
					t.Fatalf("got %d tokens afterwards, want 290", n)
				}
			}
		})
	}
}

func lenBytesOf(t *testing.T, dir string) (n int64) {
	t.Helper()
	u, err := UseOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	return u.LenBytes
}

// A chain is never put together of two runs, whose last bits may differ.
func TestDiskKeepsRunsApart(t *testing.T) {
	dev := newDevice(t)
	d := openDisk(t, t.TempDir(), 1<<20)
	one, s1 := newFake(t, dev), NewStore(1<<20)
	one.talk(d, s1, seq(0, 100), 50)
	two, s2 := newFake(t, dev), NewStore(1<<20)
	two.prompt(s2, seq(0, 100), 50)
	r := s2.Find(seq(0, 50), 50)
	r.rows.data[0][0] ^= 1 // another rounding
	two.Reset()
	two.tokens = nil
	if err := two.Restore(r); err != nil {
		t.Fatal(err)
	}
	two.tokens = seq(0, 50)
	two.feed(seq(50, 90)...)
	two.mark(s2)
	for _, v := range s2.Savings(d) {
		if err := d.Write(context.Background(), v.Tokens, v.Snapshot); err != nil {
			t.Fatal(err)
		}
	}
	if c := d.Read(seq(0, 100), 99); c == nil || c.Pos() != 90 || c.rows.Prev.data[0][0] != r.rows.data[0][0] {
		t.Error("the later piece does not stand on the rows that it was computed from")
	}
	if c := d.Read(seq(0, 60), 59); c == nil || c.Pos() != 50 || c.rows.data[0][0] == r.rows.data[0][0] {
		t.Error("the first run's beginning is not what it was")
	}
}

func TestDiskKeepsToItsBudget(t *testing.T) {
	dev, dir := newDevice(t), t.TempDir()
	other := openDisk(t, dir, 1<<20, "another build")
	newFake(t, dev).talk(other, NewStore(1<<20), seq(0, 100), 99)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	d := openDisk(t, dir, 8000)
	if d.Stats().LenBytes == 0 {
		t.Error("the folder of another build is not counted")
	}
	f := newFake(t, dev)
	for i := range int32(40) {
		f.talk(d, NewStore(1<<20), append(seq(0, 60), seq(100*i+100, 100*i+200)...), 60, 150)
		if n := lenBytesOf(t, dir); n > 8000 || n != d.Stats().LenBytes {
			t.Fatalf("conversation %d: got %d bytes in the folder, %d counted, want at most 8000", i, n, d.Stats().LenBytes)
		}
	}
	if got, err := os.ReadDir(dir); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v; want that the folder of the other build went first", got, err)
	}
	if n := newFake(t, dev).resume(d, append(seq(0, 60), 1, 2)); n != 60 {
		t.Errorf("got %d tokens of what all have in common, want 60: it is worth most", n)
	}
	d.SetBudget(0)
	if n := lenBytesOf(t, dir); n != 0 {
		t.Errorf("got %d bytes with a budget of none", n)
	}
}

func TestDiskWriteEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	d := openDisk(t, dir, 1<<20)
	f, s := newFake(t, newDevice(t)), NewStore(1<<20)
	f.prompt(s, seq(0, 100), 99)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	v := s.Savings(d)[0]
	if err := d.Write(ctx, v.Tokens, v.Snapshot); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	for _, suffix := range []string{".rows", ".states", ".part"} {
		if left := filesOf(t, dir, suffix); len(left) > 0 || d.Stats().LenBytes != 0 {
			t.Errorf("got %v left, %+v", left, d.Stats())
		}
	}
}

// killFolder is where the process that TestDiskSurvivesKills kills writes.
const killFolder = "POND_TEST_KILL_FOLDER"

// A process that is killed at any instant leaves whole snapshots, and nothing that stays behind.
func TestDiskSurvivesKills(t *testing.T) {
	if dir := os.Getenv(killFolder); dir != "" {
		d := openDisk(t, dir, 1<<20)
		f := newFake(t, newDevice(t))
		fmt.Println("ready")
		for i := int32(0); ; i++ {
			f.talk(d, NewStore(1<<20), append(seq(0, 60), seq(1000*(i%20), 1000*(i%20)+300)...), 60, 200, 350)
		}
	}
	dev, dir := newDevice(t), t.TempDir()
	rnd := rand.New(rand.NewPCG(1, 9))
	resumed := 0
	for range 15 {
		c := exec.Command(os.Args[0], "-test.run", "^TestDiskSurvivesKills$")
		c.Env = append(os.Environ(), killFolder+"="+dir)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rnd.IntN(20_000)) * time.Microsecond)
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		c.Wait() // killed
		d := openDisk(t, dir, 1<<20)
		for i := range int32(20) {
			resumed += newFake(t, dev).resume(d, append(seq(0, 60), seq(1000*i, 1000*i+300)...))
		}
		if st := d.Stats(); st.Removed != 0 || st.LenBytes != lenBytesOf(t, dir) {
			t.Errorf("got %+v and %d bytes in the folder, want nothing removed", st, lenBytesOf(t, dir))
		}
		if left := filesOf(t, dir, partSuffix); len(left) > 0 {
			t.Errorf("got %v left", left)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if resumed == 0 {
		t.Error("nothing was saved before the kills")
	}
}
