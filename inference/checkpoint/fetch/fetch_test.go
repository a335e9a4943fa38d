package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pond/inference/checkpoint/badhub"
	"pond/inference/checkpoint/manifest"
)

// rig is a hub on loopback, a folder, and a job that fetches the one into the other. The hub redirects to a second host, as the real one.
type rig struct {
	hub    *badhub.Hub
	files  map[string]badhub.Content
	cdn    string
	names  []string
	job    Job
	mu     sync.Mutex
	events []Event
}

const (
	repoA = "first/model"
	repoB = "second/model"
)

// newRig serves files of these sizes, named by size, and asks for them from two sources.
func newRig(t *testing.T, sizes ...int) *rig {
	t.Helper()
	r := &rig{files: map[string]badhub.Content{}}
	for i, n := range sizes {
		name := fmt.Sprintf("file-%d.bin", i)
		r.names = append(r.names, name)
		r.files[name] = badhub.Random(uint64(1000+i), n)
	}
	r.hub = badhub.Of(r.files)
	hub, cdn := serve(t, r.hub), serve(t, r.hub)
	r.cdn = cdn
	r.hub.RedirectTo(cdn)
	m := r.hub.Manifest("test", r.names, repoA, repoB)
	sources, err := Sources(m, func(name string) string {
		return map[string]string{"HF_ENDPOINT": hub + "/", "HF_TOKEN": "hf_secret"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	r.job = Job{Dir: t.TempDir(), Files: m.Files, Sources: sources, Options: Options{
		Connections: 4, ChunkBytes: 128 << 10, Stall: 3 * time.Second, Backoff: time.Millisecond, Patience: 10 * time.Second,
		SaveEvery: 10 * time.Millisecond,
		Report: func(e Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, e)
		},
	}}
	return r
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// run fetches and checks what no fault may break: a file that has its name has the right bytes, and an error leaves none that has not.
func (r *rig) run(t *testing.T, ctx context.Context) error {
	t.Helper()
	err := Run(ctx, r.job)
	r.check(t, err)
	return err
}

func (r *rig) check(t *testing.T, err error) {
	t.Helper()
	entries, rerr := os.ReadDir(r.job.Dir)
	if rerr != nil {
		t.Fatal(rerr)
	}
	named := 0
	for _, e := range entries {
		if strings.Contains(e.Name(), PartSuffix) {
			if err == nil {
				t.Errorf("got %s left over after a whole download", e.Name())
			}
			continue
		}
		got, rerr := os.ReadFile(filepath.Join(r.job.Dir, e.Name()))
		if rerr != nil {
			t.Fatal(rerr)
		}
		named++
		if !bytes.Equal(got, r.bytes(e.Name())) {
			t.Errorf("%s has its name and wrong bytes", e.Name())
		}
	}
	if err == nil && named < len(r.job.Files) {
		t.Errorf("got %d files without an error, want %d", named, len(r.job.Files))
	}
}

func (r *rig) bytes(name string) []byte {
	c := r.hub.File(name)
	b := make([]byte, c.Size())
	if _, err := c.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		panic(err)
	}
	return b
}

// troubles are the texts of the faults that were told, and of the restarts.
func (r *rig) troubles(kind Kind) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, e := range r.events {
		if e.Kind == kind {
			fmt.Fprintln(&b, e.Err)
		}
	}
	return b.String()
}

func TestPlainDownload(t *testing.T) {
	r := newRig(t, 3<<20+7, 100, 2<<20, smallBytes, smallBytes+1)
	var done []string
	r.job.Done = func(f manifest.File) error {
		if _, err := os.Stat(filepath.Join(r.job.Dir, f.Name)); err != nil {
			t.Errorf("%s: told as done, but %v", f.Name, err)
		}
		done = append(done, f.Name)
		return nil
	}
	if err := r.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(done)
	if !slices.Equal(done, r.names) {
		t.Errorf("done: got %v, want %v", done, r.names)
	}
	for _, name := range r.names {
		if got, want := r.hub.Sent(name), r.hub.File(name).Size(); got != want {
			t.Errorf("%s: got %d bytes sent, want %d, each once", name, got, want)
		}
	}
	last := r.events[len(r.events)-1].Progress
	if last.Done != last.Total || last.Total == 0 || last.Active != 0 {
		t.Errorf("last progress: got %+v", last)
	}
	if len(r.troubles(Trouble)) > 0 {
		t.Errorf("got troubles:\n%s", r.troubles(Trouble))
	}
}

// TestTokenStaysWithTheHub: the redirect leads to another host, which must not learn the token.
func TestTokenStaysWithTheHub(t *testing.T) {
	r := newRig(t, 100, 2<<20)
	if err := r.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	tokens := r.hub.Tokens()
	if len(tokens) != 2 {
		t.Fatalf("got hosts %v, want two", tokens)
	}
	for host, token := range tokens {
		want := "Bearer hf_secret"
		if strings.HasSuffix(r.cdn, host) {
			want = ""
		}
		if token != want {
			t.Errorf("%s: got Authorization %q, want %q", host, token, want)
		}
	}
}

// TestProxy: requests go where the environment says, and the hub's own name is not looked up.
func TestProxy(t *testing.T) {
	r := newRig(t, 100, 1<<20+1)
	var through atomic.Int64
	proxy := serve(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Host != "hub.example" && "http://"+q.URL.Host != r.cdn {
			t.Errorf("got %s, want a request for a proxy", q.URL)
		}
		through.Add(1)
		r.hub.ServeHTTP(w, q)
	}))
	child := command(t, "pull", map[string]string{
		"HTTP_PROXY": proxy, "NO_PROXY": "", "HF_ENDPOINT": "http://hub.example", roleDir: r.job.Dir, roleFiles: manifestText(t, r.job.Files),
	})
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.check(t, nil)
	if through.Load() == 0 {
		t.Error("nothing went through the proxy")
	}
}

// TestPauseAndResume cancels at many points; nothing that was received is asked for again.
func TestPauseAndResume(t *testing.T) {
	r := newRig(t, 4<<20+3, 2<<20)
	r.job.RateBytes = 24 << 20
	pauses := 0
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
		err := r.run(t, ctx)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if pauses++; pauses > 200 {
			t.Fatal("no end in 200 runs")
		}
	}
	if pauses < 3 {
		t.Errorf("got %d pauses, want some", pauses)
	}
	// What was on its way when a request was ended is lost: at most what a connection and its sockets hold.
	ranges := r.hub.Asked("file-0.bin")
	var had extents
	for _, e := range ranges {
		had.add(e[0], e[1])
	}
	if want := (extents{{0, 4<<20 + 3}}); !slices.Equal(had, want) {
		t.Errorf("asked for %v, want %v", had, want)
	}
	if left := PartialBytes(r.job.Dir, r.job.Files[0]); left != 0 {
		t.Errorf("got %d bytes of a part after the end", left)
	}
}

// TestResumeAsksOnlyForTheRest: a job that failed keeps what it had, and the next one fetches exactly what is missing.
func TestResumeAsksOnlyForTheRest(t *testing.T) {
	r := newRig(t, 4<<20)
	name := r.names[0]
	var sent atomic.Int64
	r.hub.Misbehave(func(a badhub.Ask) badhub.Act {
		if !a.Redirect && sent.Add(a.To-a.From) > 2<<20 {
			return badhub.Act{Kind: badhub.Status, Status: 404}
		}
		return badhub.Act{}
	})
	err := r.run(t, t.Context())
	var gone *SourceError
	if !errors.As(err, &gone) || !strings.Contains(err.Error(), "404") {
		t.Fatalf("got %v, want a SourceError that tells 404", err)
	}
	had := PartialBytes(r.job.Dir, r.job.Files[0])
	if had == 0 || had > 2<<20 {
		t.Fatalf("got %d bytes kept", had)
	}
	r.hub.Misbehave(nil)
	before := r.hub.Sent(name)
	if err := r.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.hub.Sent(name) - before; got != 4<<20-had {
		t.Errorf("second run: got %d bytes sent, want %d", got, 4<<20-had)
	}
}

// TestDamagedPart: bytes or state that something changed between two runs end in the right file.
func TestDamagedPart(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, part, state string){
		"part gone":          func(t *testing.T, part, _ string) { must(t, os.Remove(part)) },
		"part shorter":       func(t *testing.T, part, _ string) { must(t, os.Truncate(part, 1<<20)) },
		"state gone":         func(t *testing.T, _, state string) { must(t, os.Remove(state)) },
		"state empty":        func(t *testing.T, _, state string) { must(t, os.Truncate(state, 0)) },
		"other version":      func(t *testing.T, _, state string) { edit(t, state, `"version":1`, `"version":2`) },
		"other file":         func(t *testing.T, _, state string) { edit(t, state, `"name":"file-0`, `"name":"file-9`) },
		"front beyond":       func(t *testing.T, _, state string) { edit(t, state, `"front":`, `"front":9`) },
		"hash not its front": func(t *testing.T, _, state string) { edit(t, state, `"hash":"c2hhA`, `"hash":"c2hhB`) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2<<20)
			var served atomic.Int64
			r.hub.Misbehave(func(a badhub.Ask) badhub.Act {
				if !a.Redirect && served.Add(a.To-a.From) > 1<<20 {
					return badhub.Act{Kind: badhub.Status, Status: 404}
				}
				return badhub.Act{}
			})
			if err := r.run(t, t.Context()); err == nil {
				t.Fatal("the first run got no error")
			}
			part := filepath.Join(r.job.Dir, r.names[0]+PartSuffix)
			damage(t, part, filepath.Join(r.job.Dir, r.names[0]+StateSuffix))
			r.hub.Misbehave(nil)
			if err := r.run(t, t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func edit(t *testing.T, file, old, new string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s: got %s, want %q in it", file, text, old)
	}
	must(t, os.WriteFile(file, []byte(strings.Replace(string(text), old, new, 1)), 0o644))
}

func TestRateLimit(t *testing.T) {
	r := newRig(t, 2<<20)
	r.job.RateBytes = 4 << 20
	began := time.Now()
	if err := r.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("got 2 MiB in %v at 4 MiB/s, want about 500 ms", took)
	}
}

func TestETA(t *testing.T) {
	if left, ok := (Progress{Done: 50, Total: 150, Rate: 10}).ETA(); !ok || left != 10*time.Second {
		t.Errorf("got %v, %v", left, ok)
	}
	for _, p := range []Progress{{Done: 1, Total: 2}, {Total: 1 << 60, Rate: 0.1}} {
		if left, ok := p.ETA(); ok {
			t.Errorf("%+v: got %v, want unknown", p, left)
		}
	}
	var m meter
	now := time.Now()
	for i := range 100 {
		rate := m.rate(now.Add(time.Duration(i)*time.Second/4), int64(i)*1000)
		if i >= 4 && (rate < 3900 || rate > 4100) || i < 4 && rate != 0 {
			t.Fatalf("sample %d: got %v bytes a second, want 4000 once a second has passed", i, rate)
		}
	}
	if len(m.samples) > 50 {
		t.Errorf("got %d samples kept, want those of the window", len(m.samples))
	}
}

func TestSources(t *testing.T) {
	m := manifest.Full()
	env := func(endpoint, token string) func(string) string {
		return func(name string) string { return map[string]string{"HF_ENDPOINT": endpoint, "HF_TOKEN": token}[name] }
	}
	s, err := Sources(m, env("", ""))
	if err != nil || len(s) != 2 || s[0].Base != "https://huggingface.co/mlx-community/Qwen3.6-35B-A3B-4bit/resolve/38740b847e4cb78f352aba30aa41c76e08e6eb46/" || s[0].Token != "" {
		t.Errorf("got %+v, %v", s, err)
	}
	if s, err = Sources(m, env("https://mirror.example/hf/", " hf_x\n")); err != nil || !strings.HasPrefix(s[1].Base, "https://mirror.example/hf/lmstudio-community/") || s[1].Token != "hf_x" {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, bad := range [][2]string{{"mirror.example", ""}, {"ftp://mirror.example", ""}, {"https://", ""}, {"https://m.example?x=1", ""}, {"", "two words"}} {
		if _, err := Sources(m, env(bad[0], bad[1])); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}

// TestFolderVanishes: the drive is ejected; nothing is created anew and the error names the folder.
func TestFolderVanishes(t *testing.T) {
	r := newRig(t, 4<<20)
	r.job.Dir = filepath.Join(t.TempDir(), "drive")
	must(t, os.Mkdir(r.job.Dir, 0o755))
	var once sync.Once
	r.hub.Misbehave(func(a badhub.Ask) badhub.Act {
		if !a.Redirect && a.From > 1<<20 {
			once.Do(func() { must(t, os.Rename(r.job.Dir, r.job.Dir+"-ejected")) })
		}
		return badhub.Act{}
	})
	err := Run(t.Context(), r.job)
	var lost *DiskError
	if !errors.As(err, &lost) || lost.Dir != r.job.Dir {
		t.Errorf("got %v, want a DiskError of the folder", err)
	}
	if _, err := os.Stat(r.job.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder was created anew: %v", err)
	}
	must(t, os.Rename(r.job.Dir+"-ejected", r.job.Dir))
	if err := r.run(t, t.Context()); err != nil {
		t.Errorf("after it came back: %v", err)
	}
}
