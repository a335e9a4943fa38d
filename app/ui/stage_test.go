package ui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"pond/app"
	"pond/app/chats"
	"pond/app/settings"
	"pond/assets"
	"pond/inference"
	"pond/inference/chat"
)

// stage is a UI with a player for the engine and the machine. Fyne's thread is the test's goroutine: what is posted runs when until is called.
type stage struct {
	t       *testing.T
	ui      *UI
	app     fyne.App
	dir     string // of the chats
	posts   chan func()
	actions []app.Action
	player  *player

	mu      sync.Mutex // protects what follows
	chosen  settings.Settings
	saved   int
	login   app.LoginStatus
	link    string // of the command line
	linkErr error
	adopted []app.AdoptMode
	removed int
	forgot  int
	reveals []string
	saveErr error
}

// player is an engine that says what a test wants, in the pieces that it wants.
type player struct {
	mu       sync.Mutex // protects what follows
	events   []chat.Event
	hold     chan struct{} // the answer waits at its end until this is closed; nil: it does not
	fail     error
	hurried  int
	circles  bool // the answer repeats itself
	requests int
}

func (p *player) ask(ctx context.Context, r inference.ChatRequest) (chats.Stream, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if p.fail != nil {
		return chats.Stream{}, p.fail
	}
	events, hold, at, circles := p.events, p.hold, 0, p.circles
	var err error
	return chats.Stream{
		Next: func() (inference.Update, bool) {
			if at < len(events) && ctx.Err() == nil {
				at++
				return inference.Update{Events: events[at-1 : at]}, true
			}
			if hold != nil {
				select {
				case <-hold:
				case <-ctx.Done():
				}
			}
			err = ctx.Err()
			return inference.Update{}, false
		},
		Err: func() error { return err },
		Result: func() inference.Result {
			return inference.Result{Finish: inference.FinishStop, Usage: inference.Usage{PromptTokens: 100, CompletionTokens: 50, DecodeTime: time.Second}}
		},
		StopThinking: func() { p.mu.Lock(); defer p.mu.Unlock(); p.hurried++ },
		Repeating:    func() bool { return circles },
	}, nil
}

// says makes the player answer with a text.
func (p *player) says(texts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = nil
	for _, t := range texts {
		p.events = append(p.events, chat.Event{Kind: chat.Text, Text: t})
	}
}

func newStage(t *testing.T, s app.State) *stage {
	t.Helper()
	st := &stage{t: t, app: test.NewTempApp(t), dir: t.TempDir(), posts: make(chan func(), 10000), player: &player{}, chosen: settings.Default()}
	st.build(s)
	return st
}

func (st *stage) build(s app.State) {
	store := chats.New(st.dir, st.player.ask)
	st.t.Cleanup(store.Close)
	st.ui = newUI(st.app, Controls{
		Do: func(a app.Action) { st.actions = append(st.actions, a) }, Chats: store,
		Settings: func() settings.Settings { st.mu.Lock(); defer st.mu.Unlock(); return st.chosen },
		SaveSettings: func(s settings.Settings) error {
			st.mu.Lock()
			defer st.mu.Unlock()
			if st.saveErr == nil {
				st.chosen = s
				st.saved++
			}
			return st.saveErr
		},
		LoginItem:    func() (app.LoginStatus, error) { st.mu.Lock(); defer st.mu.Unlock(); return st.login, nil },
		SetLoginItem: func(on bool) error { st.mu.Lock(); defer st.mu.Unlock(); st.login = app.LoginNeedsApproval; return nil },
		CommandLine:  func() string { st.mu.Lock(); defer st.mu.Unlock(); return st.link },
		SetCommand: func(on bool) error {
			st.mu.Lock()
			defer st.mu.Unlock()
			if st.link = ""; on {
				st.link = "/usr/local/bin/pond"
			}
			return st.linkErr
		},
		Adopt: func(_ app.Copy, m app.AdoptMode) error {
			st.mu.Lock()
			defer st.mu.Unlock()
			st.adopted = append(st.adopted, m)
			return nil
		},
		CopiesIn: func(string) []app.Copy { return nil },
		Forget:   func() error { st.mu.Lock(); defer st.mu.Unlock(); st.forgot++; return nil },
		Remove:   func() error { st.mu.Lock(); defer st.mu.Unlock(); st.removed++; return nil },
		Reveal: func(path string) error {
			st.mu.Lock()
			defer st.mu.Unlock()
			st.reveals = append(st.reveals, path)
			return nil
		},
		Log: func() ([]string, string, error) {
			b, err := os.ReadFile(filepath.Join(st.dir, "pond.log"))
			return strings.Split(strings.TrimSpace(string(b)), "\n"), filepath.Join(st.dir, "pond.log"), err
		},
		Version: "1.2.3", Built: "commit 0123456789ab of 2026-11-30", Icon: fyne.NewStaticResource("icon.svg", assets.Icon()),
	}, s, func(f func()) { st.posts <- f })
}

// until runs Fyne's thread until something is so, for as long as a slow machine may need.
func (st *stage) until(what string, ok func() bool) {
	st.t.Helper()
	st.within(time.Minute, what, ok)
}

// within is until with a limit of its own, for what lasts.
func (st *stage) within(d time.Duration, what string, ok func() bool) {
	st.t.Helper()
	limit := time.NewTimer(d)
	defer limit.Stop()
	for !ok() {
		select {
		case f := <-st.posts:
			f()
		case <-limit.C:
			st.t.Fatalf("waited %v for %s", d, what)
		}
	}
}

// settle runs what is posted until nothing has been for a moment.
func (st *stage) settle() {
	for {
		select {
		case f := <-st.posts:
			f()
		case <-time.After(150 * time.Millisecond):
			return
		}
	}
}

func (st *stage) openChat() *chatWindow {
	st.ui.Open(app.OpenChat)
	return st.ui.chat
}

// ask sends a question and waits for the end of its answer.
func (st *stage) ask(text string) {
	c := st.ui.chat
	n := len(c.view.Messages)
	c.entry.SetText(text)
	c.submit()
	st.until("an answer to "+text, func() bool { return len(c.view.Messages) == n+2 && c.view.Work == chats.Idle })
}

// gb is a number of gigabytes.
func gb(n float64) int64 { return int64(n * 1e9) }

func machine() app.MachineFacts {
	return app.MachineFacts{System: "macOS 26.1, arm64", Processor: "Apple M5 Pro", Memory: "48.0 GB, of which 31.2 GB are available"}
}

func allowed() app.Verdict {
	return app.Verdict{Known: true, Allowed: true, Sentence: "fits: needs 22.1 GB, and 31.2 GB are available", CeilingTokens: 98304, NeedBytes: gb(22.1), HaveBytes: gb(31.2),
		Sums: []app.Sum{{Label: "weights", Bytes: gb(19.51)}, {Label: "prefill workspace", Bytes: gb(0.6)}, {Label: "keys and values of 96K tokens", Bytes: gb(2.01)}, {Label: "in all", Bytes: gb(22.12)}}}
}

func disk() app.DiskState {
	return app.DiskState{Dir: "/Users/ada/Library/Application Support/pond/models/qwen3.6-35b-a3b", Line: "not installed", TotalBytes: gb(20.42), FreeBytes: gb(212.6), Headroom: gb(2)}
}

func stateOf(phase app.Phase) app.State {
	s := app.State{Phase: phase, Model: app.FullModel, Address: "127.0.0.1:11535", Machine: machine(), Verdict: allowed(), Disk: disk()}
	switch phase {
	case app.Running, app.Busy, app.Paused, app.Stopped, app.Loading:
		s.Ready = true
		s.Disk.DoneBytes, s.Disk.UsedBytes, s.Disk.Line = s.Disk.TotalBytes, s.Disk.TotalBytes, "ready"
	case app.Downloading:
		s.Job = app.Job{Kind: app.DownloadJob, Model: app.FullModel, DoneBytes: gb(8.82), TotalBytes: gb(20.42), Rate: 46.3e6, ETA: 4*time.Minute + 10*time.Second}
		s.Disk.DoneBytes, s.Disk.UsedBytes = gb(8.82), gb(8.82)
		for i := range 5 {
			f := app.FileProgress{Name: fmt.Sprintf("model-%05d-of-00004.safetensors", i), TotalBytes: gb(5.1)}
			switch i {
			case 0:
				f = app.FileProgress{Name: "config.json", DoneBytes: 6337, TotalBytes: 6337, Verified: true}
			case 1:
				f.DoneBytes, f.Verified = f.TotalBytes, true
			case 2:
				f.DoneBytes = gb(3.72)
			}
			s.Job.Files = append(s.Job.Files, f)
		}
		s.Job.Files = append(s.Job.Files, app.FileProgress{Name: "tokenizer.json", DoneBytes: 19_989_343, TotalBytes: 19_989_343, Verified: true})
	}
	if phase.Serving() {
		s.Executor, s.ContextTokens, s.UnloadBytes = "Metal, Apple M5 Pro", 98304, gb(22.1)
	}
	if phase == app.Busy {
		s.Work = app.Work{Active: 1, TokensPerSecond: 61.2}
	}
	return s
}
