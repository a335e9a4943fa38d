package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pond/app/settings"
	"pond/assets"
	"pond/inference/cache"
	"pond/inference/memgate"
)

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// homeOf is a home in a folder of the test's own, with the tiny model chosen and a free port.
func homeOf(t *testing.T, change func(*Home, *settings.Settings)) (*Pond, *clock) {
	t.Helper()
	dir := t.TempDir()
	c := &clock{now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	h := Home{
		Paths: settings.Paths{Models: filepath.Join(dir, "models"), File: filepath.Join(dir, "settings.json"), Logs: filepath.Join(dir, "state")},
		Demo:  assets.Demo(), Now: c.read, every: 5 * time.Millisecond,
	}
	h.Log = OpenLog(h.Paths.Logs)
	h.Logger = h.Log.Logger()
	h.System.Pressure = func() memgate.Pressure { return memgate.Normal }
	s := settings.Default()
	s.Model, s.Address = tiny(t).Dir, "127.0.0.1:0"
	if change != nil {
		change(&h, &s)
	}
	if err := s.Save(h.Paths.File); err != nil {
		t.Fatal(err)
	}
	p, err := Open(h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		h.Log.Close()
	})
	return p, c
}

// until waits for a state.
func until(t *testing.T, p *Pond, what string, holds func(State) bool) State {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var last State
	p.Watch(ctx, func(s State) {
		if last = s; holds(s) {
			cancel()
		}
	})
	if !holds(last) {
		t.Fatalf("it did not become %s: %+v", what, last)
	}
	return last
}

func phase(p Phase) func(State) bool { return func(s State) bool { return s.Phase == p } }

// answerOf asks the endpoint for a few tokens.
func answerOf(base string) (int, error) {
	r, err := http.Post(base+"/chat/completions", "application/json", strings.NewReader(`{"model":"tiny","max_tokens":3,"messages":[{"role":"user","content":"secret question"}]}`))
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	_, err = io.Copy(io.Discard, r.Body)
	return r.StatusCode, err
}

// TestRestAndWake: unloading gives the memory back and keeps the port; asking after the health does not wake it, a request does and is answered.
func TestRestAndWake(t *testing.T) {
	p, _ := homeOf(t, nil)
	p.Do(context.Background(), Start)
	s := until(t, p, "running", phase(Running))
	if s.UnloadBytes <= 0 || p.Engine() == nil {
		t.Errorf("running: got %d bytes to unload", s.UnloadBytes)
	}
	for round := range 2 {
		p.Do(context.Background(), Unload)
		s = until(t, p, "unloaded", func(s State) bool { return s.Unloaded })
		if p.Engine() != nil || s.Phase != Running {
			t.Fatalf("unloaded: got %+v", s)
		}
		r, err := http.Get(strings.TrimSuffix(s.Endpoint(), "/v1") + "/health")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || !strings.Contains(string(body), "unloaded") || !p.State().Unloaded {
			t.Errorf("health: got %s, %v; want it told that the model is not loaded, and left so", body, err)
		}
		if round == 0 {
			var clients sync.WaitGroup
			for range 3 {
				clients.Go(func() {
					if code, err := answerOf(s.Endpoint()); err != nil || code != http.StatusOK {
						t.Errorf("a request that wakes it: got %d, %v", code, err)
					}
				})
			}
			clients.Wait()
		} else if err := p.Ask(context.Background(), "hello", func(string) { p.Do(context.Background(), Stop) }); err != nil && p.State().Phase == Failed {
			t.Errorf("the chat that wakes it: got %v", err)
		}
	}
	p.Stop()
	until(t, p, "stopped", phase(Stopped))
	if _, err := answerOf(s.Endpoint()); err == nil {
		t.Error("a stopped pond answers")
	}
}

// TestIdleUnload: the model is let go after idle time and not before, and work counts.
func TestIdleUnload(t *testing.T) {
	p, c := homeOf(t, func(_ *Home, s *settings.Settings) { s.IdleMinutes = 5 })
	p.Do(context.Background(), Start)
	s := until(t, p, "running", phase(Running))
	c.pass(4 * time.Minute)
	if code, err := answerOf(s.Endpoint()); err != nil || code != http.StatusOK {
		t.Fatalf("got %d, %v", code, err)
	}
	// The answer may have been shorter than a look; what the clock says at the next look decides.
	p.mu.Lock()
	p.worked = c.read()
	p.mu.Unlock()
	c.pass(4 * time.Minute)
	time.Sleep(50 * time.Millisecond)
	if s := p.State(); s.Unloaded {
		t.Error("it was unloaded four minutes after work")
	}
	c.pass(time.Minute)
	until(t, p, "unloaded", func(s State) bool { return s.Unloaded })
}

// TestPause: work that comes while Pond pauses waits and is not lost; the pause ends by the wall clock.
func TestPause(t *testing.T) {
	p, c := homeOf(t, nil)
	p.PauseUntil(c.read().Add(time.Hour)) // nothing runs: nothing to pause
	if s := p.State(); s.Phase == Paused {
		t.Fatalf("got %+v", s)
	}
	p.Do(context.Background(), Start)
	s := until(t, p, "running", phase(Running))
	p.Do(context.Background(), PauseHour)
	if s := p.State(); s.Phase != Paused || s.Line() != "Paused until 13:00" {
		t.Errorf("got %q", s.Line())
	}
	answered := make(chan error, 1)
	go func() {
		code, err := answerOf(s.Endpoint())
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("got status %d", code)
		}
		answered <- err
	}()
	until(t, p, "asked", func(s State) bool { return s.Work.Queued == 1 })
	select {
	case err := <-answered:
		t.Errorf("answered during the pause: %v", err)
	default:
	}
	c.pass(time.Hour)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	p.PauseUntil(time.Time{})
	if s := p.State(); s.Line() != "Paused" {
		t.Errorf("got %q", s.Line())
	}
	p.Do(context.Background(), Resume)
	if s := p.State(); s.Phase == Paused {
		t.Error("it still pauses")
	}
}

// TestBattery: when the power goes new work waits or Pond stops, as the user chose; when it is back it goes on.
func TestBattery(t *testing.T) {
	var on atomic.Bool
	var asked atomic.Int32
	p, _ := homeOf(t, func(h *Home, s *settings.Settings) {
		h.System.OnBattery = func() (bool, bool) { defer asked.Add(1); return on.Load(), true }
		s.OnBattery = settings.BatteryPause
	})
	looked := func() { // twice: the first may have been on its way
		t.Helper()
		want := asked.Load() + 2
		waitFor(t, "Pond asks for the power", func() bool { return asked.Load() >= want })
	}
	p.Do(context.Background(), Start)
	until(t, p, "running", phase(Running))
	on.Store(true)
	until(t, p, "paused on battery", func(s State) bool { return s.Line() == "Paused · on battery" })
	p.Resume() // what the user asks for stands
	looked()
	if s := p.State(); s.Phase == Paused {
		t.Error("it pauses again although the user said to go on")
	}
	on.Store(false)
	looked()
	on.Store(true)
	until(t, p, "paused again", phase(Paused))
	on.Store(false)
	until(t, p, "running on power", phase(Running))
	s := p.Settings()
	s.OnBattery = settings.BatteryStop
	if err := p.SaveSettings(s); err != nil {
		t.Fatal(err)
	}
	on.Store(true)
	until(t, p, "stopped on battery", phase(Stopped))
}

// TestPressure: short memory costs snapshots first, then the contexts of conversations that rest while new work waits, then the model.
func TestPressure(t *testing.T) {
	var level atomic.Int32
	p, c := homeOf(t, func(h *Home, _ *settings.Settings) {
		h.System.Pressure = func() memgate.Pressure { return memgate.Pressure(level.Load()) }
	})
	p.Do(context.Background(), Start)
	s := until(t, p, "running", phase(Running))
	if code, err := answerOf(s.Endpoint()); err != nil || code != http.StatusOK {
		t.Fatalf("got %d, %v", code, err)
	}
	level.Store(int32(memgate.Warning))
	until(t, p, "warned", func(s State) bool { return s.Pressure == memgate.Warning })
	waitFor(t, "no snapshots", func() bool { e := p.Engine(); return e != nil && e.Stats().SnapshotBytes == 0 })
	if s := p.State(); s.Phase != Running || p.Engine().Stats().ContextBytes == 0 {
		t.Errorf("a warning: got %s, and %d bytes of contexts, want it to go on with them", s.Phase, p.Engine().Stats().ContextBytes)
	}
	level.Store(int32(memgate.Critical))
	until(t, p, "paused", func(s State) bool { return s.Line() == "Paused · memory is short" })
	waitFor(t, "no contexts", func() bool { e := p.Engine(); return e != nil && e.Stats().ContextBytes == 0 })
	level.Store(int32(memgate.Normal))
	until(t, p, "running", phase(Running))
	level.Store(int32(memgate.Critical))
	until(t, p, "paused", phase(Paused))
	c.pass(criticalRest)
	until(t, p, "unloaded", func(s State) bool { return s.Unloaded })
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not become so: %s", what)
		}
	}
}

// TestAwakeOnlyWhileWorking: the machine is held awake while an answer is computed and let sleep after it; a system that cannot is told of once.
func TestAwakeOnlyWhileWorking(t *testing.T) {
	var held, taken atomic.Int32
	p, _ := homeOf(t, func(h *Home, _ *settings.Settings) {
		h.System.KeepAwake = func(string) (func(), error) {
			held.Add(1)
			taken.Add(1)
			return func() { held.Add(-1) }, nil
		}
	})
	p.Do(context.Background(), Start)
	until(t, p, "running", phase(Running))
	time.Sleep(30 * time.Millisecond)
	if n := taken.Load(); n != 0 {
		t.Errorf("idle: got %d assertions, want none", n)
	}
	ctx, stop := context.WithCancel(context.Background())
	asked := make(chan error, 1)
	go func() {
		var err error
		for ctx.Err() == nil { // an answer may be short
			err = p.Ask(ctx, "a long story", func(string) {})
		}
		asked <- err
	}()
	waitFor(t, "held awake", func() bool { return held.Load() == 1 })
	stop()
	<-asked
	waitFor(t, "let sleep", func() bool { return held.Load() == 0 })
	p.Stop()
	if n := held.Load(); n != 0 {
		t.Errorf("stopped: got %d assertions, want none", n)
	}
}

// TestTakenPort: the failure names who has the port and the next free one, and one click serves there.
func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, _ := homeOf(t, func(_ *Home, s *settings.Settings) { s.Address = l.Addr().String() })
	p.Do(context.Background(), Start)
	s := until(t, p, "failed", phase(Failed))
	if s.NextAddress == "" || s.Next().Action != UseNextPort {
		t.Fatalf("got %+v", s)
	}
	if holder := portHolder(l.Addr().String()); holder != "" && !strings.Contains(s.Failure, fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("got %q, want this process named", s.Failure)
	}
	for range 10 { // other tests take ports too
		s = p.State()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		left := false
		p.Do(context.Background(), UseNextPort)
		p.Watch(ctx, func(now State) {
			left = left || now.Phase == Loading
			if now.Phase == Running || left && now.Phase == Failed {
				cancel()
			}
		})
		if p.State().Phase == Running {
			break
		}
	}
	if got := until(t, p, "running", phase(Running)); got.Address != s.NextAddress {
		t.Errorf("got %s, want %s", got.Address, s.NextAddress)
	}
	again, err := settings.Load(p.home.Paths.File)
	if err != nil || again.ListenAddress() != s.NextAddress {
		t.Errorf("remembered: got %s, %v, want %s", again.ListenAddress(), err, s.NextAddress)
	}
}

// TestQuitEndsStreams: a stream that is being written when Pond quits ends with an event that says so.
func TestQuitEndsStreams(t *testing.T) {
	p, _ := homeOf(t, nil)
	p.Do(context.Background(), Start)
	s := until(t, p, "running", phase(Running))
	r, err := http.Post(s.Endpoint()+"/chat/completions", "application/json", strings.NewReader(`{"model":"tiny","stream":true,"max_tokens":30000,"messages":[{"role":"user","content":"a long story"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if _, err := r.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	go p.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatalf("the stream broke off: %v", err)
	}
	tail := string(text[max(0, len(text)-400):])
	if !strings.Contains(tail, `"error"`) && !strings.Contains(tail, "[DONE]") {
		t.Errorf("got a stream that ends in %q, want an error event or its end", tail)
	}
	p.Close() // a second end is none
}

// TestDiagnosticsArePrivate: nothing said, no key, no name.
func TestDiagnosticsArePrivate(t *testing.T) {
	t.Setenv("HOME", "/Users/gretel")
	t.Setenv("USER", "gretel")
	p, _ := homeOf(t, func(_ *Home, s *settings.Settings) {
		s.Key, s.SystemPrompt, s.Hosts, s.ModelsDir = "pond-verysecret", "You are my diary.", []string{"gretels-mac.local"}, "/Users/gretel/models"
		s.Origins = []string{"https://gretels-chat.example"}
	})
	p.Do(context.Background(), Start)
	s := until(t, p, "running", phase(Running))
	req, err := http.NewRequest(http.MethodPost, s.Endpoint()+"/chat/completions", strings.NewReader(`{"model":"tiny","max_tokens":3,"messages":[{"role":"user","content":"secret question"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer pond-verysecret")
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	p.log("adopted", "dir", "/Users/gretel/.cache/x", "other", "/home/hansel/models", "key", "pond-verysecret", "volume", "/Volumes/Gretels Disk/x")
	text := p.CopyDiagnostics()
	for _, private := range []string{"gretel", "Gretel", "hansel", "verysecret", "diary", "secret question"} {
		if strings.Contains(text, private) {
			t.Errorf("got %q in\n%s", private, text)
		}
	}
	for _, useful := range []string{"program", "api_key is set", "models_dir = ~/models", "model open", "~/.cache/x"} {
		if !strings.Contains(text, useful) {
			t.Errorf("got no %q in\n%s", useful, text)
		}
	}
	if _, err := os.Stat(p.home.Log.Path()); err != nil {
		t.Error(err)
	}
}

// TestSettingsApply: what is saved counts, what is wrong is refused and changes nothing.
func TestSettingsApply(t *testing.T) {
	p, _ := homeOf(t, nil)
	s := p.Settings()
	s.Model, s.Port, s.Address = DemoModel, 12345, ""
	if err := p.SaveSettings(s); err != nil {
		t.Fatal(err)
	}
	if got := p.State(); got.Model != DemoModel || !got.Ready || got.Address != "127.0.0.1:12345" || got.Verdict.Sentence == "" || len(got.Verdict.Sums) == 0 {
		t.Errorf("got %+v", got)
	}
	s.Port = 0
	if err := p.SaveSettings(s); err == nil || p.Settings().Port != 12345 {
		t.Errorf("a wrong port: got %v, and %d", err, p.Settings().Port)
	}
	if _, err := Open(Home{Paths: settings.Paths{File: filepath.Join(t.TempDir(), "none.json")}, Demo: assets.Demo()}); err != nil {
		t.Errorf("nothing chosen: %v", err)
	}
	broken := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Home{Paths: settings.Paths{File: broken}}); err == nil || !strings.Contains(err.Error(), broken) {
		t.Errorf("got %v, want the file named", err)
	}
	if err := New(Config{}).SaveSettings(settings.Default()); err == nil {
		t.Error("a pond without a home saved settings")
	}
	var syntax *json.SyntaxError
	if _, err := settings.Load(broken); !errors.As(err, &syntax) {
		t.Errorf("got %v", err)
	}
}

// TestWakeRefused: when there is no room for the model any more, the request that would wake it is told so, and the failure stands in the
// menu; nobody is left waiting.
func TestWakeRefused(t *testing.T) {
	var short atomic.Bool
	p, _ := homeOf(t, func(h *Home, _ *settings.Settings) {
		h.Memory = func() memgate.Reading {
			r := memgate.Reading{System: memgate.Linux, Total: memgate.Of(8 << 30), Available: memgate.Of(4 << 30)}
			if short.Load() {
				r.Available = memgate.Of(1 << 20)
			}
			return r
		}
	})
	p.Do(context.Background(), Start)
	s := until(t, p, "running", phase(Running))
	p.Do(context.Background(), Unload)
	until(t, p, "unloaded", func(s State) bool { return s.Unloaded })
	short.Store(true)
	r, err := http.Post(s.Endpoint()+"/chat/completions", "application/json", strings.NewReader(`{"model":"tiny","messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var answer struct {
		Error struct{ Message, Code string }
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(answer.Error.Message, "available") {
		t.Errorf("got %s %+v, %v; want the reason", r.Status, answer, err)
	}
	if s := until(t, p, "failed", phase(Failed)); !strings.Contains(s.Failure, "available") {
		t.Errorf("got %q", s.Failure)
	}
}

// TestRestKeepsConversations: a model that was let go and loaded again goes on where a conversation stood, with one read from the disk.
func TestRestKeepsConversations(t *testing.T) {
	dir := t.TempDir()
	p, _ := homeOf(t, func(h *Home, _ *settings.Settings) { h.Paths.Sessions = dir })
	p.Do(context.Background(), Start)
	s := until(t, p, "running", phase(Running))
	for range 2 {
		if code, err := answerOf(s.Endpoint()); err != nil || code != http.StatusOK {
			t.Fatalf("got %d, %v", code, err)
		}
		p.Unload()
		s = until(t, p, "unloaded", func(s State) bool { return s.Unloaded })
	}
	if code, err := answerOf(s.Endpoint()); err != nil || code != http.StatusOK {
		t.Fatalf("got %d, %v", code, err)
	}
	s = until(t, p, "read from the disk", func(s State) bool { return s.Work.Reuse.DiskTokens > 0 })
	if !strings.Contains(s.ReuseLine(), "from the disk") || !strings.Contains(s.KeptLine(), "on the disk") {
		t.Errorf("got %q, %q", s.ReuseLine(), s.KeptLine())
	}
	if err := p.ClearConversations(); err != nil {
		t.Fatal(err)
	}
	if u, err := cache.UseOf(dir); err != nil || u.LenBytes != 0 || p.State().KeptBytes != 0 {
		t.Errorf("cleared: got %+v, %v", u, err)
	}
	// Switched off, nothing stays and nothing comes.
	if _, err := answerOf(s.Endpoint()); err != nil {
		t.Fatal(err)
	}
	p.Unload()
	until(t, p, "unloaded, with files", func(s State) bool { return s.Unloaded })
	if u, err := cache.UseOf(dir); err != nil || u.Snapshots == 0 {
		t.Fatalf("unloaded: got %+v, %v, want files", u, err)
	}
	chosen := p.Settings()
	chosen.DiskGB = 0
	if err := p.SaveSettings(chosen); err != nil {
		t.Fatal(err)
	}
	p.Stop()
	if u, err := cache.UseOf(dir); err != nil || u.LenBytes != 0 {
		t.Errorf("switched off: got %+v, %v", u, err)
	}
}

// TestAQuestionStartsTheModel: a question to a model that is there and not started starts it and is answered; one that is stopped meanwhile is
// told so, and not started again.
func TestAQuestionStartsTheModel(t *testing.T) {
	p, _ := homeOf(t, nil)
	answered := false
	if err := p.Ask(context.Background(), "hello", func(string) { answered = true; p.Do(context.Background(), Stop) }); err != nil && !answered {
		t.Errorf("got %v, want an answer", err)
	}
	until(t, p, "stopped", phase(Stopped))
	asked := make(chan error, 1)
	go func() { asked <- p.Ask(context.Background(), "hello", func(string) {}) }()
	until(t, p, "started", func(s State) bool { return s.Phase != Stopped })
	p.Stop()
	<-asked // answered before, or told
	if s := p.State(); s.Phase != Stopped {
		t.Errorf("got %s, want it to stay stopped", s.Phase)
	}
}

// TestQuiet: other programs go first as soon as the user says so, also after the next start, and a menu tells.
func TestQuiet(t *testing.T) {
	p, _ := homeOf(t, nil)
	checked := func() bool {
		for _, i := range Menu(p.State()) {
			if i.Action == ToggleQuiet {
				return i.Checked
			}
		}
		return false
	}
	p.Do(context.Background(), Start)
	until(t, p, "running", phase(Running))
	if checked() || p.Engine().Stats().Quiet {
		t.Error("it is quiet from the start")
	}
	p.Do(context.Background(), ToggleQuiet)
	until(t, p, "quiet", func(s State) bool { return s.Quiet })
	if !checked() || !p.Engine().Stats().Quiet {
		t.Error("the menu, or the engine, does not know that it is quiet")
	}
	p.Stop()
	p.Do(context.Background(), Start)
	until(t, p, "running", phase(Running))
	if !checked() || !p.Engine().Stats().Quiet {
		t.Error("it was forgotten with the next start")
	}
}
