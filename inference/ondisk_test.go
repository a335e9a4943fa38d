package inference

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pond/inference/chat"
	"pond/inference/tinymodel"
)

// asked is a conversation with a system text, and a question.
func asked(system, question string) chat.Conversation {
	c := user(question)
	c.Messages = append([]chat.Message{{Role: "system", Content: chat.TextContent(system)}}, c.Messages...)
	return c
}

func restart(t *testing.T, e *Engine, o Options) *Engine {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return openTiny(t, o)
}

// A restart of the app made every conversation a cold one: an agent's first turn read its whole history again.
func TestARestartReadsFromTheDisk(t *testing.T) {
	o := Options{Executor: HostExact, ChunkTokens: 64, Disk: Disk{Dir: t.TempDir(), LimitBytes: 1 << 30}}
	e, cold := openTiny(t, o), openTiny(t, Options{Executor: HostExact, ChunkTokens: 64})
	system := strings.Repeat("All about ponds. ", 20)
	c, g := asked(system, "What is a pond?"), Generation{MaxTokens: 5, Sampling: seeded(1)}
	ask(t, e, c, g)
	e = restart(t, e, o)
	if s := e.Stats().Disk; !s.On || s.Conversations == 0 || s.LenBytes == 0 || s.Removed != 0 {
		t.Fatalf("after a restart: got %+v", s)
	}
	r, want := ask(t, e, c, g), ask(t, cold, c, g)
	if r.Usage.DiskTokens == 0 || r.Usage.DiskTokens != r.Usage.CachedTokens || text(r) != text(want) {
		t.Errorf("the same again: got %+v, %s, want most of it from the disk, and %s", r.Usage, text(r), text(want))
	}
	if st := e.Stats().Reuse; st.DiskTokens != int64(r.Usage.DiskTokens) {
		t.Errorf("got %+v", st)
	}
	r = ask(t, e, c, g)
	if r.Usage.DiskTokens != 0 || r.Usage.CachedTokens == 0 {
		t.Errorf("the third time: got %+v, want it from memory", r.Usage)
	}
	// A sibling, after another restart and one of a Pond without the disk.
	e = restart(t, e, Options{})
	e = restart(t, e, o)
	sibling := asked(system, "What lives in it?")
	r, want = ask(t, e, sibling, g), ask(t, cold, sibling, g)
	if r.Usage.DiskTokens < len(system) || text(r) != text(want) {
		t.Errorf("a sibling: got %+v, %s, want the system text from the disk, and %s", r.Usage, text(r), text(want))
	}
	// Another build computes for itself.
	other := o
	other.Disk.Build = "another"
	e = restart(t, e, other)
	if r := ask(t, e, c, g); r.Usage.CachedTokens != 0 {
		t.Errorf("another build: got %+v", r.Usage)
	}
	if freed := e.ClearDisk(); freed == 0 {
		t.Error("nothing was cleared")
	}
	if u := e.Stats(); u.Disk.LenBytes != 0 || u.SnapshotBytes != 0 {
		t.Errorf("cleared: got %+v", u)
	}
}

// What lies on the disk and is not what was written costs a prefill, never an answer.
func TestDamagedConversationsAreComputedAgain(t *testing.T) {
	dir := t.TempDir()
	o := Options{Executor: HostExact, ChunkTokens: 64, Disk: Disk{Dir: dir, LimitBytes: 1 << 30}}
	e := openTiny(t, o)
	c, g := asked(strings.Repeat("All about ponds. ", 20), "What is a pond?"), Generation{MaxTokens: 5, Sampling: seeded(1)}
	want := text(ask(t, e, c, g))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.rows"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-1] ^= 1
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e = openTiny(t, o)
	r := ask(t, e, c, g)
	if s := e.Stats().Disk; text(r) != want || r.Usage.CachedTokens != 0 || s.Removed == 0 {
		t.Errorf("got %s, %+v, %+v, want a cold answer %s and a count", text(r), r.Usage, s, want)
	}
}

// A folder that cannot be used is said, and the engine works without it.
func TestADiskThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := Options{Disk: Disk{Dir: dir, LimitBytes: 1 << 30}}
	first := openTiny(t, o)
	for _, at := range []string{file, dir} { // the second has a Pond that works in it
		o.Disk.Dir = at
		e := openTiny(t, o)
		if s := e.Stats().Disk; s.On || s.Trouble == "" {
			t.Errorf("%s: got %+v, want it off, and why", at, s)
		}
		ask(t, e, user("hello"), Generation{MaxTokens: 2})
	}
	if !first.Stats().Disk.On {
		t.Error("the first engine lost its folder")
	}
}

// Conversations are written when nothing was asked for a while, without anybody closing anything.
func TestConversationsAreWrittenInALull(t *testing.T) {
	e := openTiny(t, Options{Disk: Disk{Dir: t.TempDir(), LimitBytes: 1 << 30, lull: time.Millisecond}})
	ask(t, e, user(strings.Repeat("hello ", 20)), Generation{MaxTokens: 2, Sampling: seeded(1)})
	waitLong(t, "something on the disk", func() bool { return e.Stats().Disk.Conversations > 0 })
	e.Save(context.Background())
	before := e.Stats().Disk
	e.Save(context.Background())
	if after := e.Stats().Disk; after != before || e.disk.files.Stats().WrittenBytes != before.LenBytes {
		t.Errorf("got %+v, then %+v: want each written once", before, after)
	}
}

// waitLong fails when something does not happen within a minute.
func waitLong(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// Many that begin alike, after a restart and in a small memory, some of whom leave: each gets its own answer, and the memory keeps to its bound.
func TestManyReadFromTheDiskAtOnce(t *testing.T) {
	o := Options{Executor: HostExact, ChunkTokens: 64, Parallel: 2, ContextTokens: 1000, Disk: Disk{Dir: t.TempDir(), LimitBytes: 1 << 30}}
	cold := openTiny(t, Options{Executor: HostExact, ChunkTokens: 64})
	e := openTiny(t, o)
	g := Generation{MaxTokens: 4, Sampling: seeded(1)}
	var talks []chat.Conversation
	var want []string
	for i := range 8 {
		talks = append(talks, asked(strings.Repeat("All about ponds. ", 10), strings.Repeat(fmt.Sprint("question ", i), 10)))
		want = append(want, text(ask(t, cold, talks[i], g)))
		ask(t, e, talks[i], g)
	}
	e.Save(context.Background())
	e = restart(t, e, o)
	var wait sync.WaitGroup
	for i := range 24 {
		wait.Go(func() {
			ctx, leave := context.WithCancel(context.Background())
			defer leave()
			if i%3 == 0 {
				time.AfterFunc(time.Duration(i)*time.Millisecond, leave)
			}
			a, err := e.Chat(ctx, ChatRequest{Conversation: talks[i%8], Generation: g})
			if err != nil {
				t.Error(err)
				return
			}
			r, err := a.Wait()
			if err == nil && text(r) != want[i%8] || err != nil && i%3 > 0 {
				t.Errorf("request %d: got %s, %v, want %s", i, text(r), err, want[i%8])
			}
		})
	}
	wait.Wait()
	if st := e.Stats(); st.Reuse.DiskTokens == 0 || st.Active+st.Queued != 0 {
		t.Errorf("got %+v", st)
	}
	e.kept.do(func() {
		if n := e.kept.held + e.kept.store.LenBytes(); n > e.kept.ceiling || e.kept.coming != 0 {
			t.Errorf("got %d bytes in memory and %d to come, want at most %d and none", n, e.kept.coming, e.kept.ceiling)
		}
	})
}

// A weight file was damaged, and repaired: conversations that the damaged model had read went on being found, and answers stayed wrong.
func TestARepairedModelReadsAnew(t *testing.T) {
	dir := t.TempDir()
	if err := tinymodel.Write(dir, tinymodel.Tiny); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	o := Options{Model: FromDir(dir), Executor: HostExact, ContextTokens: 1000, ChunkTokens: 64, Disk: Disk{Dir: t.TempDir(), LimitBytes: 1 << 30}}
	cached := func() int {
		e, err := Open(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		return ask(t, e, asked(strings.Repeat("All about ponds. ", 20), "What is a pond?"), Generation{MaxTokens: 2, Sampling: seeded(1)}).Usage.CachedTokens
	}
	cached()
	if cached() == 0 {
		t.Error("the same model again: got nothing from the disk")
	}
	info, err := os.Stat(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)*2/3] ^= 1
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(files[0], time.Time{}, info.ModTime().Add(time.Second)); err != nil { // whatever the file system's clock
		t.Fatal(err)
	}
	if n := cached(); n != 0 {
		t.Errorf("a model with one bit changed: got %d tokens of what another had computed", n)
	}
}

// A disk without room left conversations in memory alone, and no word of it anywhere.
func TestNoRoomOnTheDiskIsSaid(t *testing.T) {
	dir := t.TempDir()
	o := Options{Disk: Disk{Dir: dir, LimitBytes: 1000}}
	e := openTiny(t, o)
	ask(t, e, user(strings.Repeat("hello ", 20)), Generation{MaxTokens: 2, Sampling: seeded(1)})
	e.Save(context.Background())
	if s := e.Stats().Disk; !s.On || s.Conversations != 0 || !strings.Contains(s.Trouble, "no room") {
		t.Errorf("got %+v, want nothing written, and why", s)
	}
	e.LimitDisk(1 << 30)
	e.Save(context.Background())
	if s := e.Stats().Disk; s.Conversations == 0 || s.Trouble != "" {
		t.Errorf("with room: got %+v", s)
	}
	// Switched off in the settings while no Pond ran: what was said stayed on the disk.
	o.Disk.LimitBytes = 0
	e = restart(t, e, o)
	if s := e.Stats().Disk; s.On || s.Trouble != "" {
		t.Errorf("switched off: got %+v", s)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*", "*")); err != nil || len(left) != 0 {
		t.Errorf("switched off: got %v left, %v", left, err)
	}
}
